//! One arm per elementwise function: a body is compiled for each function, so that a loop in it contains no dispatch.

/// Evaluates a body with the function of a [`Unary`](crate::graph::Unary) on a [`Real`](crate::numeric::Real):
/// `with_unary!(unary, |f| f(x))`.
#[macro_export]
macro_rules! with_unary {
    ($unary:expr, |$f:ident| $body:expr) => {
        $crate::with_function!(Unary $unary, |$f| $body;
            Neg neg, Abs abs, Exp exp, Log log, Sqrt sqrt, Rsqrt rsqrt, Square square, Recip recip, Tanh tanh,
            Sigmoid sigmoid, Relu relu, Gelu gelu, Silu silu, Softplus softplus, Sin sin, Cos cos, Erf erf, Sign sign)
    };
}

/// Evaluates a body with the function of a [`Binary`](crate::graph::Binary), like [`with_unary`](crate::with_unary).
#[macro_export]
macro_rules! with_binary {
    ($binary:expr, |$f:ident| $body:expr) => {
        $crate::with_function!(Binary $binary, |$f| $body; Add add, Sub sub, Mul mul, Div div, Pow pow, Min min, Max max)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! with_function {
    ($ops:ident $op:expr, |$f:ident| $body:expr; $($name:ident $function:ident),+) => {
        match $op {
            $($crate::graph::$ops::$name => {
                let $f = $crate::numeric::Real::$function;
                $body
            })+
        }
    };
}
