//! The executors of a bench: the naive one, and the CPU's on one thread and on two.

use crate::effort::{LIMITS, are_few};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Limits, Plan, StoreId, Stores, Verified};
use autobatch_oracle::naive::{Executed, execute};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of one run.
pub(crate) struct Numbers<'a> {
    /// The elements of each store that the plan is given.
    pub(crate) stores: Vec<Vec<f32>>,
    pub(crate) words: &'a [u32],
    pub(crate) floats: &'a [f32],
    pub(crate) noise: Noise,
    version: u64,
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(stores: Vec<Vec<f32>>, words: &'a [u32], floats: &'a [f32], noise: Noise) -> Self {
        // Executors cache packed weights by version, so every set of stores has a version of its own.
        static NEXT: AtomicU64 = AtomicU64::new(1 << 48);
        let version = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { stores, words, floats, noise, version }
    }

    pub(crate) fn bound(&self) -> Inputs<'_> {
        Inputs { words: self.words, floats: self.floats, noise: self.noise }
    }

    /// Executes a plan with the naive executor.
    pub(crate) fn naive(&self, plan: &Verified<Plan>) -> Result<Executed, String> {
        execute(plan, &self.stores, self.words, self.floats, self.noise).map_err(|error| error.to_string())
    }
}

impl Stores for Numbers<'_> {
    fn values(&self, store: StoreId) -> &[f32] {
        self.stores.get(store.index()).map_or(&[], Vec::as_slice)
    }

    fn version(&self, _: StoreId) -> u64 {
        self.version
    }
}

/// The CPU's executors, one for each instruction set and number of threads.
pub(crate) struct Machine {
    executors: Vec<[Executor; 2]>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let executors = |isa| {
            let mut two = Executor::with_isa(isa, 2);
            // Both threads execute every wave, however small.
            two.set_shared_work(1);
            [Executor::with_isa(isa, 1), two]
        };
        Self { executors: Isa::available().into_iter().map(executors).collect() }
    }

    /// Returns the executors with one thread and with two. `draw` chooses the instruction set.
    pub(crate) fn pair(&mut self, draw: u64) -> &mut [Executor; 2] {
        let count = self.executors.len() as u64;
        // The last instruction set is the best one. It executes every second case.
        let at = if draw.is_multiple_of(2) { count - 1 } else { draw / 2 % count };
        &mut self.executors[at as usize]
    }

    /// Executes a plan with the naive executor, on one thread and on two. Returns the naive run, whose bits the others have.
    /// Returns `None` if all of them reject the numbers.
    ///
    /// # Errors
    /// A difference of two executors.
    pub(crate) fn execute(
        &mut self,
        plan: &Verified<Plan>,
        numbers: &Numbers<'_>,
        draw: u64,
    ) -> Result<Option<Executed>, String> {
        let naive = numbers.naive(plan);
        for executor in self.pair(draw) {
            let outcome = executor.execute(plan, numbers, numbers.bound()).map_err(|error| error.to_string());
            match (&naive, outcome) {
                (Ok(run), Ok(())) => {
                    same_as_naive(executor, plan, run).map_err(|what| format!("{executor:?}: {what}"))?;
                }
                (Err(_), Err(_)) => {}
                (naive, outcome) => {
                    let naive = naive.as_ref().map(|_| ());
                    return Err(format!("{executor:?} says {outcome:?}, the naive executor {naive:?}"));
                }
            }
        }
        Ok(naive.ok())
    }

    /// Gives a plan beyond the limits to an executor that has them. It must refuse the plan within the budget of the case.
    /// A plan that also takes many numbers gets none.
    ///
    /// # Errors
    /// If the executor accepts the plan, or does not name the limit.
    pub(crate) fn refuse(&mut self, plan: &Verified<Plan>) -> Result<(), String> {
        let given = &plan.stores[..plan.given_stores()];
        let sizes = given.iter().map(|store| store.ty.shape.elements());
        let (words, floats) = (plan.words as usize, plan.all_floats() as usize);
        let bound = [words as u64, floats as u64];
        let are_given = are_few(sizes.clone().map(|size| size as u64).chain(bound));
        let zeros = |count: usize| vec![0.0; count];
        let stores = if are_given { sizes.map(zeros).collect() } else { Vec::new() };
        let (words, floats) = if are_given { (vec![0; words], zeros(floats)) } else { Default::default() };
        let numbers = Numbers::new(stores, &words, &floats, Noise::Off);
        let [_, executor] = self.pair(0);
        executor.set_limits(LIMITS);
        let outcome = executor.execute(plan, &numbers, numbers.bound());
        executor.set_limits(Limits::NONE);
        match outcome {
            Err(RunError::Limit(_)) => Ok(()),
            Err(_) if !are_given => Ok(()),
            outcome => Err(format!("a plan beyond the limits ends with {outcome:?}")),
        }
    }
}

/// Compares the outputs and the gradients of an executor with those of the naive one.
///
/// # Errors
/// The first difference.
pub(crate) fn same_as_naive(executor: &Executor, plan: &Plan, run: &Executed) -> Result<(), String> {
    for number in 0..plan.outputs.len() {
        let found = executor.output(plan, number);
        let expected = run.output(number).ok_or("an output has no row")?;
        let same = |(&x, &word): (&f32, &u32)| same_bits(x, f32::from_bits(word));
        if found.len() != expected.len() || !found.iter().zip(expected).all(same) {
            return Err(format!("output {number} is {found:?}, the naive executor has {expected:x?}"));
        }
    }
    for number in 0..plan.stores.len() {
        let store = StoreId(number as u32);
        let Some(expected) = run.gradient(store) else { continue };
        let found = executor.gradient(store).ok_or("a gradient is missing")?;
        if found.len() != expected.len() || !found.iter().zip(expected).all(|(&a, &b)| same_bits(a, b)) {
            return Err(format!("gradient {number} is {found:?}, the naive executor has {expected:?}"));
        }
    }
    Ok(())
}
