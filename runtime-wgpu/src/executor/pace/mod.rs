//! The length of submissions. Drivers reset devices that are busy for seconds, and a busy device shows no picture.

use crate::compile::{Compiled, DEFAULT_DISPATCH_TIME};
use crate::predict::Card;
use std::ops::Range;
use std::time::Duration;

/// The time that a submission should take.
const WANTED: Duration = Duration::from_millis(100);
/// Runs that are predicted to take less are too short to measure the speed of a device.
const SHORTEST: Duration = Duration::from_millis(10);
/// How much longer the submissions of the next run may be predicted than those of this run.
const GROWTH: f64 = 16.0;

/// How much a device may do in one submission, by the runs so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// The longest submission, predicted for a small integrated GPU.
    longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { longest: DEFAULT_DISPATCH_TIME }
    }
}

impl Pace {
    /// The dispatch after the last one of a submission that starts with dispatch `first`.
    pub(super) fn submission_end(self, compiled: &Compiled, first: usize) -> usize {
        if compiled.time <= self.longest {
            return compiled.dispatches.len();
        }
        let mut time = Duration::ZERO;
        for (number, dispatch) in compiled.dispatches.iter().enumerate().skip(first) {
            time = time.saturating_add(Card::SMALL.time(&dispatch.cost));
            if time > self.longest && number > first {
                return number;
            }
        }
        compiled.dispatches.len()
    }

    /// The time of dispatches, predicted for a small integrated GPU.
    pub(super) fn predicted(compiled: &Compiled, dispatches: [Range<usize>; 2]) -> Duration {
        if dispatches[0].len() == compiled.dispatches.len() {
            return compiled.time;
        }
        let times = dispatches.map(|range| Card::SMALL.time_of_dispatches(&compiled.dispatches[range]));
        times[0].saturating_add(times[1])
    }

    /// Learns from a run that was predicted to take `predicted` there, and took `measured`.
    pub(super) fn learn(&mut self, predicted: Duration, measured: Duration) {
        if predicted >= SHORTEST {
            let speed = predicted.as_secs_f64() / measured.as_secs_f64().max(1e-6);
            let most = self.longest.as_secs_f64() * GROWTH;
            let longest = (WANTED.as_secs_f64() * speed).min(most);
            self.longest =
                Duration::try_from_secs_f64(longest).unwrap_or(Duration::MAX).max(DEFAULT_DISPATCH_TIME);
        }
    }
}

#[cfg(test)]
mod tests;
