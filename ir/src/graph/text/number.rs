//! Numbers in text.
//!
//! A float prints as the shortest decimal that reads back to the same bits. A NaN prints as its bits,
//! `0x7fc00001`, because a decimal has no payload. Integers are decimal.

use crate::types::DType;
use std::fmt::Write as _;

/// The reason why a word is not a number of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotANumber,
    TooLarge,
}

/// Appends an unsigned number.
#[inline]
pub(crate) fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&digit| digit as char));
}

/// Appends a float.
pub(crate) fn push_float(out: &mut String, number: f32) {
    let written =
        if number.is_nan() { write!(out, "{:#010x}", number.to_bits()) } else { write!(out, "{number:?}") };
    written.expect("writing to a string does not fail");
}

/// Appends one stored element.
pub(crate) fn push_element(out: &mut String, dtype: DType, bits: u32) {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => push_float(out, f32::from_bits(bits)),
        DType::I32 => {
            let number = i64::from(bits as i32);
            if number < 0 {
                out.push('-');
            }
            push_number(out, number.unsigned_abs());
        }
        DType::U32 | DType::Bool => push_number(out, u64::from(bits)),
    }
}

/// Parses an unsigned 64-bit number.
#[inline]
pub(crate) fn unsigned(word: &[u8]) -> Result<u64, Refusal> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::NotANumber);
    }
    let add = |number: u64, &digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    word.iter().try_fold(0, add).ok_or(Refusal::TooLarge)
}

/// Parses an unsigned 32-bit number.
#[inline]
pub(crate) fn unsigned32(word: &[u8]) -> Result<u32, Refusal> {
    u32::try_from(unsigned(word)?).map_err(|_| Refusal::TooLarge)
}

/// Parses a float: a decimal, `inf`, or bits as hexadecimal digits.
pub(crate) fn float(word: &[u8]) -> Result<f32, Refusal> {
    let word = std::str::from_utf8(word).map_err(|_| Refusal::NotANumber)?;
    if let Some(hex) = word.strip_prefix("0x") {
        if hex.is_empty() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Refusal::NotANumber);
        }
        return u32::from_str_radix(hex, 16).map(f32::from_bits).map_err(|_| Refusal::TooLarge);
    }
    match word.strip_prefix(['-', '+']).unwrap_or(word) {
        "inf" => return Ok(if word.starts_with('-') { f32::NEG_INFINITY } else { f32::INFINITY }),
        digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {}
        _ => return Err(Refusal::NotANumber),
    }
    match word.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::NotANumber),
    }
}

/// Parses an element and returns its bits.
pub(crate) fn element(dtype: DType, word: &[u8]) -> Result<u32, Refusal> {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 => float(word).map(f32::to_bits),
        DType::I32 => {
            let (digits, negative) = word.strip_prefix(b"-").map_or((word, false), |rest| (rest, true));
            let size = i64::try_from(unsigned(digits)?).map_err(|_| Refusal::TooLarge)?;
            let number = if negative { -size } else { size };
            i32::try_from(number).map(|number| number as u32).map_err(|_| Refusal::TooLarge)
        }
        DType::U32 => unsigned32(word),
        DType::Bool => {
            unsigned32(word).and_then(|bit| if bit > 1 { Err(Refusal::TooLarge) } else { Ok(bit) })
        }
    }
}

#[cfg(test)]
#[path = "tests/number.rs"]
mod tests;
