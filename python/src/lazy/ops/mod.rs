//! The ops: torch's functions and methods, and what each emits.

mod attention;
mod constants;
mod elementwise;
mod indexing;
mod layers;
mod losses;
mod products;
mod reductions;
mod views;
mod windows;

use super::call::Call;
use super::tensor::Tensor;
use super::{Fail, Made, Outcome, Recording};
use crate::error::RecordError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A function that records a call.
type Emit = fn(&mut Recording<'_, '_>, &Call<'_, '_>) -> Made<Outcome>;

/// The elements of a result whose operands have ints or truth values alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    /// Torch's have the type of the operands, which the graph cannot compute.
    Same,
    Floats,
    /// Ints that are sums of truth values.
    Counts,
}

/// An op.
pub(super) struct Op {
    /// The names of its functions and methods in torch. The first is a method that computes the same.
    pub(super) names: &'static [&'static str],
    /// The names of its arguments.
    pub(super) arguments: &'static [&'static str],
    pub(super) emit: Emit,
    /// Whether the result shares memory with the first argument in torch.
    pub(super) is_view: bool,
    /// Whether it is read without a call: `x.T`.
    pub(super) is_attribute: bool,
    /// Whether a call whose only tensors are parameters is recorded.
    pub(super) of_params: bool,
    /// Whether it has no form that leaves its first argument as it is.
    pub(super) only_in_place: bool,
    pub(super) makes: Makes,
}

impl Op {
    const fn new(names: &'static [&'static str], arguments: &'static [&'static str], emit: Emit) -> Self {
        Self {
            names,
            arguments,
            emit,
            is_view: false,
            is_attribute: false,
            of_params: true,
            only_in_place: false,
            makes: Makes::Same,
        }
    }

    const fn view(self) -> Self {
        Self { is_view: true, ..self }
    }

    const fn attribute(self) -> Self {
        Self { is_attribute: true, ..self }
    }

    const fn not_of_params(self) -> Self {
        Self { of_params: false, ..self }
    }

    const fn changing(self) -> Self {
        Self { only_in_place: true, ..self }
    }

    const fn floats(self) -> Self {
        Self { makes: Makes::Floats, ..self }
    }

    const fn counts(self) -> Self {
        Self { makes: Makes::Counts, ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// An op, or its form that changes its first argument.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) op: &'static Op,
    pub(super) in_place: bool,
}

impl Named {
    /// The name of the method.
    pub(super) fn name(&self) -> String {
        format!("{}{}", self.op.name(), if self.in_place && !self.op.only_in_place { "_" } else { "" })
    }
}

/// The parts of the table.
const PARTS: [&[Op]; 11] = [
    attention::OPS,
    constants::OPS,
    constants::REPLACING,
    elementwise::OPS,
    views::OPS,
    indexing::OPS,
    products::OPS,
    reductions::OPS,
    layers::OPS,
    windows::OPS,
    losses::OPS,
];

fn all() -> impl Iterator<Item = &'static Op> {
    PARTS.into_iter().flatten()
}

/// All names with the codes of their ops.
pub(super) fn codes() -> impl Iterator<Item = (String, usize)> {
    all().enumerate().flat_map(|(number, op)| {
        let own = 2 * number + usize::from(op.only_in_place);
        let plain = op.names.iter().map(move |name| ((*name).to_owned(), own));
        let in_place = op.names.iter().filter(|name| !name.ends_with('_') && !op.is_view);
        plain.chain(in_place.map(move |name| (format!("{name}_"), 2 * number + 1)))
    })
}

/// The op with a code.
pub(super) fn by_code(code: usize) -> Option<Named> {
    static ALL: OnceLock<Vec<&Op>> = OnceLock::new();
    let op = *ALL.get_or_init(|| all().collect()).get(code / 2)?;
    Some(Named { op, in_place: code % 2 == 1 })
}

/// The op with a name.
pub(super) fn find(name: &str) -> Option<Named> {
    static CODES: OnceLock<HashMap<String, usize>> = OnceLock::new();
    by_code(*CODES.get_or_init(|| codes().collect()).get(name)?)
}

/// The op with a name that exists.
pub(super) fn named(name: &str) -> PyResult<Named> {
    find(name).ok_or_else(|| RecordError::new_err(format!("there is no op {name}")))
}

/// Names that read elements: everything recorded so far is computed.
pub(super) const READS: [&str; 26] = [
    "item",
    "tolist",
    "numpy",
    "equal",
    "allclose",
    "is_nonzero",
    "backward",
    "grad",
    "grad_fn",
    "retain_grad",
    "register_hook",
    "cpu",
    "data_ptr",
    "storage",
    "untyped_storage",
    "stride",
    "element_size",
    "isnan",
    "isinf",
    "isfinite",
    "is_leaf",
    "data",
    "names",
    "__array_interface__",
    "output_nr",
    "_version",
];

/// One result.
fn one(tensor: Tensor) -> Made<Outcome> {
    Ok(Outcome::One(tensor))
}

/// Refuses a call.
fn refuse<T>(why: impl Into<String>) -> Made<T> {
    Err(Fail::refused(why))
}
