//! The types of the elements of results, by torch's rules.
//!
//! The graph computes with floats. Torch's result has floats too if an operand has them. A call whose tensors have ints or truth
//! values alone must not end as floats in silence.

use super::call::Call;
use super::ops::{Makes, Op};
use super::tensor::{Kind, Tensor};
use super::{Fail, Made, Outcome, Recording};
use pyo3::prelude::*;
use pyo3::types::PyFloat;

/// The kinds of tensors that a call has read so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Read {
    /// Whether a tensor waits to be computed.
    pending: bool,
    /// Whether a tensor has floats, and whether one has other elements.
    floats: bool,
    others: bool,
}

impl Read {
    /// Notes a tensor.
    pub(super) fn note(&mut self, kind: Kind, pending: bool) {
        self.pending |= pending;
        self.floats |= kind == Kind::Float;
        self.others |= kind != Kind::Float;
    }
}

impl Recording<'_, '_> {
    /// The results of an op in the types that torch gives them.
    pub(super) fn typed(&self, op: &Op, call: &Call<'_, '_>, made: Outcome) -> Made<Outcome> {
        let Read { pending, floats, others } = self.read;
        if floats || !others {
            return Ok(made);
        }
        if !pending {
            return Err(Fail::Known);
        }
        match made {
            Outcome::One(tensor) if tensor.kind == Kind::Float => match op.makes {
                Makes::Floats => Ok(Outcome::One(tensor)),
                Makes::Counts if call.keyword("dtype")?.is_none() => self.counts(&tensor).map(Outcome::One),
                _ if call.keyword("dtype")?.is_some() || has_float(call) => Ok(Outcome::One(tensor)),
                _ => Err(of_ints()),
            },
            Outcome::Tuple(tensors) | Outcome::Named(_, tensors)
                if tensors.iter().any(|tensor| tensor.kind == Kind::Float) =>
            {
                Err(of_ints())
            }
            made => Ok(made),
        }
    }

    /// Sums of truth values, which are exact.
    fn counts(&self, tensor: &Tensor) -> Made<Tensor> {
        let made = self.cast(tensor, Kind::Int)?;
        Ok(Tensor { grad: false, stopped: false, ..made })
    }
}

/// Whether an argument is a float of Python.
fn has_float(call: &Call<'_, '_>) -> bool {
    call.args.iter_borrowed().any(|arg| arg.is_exact_instance_of::<PyFloat>())
        || call
            .kwargs
            .is_some_and(|kwargs| kwargs.iter().any(|(_, value)| value.is_exact_instance_of::<PyFloat>()))
}

fn of_ints() -> Fail {
    Fail::refused(
        "its result has ints or truth values, and the engine computes floats; call .float() on an operand",
    )
}
