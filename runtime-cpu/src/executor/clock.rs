//! A clock for the times of steps.
//!
//! The system clock costs tens of nanoseconds, and its code and data were evicted from the cache by the last kernel. That
//! would be most of the time between two large steps. The time-stamp counter of the processor is one instruction. It is
//! used where it runs at a constant rate. The system clock times the run as a whole, and ticks are shares of that time.

use std::time::{Duration, Instant};

/// The start of a counted run, and the source of its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begun: Instant,
    /// The counter at the start, if the machine has a steady one.
    counter: Option<u64>,
    /// Ticks that reading the system clock took at the start.
    lead: u64,
}

/// Ticks since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticks(u64);

impl std::ops::AddAssign for Ticks {
    fn add_assign(&mut self, more: Self) {
        self.0 += more.0;
    }
}

impl std::ops::Sub for Ticks {
    type Output = Self;

    /// The ticks from `before` on. The counters of cores may differ by a few ticks.
    fn sub(self, before: Self) -> Self {
        Self(self.0.saturating_sub(before.0))
    }
}

impl Clock {
    pub(super) fn start() -> Self {
        let read = || counter::is_steady().then(counter::read);
        let before = read();
        let begun = Instant::now();
        let counter = read();
        let lead = counter.zip(before).map_or(0, |(after, before)| after.saturating_sub(before));
        Self { begun, counter, lead }
    }

    #[inline]
    pub(super) fn now(&self) -> Ticks {
        Ticks(match self.counter {
            // The counters of cores may differ by a few ticks.
            Some(begun) => counter::read().saturating_sub(begun),
            None => self.begun.elapsed().as_nanos() as u64,
        })
    }

    /// Returns the conversion of ticks to time. No time exceeds the elapsed time, because ticks include both readings
    /// of the clock.
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

    /// Returns whether the counter runs at a constant rate. The query takes microseconds on a virtual machine, so it runs once.
    pub(super) fn is_steady() -> bool {
        static STEADY: OnceLock<bool> = OnceLock::new();
        const POWER: u32 = 0x8000_0007;
        *STEADY.get_or_init(|| __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx >> 8 & 1 == 1)
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction; it accesses no memory.
        unsafe { _rdtsc() }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod counter {
    pub(super) const fn is_steady() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        unreachable!("this target has no steady counter")
    }
}

/// The time of a thread in a part of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedPart {
    pub(super) step: u32,
    pub(super) start: Ticks,
    pub(super) end: Ticks,
}
