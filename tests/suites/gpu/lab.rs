//! A module with every kind of parameter, minibatches over it, and an optimiser: executed on a device, and by the
//! naive executor along the same gradients.

use crate::common::{inputs_of, training};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, Module, ModuleBuilder, ParamKind};
use autobatch_ir::plan::{Plan, StoreId, StoreKind, UpdatePlan, Verified};
use autobatch_ir::{DType, Param, ParamId, States, Table, Weights};
use autobatch_nn::optim::Optimizer;
use autobatch_oracle::naive;
use autobatch_planner::{Planner, Request, update_plan};
use autobatch_runtime_wgpu::{Executor, Trained};
use std::sync::Arc;

/// Rows of the table and its width: more than one block of a sum of squares.
pub(crate) const TABLE: (u32, usize) = (900, 6);

pub(crate) struct Lab {
    module: Arc<Module>,
    words: Table,
    w: Param,
    b: Param,
    heads: [Param; 2],
    optimizer: Optimizer,
    plan: Verified<UpdatePlan>,
    /// The stores of the device. After the first update only their versions are meaningful.
    pub(crate) weights: Weights,
    pub(crate) states: States,
    /// The results of the naive executor for the same gradients.
    naive: Vec<Vec<f32>>,
    sparse: Option<Vec<u32>>,
}

impl Lab {
    pub(crate) fn new(optimizer: impl Into<Optimizer>) -> Self {
        let mut m = ModuleBuilder::new("lab");
        let words = m.table("t", [TABLE.0 as usize, TABLE.1], Init::Uniform(1.0));
        let w = m.param("w", [TABLE.1, 29], Init::Uniform(1.0));
        let b = m.param("b", [29], Init::Uniform(1.0));
        let head = |m: &mut ModuleBuilder, name, dtype| {
            m.param_stored_as(name, ParamKind::Param, dtype, [29, 7], Init::Uniform(1.0))
        };
        let heads = [head(&mut m, "h", DType::F16), head(&mut m, "g", DType::BF16)];
        let module = m.build().expect("sound");
        let optimizer = optimizer.into();
        let trained: Vec<ParamId> = (0..module.params.len()).map(ParamId::new).collect();
        let recipe = optimizer.recipe(&module, &trained).expect("the rule is well typed");
        let plan = update_plan(&module, &recipe).expect("something is updated").verify().expect("verifies");
        let weights = Weights::init(&module, 7);
        let states = recipe.states(&weights, &module).expect("there is memory");
        let params = weights.iter().map(|param| param.values().to_vec());
        let naive = params.chain(states.iter().map(|state| state.values().to_vec())).collect();
        Self { module, words, w, b, heads, optimizer, plan, weights, states, naive, sparse: None }
    }

    /// A minibatch with lookups, and the plan that trains on it.
    pub(crate) fn graph(&self, words: &[u32]) -> (GraphData, Verified<Plan>) {
        let (graph, losses) = self.emitted(words);
        let plan = training(&graph, &losses);
        (graph, plan)
    }

    fn emitted(&self, words: &[u32]) -> (GraphData, Vec<(ValueId, f32)>) {
        let g = Graph::new(&self.module);
        let mut losses = Vec::new();
        for (key, &word) in words.iter().enumerate() {
            g.instance(key as u64);
            let x = self.words.lookup(&g, word);
            let y = g.affine([x], self.w, Some(self.b)).tanh();
            let [h, k] = self.heads.map(|head| g.affine([y], head, None).square().sum());
            losses.extend((h + k).id().map(|id| (id, 1.0 / words.len() as f32)));
        }
        (g.finish().expect("sound"), losses)
    }

    /// The losses of a minibatch, without gradients.
    pub(crate) fn losses(&self, executor: &mut Executor, words: &[u32]) -> Vec<f32> {
        let (graph, losses) = self.emitted(words);
        let wanted: Vec<ValueId> = losses.iter().map(|loss| loss.0).collect();
        let request = Request { wanted: &wanted, ..Request::default() };
        let plan = Planner::default().plan(&graph, &request).expect("plans").verify().expect("verifies");
        executor.execute(&plan, &self.weights, inputs_of(&graph, false)).expect("executes");
        (0..losses.len()).map(|loss| executor.output(loss)[0]).collect()
    }

