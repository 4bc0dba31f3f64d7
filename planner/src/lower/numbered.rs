//! Names that are a sign and a number: formatting those of all outputs would be a tenth of planning.

use autobatch_ir::id::ValueId;

/// A letter of the alphabet or a sign, and a number, in a string that is no longer than it must be.
pub(crate) fn numbered<T: for<'a> From<&'a str>>(letter: u8, number: u32) -> T {
    let mut bytes = [letter; LONGEST];
    spell(&mut bytes, number).into()
}

/// The length of a sign and ten digits.
const LONGEST: usize = 11;

/// A number with one of the signs that are there before it.
fn spell(signs: &mut [u8; LONGEST], number: u32) -> &str {
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

/// Names of values as they are displayed, one after the other. Those of values that are asked for together seldom differ in more
/// than the last two digits, so these are exchanged.
#[derive(Debug, Default)]
pub(super) struct ValueNames {
    /// The name given last.
    name: String,
    /// What its number is without the last two digits.
    hundreds: usize,
}

impl ValueNames {
    pub(super) fn of(&mut self, value: ValueId) -> &str {
        let (hundreds, rest) = (value.index() / 100, value.index() % 100);
        if hundreds > 0 && hundreds == self.hundreds {
            self.name.truncate(self.name.len() - 2);
            self.name.push_str(&TWO_DIGITS[2 * rest..2 * rest + 2]);
        } else {
            self.name.clear();
            self.name.push_str(spell(&mut [b'%'; LONGEST], value.index() as u32));
            self.hundreds = hundreds;
        }
        &self.name
    }
}

/// 00 to 99.
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
    fn values_are_spelled_as_they_display() {
        let mut names = ValueNames::default();
        for number in [
            0,
            7,
            10,
            99,
            100,
            109,
            110,
            199,
            200,
            99,
            205,
            123_456,
            123_400,
            123_399,
            12_399,
            0,
            123_456_789,
            1_000_000_000,
        ] {
            let value = ValueId::new(number);
            assert_eq!(numbered::<String>(b'%', value.index() as u32), value.to_string());
            assert_eq!(names.of(value), value.to_string());
        }
    }
}
