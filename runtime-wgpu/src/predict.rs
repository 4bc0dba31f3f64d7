//! Predicts the time of dispatches on a card from two roofs and two latencies, without the card.
//!
//! A dispatch takes the longest of three times: its multiply-adds at the rate of the cores that it occupies, its bytes at
//! the bandwidth, and the waits of its longest thread; and the time from one dispatch to the next. Numbers of cards are
//! those of data sheets, times the share that the kernels reach. Predictions are right within a factor of about two.

use crate::compile::{Compiled, Cost, Dispatch};
use std::time::Duration;

/// A kind of GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Card {
    /// Its name.
    pub name: &'static str,
    /// Multiply-adds per second that tiles of products reach.
    pub multiply_adds: f64,
    /// Bytes per second from and to memory.
    pub bytes: f64,
    /// The number of threads that occupies all cores.
    pub threads: f64,
    /// Seconds of a wait for memory.
    pub wait: f64,
    /// Seconds from the end of a dispatch to the start of the next one, with the barrier between them.
    pub dispatch: f64,
    /// Seconds of a submission with its uploads, and of reading its results.
    pub submission: f64,
}

impl Card {
    /// NVIDIA H100 and H200: 132 cores of 128 lanes at 1.75 GHz, of which tiles use two fifths. With these numbers the
    /// executions that an H200 measured took 0.85 to 1.7 times the predictions (`bench/README.md`).
    pub const H100: Self = Self {
        name: "H100",
        multiply_adds: 12e12,
        bytes: 3e12,
        threads: 132.0 * 256.0,
        wait: 0.6e-6,
        dispatch: 4e-6,
        submission: 300e-6,
    };
    /// Apple M3: 10 cores of 128 lanes at 1.4 GHz.
    pub const M3: Self = Self {
        name: "M3",
        multiply_adds: 0.7e12,
        bytes: 90e9,
        threads: 10.0 * 256.0,
        wait: 1e-6,
        dispatch: 8e-6,
        submission: 300e-6,
    };
    /// A small integrated GPU, such as that of a laptop's processor from 2018. Limits of the time of a dispatch refer to it.
    pub const SMALL: Self = Self {
        name: "small iGPU",
        multiply_adds: 30e9,
        bytes: 15e9,
        threads: 24.0 * 112.0,
        wait: 1.5e-6,
        dispatch: 15e-6,
        submission: 400e-6,
    };
    /// Every card.
    pub const ALL: [Self; 3] = [Self::H100, Self::M3, Self::SMALL];

    /// The time of a dispatch, with the way to the next one.
    #[must_use]
    pub fn time(&self, cost: &Cost) -> Duration {
        self.busy(cost).saturating_add(seconds(self.dispatch))
    }

    /// The time in which a dispatch keeps the device busy.
    #[must_use]
    pub fn busy(&self, cost: &Cost) -> Duration {
        seconds(self.busy_seconds(cost))
    }

    pub(crate) fn busy_seconds(&self, cost: &Cost) -> f64 {
        self.times(cost).into_iter().map(|(time, _)| time).fold(0.0, f64::max)
    }

    /// The time of a dispatch that occupies all cores and hides all waits.
    #[must_use]
    pub fn roof(&self, cost: &Cost) -> Duration {
        seconds(self.roof_seconds(cost))
    }

    pub(crate) fn roof_seconds(&self, cost: &Cost) -> f64 {
        (cost.work as f64 / self.multiply_adds).max(cost.bytes as f64 / self.bytes)
    }

    /// The largest part of the time of a dispatch.
    #[must_use]
    pub fn bound(&self, cost: &Cost) -> Bound {
        let longest = |most: (f64, Bound), next: (f64, Bound)| if next.0 > most.0 { next } else { most };
        self.times(cost).into_iter().fold((self.dispatch, Bound::Dispatch), longest).1
    }

    fn times(&self, cost: &Cost) -> [(f64, Bound); 3] {
        let occupied = (cost.threads as f64 / self.threads).clamp(f64::MIN_POSITIVE, 1.0);
        let work = cost.work as f64 / (self.multiply_adds * occupied);
        [
            (work, if occupied < 1.0 { Bound::Threads } else { Bound::Work }),
            (cost.bytes as f64 / self.bytes, Bound::Bytes),
            (cost.waits as f64 * self.wait, Bound::Waits),
        ]
    }

    /// The time of a plan: all its dispatches in one submission.
    #[must_use]
    pub fn time_of_plan(&self, plan: &Compiled) -> Duration {
        seconds(self.submission).saturating_add(self.time_of_dispatches(&plan.dispatches))
    }

    /// The time of dispatches.
    #[must_use]
    pub fn time_of_dispatches(&self, dispatches: &[Dispatch]) -> Duration {
        let busy: f64 =
            dispatches.iter().map(|dispatch| self.busy_seconds(&dispatch.cost) + self.dispatch).sum();
        seconds(busy)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// A part of the time of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bound {
    /// The way from one dispatch to the next.
    Dispatch,
    /// The waits of a thread.
    Waits,
    /// The bandwidth of memory.
    Bytes,
    /// Multiply-adds on a part of the cores: there are too few threads.
    Threads,
    /// Multiply-adds on all cores.
    Work,
}

impl Bound {
    /// One word for a table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Waits => "waits",
            Self::Bytes => "bytes",
            Self::Threads => "threads",
            Self::Work => "work",
        }
    }
}
