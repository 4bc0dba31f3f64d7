//! f16 and bf16: exhaustive over the patterns, and rounding against a search in f64.

use autobatch_ir::numeric::half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

use crate::Random;

/// The value of a finite f16 pattern by the format's definition.
fn f16_by_definition(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = if exponent == 0 {
        fraction * 2f64.powi(-24)
    } else {
        (1024.0 + fraction) * 2f64.powi(exponent - 25)
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[test]
fn every_f16_pattern_widens_to_its_value_and_round_trips() {
    for bits in 0..=u16::MAX {
        let wide = f16_to_f32(bits);
        match bits & 0x7fff {
            0x7c01.. => {
                assert!(wide.is_nan(), "{bits:#06x}");
                assert_eq!(
                    f32_to_f16(wide),
                    bits | 0x0200,
                    "a nan keeps its sign and payload and becomes quiet"
                );
            }
            0x7c00 => assert_eq!(wide, if bits == 0x7c00 { f32::INFINITY } else { f32::NEG_INFINITY }),
            _ => assert_eq!(f64::from(wide).to_bits(), f16_by_definition(bits).to_bits(), "{bits:#06x}"),
        }
        if !wide.is_nan() {
            assert_eq!(f32_to_f16(wide), bits, "{bits:#06x} through {wide:e}");
        }
    }
}

#[test]
fn every_bf16_pattern_round_trips() {
    for bits in 0..=u16::MAX {
        let wide = bf16_to_f32(bits);
        assert_eq!(wide.to_bits(), u32::from(bits) << 16);
        assert_eq!(f32_to_bf16(wide), if wide.is_nan() { bits | 0x0040 } else { bits }, "{bits:#06x}");
    }
}

/// Checks rounding between two neighbouring patterns: below the middle to the lower one, above it
/// to the upper one, and at the middle to the even one.
fn check_border(lower: u16, middle: f32, narrow: fn(f32) -> u16) {
    let even = if lower & 1 == 0 { lower } else { lower + 1 };
    for (x, expected) in [(middle.next_down(), lower), (middle, even), (middle.next_up(), lower + 1)] {
        assert_eq!(narrow(x), expected, "{x:e} near the middle {middle:e} above {lower:#06x}");
        assert_eq!(narrow(-x), expected | 0x8000, "{x:e} negated");
    }
}

#[test]
fn f16_rounds_to_nearest_with_ties_to_even_at_every_border() {
    for lower in 0..0x7bff {
        let middle = 0.5 * (f16_by_definition(lower) + f16_by_definition(lower + 1));
        check_border(lower, middle as f32, f32_to_f16);
    }
    check_border(0x7bff, 65_520.0, f32_to_f16);
    assert_eq!([f32_to_f16(1e9), f32_to_f16(f32::MAX), f32_to_f16(-f32::INFINITY)], [0x7c00, 0x7c00, 0xfc00]);
    assert_eq!([f32_to_f16(1e-30), f32_to_f16(-1e-40)], [0, 0x8000]);
}

#[test]
fn bf16_rounds_to_nearest_with_ties_to_even_at_every_border() {
    for lower in 0..0x7f7f {
        let middle = 0.5 * (f64::from(bf16_to_f32(lower)) + f64::from(bf16_to_f32(lower + 1)));
        check_border(lower, middle as f32, f32_to_bf16);
    }
    assert_eq!(f32_to_bf16(f32::MAX), 0x7f80);
}

#[test]
fn nan_never_narrows_to_infinity() {
    for payload in [1u32, 0x1fff, 0xffff, 0x7f_ffff, 0x40_0000] {
        for sign in [0, 0x8000_0000] {
            let x = f32::from_bits(sign | 0x7f80_0000 | payload);
            assert!(f16_to_f32(f32_to_f16(x)).is_nan(), "f16 of payload {payload:#x}");
            assert!(bf16_to_f32(f32_to_bf16(x)).is_nan(), "bf16 of payload {payload:#x}");
            assert_eq!(u32::from(f32_to_bf16(x)) << 16 & 0x8000_0000, sign);
        }
    }
}

#[test]
fn narrowing_is_the_nearest_pattern_for_random_numbers() {
    let seed = 3;
    println!("seed {seed}");
    let mut random = Random(seed);
    for _ in 0..200_000 {
        let x = f32::from_bits(random.bits() as u32);
        if x.abs() < 65_504.0 {
            let near = f32_to_f16(x);
            let distance = |bits: u16| (f16_by_definition(bits) - f64::from(x)).abs();
            for other in [near.wrapping_sub(1), near + 1] {
                assert!(other & 0x7fff > 0x7bff || distance(near) <= distance(other), "{x:e}");
            }
        }
    }
}
