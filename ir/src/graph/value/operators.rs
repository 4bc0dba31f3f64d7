//! `+ - * /` on values, references and numbers, and sums of iterators.

use super::Value;
use crate::graph::op::{Binary, Op, Unary};
use std::iter::Sum;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        operator! { $trait $method $op (self: Value<'g>, other: Value<'g>, caller) => self, other }
        operator! { $trait $method $op (self: Value<'g>, other: &Value<'g>, caller) => self, *other }
        operator! { $trait $method $op (self: &Value<'g>, other: Value<'g>, caller) => *self, other }
        operator! { $trait $method $op (self: &Value<'g>, other: &Value<'g>, caller) => *self, *other }
        operator! { $trait $method $op (self: Value<'g>, other: f32, caller) => self, self.number(other, caller) }
        operator! { $trait $method $op (self: &Value<'g>, other: f32, caller) => *self, self.number(other, caller) }
        operator! { $trait $method $op (self: f32, other: Value<'g>, caller) => other.number(self, caller), other }
    )*};
}

/// Implements an operator for one pair of operand types. The expressions convert both to values.
macro_rules! operator {
    (
        $trait:ident $method:ident $op:ident
        ($self:ident: $left:ty, $other:ident: $right:ty, $caller:ident) => $a:expr, $b:expr
    ) => {
        impl<'g> $trait<$right> for $left {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method($self, $other: $right) -> Value<'g> {
                let $caller = Location::caller();
                $a.elementwise(Op::Binary(Binary::$op), $b, $caller)
            }
        }
    };
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl<'g> Neg for Value<'g> {
    type Output = Value<'g>;
    #[track_caller]
    fn neg(self) -> Value<'g> {
        self.unary(Op::Unary(Unary::Neg), Location::caller())
    }
}

impl<'g> Neg for &Value<'g> {
    type Output = Value<'g>;
    #[track_caller]
    fn neg(self) -> Value<'g> {
        self.unary(Op::Unary(Unary::Neg), Location::caller())
    }
}

impl<'g> Sum for Value<'g> {
    /// The sum of the values: a single node over their list.
    ///
    /// # Panics
    /// If there are no values, because the sum has no type. Use `g.empty_list(type).sum()`.
    #[track_caller]
    fn sum<I: Iterator<Item = Value<'g>>>(values: I) -> Value<'g> {
        let values: Vec<Value<'g>> = values.collect();
        let Some(first) = values.first() else {
            panic!("an empty sum has no type; use g.empty_list(type).sum()")
        };
        first.graph.list(&values).sum()
    }
}

impl<'a, 'g: 'a> Sum<&'a Value<'g>> for Value<'g> {
    #[track_caller]
    fn sum<I: Iterator<Item = &'a Value<'g>>>(values: I) -> Value<'g> {
        values.copied().sum()
    }
}
