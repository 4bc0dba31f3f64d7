//! Files of update plans: read, verified, written in every form, read back, and executed by both executors.

use super::{Files, Form, boxed, of_files};
use crate::counts::{Counts, Tally};
use crate::effort::is_small_update;
use crate::target::Subject;
use autobatch_ir::module::{Init, Module, ModuleBuilder};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::{StoreKind, UpdatePlan, Verified};
use autobatch_ir::{ParamId, States, Weights};
use autobatch_nn::optim::{Adagrad, Adam, AmsGrad, Momentum, Optimize, Optimizer, RmsProp, Sgd};
use autobatch_oracle::naive;
use autobatch_planner::update_plan;
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, GradientSource};
use autobatch_testing::hostile::tokens;

/// An update plan with the arrays that it changes.
struct Sample {
    plan: Verified<UpdatePlan>,
    weights: Weights,
    states: States,
}

struct Updates {
    files: Files,
    samples: Vec<Sample>,
    executors: [Executor; 2],
}

pub(super) fn open(form: Form) -> Box<dyn Subject> {
    let write = |plan: &UpdatePlan| match form {
        Form::Text => plan.to_text().into_bytes(),
        Form::Binary => plan.to_bytes(),
        Form::Json => serde_json::to_vec(plan).expect("every update plan has a JSON form"),
    };
    let samples = samples();
    let seeds = samples.iter().map(|sample| write(&sample.plan)).collect();
    let tokens: &[&str] = if form == Form::Json { &tokens::UPDATE_JSON } else { &tokens::UPDATE };
    let executors = [1, 2].map(|threads| Executor::with_isa(Isa::best(), threads));
    boxed(Updates { files: Files { form, seeds, tokens }, samples, executors })
}

fn samples() -> Vec<Sample> {
    let mut m = ModuleBuilder::new("updates");
    m.param("w", [3, 5], Init::Uniform(1.0));
    m.param("b", [5], Init::Uniform(1.0));
    m.table("t", [7, 2], Init::Uniform(1.0));
    let module = m.build().expect("the module is well formed");
    let rules: [Optimizer; 7] = [
        Sgd::new(0.1).into(),
        Sgd::new(0.1).clip_norm(1.0),
        Momentum::new(0.1, 0.9).into(),
        Adagrad::new(0.1).into(),
        RmsProp::new(0.1).centred().momentum(0.5).into(),
        Adam::new(0.1).into(),
        AmsGrad::new(0.1).average(0.5),
    ];
    rules.iter().map(|rule| sample(rule, &module)).collect()
}

fn sample(rule: &Optimizer, module: &Module) -> Sample {
    let recipe = rule.recipe(module, &rule.all(module)).expect("the rule is well typed");
    let plan = update_plan(module, &recipe).expect("the rule updates parameters");
    let plan = plan.verify().expect("the planner makes valid plans");
    let weights = Weights::init(module, 7);
    let states = recipe.states(&weights, module).expect("the arrays are small");
    Sample { plan, weights, states }
}

/// A dense gradient of every parameter.
struct Dense(Vec<Vec<f32>>);

impl GradientSource for Dense {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.0.get(param.index()).map(Vec::as_slice)
    }

    fn sparse_rows(&self, _: ParamId) -> Option<&[u32]> {
        None
    }
}

impl Subject for Updates {
    of_files!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let read = self.files.read_plan(
            input,
            counts,
            |text| UpdatePlan::from_text(text).map_err(|error| error.to_string()),
            |bytes| UpdatePlan::from_bytes(bytes).map_err(|error| error.to_string()),
            |plan: UpdatePlan| plan.verify().map_err(|errors| errors.to_string()),
        );
        let Some(plan) = read else { return };
        reads_back(&plan);
        counts.add(Tally::Accepted);
        if !is_small_update(&plan) {
            counts.add(Tally::Large);
            self.refuse(&plan).unwrap_or_else(|what| panic!("{what}\n{}", plan.to_text()));
            return;
        }
        let outcome = self.execute(&plan, counts);
        outcome.unwrap_or_else(|what| panic!("{what}\n{}", plan.to_text()));
    }
}

impl Updates {
    /// Gives arrays of another module to an update plan that declares much. The executors must reject them within the
    /// budget of the case.
    fn refuse(&mut self, plan: &Verified<UpdatePlan>) -> Result<(), String> {
        let Sample { weights, states, .. } = &self.samples[0];
        for executor in &mut self.executors {
            let (mut weights, mut states) = (weights.clone(), states.clone());
            let outcome = executor.update_with(plan, &Dense(Vec::new()), &mut weights, &mut states, &[]);
            if outcome.is_ok() {
                return Err(format!("{executor:?} updates arrays that the plan does not declare"));
            }
        }
        Ok(())
    }

    /// Executes an update plan with the naive executor, on one thread and on two.
    fn execute(&mut self, plan: &Verified<UpdatePlan>, counts: &mut Counts) -> Result<(), String> {
        let sample = self.samples.iter().find(|sample| sample.plan.stores == plan.stores);
        let floats = vec![0.25; plan.floats as usize];
        let gradient = |elements: usize| (0..elements).map(|at| 0.5 - at as f32 / 8.0).collect::<Vec<f32>>();
        let of_states = sample.map(|sample| sample.states.iter().map(|state| state.values()));
        let mut given: Vec<&[f32]> =
            sample.iter().flat_map(|sample| sample.weights.iter().map(|own| own.values())).collect();
        given.extend(of_states.into_iter().flatten());
        let mut given = given.into_iter();
        let stores = plan.stores.iter().map(|store| match (store.kind, given.len()) {
            (StoreKind::Grad(_), _) => gradient(store.ty.shape.elements()),
            (_, 0) => vec![0.5; store.ty.shape.elements()],
            (_, _) => given.next().unwrap_or_default().to_vec(),
        });
        let mut stores: Vec<Vec<f32>> = stores.collect();
        let sparse = vec![None; plan.stores.len()];
        naive::update(plan, &mut stores, &floats, &sparse).map_err(|error| error.to_string())?;
        counts.add(Tally::Executed);
        let Some(sample) = sample else { return Ok(()) };
        let dense = Dense(sample.weights.iter().map(|own| gradient(own.values().len())).collect());
        for executor in &mut self.executors {
            let (mut weights, mut states) = (sample.weights.clone(), sample.states.clone());
            let updated = executor.update_with(plan, &dense, &mut weights, &mut states, &floats);
            updated.map_err(|error| format!("{executor:?}: {error}"))?;
            let found =
                weights.iter().map(|own| own.values()).chain(states.iter().map(|state| state.values()));
            for (number, (found, expected)) in found.zip(&stores).enumerate() {
                if !found.iter().zip(expected).all(|(&a, &b)| same_bits(a, b)) {
                    return Err(format!(
                        "{executor:?}: store {number} is {found:?}, the naive executor has {expected:?}"
                    ));
                }
                counts.add(Tally::Values);
            }
        }
        Ok(())
    }
}

/// Writes an update plan in every form, and asserts that each reads back equal.
fn reads_back(plan: &Verified<UpdatePlan>) {
    let text = plan.to_text();
    let again = UpdatePlan::from_bytes(&plan.to_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == *plan, "the binary form reads back another plan\n{text}");
    let json = serde_json::to_string(&**plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again: UpdatePlan = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == **plan, "JSON reads back another plan\n{text}");
    let again = UpdatePlan::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == **plan && again.to_text() == text, "the text reads back another plan\n{text}");
}
