//! The definition of every op's bits.
//!
//! Everything that computes a forward value on a CPU (the graph interpreter, the plan interpreter, the SIMD kernels)
//! produces exactly the bits of the functions in this module. GPU error bounds are measured against them. A kernel may use
//! another algorithm, but if its result differs in one bit, the kernel is wrong.
//!
//! # What "the same bits" means
//! Two results agree when [`same_bits`] holds: equal as integers, or both NaN. Rust, LLVM and the instruction sets leave the
//! sign and payload of a NaN open (`mulss` returns the first operand's, and a compiler may swap operands), so payloads are
//! not part of the definition. Everything else is: signed zeros, infinities, denormals. No function here flushes denormals.
//! All functions assume the default floating-point environment (round to nearest even, gradual underflow).
//!
//! # The parts
//! * [`scalar`]: one pure, branch-free `f32` function per elementwise op. Inlined into a loop of a `#[target_feature]`
//!   function, the same function is the vector kernel. LLVM widens it, and each lane gets the same bits, because each step
//!   is an IEEE operation, a fused multiply-add, a select or an integer operation.
//! * [`row`], [`loss`]: reductions within a value, over 16 virtual lanes. [`label_loss`]: a loss over many labels. [`list`]: reductions over
//!   lists, left to right. [`graph_attention`]: attention by sums of numbers. [`product`]: chains of fused multiply-adds.
//! * [`store`]: sums over whole stores.
//! * [`noise`]: the counter-based generator, and dropout. [`half`]: f16 and bf16. [`int`]: integer ops.
//! * [`Real`]: all of these behind one trait, for `f32` (these bits) and `f64` (high precision).
//!
//! # Rounding
//! `mul` followed by `add` rounds twice everywhere. A fused multiply-add is used exactly where a doc says *fma*. Nothing may
//! be reassociated. Without the target feature, `f32::mul_add` calls the C library, which is slow but gives the same bits.

/// Defines public inline functions of one number type: `name(arguments) = expression`.
macro_rules! functions {
    ($number:ident; $($(#[$doc:meta])* $name:ident($($argument:ident),*) = $value:expr;)*) => {
        $($(#[$doc])*
        #[inline(always)]
        pub fn $name($($argument: $number),*) -> $number {
            $value
        })*
    };
}
use functions;

mod dispatch;
pub mod graph_attention;
pub mod half;
pub mod int;
pub mod label_loss;
pub mod list;
pub mod loss;
pub mod noise;
pub mod product;
mod real;
mod real_f64;
pub mod row;
pub mod scalar;
pub mod store;
pub mod tree;

pub use real::Real;

/// Whether two results agree under the contract: equal as integers, or both NaN.
#[inline(always)]
pub fn same_bits(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}
