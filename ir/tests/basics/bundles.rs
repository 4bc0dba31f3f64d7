//! Modules that contain trained weights.

use autobatch_ir::module::{Init, Module, ModuleBuilder, ParamKind};
use autobatch_ir::types::DType;
use autobatch_ir::weights::Weights;

#[test]
fn a_module_file_with_values_restores_them_for_any_seed() {
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
