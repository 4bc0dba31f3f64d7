//! Sentences with their translations: one pair per line, separated by a tab.
//!
//! Further columns, such as the names of authors in the files of Tatoeba, are skipped.

use std::path::Path;

use super::error::DataError;
use super::text::{Piece, each_filled_line, each_line, join_lines, read_with};
use super::vocab::Vocab;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sentence with its translation. Neither contains a tab or a line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The sentence.
    pub source: String,
    /// The translation.
    pub target: String,
}

/// Writes one line of the format, without the line end.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}", self.source, self.target)
    }
}

/// Reads the pairs of a file's content.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Pair>, DataError> {
    each_line(content.as_ref(), file, |line| {
        let mut columns = line.split('\t');
        match [columns.next(), columns.next()] {
            [Some(source), Some(target)] => pair(source, target),
            _ => Err(line.error_found("a sentence, a tab and its translation", "no tab")),
        }
    })
}

fn pair(source: Piece<'_>, target: Piece<'_>) -> Result<Pair, DataError> {
    let filled = |piece: Piece<'_>, what| match piece.text.trim() {
        "" => Err(piece.error(what)),
        _ => Ok(piece.text.to_owned()),
    };
    Ok(Pair { source: filled(source, "a sentence")?, target: filled(target, "a translation")? })
}

/// Reads sentences to translate, one per line; a translation after a tab is kept. Blank lines are skipped.
///
/// # Errors
/// The bytes are no UTF-8.
pub fn parse_inputs(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Pair>, DataError> {
    each_filled_line(content.as_ref(), file, |line| {
        let mut columns = line.split('\t').map(|column| column.text.to_owned());
        Ok(Pair { source: columns.next().unwrap_or_default(), target: columns.next().unwrap_or_default() })
    })
}

/// Reads sentences, one per line; what follows a tab is skipped. Blank lines are skipped.
///
/// # Errors
/// The bytes are no UTF-8.
pub fn parse_sentences(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<String>, DataError> {
    let pairs = parse_inputs(content, file)?;
    Ok(pairs.into_iter().map(|pair| pair.source).collect())
}

/// Reads the sentences of a file.
///
/// # Errors
/// If the file cannot be read, and as [`parse_sentences`].
pub fn read_sentences(path: impl AsRef<Path>) -> Result<Vec<String>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse_sentences(bytes, file))
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Pair>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these pairs.
pub fn write(pairs: &[Pair]) -> String {
    join_lines(pairs)
}

/// Returns the words of a sentence in lower case. Punctuation separates words, except between letters, as in `don't`; each
/// of its characters is a word.
pub fn words(sentence: &str) -> Vec<String> {
    let letters: Vec<char> = sentence.chars().flat_map(char::to_lowercase).collect();
    let is_letter = |at: usize| letters.get(at).is_some_and(|letter| letter.is_alphanumeric());
    let (mut words, mut word) = (Vec::new(), String::new());
    for (at, &letter) in letters.iter().enumerate() {
        let is_inside = at > 0 && is_letter(at - 1) && is_letter(at + 1);
        if letter.is_alphanumeric() || (is_inside && matches!(letter, '\'' | '’' | '-' | '.' | ',')) {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !letter.is_whitespace() {
            words.push(letter.to_string());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// The numbers of the words of two languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Languages {
    /// The words of the sentences.
    pub source: Vocab,
    /// The words of their translations.
    pub target: Vocab,
}

impl Languages {
    /// Numbers words that occur at least `min_count` times.
    pub fn learn(pairs: &[Pair], min_count: u64) -> Self {
        let vocab = |side: fn(&Pair) -> &str| {
            let read: Vec<String> = pairs.iter().flat_map(|pair| words(side(pair))).collect();
            Vocab::build(read.iter().map(String::as_str), min_count)
        };
        Languages { source: vocab(|pair| &pair.source), target: vocab(|pair| &pair.target) }
    }

    /// Returns the numbers of the words of a sentence and of its translation.
    pub fn number(&self, pair: &Pair) -> (Vec<u32>, Vec<u32>) {
        let ids = |vocab: &Vocab, text: &str| words(text).iter().map(|word| vocab.id(word)).collect();
        (ids(&self.source, &pair.source), ids(&self.target, &pair.target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: &str = "Go now!\tVa maintenant !\nI don't know.\tJe ne sais pas.\n";

    #[test]
    fn pairs_keep_their_text_when_read_and_written() {
        let pairs = parse(SAMPLE, "f").unwrap();
        assert_eq!((pairs[0].source.as_str(), pairs[1].target.as_str()), ("Go now!", "Je ne sais pas."));
        assert_eq!(write(&pairs), SAMPLE);
        assert_eq!(parse("Go.\tVa.\tCC-BY 2.0\n", "f").unwrap()[0].to_string(), "Go.\tVa.");
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let bad = ["Go.\n", "Go.\tVa.\n\n", "\tVa.\n", "Go.\t \n"];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "f").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        f:1:1: expected a sentence, a tab and its translation, found no tab
        f:2:1: expected a sentence, a tab and its translation, found no tab
        f:1:1: expected a sentence, found nothing
        f:1:5: expected a translation, found " "
        "#);
    }

    #[test]
    fn inputs_may_lack_translations() {
        let pairs = parse_inputs("Go.\n\nRun.\tCours.\n", "f").unwrap();
        let read: Vec<_> = pairs.iter().map(|pair| [pair.source.as_str(), &pair.target]).collect();
        assert_eq!(read, [["Go.", ""], ["Run.", "Cours."]]);
    }

    #[test]
    fn words_end_at_spaces_and_punctuation() {
        assert_eq!(
            words("I don't know: 3.5, or 4?"),
            ["i", "don't", "know", ":", "3.5", ",", "or", "4", "?"]
        );
        assert_eq!(words("« Où ? »"), ["«", "où", "?", "»"]);
        assert_eq!(words("'tis ..."), ["'", "tis", ".", ".", "."]);
        assert_eq!(words(" \u{a0} "), [""; 0]);
    }

    #[test]
    fn rare_words_have_number_zero() {
        let pairs = parse("a b a\tx y\na c\tx x\n", "f").unwrap();
        let languages = Languages::learn(&pairs, 2);
        assert_eq!(languages.number(&pairs[0]), (vec![1, 0, 1], vec![1, 0]));
        assert_eq!((languages.source.size(), languages.target.size()), (2, 2));
    }

    #[test]
    fn damaged_content_never_panics() {
        survives(SAMPLE.as_bytes(), |bytes| {
            if let Ok(pairs) = parse(bytes, "f") {
                assert_eq!(parse(write(&pairs), "f").unwrap(), pairs);
                Languages::learn(&pairs, 1);
            }
            let _ = parse_inputs(bytes, "f");
        });
    }
}
