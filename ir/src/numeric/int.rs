//! Integer ops on `u32`. They wrap, so no input is special and they equal WGSL's `u32` ops.

super::functions! { u32;
    /// `a + b` modulo 2^32.
    add(a, b) = a.wrapping_add(b);
    /// `a - b` modulo 2^32.
    sub(a, b) = a.wrapping_sub(b);
    /// `a * b` modulo 2^32.
    mul(a, b) = a.wrapping_mul(b);
    /// The smaller operand, as unsigned numbers.
    min(a, b) = if a < b { a } else { b };
    /// The larger operand, as unsigned numbers.
    max(a, b) = if a > b { a } else { b };
}
