//! The definition of every op's bits.
//!
//! Everything that computes a forward value on a CPU (the graph interpreter, the plan interpreter,
//! the SIMD kernels) gives the bits that the functions of this module give; GPU bounds are measured
//! against them. A kernel may be written differently, but a result that differs in one bit is a
//! fault of the kernel.
//!
//! # What "the same bits" means
//! Two results agree when [`same_bits`] holds: equal as integers, or both NaN. Rust, LLVM and the
//! instruction sets leave the sign and payload of a NaN open (`mulss` returns the first operand's,
//! and a compiler may swap operands), so no payload is part of the definition. All else is: signed
//! zeros, infinities, denormals. No function here flushes denormals, and none depends on a
//! floating-point environment other than the default one (round to nearest even, gradual
//! underflow).
//!
//! # The parts
//! * [`scalar`]: one pure, branch-free `f32` function per elementwise op. The same function is the
//!   scalar twin and, inlined into a loop of a `#[target_feature]` function, the vector kernel:
//!   LLVM widens it and every lane gets the same bits, because each step is an IEEE operation, a
//!   fused multiply-add, a select or an integer operation.
//! * [`row`], [`loss`]: folds inside a value, over 16 virtual lanes. [`list`]: folds over lists,
//!   left to right. [`product`]: chains of fused multiply-adds.
//! * [`store`]: sums over whole stores.
//! * [`noise`]: the counter-based generator, and dropout. [`half`]: f16 and bf16. [`int`]: integer
//!   ops.
//! * [`Real`]: all of it behind one trait, for `f32` (these bits) and `f64` (the high-precision
//!   twin).
//!
//! # Rounding
//! `mul` then `add` is two roundings everywhere; a fused multiply-add is used exactly where a doc
//! says *fma*. Nothing may be reassociated. Without the target feature, `f32::mul_add` is a call of
//! the C library: slow, same bits.

pub mod half;
pub mod int;
pub mod list;
pub mod loss;
pub mod noise;
pub mod product;
mod real;
mod real_f64;
pub mod row;
pub mod scalar;
pub mod store;

pub use real::Real;

/// Whether two results agree under the contract: equal as integers, or both NaN.
#[inline(always)]
pub fn same_bits(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}
