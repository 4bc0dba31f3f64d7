//! Sentences of characters with a lattice of dictionary words.
//!
//! A sentence has three lines and a blank line. The first line holds the characters. The second holds one label
//! per character: its position in the gold word (`B` first, `M` middle, `E` last, `S` alone), `-` and the word's
//! part of speech. The third holds the dictionary words as `start:end` (from 0, end exclusive), or `-` if there
//! are none. One space separates items. Dictionary words may overlap and nest. A dictionary word has at most 255
//! characters, so the words of a sentence take memory in proportion to its line.

use std::fmt;
use std::path::Path;

use super::error::DataError;
use super::text::{Piece, decode, join_lines, lines, read_with};

/// The maximum length of a dictionary word, in characters.
const LONGEST: u32 = 255;

/// The position of a character in its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Position {
    /// First of several.
    Begin,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    End,
    /// A word of one character.
    Single,
}

impl Position {
    /// Returns the letter of the position in labels.
    pub fn letter(self) -> char {
        match self {
            Position::Begin => 'B',
            Position::Middle => 'M',
            Position::End => 'E',
            Position::Single => 'S',
        }
    }
}

/// The label of a character. It displays as in the file, such as `B-NOUN`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The position of the character in its word.
    pub position: Position,
    /// The word's part of speech.
    pub pos: String,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.position.letter(), self.pos)
    }
}

/// A dictionary word in a sentence: the characters `start..end`, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first character, from 0.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
}

/// A labelled sentence of one or more characters with its lattice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The characters.
    pub chars: Vec<char>,
    /// The label of each character.
    pub labels: Vec<Label>,
    /// The dictionary words, in the order of the file.
    pub spans: Vec<Span>,
}

impl Sentence {
    /// Returns for each character the dictionary words that end with it. A lattice LSTM merges them there.
    pub fn ending_at(&self) -> Vec<Vec<Span>> {
        let mut ending = vec![Vec::new(); self.chars.len()];
        for &span in &self.spans {
            ending[span.end as usize - 1].push(span);
        }
        ending
    }

    /// Returns the text of a dictionary word.
    pub fn text(&self, span: Span) -> String {
        self.chars[span.start as usize..span.end as usize].iter().collect()
    }
}

fn write_joined<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let separator = if index == 0 { "" } else { " " };
        write!(f, "{separator}{item}")?;
    }
    writeln!(f)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.end)
    }
}

/// Writes the three lines of a sentence without the blank line that ends it.
impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(f, &self.chars)?;
        write_joined(f, &self.labels)?;
        if self.spans.is_empty() {
            return f.write_str("-\n");
        }
        write_joined(f, &self.spans)
    }
}

/// Reads the sentences of a file's content.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Sentence>, DataError> {
    let mut lines = lines(decode(content.as_ref(), file)?, file);
    let mut sentences = Vec::new();
    while let Some(chars) = lines.next() {
        if chars.text.is_empty() {
            return Err(chars.error("characters"));
        }
        let labels = next(&mut lines, chars, "a line of labels after the characters")?;
        let spans = next(&mut lines, chars, "a line of dictionary words after the labels")?;
        sentences.push(parse_sentence(chars, labels, spans)?);
        if let Some(blank) = lines.next()
            && !blank.text.is_empty()
        {
            return Err(blank.error("a blank line after the sentence"));
        }
    }
    Ok(sentences)
}

/// Reads sentences that may lack the line of labels: the characters, then the dictionary words or `-`. Any number of blank
/// lines may separate them.
///
/// # Errors
/// The first line of another form.
pub fn parse_inputs(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Sentence>, DataError> {
    let lines = lines(decode(content.as_ref(), file)?, file);
    let mut lines = lines.filter(|line| !line.text.trim().is_empty()).peekable();
    let mut sentences = Vec::new();
    while let Some(chars) = lines.next() {
        let second = next(&mut lines, chars, "a line of dictionary words, or -, after the characters")?;
        let are_labels = second.text != "-" && !second.text.contains(':');
        sentences.push(match are_labels {
            true => {
                let spans = next(&mut lines, chars, "a line of dictionary words after the labels")?;
                parse_sentence(chars, second, spans)?
            }
            false => {
                let chars: Vec<char> = chars.split(' ').map(parse_char).collect::<Result<_, _>>()?;
                let none = Label { position: Position::Single, pos: "_".to_owned() };
                let spans = parse_spans(second, chars.len())?;
                Sentence { labels: vec![none; chars.len()], chars, spans }
            }
        });
    }
    Ok(sentences)
}

/// The next line of a sentence that begins with `chars`.
fn next<'a>(
    lines: &mut impl Iterator<Item = Piece<'a>>,
    chars: Piece<'_>,
    expected: &str,
) -> Result<Piece<'a>, DataError> {
    lines.next().ok_or_else(|| chars.error_found(expected, "the end of the file"))
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Sentence>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these sentences.
pub fn write(sentences: &[Sentence]) -> String {
    join_lines(sentences)
}

