//! [`Schedule`]: factors of the learning rate, update by update.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// By what the learning rate is multiplied; updates count from 0.
#[derive(Clone)]
pub enum Schedule {
    /// 1.
    Constant,
    /// `gamma^(t / every)`, in whole numbers.
    Step {
        /// So many updates with one factor.
        every: u64,
        /// From one factor to the next.
        gamma: f64,
    },
    /// Half a cosine from 1 to `low` within so many updates, `low` from then on.
    Cosine {
        /// How many updates it takes.
        updates: u64,
        /// Where it ends.
        low: f64,
    },
    /// A straight line from 1 to `low` within so many updates, `low` from then on.
    Linear {
        /// How many updates it takes.
        updates: u64,
        /// Where it ends.
        low: f64,
    },
    /// Straight lines from `low` up to 1 and down again, without end.
    Cyclical {
        /// How many updates up, and as many down.
        half: u64,
        /// Where cycles begin.
        low: f64,
    },
    /// `(t + 1) / updates` for so many updates, then another schedule from its beginning.
    WarmUp {
        /// How many updates it takes.
        updates: u64,
        /// What follows.
        then: Box<Schedule>,
    },
    /// Anything else.
    Custom(Arc<dyn Fn(u64) -> f64 + Send + Sync>),
}

impl Schedule {
    /// [`Step`](Self::Step)
    #[must_use]
    pub const fn step(every: u64, gamma: f64) -> Self {
        Self::Step { every, gamma }
    }

    /// [`Cosine`](Self::Cosine)
    #[must_use]
    pub const fn cosine(updates: u64, low: f64) -> Self {
        Self::Cosine { updates, low }
    }

    /// [`Linear`](Self::Linear)
    #[must_use]
    pub const fn linear(updates: u64, low: f64) -> Self {
        Self::Linear { updates, low }
    }

    /// [`Cyclical`](Self::Cyclical)
    #[must_use]
    pub const fn cyclical(half: u64, low: f64) -> Self {
        Self::Cyclical { half, low }
    }

    /// [`WarmUp`](Self::WarmUp)
    #[must_use]
    pub fn warm_up(updates: u64, then: Self) -> Self {
        Self::WarmUp { updates, then: Box::new(then) }
    }

    /// [`Custom`](Self::Custom)
    #[must_use]
    pub fn custom(factor: impl Fn(u64) -> f64 + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(factor))
    }

    /// The factor of update `t`, from 0 on. A length of 0 counts as 1.
    #[must_use]
    pub fn factor(&self, t: u64) -> f64 {
        let part = |t: u64, of: u64| t as f64 / of.max(1) as f64;
        match self {
            Self::Constant => 1.0,
            Self::Step { every, gamma } => gamma.powf((t / (*every).max(1)) as f64),
            Self::Cosine { updates, low } => {
                let done = part(t, *updates).min(1.0);
                low + (1.0 - low) * (1.0 + (PI * done).cos()) / 2.0
            }
            Self::Linear { updates, low } => 1.0 + (low - 1.0) * part(t, *updates).min(1.0),
            Self::Cyclical { half, low } => {
                let half = (*half).max(1);
                let (line, along) = (t / half, t % half);
                let up = if line.is_multiple_of(2) { along } else { half - along };
                low + (1.0 - low) * part(up, half)
            }
            Self::WarmUp { updates, then } => match t.checked_sub(*updates) {
                None => part(t + 1, *updates) * then.factor(0),
                Some(t) => then.factor(t),
            },
            Self::Custom(factor) => factor(t),
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("Constant"),
            Self::Step { every, gamma } => write!(f, "Step({every}, {gamma})"),
            Self::Cosine { updates, low } => write!(f, "Cosine({updates}, {low})"),
            Self::Linear { updates, low } => write!(f, "Linear({updates}, {low})"),
            Self::Cyclical { half, low } => write!(f, "Cyclical({half}, {low})"),
            Self::WarmUp { updates, then } => write!(f, "WarmUp({updates}, {then:?})"),
            Self::Custom(_) => f.write_str("Custom(..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn follows(schedule: &Schedule, expected: &[(u64, f64)]) {
        for &(t, expected) in expected {
            let found = schedule.factor(t);
            assert!((found - expected).abs() < 1e-12, "{schedule:?} at {t}: {found} for {expected}");
        }
    }

    #[test]
    fn a_constant_schedule_and_a_custom_one_are_what_they_say() {
        follows(&Schedule::Constant, &[(0, 1.0), (u64::MAX, 1.0)]);
        follows(&Schedule::custom(|t| 1.0 / (1.0 + t as f64)), &[(0, 1.0), (3, 0.25)]);
    }

    #[test]
    fn steps_multiply_after_so_many_updates() {
        follows(&Schedule::step(10, 0.5), &[(0, 1.0), (9, 1.0), (10, 0.5), (19, 0.5), (20, 0.25)]);
        follows(&Schedule::step(0, 0.5), &[(0, 1.0), (1, 0.5)]);
    }

    #[test]
    fn a_cosine_falls_slowly_then_fast_then_slowly_to_its_low() {
        let root = 0.5f64.sqrt();
        let at = |x: f64| 0.1 + 0.9 * (1.0 + x) / 2.0;
        let expected = [(0, 1.0), (25, at(root)), (50, 0.55), (75, at(-root)), (100, 0.1), (5000, 0.1)];
        follows(&Schedule::cosine(100, 0.1), &expected);
    }

    #[test]
    fn a_line_falls_evenly_to_its_low() {
        follows(&Schedule::linear(4, 0.0), &[(0, 1.0), (1, 0.75), (3, 0.25), (4, 0.0), (9, 0.0)]);
        follows(&Schedule::linear(0, 0.5), &[(0, 1.0), (1, 0.5)]);
    }

    #[test]
    fn cycles_go_up_and_down_without_end() {
        let expected = [(0, 0.2), (1, 0.6), (2, 1.0), (3, 0.6), (4, 0.2), (6, 1.0), (400, 0.2)];
        follows(&Schedule::cyclical(2, 0.2), &expected);
        follows(&Schedule::cyclical(0, 0.2), &[(0, 0.2), (1, 1.0), (2, 0.2)]);
        let half = 1 << 63;
        follows(
            &Schedule::cyclical(half, 0.5),
            &[(0, 0.5), (half / 2, 0.75), (half, 1.0), (half + half / 2, 0.75)],
        );
        follows(&Schedule::cyclical(u64::MAX, 0.5), &[(0, 0.5), (u64::MAX, 1.0)]);
    }

    #[test]
    fn a_warm_up_rises_to_the_schedule_that_follows() {
        let schedule = Schedule::warm_up(4, Schedule::step(3, 0.1));
        follows(&schedule, &[(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0), (6, 1.0), (7, 0.1)]);
        follows(&Schedule::warm_up(0, Schedule::Constant), &[(0, 1.0)]);
    }
}
