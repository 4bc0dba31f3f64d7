//! Lines and fields of text that know their position in a file.
//!
//! All text readers share these steps, so they treat encodings, line ends and columns alike. Content is UTF-8; a
//! leading byte order mark is dropped. Lines end in `\n` or `\r\n`. Any other `\r` is an error, so no word contains
//! one. Columns count characters from 1. A file has at most `u32::MAX` bytes, so every position fits a `u32`, and
//! so does every node of a tree read from it.

use std::path::Path;

use super::error::{DataError, Place, quoted};

/// Reads a whole file and passes its bytes and its display name to `parse`.
pub(crate) fn read_with<T>(
    path: &Path,
    parse: impl FnOnce(&[u8], &str) -> Result<T, DataError>,
) -> Result<T, DataError> {
    let file = path.display().to_string();
    let bytes = autobatch::ir::files::read(path)
        .map_err(|error| DataError::in_file(&file, "a readable file", error.to_string()))?;
    parse(&bytes, &file)
}

/// Checks the size and the encoding.
pub(crate) fn decode<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str, DataError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(DataError::in_file(
            file,
            "less than 4 GiB; split the file",
            format!("{} bytes", bytes.len()),
        ));
    }
    let mut bytes = bytes;
    while let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        bytes = rest;
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let found = format!("byte 0x{:02x}", bytes[at]);
        DataError::at(file, place_of(bytes, at), "UTF-8 text", found)
    })?;
    match lone_carriage_return(bytes) {
        Some(at) => {
            let expected = "\\n or \\r\\n as line end";
            Err(DataError::at(file, place_of(bytes, at), expected, "\\r alone"))
        }
        None => Ok(text),
    }
}

/// Returns the line and column of a byte that follows valid UTF-8.
fn place_of(bytes: &[u8], at: usize) -> Place {
    let before = &bytes[..at];
    let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1);
    // Continuation bytes are 10xxxxxx; every other byte begins a character.
    let column = 1 + before[start..].iter().filter(|&&b| b & 0xc0 != 0x80).count();
    Place::Line { line, column: Some(column) }
}

fn lone_carriage_return(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find(|&at| bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'))
}

/// A piece of a line, with the context that an error needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    /// The text of this piece.
    pub(crate) text: &'a str,
    file: &'a str,
    number: usize,
    /// The whole line, and the byte offset of `text` in it.
    line: &'a str,
    start: usize,
}

impl<'a> Piece<'a> {
    /// Makes the error "expected .., found this piece" at the piece's first character.
    pub(crate) fn error(&self, expected: impl Into<String>) -> DataError {
        let found = if self.text.is_empty() {
            if self.start == self.line.len() {
                "the end of the line".to_owned()
            } else {
                "nothing".to_owned()
            }
        } else {
            quoted(self.text)
        };
        self.error_found(expected, found)
    }

    /// Makes the same error with a description of the finding.
    pub(crate) fn error_found(&self, expected: impl Into<String>, found: impl Into<String>) -> DataError {
        let column = 1 + self.line[..self.start].chars().count();
        let place = Place::Line { line: self.number, column: Some(column) };
        DataError::at(self.file, place, expected, found)
    }

    /// Returns the part of this piece between two byte offsets, which must be character boundaries.
    pub(crate) fn sub(&self, from: usize, to: usize) -> Piece<'a> {
        Piece { text: &self.text[from..to], start: self.start + from, ..*self }
    }

    /// Returns this piece without spaces and tabs at its ends.
    pub(crate) fn trimmed(&self) -> Piece<'a> {
        let begun = self.text.trim_start_matches([' ', '\t']);
        let start = self.text.len() - begun.len();
        self.sub(start, start + begun.trim_end_matches([' ', '\t']).len())
    }

    /// Returns the empty piece at the end of this one.
    pub(crate) fn end(&self) -> Piece<'a> {
        self.sub(self.text.len(), self.text.len())
    }

    /// Returns the parts between separators, including empty ones. An empty piece has one empty part.
    pub(crate) fn split(self, separator: char) -> impl Iterator<Item = Piece<'a>> {
        let mut from = 0;
        self.text.split(separator).map(move |part| {
            let piece = self.sub(from, from + part.len());
            from += part.len() + separator.len_utf8();
            piece
        })
    }

    /// Returns the parts before and after the last separator.
    pub(crate) fn rsplit_once(&self, separator: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.text.rfind(separator)?;
        Some((self.sub(0, at), self.sub(at + separator.len_utf8(), self.text.len())))
    }

    /// Returns exactly `N` parts between separators; `expected` describes them.
    pub(crate) fn fields<const N: usize>(
        self,
        separator: char,
        expected: &str,
    ) -> Result<[Piece<'a>; N], DataError> {
        let parts: Vec<_> = self.split(separator).take(N + 1).collect();
        let count = self.text.split(separator).count();
        parts.try_into().map_err(|_| self.error_found(expected, format!("{count} columns")))
    }

    /// Reads a decimal number without a sign, no larger than `largest`.
    pub(crate) fn number(&self, largest: u32, expected: &str) -> Result<u32, DataError> {
        let digits = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
        match self.text.parse::<u32>() {
            Ok(n) if digits && n <= largest => Ok(n),
            _ => Err(self.error(expected)),
        }
    }
}

