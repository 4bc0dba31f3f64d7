//! Updates: what an optimiser does to stores, between one minibatch and the next.
//!
//! An *update plan* holds updates and nothing else (no steps, slabs, reductions or outputs). It depends on
//! the module, the optimiser and the set of trained parameters, not on any minibatch: it is made
//! once and executed after every gradient plan, on the gradients that one left. Learning rates, bias
//! corrections and other numbers that change from one update to the next are *bound floats*, so no
//! schedule ever makes a new plan; a caller computes them in `f64` and rounds once, which no kernel
//! in `f32` could (`1 - 0.999^1` would keep four digits).
//!
//! An update plan is a [`Plan`] and not a type of its own, so that text, binary form,
//! verifier, tools and both runtimes know it.
//!
//! # What is executed
//! Updates are executed in order. **Scalars** are single numbers `c0 c1 ..`, numbered in the order in
//! which updates make them.
//! * [`Update::Sumsq`] makes the sum of the squares of some stores: [`numeric::store`].
//! * [`Update::Scalars`] makes scalars of scalars and bound floats, by a kernel: the factor of a
//!   clipped gradient, for one.
//! * [`Update::Apply`] executes a kernel on every element of a parameter: the kernel's ports are
//!   elements of stores, scalars and bound floats; its results go to the same element of stores. All
//!   elements are read before one is written, element by element, so a store may be both.
//!
//! Kernels of updates are elementwise, one element wide: their bits are those of
//! [`map_element`](super::row_ops::map_element), whatever a runtime makes of them. What goes to a
//! store of `f16` or `bf16` is rounded to it. (Such a parameter has a state that holds it in `f32`,
//! its *master*, which the kernel reads and writes; the parameter is the rounded copy.)
//!
//! # Sparse rows
//! A touched update changes only rows of a table that the gradient plan named: row `r` counts as
//! touched if some `tgrad` final added to row `r` of the gradient, even if it added zero. Moments and
//! values of other rows stay as they are: no decay, no weight decay, no step along an old moment.
//! Without moments and weight decay that is the same as updating all rows; with them it is what
//! others call a sparse or lazy optimiser. Whoever makes gradients lists sparse rows, ascending
//! and each once; a gradient without a list (because something else than `tgrad` added to it) has
//! all rows touched.
//!
//! [`numeric::store`]: crate::numeric::store

use super::{KernelId, Plan, StoreId};
use serde::{Deserialize, Serialize};

/// What a port of an update's kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateSource {
    /// The element of a store that is being updated.
    Store(StoreId),
    /// A scalar that an earlier update made.
    Scalar(u32),
    /// A bound float.
    Float(u32),
}

/// One part of what an optimiser does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// Makes a scalar: the sum of the squares of all elements of these stores.
    Sumsq {
        /// The stores, in the order of the sum.
        stores: Vec<StoreId>,
    },
    /// Makes scalars, as many as the kernel has results.
    Scalars {
        /// What is executed, on one lane.
        kernel: KernelId,
        /// What its ports read: no stores.
        sources: Vec<UpdateSource>,
    },
    /// Changes stores, element by element.
    Apply {
        /// What is executed, on as many lanes as the stores have elements.
        kernel: KernelId,
        /// Whether only sparse rows are updated.
        touched: bool,
        /// What its ports read.
        sources: Vec<UpdateSource>,
        /// Where its results go.
        targets: Vec<StoreId>,
    },
}

impl Update {
    /// What the ports of its kernel read; of a sum of squares, its stores.
    pub fn sources(&self) -> impl Iterator<Item = UpdateSource> + '_ {
        let (stores, sources): (&[StoreId], &[UpdateSource]) = match self {
            Self::Sumsq { stores } => (stores, &[]),
            Self::Scalars { sources, .. } | Self::Apply { sources, .. } => (&[], sources),
        };
        stores.iter().map(|&store| UpdateSource::Store(store)).chain(sources.iter().copied())
    }

    /// The stores that it changes.
    #[must_use]
    pub fn targets(&self) -> &[StoreId] {
        match self {
            Self::Apply { targets, .. } => targets,
            Self::Sumsq { .. } | Self::Scalars { .. } => &[],
        }
    }

    /// Its kernel.
    #[must_use]
    pub const fn kernel(&self) -> Option<KernelId> {
        match self {
            Self::Sumsq { .. } => None,
            Self::Scalars { kernel, .. } | Self::Apply { kernel, .. } => Some(*kernel),
        }
    }
}

impl Plan {
    /// Whether it updates stores: see [`updates`](self).
    #[must_use]
    pub fn is_update(&self) -> bool {
        !self.updates.is_empty()
    }

    /// How many results a kernel has; none if there is no such kernel.
    pub(crate) fn kernel_results(&self, kernel: KernelId) -> usize {
        self.kernels.get(kernel.index()).map_or(0, |kernel| kernel.results.len())
    }
}
