//! [`Values`]: the arguments of layers that take several values.

use autobatch_ir::Value;
use std::borrow::Borrow;

/// Several values: an array, vector or iterator of values or of references to them.
pub trait Values<'g>: IntoIterator<Item: Borrow<Value<'g>>> + Sized {
    /// Collects the values.
    fn into_vec(self) -> Vec<Value<'g>> {
        self.into_iter().map(|value| *value.borrow()).collect()
    }
}

impl<'g, I: IntoIterator<Item: Borrow<Value<'g>>>> Values<'g> for I {}
