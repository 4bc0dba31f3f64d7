//! Budgets: the memory and the processor time that a case may take.
//!
//! Memory is counted exactly. Time is the processor time of the thread, so other programs hardly change it; its
//! constants are generous because caches and clocks do. Unoptimised code and sanitizers get [`SLOW`] times as much.

use super::counting::measured;
use std::time::Duration;

/// The bytes that reading may hold for each byte of the file.
pub const BYTES_PER_BYTE: usize = 16;
/// The bytes that reading may hold besides.
pub const BYTES: usize = 1 << 20;
/// The processor time that reading may take for each byte of the file.
pub const TIME_PER_BYTE: Duration = Duration::from_nanos(1_000);
/// The processor time that reading may take besides.
pub const TIME: Duration = Duration::from_millis(20);
/// The factor of the time in builds that are not optimised or have debug assertions.
pub const SLOW: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

/// The memory and the time that a piece of work may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The most bytes that the thread may hold at one time in addition.
    pub bytes: usize,
    /// The processor time of the thread.
    pub time: Duration,
}

/// The memory and the time that a piece of work took.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// The peak of the additional bytes that the thread held.
    pub bytes: usize,
    /// The processor time of the thread. `None` where the system does not count it.
    pub time: Option<Duration>,
}

impl Budget {
    /// The budget for reading a file of this many bytes.
    #[must_use]
    pub fn reading(bytes: usize) -> Self {
        let per_byte = TIME_PER_BYTE.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX));
        Self { bytes: limit(bytes), time: SLOW * (TIME + per_byte) }
    }

    /// Asserts that the work stayed within the budget.
    ///
    /// # Panics
    /// Panics if it did not.
    #[track_caller]
    pub fn admits(self, spent: Spent, what: &str) {
        let Self { bytes, time } = self;
        assert!(spent.bytes <= bytes, "{what} held {} bytes, the limit is {bytes}", spent.bytes);
        let took = spent.time.unwrap_or_default();
        assert!(took <= time, "{what} took {took:?}, the limit is {time:?}");
    }

    /// Returns the larger of the shares of the two limits that the work took, in thousandths.
    #[must_use]
    pub fn share(self, spent: Spent) -> u64 {
        let of_bytes = spent.bytes as u128 * 1000 / self.bytes.max(1) as u128;
        let of_time = spent.time.unwrap_or_default().as_nanos() * 1000 / self.time.as_nanos().max(1);
        u64::try_from(of_bytes.max(of_time)).unwrap_or(u64::MAX)
    }
}

/// The memory limit for reading a file of this many bytes.
#[must_use]
pub fn limit(bytes: usize) -> usize {
    BYTES_PER_BYTE * bytes + BYTES
}

/// Runs `work`. Returns its result with the memory and the time that it took.
pub fn metered<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let before = thread_time();
    let (result, bytes) = measured(work);
    let time = thread_time().zip(before).map(|(after, before)| after.saturating_sub(before));
    (result, Spent { bytes, time })
}

/// The processor time that this thread took so far.
#[cfg(unix)]
fn thread_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn thread_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_thread_counts_work_and_no_sleep() {
        let (_, asleep) = metered(|| std::thread::sleep(Duration::from_millis(30)));
        let spin = || (0..3_000_000u64).fold(1u64, |x, y| std::hint::black_box(x.wrapping_mul(y | 1)));
        let (_, busy) = metered(spin);
        if let (Some(asleep), Some(busy)) = (asleep.time, busy.time) {
            assert!(asleep < Duration::from_millis(20) && busy > Duration::ZERO, "{asleep:?} {busy:?}");
        }
    }

    #[test]
    fn a_budget_rejects_more_memory_and_more_time() {
        let budget = Budget::reading(10);
        let spent = Spent { bytes: budget.bytes, time: Some(budget.time) };
        budget.admits(spent, "all of it");
        assert_eq!(budget.share(spent), 1000);
        for over in [
            Spent { bytes: budget.bytes + 1, ..spent },
            Spent { time: Some(budget.time + Duration::from_nanos(1)), ..spent },
        ] {
            let outcome = std::panic::catch_unwind(|| budget.admits(over, "more"));
            assert!(outcome.is_err(), "{over:?}");
        }
    }
}