    /// Executes minibatches whose gradients accumulate, then one update on the device and one on the host.
    pub(crate) fn step(&mut self, executor: &mut Executor, minibatches: &[&[u32]]) {
        let mut sums: Vec<Vec<f32>> = Vec::new();
        for (number, words) in minibatches.iter().enumerate() {
            let (graph, plan) = self.graph(words);
            executor.set_accumulate_gradients(number > 0);
            executor.execute(&plan, &self.weights, inputs_of(&graph, false)).expect("executes");
            sums = (0..self.module.params.len())
                .map(|param| {
                    let store = plan.gradient_of(ParamId::new(param)).expect("it is trained");
                    executor.gradient(store).expect("executes").expect("it is made")
                })
                .collect();
        }
        executor.set_accumulate_gradients(false);
        let mut sparse: Vec<u32> = minibatches.concat();
        sparse.sort_unstable();
        sparse.dedup();
        let floats = self.floats();
        let mut stores = self.naive.clone();
        let mut rows = vec![None; self.plan.stores.len()];
        for (number, store) in self.plan.stores.iter().enumerate() {
            let StoreKind::Grad(of) = store.kind else { continue };
            rows[number] = (of.index() == 0).then(|| sparse.clone());
            stores.push(sums[of.index()].clone());
        }
        naive::update(&self.plan, &mut stores, &floats, &rows).expect("everything fits");
        stores.truncate(self.naive.len());
        self.naive = stores;
        self.sparse = Some(sparse);
        let mut trained = Trained { weights: &mut self.weights, states: &mut self.states };
        executor.update(&self.plan, &mut trained, &floats).expect("updates");
        self.states.set_updates(self.states.updates() + 1);
    }

    /// The largest difference between device and naive executor, relative to the largest element of an array, and
    /// whether all bits are equal.
    pub(crate) fn compare(&self, executor: &Executor) -> (f32, bool) {
        let (mut off, mut same) = (0f32, true);
        for param in 0..self.module.params.len() {
            for (store, found) in executor.updated(StoreId(param as u32)).expect("reads") {
                let expected = &self.naive[store.index()];
                assert_eq!(found.len(), expected.len(), "{store}");
                let largest = expected.iter().fold(1e-3f32, |most, x| most.max(x.abs()));
                for (a, b) in found.iter().zip(expected) {
                    same &= a.to_bits() == b.to_bits();
                    let share = (a - b).abs() / largest;
                    off = if share.is_nan() { f32::INFINITY } else { off.max(share) };
                }
            }
        }
        (off, same)
    }

    /// The table and its states on the device.
    pub(crate) fn table(&self, executor: &Executor) -> Vec<Vec<f32>> {
        executor.updated(StoreId(0)).expect("reads").into_iter().map(|(_, values)| values).collect()
    }

    /// The rows that the last step looked up.
    pub(crate) fn sparse_rows(&self) -> &[u32] {
        self.sparse.as_deref().unwrap_or(&[])
    }

    /// Copies the values of the device to the host.
    pub(crate) fn receive(&mut self, executor: &Executor) {
        for param in 0..self.module.params.len() {
            for (store, values) in executor.updated(StoreId(param as u32)).expect("reads") {
                match store.index().checked_sub(self.weights.len()) {
                    None => self.weights.receive(ParamId::new(store.index()), &values).expect("fits"),
                    Some(state) => self.states.as_mut_slice()[state].receive(&values).expect("fits"),
                }
            }
        }
    }

    /// The floats of the next update.
    pub(crate) fn floats(&self) -> Vec<f32> {
        self.optimizer.floats(self.states.updates() + 1, 1.0)
    }

    /// The update plan.
    pub(crate) fn plan(&self) -> &Verified<UpdatePlan> {
        &self.plan
    }
}
