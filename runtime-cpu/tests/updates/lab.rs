//! A module with random gradients, and updates on this executor and the naive one.

use autobatch_ir::hash::split_mix;
use autobatch_ir::plan::{StoreKind, UpdatePlan, Verified};
use autobatch_ir::recipe::{StateInit, StateRecipe};
use autobatch_ir::{Init, Module, ModuleBuilder, ParamId, States, Weights};
use autobatch_nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Sgd,
};
use autobatch_oracle::naive;
use autobatch_planner::update_plan;
use autobatch_runtime_cpu::{Executor, GradientSource};
use std::sync::Arc;

/// A SplitMix64 generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number in -1..1.
    pub(crate) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

/// Gradients by parameter, and sparse rows.
#[derive(Clone, Default)]
pub(crate) struct Given {
    pub(crate) gradients: Vec<Vec<f32>>,
    pub(crate) sparse_rows: Vec<Option<Vec<u32>>>,
}

impl GradientSource for Given {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.gradients.get(param.index()).map(Vec::as_slice)
    }

    fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.sparse_rows.get(param.index())?.as_deref()
    }
}

/// Every rule.
pub(crate) fn every_rule() -> Vec<Optimizer> {
    vec![
        Sgd::new(0.1).into(),
        Momentum::new(0.1, 0.9).into(),
        Nesterov::new(0.1, 0.9).into(),
        Adagrad::new(0.1).into(),
        Adadelta::new(1.0).into(),
        RmsProp::new(0.1).centred().momentum(0.5).into(),
        Adam::new(0.1).into(),
        AdamW::new(0.1).into(),
        AmsGrad::new(0.1).average(0.5),
    ]
}

/// A matrix, a bias of odd length, and a table.
pub(crate) fn module() -> Arc<Module> {
    let mut m = ModuleBuilder::new("lab");
    m.param("w", [37, 29], Init::Uniform(1.0));
    m.param("b", [5], Init::Uniform(1.0));
    m.table("t", [11, 6], Init::Uniform(1.0));
    m.build().expect("the module is well formed")
}

pub(crate) fn all(module: &Module) -> Vec<ParamId> {
    (0..module.params.len()).map(ParamId::new).collect()
}

pub(crate) struct Lab {
    pub(crate) module: Arc<Module>,
    pub(crate) plan: Verified<UpdatePlan>,
    pub(crate) weights: Weights,
    pub(crate) states: States,
    pub(crate) optimizer: Optimizer,
}

impl Lab {
    pub(crate) fn new(module: &Arc<Module>, optimizer: impl Into<Optimizer>) -> Self {
        Self::training(module, optimizer, &all(module))
    }

    pub(crate) fn training(
        module: &Arc<Module>,
        optimizer: impl Into<Optimizer>,
        trained: &[ParamId],
    ) -> Self {
        let optimizer = optimizer.into();
        let recipe = optimizer.recipe(module, trained).expect("the rule is well typed");
        let plan = update_plan(module, &recipe).expect("something is updated");
        let plan = plan.verify().unwrap_or_else(|errors| panic!("{errors}"));
        let weights = Weights::init(module, 7);
        let states = recipe.states(&weights, module).expect("memory suffices");
        Self { module: Arc::clone(module), plan, weights, states, optimizer }
    }

    pub(crate) fn gradients(&self, random: &mut Random) -> Given {
        let sizes = self.module.params.iter().map(|decl| decl.ty.shape.elements());
        Given { gradients: sizes.map(|size| random.floats(size)).collect(), sparse_rows: Vec::new() }
    }

    pub(crate) fn next_floats(&self, scale: f64) -> Vec<f32> {
        self.optimizer.floats(self.states.updates() + 1, scale)
    }

    /// The stores of the plan and their sparse rows, in the form of the naive executor.
    pub(crate) fn stores(&self, given: &Given) -> (Vec<Vec<f32>>, Vec<Option<Vec<u32>>>) {
        let mut states = self.states.iter();
        let mut sparse_rows = Vec::new();
        let stores = self.plan.stores.iter().enumerate().map(|(number, store)| {
            sparse_rows.push(None);
            match store.kind {
                StoreKind::Param(_) => self.weights.get(ParamId::new(number)).to_vec(),
                StoreKind::State(_) => states.next().expect("one state per store").values().to_vec(),
                StoreKind::Grad(of) => {
                    sparse_rows[number] = given.sparse_rows(ParamId::new(of.index())).map(<[u32]>::to_vec);
                    given.gradients[of.index()].clone()
                }
            }
        });
        (stores.collect(), sparse_rows)
    }

    /// Computes one update with the naive executor. Does not change `self`.
    pub(crate) fn naive(&self, given: &Given, floats: &[f32]) -> Vec<Vec<f32>> {
        let (mut stores, sparse_rows) = self.stores(given);
        naive::update(&self.plan, &mut stores, floats, &sparse_rows).expect("everything fits");
        stores
    }

    /// Updates with an executor, and compares with the naive executor bit for bit.
    pub(crate) fn update(&mut self, executor: &mut Executor, given: &Given, scale: f64) {
        let floats = self.next_floats(scale);
        let expected = self.naive(given, &floats);
        executor
            .update_with(&self.plan, given, &mut self.weights, &mut self.states, &floats)
            .expect("everything fits");
        let (found, _) = self.stores(given);
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let name = &self.plan.stores[number].name;
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            assert!(bits(found) == bits(expected), "@{name} after update {}", self.states.updates());
        }
    }
}

/// Makes `count` states of the only parameter of a module.
pub(crate) fn states_of(module: &Arc<Module>, weights: &Weights, count: usize) -> States {
    let state = |number| StateRecipe { role: format!("s{number}"), init: StateInit::Fill(0.0) };
    let mut recipe =
        Optimizer::from(Sgd::new(0.1)).recipe(module, &all(module)).expect("the rule is well typed");
    recipe.params[0].states = (0..count).map(state).collect();
    recipe.states(weights, module).expect("memory suffices")
}
