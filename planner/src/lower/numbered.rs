//! Names that are a sign and a number: formatting those of all outputs would be a tenth of planning.

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
