//! A self-test of an adapter: one plan with every template and tile, forward and backward, executed on the adapter and by
//! the naive executor.

use crate::adapter::AdapterFacts;
use crate::error::GpuError;
use crate::executor::Executor;
use crate::options::Options;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Inputs, Plan, StoreId, StoreKind, Stores, Verified};
use autobatch_oracle::naive;
use std::time::{Duration, Instant};

/// A test of the GPU suite generates this plan and checks that no template is missing.
const PLAN: &str = include_str!("every_template.plan");

/// Maximum error of a healthy device, relative to the largest element of an output or a gradient.
const MAX_ERROR: f32 = 1e-5;

/// The result of a self-test.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// The adapter.
    pub adapter: AdapterFacts,
    /// The number of outputs and gradients that were compared.
    pub compared: usize,
    /// The number of those with the bits of the CPU.
    pub same_bits: usize,
    /// The largest error, relative to the largest element of its output or gradient.
    pub max_error: f32,
    /// The output or gradient with the largest error.
    pub worst: String,
    /// True if the second run had the bits of the first.
    pub same_when_repeated: bool,
    /// Duration of opening, compiling and the first run.
    pub first_run: Duration,
    /// Duration of the second run.
    pub second_run: Duration,
}

impl SelfTest {
    /// Returns whether the device computes correctly.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.max_error <= MAX_ERROR && self.same_when_repeated
    }
}

struct TestStores(Vec<Vec<f32>>);

impl Stores for TestStores {
    fn values(&self, store: StoreId) -> &[f32] {
        &self.0[store.index()]
    }
    fn version(&self, _: StoreId) -> u64 {
        1
    }
}

/// Distinct numbers in (-1/2, 1/2).
fn numbers(count: usize, phase: f32) -> Vec<f32> {
    (0..count).map(|at| (at as f32 * 0.731 + phase).sin() * 0.5).collect()
}

fn plan() -> Verified<Plan> {
    let plan = Plan::from_text(PLAN).expect("the text of the self-test parses");
    plan.verify().expect("the plan of the self-test verifies")
}

/// The words of all outputs and gradients of a run, with their names.
fn results(executor: &mut Executor, plan: &Plan) -> Result<Vec<(String, Vec<u32>)>, GpuError> {
    let mut all: Vec<(String, Vec<u32>)> = (0..plan.outputs.len())
        .map(|number| (format!("output {number}"), bytemuck::cast_slice(executor.output(number)).to_vec()))
        .collect();
    for (store, name) in gradients(plan) {
        let values = executor.gradient(store)?.unwrap_or_default();
        all.push((name, bytemuck::cast_slice(&values).to_vec()));
    }
    Ok(all)
}

/// The gradient stores of a plan, with their names.
fn gradients(plan: &Plan) -> impl Iterator<Item = (StoreId, String)> + '_ {
    let stores = (0..).map(StoreId).zip(&plan.stores);
    stores.filter_map(|(id, store)| match store.kind {
        StoreKind::Grad(of) => Some((id, format!("gradient of {:?}", plan.stores[of.index()].name))),
        StoreKind::Param(_) | StoreKind::State(_) => None,
    })
}

/// Opens an adapter, executes a plan with every template there twice and on the host once, and compares the results.
///
/// # Errors
/// If the adapter cannot be opened or the run fails.
pub fn self_test(options: Options) -> Result<SelfTest, GpuError> {
    let plan = plan();
    let given = plan.stores[..plan.given_stores()].iter().enumerate();
    let stores = TestStores(given.map(|(at, store)| numbers(store.ty.shape.elements(), at as f32)).collect());
    let floats = numbers(plan.all_floats() as usize, 2.0);
    // Every index of the plan has two values or more.
    let words: Vec<u32> = (0..plan.words).map(|word| word % 2).collect();
    let bound = Inputs { words: &words, floats: &floats, noise: Noise::On { seed: 7, step: 3 } };
    let naive = naive::execute(&plan, &stores.0, bound.words, bound.floats, bound.noise)
        .expect("the self-test binds what its plan reads");
    let start = Instant::now();
    let mut executor = Executor::new(options)?;
    executor.execute(&plan, &stores, bound)?;
    let first_run = start.elapsed();
    let found = results(&mut executor, &plan)?;
    let start = Instant::now();
    executor.execute(&plan, &stores, bound)?;
    let second_run = start.elapsed();
    let same_when_repeated = results(&mut executor, &plan)? == found;

    let outputs = (0..plan.outputs.len()).map(|number| naive.output(number).unwrap_or(&[]).to_vec());
    let gradients = gradients(&plan)
        .map(|(store, _)| bytemuck::cast_slice(naive.gradient(store).unwrap_or(&[])).to_vec());
    let expected: Vec<Vec<u32>> = outputs.chain(gradients).collect();
    let (mut same_bits, mut max_error, mut worst) = (0, 0f32, String::new());
    for ((name, found), expected) in found.into_iter().zip(&expected) {
        same_bits += usize::from(found == *expected);
        let error = relative_error(bytemuck::cast_slice(&found), bytemuck::cast_slice(expected));
        if error > max_error {
            (max_error, worst) = (error, name);
        }
    }
    let adapter = executor.gpu().map(|gpu| gpu.facts().clone());
    let adapter = adapter.ok_or_else(|| GpuError::Lost { reason: "during the self-test".to_owned() })?;
    let compared = expected.len();
    Ok(SelfTest { adapter, compared, same_bits, max_error, worst, same_when_repeated, first_run, second_run })
}

/// The largest difference relative to the largest element; infinite if a number is missing or NaN. Words that are no floats
/// are tiny floats, so a difference between those is infinite, too.
#[must_use]
pub fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    let largest = expected.iter().fold(f32::MIN_POSITIVE, |max, x| max.max(x.abs()));
    let is_word = largest == f32::MIN_POSITIVE;
    let share = |(a, b): (&f32, &f32)| match a.to_bits() == b.to_bits() {
        true => 0.0,
        false if is_word => f32::INFINITY,
        false => (a - b).abs() / largest,
    };
    let shares = found.iter().zip(expected).map(share);
    let lengths = if found.len() == expected.len() { 0.0 } else { f32::INFINITY };
    shares.fold(lengths, |max, share| if share.is_nan() { f32::INFINITY } else { max.max(share) })
}

#[cfg(test)]
mod tests;
