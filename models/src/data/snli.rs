//! Sentence pairs with binary parses and a relation: four tab-separated columns.
//!
//! The columns are the gold relation, the parse of the premise, the parse of the hypothesis and an
//! id. A parse consists of tokens separated by one space, strictly binary brackets included. From left to
//! right, a word is SHIFT and `)` is REDUCE, which is the order of [`BinaryTree::nodes`].

use std::fmt;
use std::path::Path;

use super::binary_tree::{BinaryTree, parse_bracketed};
use super::error::DataError;
use super::text::{Piece, each_line, join_lines, read_with};

/// The relation of the hypothesis to the premise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The hypothesis follows from the premise.
    Entailment,
    /// The hypothesis may or may not hold.
    Neutral,
    /// The hypothesis cannot hold.
    Contradiction,
}

impl Relation {
    /// All relations. The position of a relation is its class number.
    pub const ALL: [Relation; 3] = [Relation::Entailment, Relation::Neutral, Relation::Contradiction];

    /// Returns the class number 0..3.
    pub fn index(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Entailment => "entailment",
            Relation::Neutral => "neutral",
            Relation::Contradiction => "contradiction",
        })
    }
}

/// A pair of parsed sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The relation of the hypothesis to the premise.
    pub relation: Relation,
    /// The first sentence.
    pub premise: BinaryTree<String>,
    /// The second sentence.
    pub hypothesis: BinaryTree<String>,
    /// The pair's name.
    pub id: String,
}

/// Writes one line of the format, without the line end.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pair { relation, premise, hypothesis, id } = self;
        write!(f, "{relation}\t{premise}\t{hypothesis}\t{id}")
    }
}

/// Reads the pairs of a file's content.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Pair>, DataError> {
    each_line(content.as_ref(), file, parse_line)
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Pair>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these pairs.
pub fn write(pairs: &[Pair]) -> String {
    join_lines(pairs)
}

fn parse_line(line: Piece<'_>) -> Result<Pair, DataError> {
    let [relation, premise, hypothesis, id] =
        line.fields('\t', "four columns: relation, premise, hypothesis, id")?;
    let sentence = |piece| parse_bracketed(piece, |token| Ok(token.text.to_owned()));
    Ok(Pair {
        relation: Relation::ALL
            .into_iter()
            .find(|known| known.to_string() == relation.text)
            .ok_or_else(|| relation.error("entailment, neutral or contradiction"))?,
        premise: sentence(premise)?,
        hypothesis: sentence(hypothesis)?,
        id: id.text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: &str = "neutral\t( ( A dog ) ( runs . ) )\t( A ( dog ( is home ) ) )\t1#a\nentailment\tYes\t( Oh yes )\t2#b\n";

    #[test]
    fn pairs_keep_their_text_when_read_and_written() {
        let pairs = parse(SAMPLE, "f").unwrap();
        assert_eq!(pairs[0].premise.leaves(), ["A", "dog", "runs", "."]);
        assert_eq!((pairs[0].relation, pairs[0].relation.index()), (Relation::Neutral, 1));
        assert_eq!((pairs[1].hypothesis.depth(), pairs[1].id.as_str()), (1, "2#b"));
        assert_eq!(write(&pairs), SAMPLE);
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let bad = [
            "neutral\ta\tb",
            "-\ta\tb\tc",
            "neutral\ta\t( b )\tc",
            "neutral\ta\t\tc",
            "neutral\t( a b\tc\td",
            "\n",
        ];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "f").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        f:1:1: expected four columns: relation, premise, hypothesis, id, found 3 columns
        f:1:1: expected entailment, neutral or contradiction, found "-"
        f:1:15: expected two parts before the closing bracket, found ")"
        f:1:11: expected a token; tokens are separated by one space, found nothing
        f:1:14: expected a closing bracket, found nothing
        f:1:1: expected four columns: relation, premise, hypothesis, id, found 1 columns
        "#);
    }

    #[test]
    fn damaged_content_never_panics() {
        survives(SAMPLE.as_bytes(), |bytes| {
            if let Ok(pairs) = parse(bytes, "f") {
                assert_eq!(parse(write(&pairs), "f").unwrap(), pairs);
            }
        });
    }
}
