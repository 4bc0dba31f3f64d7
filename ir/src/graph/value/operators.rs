//! `+ - * /` on values, references and numbers, and sums of iterators.

use super::Value;
use crate::graph::op::{Binary, Op, Unary};
use std::iter::Sum;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'g> $trait for Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), other, Location::caller())
            }
        }

        impl<'g> $trait<&Value<'g>> for Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: &Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), *other, Location::caller())
            }
        }

        impl<'g> $trait<Value<'g>> for &Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), other, Location::caller())
            }
        }

        impl<'g> $trait for &Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: &Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), *other, Location::caller())
            }
        }

        impl<'g> $trait<f32> for Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            fn $method(self, number: f32) -> Value<'g> {
                let caller = Location::caller();
                self.meet(Op::Binary(Binary::$op), self.number(number, caller), caller)
            }
        }

        impl<'g> $trait<f32> for &Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            fn $method(self, number: f32) -> Value<'g> {
                let caller = Location::caller();
                self.meet(Op::Binary(Binary::$op), self.number(number, caller), caller)
            }
        }

        impl<'g> $trait<Value<'g>> for f32 {
            type Output = Value<'g>;
            #[track_caller]
            fn $method(self, value: Value<'g>) -> Value<'g> {
                let caller = Location::caller();
                value.number(self, caller).meet(Op::Binary(Binary::$op), value, caller)
            }
        }
    )*};
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
    /// The sum of the values, as one node over their list.
    ///
    /// # Panics
    /// If there are none: a sum of nothing has no type. Use `g.empty_list(type).sum()`.
    #[track_caller]
    fn sum<I: Iterator<Item = Value<'g>>>(values: I) -> Value<'g> {
        let values: Vec<Value<'g>> = values.collect();
        let Some(first) = values.first() else {
            panic!("a sum of no values has no type; use g.empty_list(type).sum()")
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
