//! Short names that end with a number.

/// A letter or a sign, followed by a number, in a string of exactly that length. `format!` takes longer: the names of a large plan
/// took a tenth of planning.
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
