//! [`Schedule`]: factors of the learning rate per update.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// A factor of the learning rate as a function of the update `t`, from 0.
#[derive(Clone)]
pub enum Schedule {
    /// 1.
    Constant,
    /// `gamma^floor(t / every)`.
    Step {
        /// The number of updates with one factor.
        every: u64,
        /// The ratio of consecutive factors.
        gamma: f64,
    },
    /// Half a cosine from 1 to `low`, then constant.
    Cosine {
        /// The number of updates until `low`.
        updates: u64,
        /// The final factor.
        low: f64,
    },
    /// A straight line from 1 to `low`, then constant.
    Linear {
        /// The number of updates until `low`.
        updates: u64,
        /// The final factor.
        low: f64,
    },
    /// Straight lines from `low` up to 1 and back, repeated without end.
    Cyclical {
        /// The number of updates of each line.
        half: u64,
        /// The lowest factor.
        low: f64,
    },
    /// `(t + 1) / updates` during the first updates, then another schedule from its start.
    WarmUp {
        /// The number of updates of the warm-up.
        updates: u64,
        /// The schedule that follows.
        then: Box<Schedule>,
    },
    /// Any function.
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

    /// The factor of update `t`, from 0. A length of 0 counts as 1.
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
