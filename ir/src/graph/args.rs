//! Arguments of cell calls.

use crate::graph::value::Value;

/// An argument of a call: a value, or an index bound when the graph is executed.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'g> {
    /// A value or list of the same graph.
    Value(Value<'g>),
    /// A binding: an index port, a label or a pick.
    Index(u32),
}

impl<'g> From<Value<'g>> for Arg<'g> {
    fn from(value: Value<'g>) -> Self {
        Self::Value(value)
    }
}

impl<'g> From<&Value<'g>> for Arg<'g> {
    fn from(value: &Value<'g>) -> Self {
        Self::Value(*value)
    }
}

impl From<u32> for Arg<'_> {
    fn from(index: u32) -> Self {
        Self::Index(index)
    }
}

/// An index or a value as an argument: a label, a word, the input of a cell.
///
/// Implemented for values and `u32`. Other integers do not compile:
///
/// ```compile_fail,E0277
/// # use autobatch_ir::Value;
/// fn loss<'g>(logits: Value<'g>, label: usize) -> Value<'g> {
///     logits.cross_entropy(label) // write `label as u32`
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an index nor a value of a graph",
    label = "expected a `u32` or a `Value`",
    note = "indices are u32: write `label as u32`, or `u32::try_from(label)?` if the number may be large"
)]
pub trait IntoArg<'g> {
    /// The argument.
    fn into_arg(self) -> Arg<'g>;
}

impl<'g> IntoArg<'g> for Arg<'g> {
    #[inline]
    fn into_arg(self) -> Self {
        self
    }
}

impl<'g> IntoArg<'g> for Value<'g> {
    #[inline]
    fn into_arg(self) -> Arg<'g> {
        Arg::Value(self)
    }
}

impl<'g> IntoArg<'g> for &Value<'g> {
    #[inline]
    fn into_arg(self) -> Arg<'g> {
        Arg::Value(*self)
    }
}

impl<'g> IntoArg<'g> for u32 {
    #[inline]
    fn into_arg(self) -> Arg<'g> {
        Arg::Index(self)
    }
}

/// The arguments of a call of a cell with `N` ports.
///
/// Implemented for arrays of values, tuples of values and `u32` indices, and a single argument. A
/// wrong number of arguments does not compile.
#[diagnostic::on_unimplemented(
    message = "these are not the arguments of a cell with {N} ports",
    note = "a cell of N ports takes N arguments: an array of values, a tuple of values and u32 indices, or a single one where N is 1"
)]
pub trait Args<'g, const N: usize> {
    /// The arguments in order.
    fn into_args(self) -> [Arg<'g>; N];
}

impl<'g, const N: usize> Args<'g, N> for [Value<'g>; N] {
    #[inline]
    fn into_args(self) -> [Arg<'g>; N] {
        self.map(Arg::Value)
    }
}

impl<'g, const N: usize> Args<'g, N> for [Arg<'g>; N] {
    #[inline]
    fn into_args(self) -> [Arg<'g>; N] {
        self
    }
}

impl<'g> Args<'g, 1> for Value<'g> {
    #[inline]
    fn into_args(self) -> [Arg<'g>; 1] {
        [Arg::Value(self)]
    }
}

impl<'g> Args<'g, 1> for u32 {
    #[inline]
    fn into_args(self) -> [Arg<'g>; 1] {
        [Arg::Index(self)]
    }
}

macro_rules! tuple_args {
    ($n:literal: $($name:ident $place:tt),+) => {
        impl<'g, $($name: IntoArg<'g>),+> Args<'g, $n> for ($($name,)+) {
            #[inline]
            fn into_args(self) -> [Arg<'g>; $n] {
                [$(self.$place.into_arg()),+]
            }
        }
    };
}

tuple_args!(1: A 0);
tuple_args!(2: A 0, B 1);
tuple_args!(3: A 0, B 1, C 2);
tuple_args!(4: A 0, B 1, C 2, D 3);
tuple_args!(5: A 0, B 1, C 2, D 3, E 4);
tuple_args!(6: A 0, B 1, C 2, D 3, E 4, F 5);
tuple_args!(7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_args!(8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