/// Returns the lines of a text as pieces. The final line end does not begin another line.
pub(crate) fn lines<'a>(text: &'a str, file: &'a str) -> impl Iterator<Item = Piece<'a>> {
    text.lines().enumerate().map(move |(index, line)| Piece {
        text: line,
        file,
        number: index + 1,
        line,
        start: 0,
    })
}

/// Reads one item per line. The parser of an item gets the whole line.
pub(crate) fn each_line<T>(
    bytes: &[u8],
    file: &str,
    parse: impl FnMut(Piece<'_>) -> Result<T, DataError>,
) -> Result<Vec<T>, DataError> {
    lines(decode(bytes, file)?, file).map(parse).collect()
}

/// Reads one item per line, and skips blank lines, as inputs of predictions may have them.
pub(crate) fn each_filled_line<T>(
    bytes: &[u8],
    file: &str,
    parse: impl FnMut(Piece<'_>) -> Result<T, DataError>,
) -> Result<Vec<T>, DataError> {
    let filled = lines(decode(bytes, file)?, file).filter(|line| !line.text.trim().is_empty());
    filled.map(parse).collect()
}

/// Writes one item per line: the inverse of [`each_line`].
pub(crate) fn join_lines<T: std::fmt::Display>(items: &[T]) -> String {
    use std::fmt::Write;
    items.iter().fold(String::new(), |mut text, item| {
        writeln!(text, "{item}").expect("a string accepts every write");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_encoding_is_reported_with_line_and_column_in_characters() {
        let error = decode(b"first\n\xc3\xa4b\xff", "f").unwrap_err();
        insta::assert_snapshot!(error, @"f:2:3: expected UTF-8 text, found byte 0xff");
    }

    #[test]
    fn both_line_ends_are_accepted_and_others_are_rejected() {
        let read = |text: &str| each_line(text.as_bytes(), "f", |line| Ok(line.text.to_owned()));
        assert_eq!(read("\u{feff}a\r\nb\n").unwrap(), ["a", "b"]);
        insta::assert_snapshot!(read("a\rb").unwrap_err(), @r"f:1:2: expected \n or \r\n as line end, found \r alone");
    }

    #[test]
    fn errors_of_pieces_have_the_column_of_the_piece() {
        let line = lines("ä b  c", "f").next().unwrap();
        let places: Vec<_> = line.split(' ').map(|p| p.error("x").to_string()).collect();
        insta::assert_snapshot!(places.join("\n"), @r#"
        f:1:1: expected x, found "ä"
        f:1:3: expected x, found "b"
        f:1:5: expected x, found nothing
        f:1:6: expected x, found "c"
        "#);
        insta::assert_snapshot!(line.end().error("more"), @"f:1:7: expected more, found the end of the line");
    }

    #[test]
    fn numbers_have_no_sign_and_a_bound() {
        let number = |text| lines(text, "f").next().unwrap().number(40, "a number").is_ok();
        assert!(number("40") && number("0"));
        assert!(!number("41") && !number("+1") && !number("-1") && !number("4294967296"));
    }

    #[test]
    fn a_missing_file_is_an_error_that_names_it() {
        let error = read_with(Path::new("no/such/file"), |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("no/such/file: expected a readable file, found "));
    }
}
