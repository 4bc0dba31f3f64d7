//! Errors of corpus readers: content that violates its format.
//!
//! Every message names the file, the place, the expected content and the content found. The format is one
//! that editors can jump to: `sst/valid.txt:17:5: expected a label 0..4, found "x"`.

use std::fmt;

/// The place of an error in a file. Text has lines and columns, and binary content has byte offsets. Some
/// errors, such as a missing file, concern the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The whole file.
    File,
    /// A line of a text file, counted from 1.
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The character within the line, counted from 1. `None` stands for the whole line.
        column: Option<usize>,
    },
    /// An offset in a binary file, counted from 0.
    Byte(usize),
}

/// Content that does not follow its format, or a file that cannot be read.
#[derive(Clone, PartialEq, Eq)]
pub struct DataError {
    /// The name of the file, as the caller gave it.
    pub file: String,
    /// The place in the file.
    pub place: Place,
    /// The content that the format requires there.
    pub expected: String,
    /// The content found there. Text of the file is quoted, escaped and shortened.
    pub found: String,
}

impl DataError {
    /// Makes an error that concerns the whole `file`.
    pub fn in_file(file: &str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::at(file, Place::File, expected, found)
    }

    /// Makes an error at a place of `file`.
    pub fn at(file: &str, place: Place, expected: impl Into<String>, found: impl Into<String>) -> Self {
        DataError { file: file.to_owned(), place, expected: expected.into(), found: found.into() }
    }

    /// The error of a part of a file, with its place in the file. Lines of the file precede the part.
    #[must_use]
    pub fn after_lines(mut self, lines: usize) -> Self {
        if let Place::Line { line, .. } = &mut self.place {
            *line += lines;
        }
        self
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.place {
            Place::File => {}
            Place::Line { line, column: None } => write!(f, ":{line}")?,
            Place::Line { line, column: Some(column) } => write!(f, ":{line}:{column}")?,
            Place::Byte(offset) => write!(f, ": byte {offset}")?,
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for DataError {}

autobatch::ir::debug_as_display!(DataError);

/// Quotes text of a file for a message: escapes control characters and keeps at most 40 characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut quoted = String::from("\"");
    for c in text.chars().take(LONGEST) {
        quoted.extend(c.escape_debug());
    }
    if text.chars().nth(LONGEST).is_some() {
        quoted.push('…');
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_file_place_expected_and_found_content() {
        let line = |column| Place::Line { line: 17, column };
        let say = |place| DataError::at("a/b.txt", place, "a label 0..4", quoted("x")).to_string();
        insta::assert_snapshot!(say(line(Some(5))), @r#"a/b.txt:17:5: expected a label 0..4, found "x""#);
        insta::assert_snapshot!(say(line(None)), @r#"a/b.txt:17: expected a label 0..4, found "x""#);
        insta::assert_snapshot!(say(Place::Byte(8)), @r#"a/b.txt: byte 8: expected a label 0..4, found "x""#);
        insta::assert_snapshot!(say(Place::File), @r#"a/b.txt: expected a label 0..4, found "x""#);
    }

    #[test]
    fn quoted_text_is_escaped_and_shortened() {
        assert_eq!(quoted("a\tb\0"), "\"a\\tb\\0\"");
        assert_eq!(quoted(&"x".repeat(41)), format!("\"{}…\"", "x".repeat(40)));
        assert_eq!(quoted(&"x".repeat(40)), format!("\"{}\"", "x".repeat(40)));
    }
}
