//! Integer ops: `u32`, wrapping, so that no input has a special case and WGSL's `u32` agrees.

/// `a + b` modulo 2^32.
#[inline(always)]
pub fn add(a: u32, b: u32) -> u32 {
    a.wrapping_add(b)
}

/// `a - b` modulo 2^32.
#[inline(always)]
pub fn sub(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b)
}

/// `a * b` modulo 2^32.
#[inline(always)]
pub fn mul(a: u32, b: u32) -> u32 {
    a.wrapping_mul(b)
}

/// The smaller, as unsigned numbers.
#[inline(always)]
pub fn min(a: u32, b: u32) -> u32 {
    a.min(b)
}

/// The larger, as unsigned numbers.
#[inline(always)]
pub fn max(a: u32, b: u32) -> u32 {
    a.max(b)
}
