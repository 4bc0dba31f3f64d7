//! Targets, and the bench that runs their cases.

use crate::counts::{Counts, Tally};
use autobatch_ir::hash::avalanche;
use autobatch_testing::hostile::{Budget, SLOW, SplitMix64, cap, held, metered};
use std::time::Duration;

/// The inputs of a target, and the check of one input.
pub trait Subject {
    /// Valid inputs, from which mutations start. They are the seeds of a coverage-guided fuzzer.
    fn seeds(&self) -> &[Vec<u8>];

    /// Draws an input.
    fn draw(&self, random: &mut SplitMix64) -> Vec<u8>;

    /// Corrects checksums, so an input of a coverage-guided fuzzer reaches the code behind them.
    fn repair(&self, _input: &mut [u8]) {}

    /// Checks one input, and counts what happened.
    ///
    /// # Panics
    /// Panics if a promise does not hold.
    fn check(&mut self, input: &[u8], counts: &mut Counts);
}

/// A named fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, which is also that of the file in `fuzz_targets/`.
    pub name: &'static str,
    /// The checked promise, in one line.
    pub about: &'static str,
    /// The memory and time of a whole case besides those for each byte.
    pub budget: Budget,
    /// Makes the inputs.
    pub open: fn() -> Box<dyn Subject>,
}

/// The bytes that a whole case may hold for each byte of the input.
const BYTES_PER_BYTE: usize = 256;
/// The processor time that a whole case may take for each byte of the input.
const TIME_PER_BYTE: Duration = Duration::from_micros(10);
/// The bytes that a thread may hold before an allocation fails, which ends the process.
pub(crate) const CAP: usize = 1 << 30;

/// A case: everything that its input depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the case in the run.
    pub number: u64,
}

/// A target that is ready to run.
pub struct Bench {
    target: Target,
    subject: Box<dyn Subject>,
}

impl Bench {
    /// Prepares a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target, subject: (target.open)() }
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the seeds of the target.
    #[must_use]
    pub fn seeds(&self) -> &[Vec<u8>] {
        self.subject.seeds()
    }

    /// Draws the input of a case.
    #[must_use]
    pub fn input(&self, case: Case) -> Vec<u8> {
        let mut random = SplitMix64(avalanche(case.seed).wrapping_add(avalanche(!case.number)));
        self.subject.draw(&mut random)
    }

    /// Checks an input within the budget of a case.
    ///
    /// # Panics
    /// Panics if a promise does not hold, or if the case exceeds its budget.
    pub fn check(&mut self, input: &[u8], counts: &mut Counts) {
        counts.add(Tally::Cases);
        cap(CAP.saturating_add_signed(held()));
        let ((), spent) = metered(|| self.subject.check(input, counts));
        cap(usize::MAX);
        let per_byte = TIME_PER_BYTE.saturating_mul(u32::try_from(input.len()).unwrap_or(u32::MAX));
        let Budget { bytes, time } = self.target.budget;
        let budget = Budget { bytes: bytes + BYTES_PER_BYTE * input.len(), time: SLOW * (time + per_byte) };
        counts.record(budget, spent);
        budget.admits(spent, "the case");
    }

    /// Corrects and checks an input of a coverage-guided fuzzer.
    ///
    /// # Panics
    /// As [`check`](Self::check).
    pub fn fuzz(&mut self, input: &[u8]) {
        let mut input = input.to_vec();
        self.subject.repair(&mut input);
        self.check(&input, &mut Counts::default());
    }
}
