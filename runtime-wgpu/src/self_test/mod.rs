//! A self-test of an adapter: one small plan, executed on the adapter and by the naive executor.

use crate::adapter::AdapterFacts;
use crate::error::GpuError;
use crate::executor::Executor;
use crate::options::Options;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Inputs, Plan, StoreId, Stores, Verified};
use autobatch_oracle::naive;
use std::time::{Duration, Instant};

/// Twenty lanes of a product (in tiles), `tanh`, softmax and a norm.
const PLAN: &str = r#"
autobatch plan 4
module "self-test"
structure 0x00000000000000000000000000000001
mode infer
store @w param f32[24,24]
store @b param f32[24]
bind words 0 floats 480
slab s0 value {h: f32[24], n: f32} x20
kernel k0 cell (%0: f32[24]) [@0: f32[24,24], @1: f32[24]] {
  temp %1: f32[24], %2: f32[24], %3: f32[24], %4: f32
  prod %1 = @1 + %0 . @0[0..24]
  map 24 { t0 = tanh %1 -> %2 }
  row %3 = softmax %2
  row %4 = norm %1
  return %3, %4
}
wave 0 f0 k0[@w, @b] x20 -> s0.h[0..20] s0.n[0..20] <- x[0..480 by 24] = n0..n20
output "first" s0.h[0]
output "last" s0.h[19]
output "norm" s0.n[7]
certificate batches 1 bound 1 | rows copied 0 gathered 0 direct 0 | slabs 2000 bytes
"#;

/// Maximum error of a healthy device, relative to the largest element of a row.
const MAX_ERROR: f32 = 1e-5;

/// The result of a self-test.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// The adapter.
    pub adapter: AdapterFacts,
    /// True if the results have the bits of the CPU.
    pub same_bits: bool,
    /// The largest error, relative to the largest element of its row.
    pub max_error: f32,
    /// Duration of opening, compiling and the first run.
    pub first_run: Duration,
    /// Duration of the second run.
    pub second_run: Duration,
}

impl SelfTest {
    /// Returns whether the device computes correctly.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.max_error <= MAX_ERROR
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

/// Opens an adapter, executes a small plan there twice and on the host once, and compares the results.
///
/// # Errors
/// If the adapter cannot be opened or the run fails.
pub fn self_test(options: Options) -> Result<SelfTest, GpuError> {
    let plan = plan();
    let (stores, floats) = (TestStores(vec![numbers(576, 0.0), numbers(24, 1.0)]), numbers(480, 2.0));
    let bound = Inputs { words: &[], floats: &floats, noise: Noise::Off };
    let naive = naive::execute(&plan, &stores.0, bound.words, bound.floats, bound.noise)
        .expect("the self-test binds what its plan reads");
    let start = Instant::now();
    let mut executor = Executor::new(options)?;
    executor.execute(&plan, &stores, bound)?;
    let first_run = start.elapsed();
    let start = Instant::now();
    executor.execute(&plan, &stores, bound)?;
    let second_run = start.elapsed();
    let (mut same_bits, mut max_error) = (true, 0f32);
    for number in 0..plan.outputs.len() {
        let expected: Vec<f32> =
            naive.output(number).unwrap_or(&[]).iter().map(|&w| f32::from_bits(w)).collect();
        let largest = expected.iter().fold(f32::MIN_POSITIVE, |max, x| max.max(x.abs()));
        for (a, b) in executor.output(number).iter().zip(&expected) {
            same_bits &= a.to_bits() == b.to_bits();
            let share = (a - b).abs() / largest;
            max_error = if share.is_nan() { f32::INFINITY } else { max_error.max(share) };
        }
    }
    let adapter = executor.gpu().map(|gpu| gpu.facts().clone());
    let adapter = adapter.ok_or_else(|| GpuError::Lost { reason: "during the self-test".to_owned() })?;
    Ok(SelfTest { adapter, same_bits, max_error, first_run, second_run })
}

#[cfg(test)]
mod tests;
