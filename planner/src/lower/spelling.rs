//! Names of a letter and a number. Formatting the names of all outputs with `format!` would take a tenth of planning.

use autobatch_ir::id::ValueId;

/// A letter or a sign, followed by a number, in a string of exactly that length.
pub(crate) fn numbered<T: for<'a> From<&'a str>>(letter: u8, number: u32) -> T {
    let mut bytes = [letter; MAX_LEN];
    spell(&mut bytes, number).into()
}

/// The name of a slab's field by its position: `a`, `b`, .., `z`, `f26`, ..
pub(crate) fn field_name(number: usize) -> String {
    match u8::try_from(number) {
        Ok(letter @ 0..26) => char::from(b'a' + letter).to_string(),
        _ => numbered(b'f', number as u32),
    }
}

/// The length of a sign and ten digits.
const MAX_LEN: usize = 11;

/// Writes a number behind the last sign before it.
fn spell(signs: &mut [u8; MAX_LEN], number: u32) -> &str {
    let (mut at, mut rest) = (signs.len(), number);
    loop {
        at -= 1;
        signs[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    std::str::from_utf8(&signs[at - 1..]).expect("a letter and digits are text")
}

/// Names of values, as they display, one after the other. Consecutive names seldom differ in more than the last two digits, so
/// only these are rewritten.
#[derive(Debug, Default)]
pub(super) struct ValueNames {
    /// The last name.
    name: String,
    /// Its number without the last two digits.
    hundreds: usize,
}

impl ValueNames {
    /// The name of a value.
    pub(super) fn of(&mut self, value: ValueId) -> &str {
        let (hundreds, rest) = (value.index() / 100, value.index() % 100);
        if hundreds > 0 && hundreds == self.hundreds {
            self.name.truncate(self.name.len() - 2);
            self.name.push_str(&TWO_DIGITS[2 * rest..2 * rest + 2]);
        } else {
            self.name.clear();
            self.name.push_str(spell(&mut [b'%'; MAX_LEN], value.index() as u32));
            self.hundreds = hundreds;
        }
        &self.name
    }
}

/// The digits 00 to 99.
const TWO_DIGITS: &str = match std::str::from_utf8(&BYTES) {
    Ok(digits) => digits,
    Err(_) => unreachable!(),
};

const BYTES: [u8; 200] = {
    let mut bytes = [0; 200];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = b'0' + (at / 20) as u8;
        bytes[at + 1] = b'0' + (at / 2 % 10) as u8;
        at += 2;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_the_display_of_values() {
        let mut names = ValueNames::default();
        let ends = [0, 7, 10, 99, 100, 109, 110, 199, 200, 99, 205];
        let carries = [123_456, 123_400, 123_399, 12_399, 0, 123_456_789, 1_000_000_000];
        for number in ends.into_iter().chain(carries) {
            let value = ValueId::new(number);
            assert_eq!(numbered::<String>(b'%', value.index() as u32), value.to_string());
            assert_eq!(names.of(value), value.to_string());
        }
    }
}
