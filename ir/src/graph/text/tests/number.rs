//! Tests of spelling and reading numbers.

use super::*;

#[test]
fn floats_read_back_to_their_bits() {
    let mut state = 0x9e37_79b9u32;
    let special = [0.0, -0.0, 1.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, 0.1];
    let nans = [0x7fc0_0000u32, 0xffc0_0001, 0x7f80_0001, 1, 0x8000_0001].map(f32::from_bits);
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        f32::from_bits(state ^ (state >> 15))
    });
    for number in special.into_iter().chain(nans).chain(random.take(20_000)) {
        let mut text = String::new();
        push_float(&mut text, number);
        let back = float(text.as_bytes()).map(f32::to_bits);
        assert_eq!(back, Ok(number.to_bits()), "{text}");
    }
}

#[test]
fn integers_have_a_range() {
    assert_eq!(element(DType::I32, b"-2147483648"), Ok(0x8000_0000));
    assert_eq!(element(DType::I32, b"2147483648"), Err(Refusal::TooLarge));
    assert_eq!(element(DType::U32, b"4294967296"), Err(Refusal::TooLarge));
    assert_eq!(element(DType::U32, b"-1"), Err(Refusal::NotANumber));
    assert_eq!(element(DType::Bool, b"2"), Err(Refusal::TooLarge));
    assert_eq!(unsigned(b"99999999999999999999999"), Err(Refusal::TooLarge));
    assert_eq!(float(b"1e99"), Err(Refusal::TooLarge));
    assert_eq!(float(b"1.2.3"), Err(Refusal::NotANumber));
    assert_eq!(float(b"-"), Err(Refusal::NotANumber));
}
