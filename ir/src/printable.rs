//! Text from files, made safe to print.
//!
//! A name in a file may contain any character. Control characters move the cursor of a terminal and set its title, and marks
//! of writing direction reorder the rest of a line. Messages and reports escape both.

use std::borrow::Cow;

/// Whether a terminal shows a character at its place and nothing else happens.
#[must_use]
pub fn is_printable(c: char) -> bool {
    let sets_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    !c.is_control() && !sets_direction && !ends_line
}

/// The text with `\u001b` in place of each character that is not printable. Line breaks and tabs stay. The escapes are those of
/// JSON, so the result of a JSON document is an equal document.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let stays = |c: char| is_printable(c) || matches!(c, '\n' | '\t');
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if stays(c) {
            escaped.push(c);
        } else {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    Cow::Owned(escaped)
}

/// The text, cut to a number of characters. `..` marks the cut.
#[must_use]
pub fn shortened(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((at, _)) => Cow::Owned(format!("{}..", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Characters of a name that [`brief`] keeps.
const BRIEF: usize = 80;

/// A name for a message: short, and printable on one line.
#[must_use]
pub fn brief(name: &str) -> String {
    let line: String = shortened(name, BRIEF).replace(['\n', '\t'], " ");
    printable(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{brief, is_printable, printable, shortened};

    #[test]
    fn escapes_of_terminals_are_shown_and_not_executed() {
        let hostile = "o\u{1b}[2J\u{9b}31m\u{202e}x\u{0}\r\n\ty";
        assert_eq!(printable(hostile), "o\\u001b[2J\\u009b31m\\u202ex\\u0000\\u000d\n\ty");
        assert!(printable(hostile).chars().all(|c| is_printable(c) || "\n\t".contains(c)));
        assert_eq!(printable("grün λ %3"), "grün λ %3");
    }

    #[test]
    fn escaped_json_is_the_same_document() {
        let name = "a\u{9b}\u{202e}\u{1b}";
        let text = serde_json::to_string(name).expect("a string has a JSON form");
        assert_eq!(serde_json::from_str::<String>(&printable(&text)).expect("still JSON"), name);
    }

    #[test]
    fn names_in_messages_are_short_lines() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("äöü!", 3), "äöü..");
        assert_eq!(brief("a\nb\u{7}"), "a b\\u0007");
        assert_eq!(brief(&"x".repeat(1000)).len(), 82);
    }
}
