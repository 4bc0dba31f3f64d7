//! A module with weights inside: what is shipped.
//!
//! Declarations may name their first values ([`Init::Values`]), and files of modules hold them; so a
//! module whose declarations name the trained values *is* the bundle of cells and parameters, with
//! no second format: loading it and drawing weights gives the trained ones, whatever the seed.

use super::{Init, Module, ParamDecl};
use crate::weights::Weights;
use std::sync::Arc;

impl Module {
    /// This module with these weights as the initial values of its parameters. Handles of this
    /// module are handles of that one too.
    ///
    /// # Panics
    /// If the weights are of a module with other parameters.
    #[must_use]
    pub fn with_values(&self, weights: &Weights) -> Arc<Self> {
        assert_eq!(weights.len(), self.params.len(), "weights have the parameters of their module");
        let param = |(decl, held): (&ParamDecl, &crate::weights::ParamValues)| {
            assert_eq!((held.name(), held.ty()), (&*decl.name, decl.ty), "weights fit their module");
            ParamDecl { init: Init::Values(held.values().into()), ..decl.clone() }
        };
        let params = self.params.iter().zip(weights.iter()).map(param).collect();
        Arc::new(Self { params, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use crate::module::{Init, Module, ModuleBuilder, ParamKind};
    use crate::types::DType;
    use crate::weights::Weights;

    #[test]
    fn a_module_with_values_gives_them_back_from_a_file_whatever_the_seed() {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [3, 4], Init::Glorot(1.0));
        m.table("t", [5, 2], Init::Uniform(1.0));
        m.param_stored_as("half", ParamKind::Param, DType::F16, [7], Init::Normal(1.0));
        let module = m.build().unwrap();
        let trained = Weights::init(&module, 17);
        let loaded = Module::from_bytes(&module.with_values(&trained).to_bytes()).unwrap();
        assert_eq!(Weights::init(&loaded, 99), trained);
        assert_ne!(Weights::init(&module, 99), trained);
    }
}
