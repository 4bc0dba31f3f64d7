//! The update plans of optimisers: their contents, and their round trips through text, bytes and JSON.

use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Update, UpdatePlan};
use autobatch_ir::{DType, Init, Module, ModuleBuilder, ParamId};
use autobatch_nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Sgd,
};
use autobatch_planner::update_plan;
use std::path::Path;
use std::sync::Arc;

fn module() -> Arc<Module> {
    let mut m = ModuleBuilder::new("model");
    m.param("w", [8, 6], Init::ZEROS);
    m.param("b", [6], Init::ZEROS);
    m.table("embed", [50, 4], Init::ZEROS);
    m.param_stored_as("h", ParamKind::Param, DType::BF16, [3, 3], Init::ZEROS);
    m.build().expect("the module is well formed")
}

fn plan(optimizer: impl Into<Optimizer>) -> UpdatePlan {
    let (module, optimizer) = (module(), optimizer.into());
    let recipe = optimizer.recipe(&module, &optimizer.all(&module)).expect("the rule is well typed");
    update_plan(&module, &recipe).expect("the recipe updates a parameter")
}

fn optimizers() -> Vec<Optimizer> {
    vec![
        Sgd::new(0.1).into(),
        Momentum::new(0.1, 0.9).sparse_rows(),
        Nesterov::new(0.1, 0.9).weight_decay(0.1),
        Adagrad::new(0.1).clip_value(1.0),
        Adadelta::new(1.0).average(0.99),
        RmsProp::new(0.1).centred().momentum(0.9).clip_norm(1.0),
        Adam::new(1e-3).clip_norm(5.0).sparse_rows(),
        AdamW::new(1e-3).decay_only(|decl| decl.name != "b").average(0.999),
        AmsGrad::new(1e-3).decoupled_weight_decay(0.1).clip_norm(1.0),
    ]
}

#[test]
fn plans_of_every_optimiser_are_valid_and_survive_text_bytes_and_json() {
    for optimizer in optimizers() {
        let plan =
            plan(optimizer.clone()).verify().unwrap_or_else(|errors| panic!("{optimizer:?}: {errors}"));
        let text = plan.to_text();
        let read = UpdatePlan::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(read == *plan && read.to_text() == text, "{text}");
        assert_eq!(UpdatePlan::from_bytes(&plan.to_bytes()).unwrap_or_else(|error| panic!("{error}")), plan);
        let json = serde_json::to_string(&*plan).expect("plans are JSON");
        assert_eq!(serde_json::from_str::<UpdatePlan>(&json).expect("JSON is read back"), *plan);
    }
}

#[test]
fn equal_recipes_give_equal_plans_and_parameters_share_kernels() {
    for optimizer in optimizers() {
        assert_eq!(plan(optimizer.clone()), plan(optimizer));
    }
    let adam = plan(Adam::new(1e-3).clip_norm(5.0).sparse_rows());
    let names: Vec<&str> = adam.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["@clip", "@adam", "@adam"], "one Adam kernel for f32, one for rounded storage");
    let sparse = adam.updates.iter().map(|update| matches!(update, Update::Apply { sparse: true, .. }));
    assert_eq!(sparse.collect::<Vec<bool>>(), [false, false, false, false, true, false]);
}

#[test]
fn numbers_that_change_between_updates_are_not_part_of_a_plan() {
    let module = module();
    let all: Vec<ParamId> = (0..module.params.len()).map(ParamId::new).collect();
    let of = |rate: f64| {
        let recipe = Adam::new(rate).clip_norm(5.0).recipe(&module, &all).expect("the rule is well typed");
        update_plan(&module, &recipe).expect("the recipe updates a parameter")
    };
    assert_eq!(of(1e-3), of(0.5));
}

/// The corpus contains this plan, so mutation tests also change updates.
#[test]
fn the_committed_update_plan_is_that_of_adam() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/plans/update_adam.update");
    let text = plan(Adam::new(1e-3).clip_norm(5.0).weight_decay(0.01).sparse_rows()).to_text();
    if std::env::var_os("AUTOBATCH_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the corpus is there");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "review the change, then accept it with AUTOBATCH_BLESS=1:\n{text}");
}