fn parse_sentence(chars: Piece<'_>, labels: Piece<'_>, spans: Piece<'_>) -> Result<Sentence, DataError> {
    let chars: Vec<char> = chars.split(' ').map(parse_char).collect::<Result<_, _>>()?;
    let read: Vec<Label> = labels.split(' ').map(parse_label).collect::<Result<_, _>>()?;
    if read.len() != chars.len() {
        let expected = format!("{} labels, one per character", chars.len());
        return Err(labels.error_found(expected, read.len().to_string()));
    }
    let spans = parse_spans(spans, chars.len())?;
    Ok(Sentence { chars, labels: read, spans })
}

fn parse_spans(spans: Piece<'_>, chars: usize) -> Result<Vec<Span>, DataError> {
    match spans.text {
        "-" => Ok(Vec::new()),
        _ => spans.split(' ').map(|span| parse_span(span, chars as u32)).collect(),
    }
}

fn parse_char(piece: Piece<'_>) -> Result<char, DataError> {
    let mut chars = piece.text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(piece.error("one character; characters are separated by one space")),
    }
}

fn parse_label(piece: Piece<'_>) -> Result<Label, DataError> {
    use Position::{Begin, End, Middle, Single};
    let position =
        |text: &str| [Begin, Middle, End, Single].into_iter().find(|p| p.letter().to_string() == text);
    piece
        .text
        .split_once('-')
        .and_then(|(letter, pos)| Some((position(letter)?, pos)))
        .filter(|(_, pos)| !pos.is_empty())
        .map(|(position, pos)| Label { position, pos: pos.to_owned() })
        .ok_or_else(|| piece.error("B-, M-, E- or S- and a part of speech"))
}

fn parse_span(piece: Piece<'_>, chars: u32) -> Result<Span, DataError> {
    let expected = format!("start:end within {chars} characters");
    let (start, end) = piece.rsplit_once(':').ok_or_else(|| piece.error(&expected))?;
    let span = Span { start: start.number(chars, &expected)?, end: end.number(chars, &expected)? };
    match span.start < span.end {
        true if span.end - span.start <= LONGEST => Ok(span),
        true => Err(piece.error(format!("a dictionary word of at most {LONGEST} characters"))),
        false => Err(piece.error(expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: &str = "a b c d\nB-NOUN M-NOUN E-NOUN S-PUNCT\n0:2 0:3 1:3\n\né\nS-X\n-\n\n";

    #[test]
    fn sentences_keep_their_text_when_read_and_written() {
        let sentences = parse(SAMPLE, "f").unwrap();
        assert_eq!(sentences[0].labels[1].to_string(), "M-NOUN");
        assert_eq!(sentences[0].text(sentences[0].spans[1]), "abc");
        let ending: Vec<usize> = sentences[0].ending_at().iter().map(Vec::len).collect();
        assert_eq!(ending, [0, 1, 2, 0]);
        assert!(sentences[1].spans.is_empty());
        assert_eq!(write(&sentences), SAMPLE);
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let bad = [
            "\n",
            "a b\n",
            "a b\nS-X S-X\n",
            "ab\nS-X\n-\n",
            "a b\nS-X\n-\n",
            "a\nX-X\n-\n",
            "a\nS-\n-\n",
            "a\nS-X\n0:2\n",
            "a\nS-X\n0:0\n",
            &format!("a{}\nS-X{}\n0:256\n", " a".repeat(255), " S-X".repeat(255)),
            "a\nS-X\n0\n",
            "a\nS-X\n\n",
            "a\nS-X\n-\nb\n",
        ];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "f").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        f:1:1: expected characters, found the end of the line
        f:1:1: expected a line of labels after the characters, found the end of the file
        f:1:1: expected a line of dictionary words after the labels, found the end of the file
        f:1:1: expected one character; characters are separated by one space, found "ab"
        f:2:1: expected 2 labels, one per character, found 1
        f:2:1: expected B-, M-, E- or S- and a part of speech, found "X-X"
        f:2:1: expected B-, M-, E- or S- and a part of speech, found "S-"
        f:3:3: expected start:end within 1 characters, found "2"
        f:3:1: expected start:end within 1 characters, found "0:0"
        f:3:1: expected a dictionary word of at most 255 characters, found "0:256"
        f:3:1: expected start:end within 1 characters, found "0"
        f:3:1: expected start:end within 1 characters, found the end of the line
        f:4:1: expected a blank line after the sentence, found "b"
        "#);
    }

    #[test]
    fn damaged_content_never_panics() {
        survives(SAMPLE.as_bytes(), |bytes| {
            if let Ok(sentences) = parse(bytes, "f") {
                assert_eq!(parse(write(&sentences), "f").unwrap(), sentences);
            }
        });
    }
}
