//! Update plans: how an optimiser changes stores between two minibatches.
//!
//! An [`UpdatePlan`] depends on the module, the optimiser and the set of trained parameters, but on no minibatch. A trainer
//! makes it once and executes it after every gradient plan, on the gradients that the gradient plan left. Learning rates,
//! bias corrections and other numbers that change from one update to the next are *bound floats*, so no schedule ever
//! requires a new plan. The caller computes them in `f64` and rounds once, which no kernel in `f32` could do: `1 - 0.999^1`
//! would keep four digits.
//!
//! # Execution
//! Updates are executed in order. **Scalars** are single numbers `c0 c1 ..`, numbered in the order in which updates
//! make them.
//! * [`Update::Sumsq`] computes the sum of the squares of some stores: [`numeric::store`].
//! * [`Update::Scalars`] computes scalars from scalars and bound floats with a kernel, for example the factor that clips
//!   gradients.
//! * [`Update::Apply`] executes a kernel on every element of a parameter. The kernel's ports are elements of stores,
//!   scalars and bound floats; its results go to the same element of stores. The kernel reads all its operands of an
//!   element before it writes any, so a store may be both read and written.
//!
//! Kernels of updates are elementwise, one element wide. [`map_element`](super::row_ops::map_element) defines their bits for
//! every runtime. A result is rounded to the type of its store, `f16` or `bf16`. Such a parameter has a state that holds it
//! in `f32`, its *master*; the kernel reads and writes the master, and the parameter is the rounded copy.
//!
//! # Sparse rows
//! A `sparse` update changes only the rows of a table that the gradient plan named. Row `r` is sparse if some
//! `tgrad` reduction added to row `r` of the gradient, even if it added zero. Moments and values of other rows stay as they
//! are: no decay, no weight decay, no step along an old moment. Without moments and weight decay this equals an update of
//! all rows; with them it is what other libraries call a sparse or lazy optimiser. The source of the gradients lists the
//! sparse rows, ascending and each once. Every row of a gradient without a list is sparse, because another reduction than
//! `tgrad` added to it.
//!
//! [`numeric::store`]: crate::numeric::store

use super::{BindError, Kernel, KernelId, Store, StoreId, given_stores};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The operand of a port of an update's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateSource {
    /// The element of a store at the place that is updated.
    Store(StoreId),
    /// A scalar that an earlier update made.
    Scalar(u32),
    /// A bound float.
    Float(u32),
}

/// One operation of an optimiser.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// Makes a scalar: the sum of the squares of all elements of these stores, in this order.
    Sumsq { stores: Vec<StoreId> },
    /// Makes one scalar for each result of a kernel, which is executed on one lane. No operand of its ports is a store.
    Scalars { kernel: KernelId, sources: Vec<UpdateSource> },
    /// Changes stores: executes a kernel on every element of them, or on the elements of sparse rows only. The sources are the
    /// operands of its ports. The targets are the stores that take its results.
    Apply { kernel: KernelId, sparse: bool, sources: Vec<UpdateSource>, targets: Vec<StoreId> },
}

impl Update {
    /// The operands of the kernel's ports; of a sum of squares, its stores.
    pub fn sources(&self) -> impl Iterator<Item = UpdateSource> + '_ {
        let (stores, sources): (&[StoreId], &[UpdateSource]) = match self {
            Self::Sumsq { stores } => (stores, &[]),
            Self::Scalars { sources, .. } | Self::Apply { sources, .. } => (&[], sources),
        };
        stores.iter().map(|&store| UpdateSource::Store(store)).chain(sources.iter().copied())
    }

    /// The stores that the update changes.
    #[must_use]
    pub fn targets(&self) -> &[StoreId] {
        match self {
            Self::Apply { targets, .. } => targets,
            Self::Sumsq { .. } | Self::Scalars { .. } => &[],
        }
    }

    /// The kernel, if the update has one.
    #[must_use]
    pub const fn kernel(&self) -> Option<KernelId> {
        match self {
            Self::Sumsq { .. } => None,
            Self::Scalars { kernel, .. } | Self::Apply { kernel, .. } => Some(*kernel),
        }
    }

    /// How many scalars the update makes.
    pub(crate) fn scalars(&self, kernels: &[Arc<Kernel>]) -> usize {
        match self {
            Self::Sumsq { .. } => 1,
            Self::Scalars { kernel, .. } => results_of(kernels, *kernel),
            Self::Apply { .. } => 0,
        }
    }
}

/// The number of a kernel's results; 0 if there is no such kernel.
pub(crate) fn results_of(kernels: &[Arc<Kernel>], kernel: KernelId) -> usize {
    kernels.get(kernel.index()).map_or(0, |kernel| kernel.results.len())
}

/// Stores, kernels over one element, and the updates of an optimiser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePlan {
    /// The module's name.
    pub module: String,
    /// Parameters in the module's order, then states, then gradients.
    pub stores: Vec<Store>,
    /// How many floats must be bound.
    pub floats: u32,
    /// Programs over one element.
    pub kernels: Vec<Arc<Kernel>>,
    /// The updates, in order.
    pub updates: Vec<Update>,
}

impl UpdatePlan {
    /// How many stores the caller keeps: parameters and states. Gradients follow.
    #[must_use]
    pub fn given_stores(&self) -> usize {
        given_stores(&self.stores)
    }

    /// The elements of a store, if their number is the plan's.
    ///
    /// # Errors
    /// If there are more or fewer.
    pub fn sized<'a>(&self, store: StoreId, elements: &'a [f32]) -> Result<&'a [f32], BindError> {
        self.stores[store.index()].sized(elements)
    }
}
