//! `+ - * /` on values, references and numbers.

use super::Value;
use crate::graph::op::{Binary, Op, Unary};
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
