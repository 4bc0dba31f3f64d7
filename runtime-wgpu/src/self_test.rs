//! A look at an adapter: one small plan, executed there and by the naive executor.

use crate::adapter::AdapterFacts;
use crate::error::GpuError;
use crate::executor::Executor;
use crate::options::{Options, Terms};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Bound, Plan, StoreId, Stores, Verified};
use autobatch_oracle::naive;
use std::time::{Duration, Instant};

/// Twenty lanes of a product (in tiles), `tanh`, softmax and a sum of squares.
const PLAN: &str = r#"
autobatch plan 2
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

/// The largest share of a row's largest element that a healthy device is off by.
const fn healthy(terms: Terms) -> f32 {
    match terms {
        Terms::Whole => 1e-5,
        Terms::Pairs => 2e-5,
        Terms::Halves => 1e-2,
    }
}

/// What a look at an adapter found.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// The adapter.
    pub adapter: AdapterFacts,
    /// Whether the results have the bits of the CPU: the device fuses and divides as the definition says.
    pub same_bits: bool,
    /// The largest difference, as a share of the largest element of its row.
    pub off: f32,
    /// How products were made, if the adapter has matrix units.
    pub terms: Terms,
    /// How long opening, compiling and the first run took.
    pub first: Duration,
    /// How long the second run took.
    pub again: Duration,
}

impl SelfTest {
    /// Whether the device computes what it should.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.off <= healthy(self.terms)
    }
}

struct Drawn(Vec<Vec<f32>>);

impl Stores for Drawn {
    fn values(&self, store: StoreId) -> &[f32] {
        &self.0[store.index()]
    }
    fn version(&self, _: StoreId) -> u64 {
        1
    }
}

/// A wave of numbers in (-1/2, 1/2), with no two alike.
fn drawn(count: usize, phase: f32) -> Vec<f32> {
    (0..count).map(|at| (at as f32 * 0.731 + phase).sin() * 0.5).collect()
}

fn plan() -> Verified<Plan> {
    let plan = Plan::from_text(PLAN).expect("the text of the self-test parses");
    plan.verify().expect("the plan of the self-test verifies")
}

/// Opens an adapter, executes a small plan there twice and here once, and compares.
///
/// # Errors
/// If the adapter cannot be opened or the run fails.
pub fn self_test(options: Options) -> Result<SelfTest, GpuError> {
    let plan = plan();
    let (stores, floats) = (Drawn(vec![drawn(576, 0.0), drawn(24, 1.0)]), drawn(480, 2.0));
    let bound = Bound { words: &[], floats: &floats, noise: Noise::Off };
    let naive = naive::execute(&plan, &stores.0, bound.words, bound.floats, bound.noise)
        .expect("the self-test binds what its plan reads");
    let terms = options.terms;
    let start = Instant::now();
    let mut executor = Executor::new(options)?;
    executor.execute(&plan, &stores, bound)?;
    let first = start.elapsed();
    let start = Instant::now();
    executor.execute(&plan, &stores, bound)?;
    let again = start.elapsed();
    let (mut same_bits, mut off) = (true, 0f32);
    for number in 0..plan.outputs.len() {
        let expected: Vec<f32> =
            naive.output(number).unwrap_or(&[]).iter().map(|&w| f32::from_bits(w)).collect();
        let largest = expected.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        for (a, b) in executor.output(number).iter().zip(&expected) {
            same_bits &= a.to_bits() == b.to_bits();
            let share = (a - b).abs() / largest;
            off = if share.is_nan() { f32::INFINITY } else { off.max(share) };
        }
    }
    let adapter = executor.gpu().map(|gpu| gpu.facts().clone());
    let adapter = adapter.ok_or_else(|| GpuError::Lost { reason: "during the self-test".to_owned() })?;
    Ok(SelfTest { adapter, same_bits, off, terms, first, again })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_the_self_test_verifies() {
        assert_eq!(plan().steps.len(), 1);
    }
}
