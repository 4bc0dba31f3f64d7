//! Modules that contain trained weights, for deployment.
//!
//! A declaration may list its initial values ([`Init::Values`]), and module files store them. So a
//! module whose declarations list the trained values is a complete bundle of cells and parameters,
//! and needs no second format. Loading it and drawing weights gives the trained values for any seed.

use super::{Init, Module, ParamDecl};
use crate::weights::Weights;
use std::sync::Arc;

impl Module {
    /// This module with these weights as the initial values of its parameters. Handles of this
    /// module are valid for the new one.
    ///
    /// # Panics
    /// If the weights belong to a module with other parameters.
    #[must_use]
    pub fn with_values(&self, weights: &Weights) -> Arc<Self> {
        assert_eq!(weights.len(), self.params.len(), "weights must have the parameters of the module");
        let param = |(decl, held): (&ParamDecl, &crate::weights::ParamValues)| {
            assert_eq!((held.name(), held.ty()), (&*decl.name, decl.ty), "weights must fit the module");
            ParamDecl { init: Init::Values(held.values().into()), ..decl.clone() }
        };
        let params = self.params.iter().zip(weights.iter()).map(param).collect();
        Arc::new(Self { params, ..self.clone() })
    }
}
