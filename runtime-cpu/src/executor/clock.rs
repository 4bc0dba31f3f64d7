//! A clock for times between steps.
//!
//! A system's clock costs tens of nanoseconds and lines of code and data that kernels have just pushed out of the cache, which
//! would be most of what counting finds between two large steps. The processor's own counter is one instruction. It is used where
//! it runs at one rate whatever the core does; a run is timed by the system's clock as a whole, and ticks are shares of that.

use std::time::{Duration, Instant};

/// When counting began, and how it reads time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begun: Instant,
    /// The counter then; nothing where there is none.
    counter: Option<u64>,
    /// Ticks that it took to read the system's clock before.
    lead: u64,
}

/// Ticks from when counting began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticks(u64);

impl Clock {
    /// Begins now.
    pub(super) fn start() -> Self {
        let read = || counter::is_steady().then(counter::read);
        let before = read();
        let begun = Instant::now();
        let counter = read();
        let lead = counter.zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
        Self { begun, counter, lead }
    }

    /// What it is now.
    #[inline]
    pub(super) fn now(&self) -> Ticks {
        Ticks(match self.counter {
            // Cores may differ by a few ticks.
            Some(begun) => counter::read().saturating_sub(begun),
            None => self.begun.elapsed().as_nanos() as u64,
        })
    }

    /// What turns ticks up to now into time: never more than went by, because ticks are counted from before the system's
    /// clock was read first until after it was read last.
    pub(super) fn stop(&self) -> impl Fn(Ticks) -> Duration + use<> {
        let (all, Ticks(ticks)) = (self.begun.elapsed(), self.now());
        let nanos = match self.counter {
            Some(_) => all.as_nanos() as f64 / (ticks + self.lead).max(1) as f64,
            None => 1.0,
        };
        move |Ticks(ticks)| Duration::from_nanos((ticks as f64 * nanos) as u64)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};
    use std::sync::OnceLock;

    /// Whether the counter runs at one rate. Asking takes microseconds on a virtual machine, so it is asked once.
    pub(super) fn is_steady() -> bool {
        static STEADY: OnceLock<bool> = OnceLock::new();
        const POWER: u32 = 0x8000_0007;
        *STEADY.get_or_init(|| __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx >> 8 & 1 == 1)
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every processor of this architecture has the instruction; it touches no memory.
        unsafe { _rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod counter {
    pub(super) const fn is_steady() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        unreachable!("there is no counter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_time_that_went_by() {
        let clock = Clock::start();
        let slept = Instant::now();
        let before = clock.now();
        std::thread::sleep(Duration::from_millis(20));
        let after = clock.now();
        let slept = slept.elapsed();
        let time = clock.stop();
        let found = time(after) - time(before);
        assert!(before <= after, "{before:?} {after:?}");
        assert!(found >= Duration::from_millis(19) && found <= slept, "{found:?}, slept for {slept:?}");
    }
}
