//! f16 and bf16: conversions to and from f32 by integer arithmetic.
//!
//! Conversion to f32 is exact. Conversion from f32 rounds to nearest, ties to even, with gradual underflow; overflow gives
//! infinity. Narrowing a NaN keeps its sign and the leading bits of its payload, and sets the quiet bit, because a payload
//! whose leading bits are 0 would otherwise become an infinity. Widening a NaN keeps every bit.

/// The f32 with the value of the f16 pattern `bits`.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let shifted = magnitude << 13;
    // Normal numbers: rebias the exponent by 127 - 15. Infinities and NaN: set the exponent to 255.
    let normal = shifted + (112 << 23);
    let special = shifted | 0x7f80_0000;
    // Denormals: the magnitude counts multiples of 2^-24.
    let denormal = (magnitude as f32 * (1.0 / 16_777_216.0)).to_bits();
    let finite = if magnitude < 0x0400 { denormal } else { normal };
    f32::from_bits(sign | if magnitude >= 0x7c00 { special } else { finite })
}

/// The f16 pattern nearest to `x`, ties to even; `|x| >= 65520` gives infinity, `|x| <= 2^-25` gives zero.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    // Normal results: round at bit 13. A carry correctly increments the exponent, up to infinity.
    let odd = (magnitude >> 13) & 1;
    let normal = (magnitude.wrapping_sub(112 << 23).wrapping_add(0x0fff + odd) >> 13) as u16;
    // Denormal results: the last place of 0.5 + |x| is 2^-24, so the addition itself rounds.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits()) as u16;
    let quiet_nan = 0x7e00 | ((magnitude >> 13) & 0x03ff) as u16;
    let finite = if magnitude < (113 << 23) { denormal } else { normal };
    let bounded = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    sign | if magnitude > 0x7f80_0000 { quiet_nan } else { bounded }
}

/// The f32 with the value of the bf16 pattern `bits`.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bf16 pattern nearest to `x`, ties to even.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let odd = (bits >> 16) & 1;
    let rounded = (bits.wrapping_add(0x7fff + odd) >> 16) as u16;
    let quiet_nan = (bits >> 16) as u16 | 0x0040;
    if bits & 0x7fff_ffff > 0x7f80_0000 { quiet_nan } else { rounded }
}
