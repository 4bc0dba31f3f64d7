//! Treebanks in CoNLL-U: ten tab-separated columns per word, a blank line after each sentence.
//!
//! Columns are ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC. Comment lines (`#`) precede
//! the words. The reader skips lines whose ID has `-` (several words written as one) or `.` (empty nodes). It
//! ignores DEPS and MISC, because no model here uses them. Every sentence must be one tree, which may be
//! non-projective.

use std::fmt;
use std::path::Path;

use super::dependency::Heads;
use super::error::DataError;
use super::text::{Piece, decode, lines, read_with};

/// A word with its annotation. `_` marks an empty column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as written.
    pub form: String,
    /// The dictionary form.
    pub lemma: String,
    /// The universal part of speech, such as `NOUN`.
    pub upos: String,
    /// The part of speech in the tag set of the language.
    pub xpos: String,
    /// The features, `Name=Value` joined by `|`.
    pub feats: String,
    /// The relation to the head, such as `nsubj`.
    pub relation: String,
}

/// A parsed sentence of one or more words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The comment lines without the leading `#`.
    pub comments: Vec<String>,
    /// The words in order.
    pub words: Vec<Word>,
    /// The heads of the words.
    pub heads: Heads,
}

/// Writes the lines of a sentence without the blank line that ends it.
impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for comment in &self.comments {
            writeln!(f, "#{comment}")?;
        }
        for (index, (word, head)) in self.words.iter().zip(self.heads.heads()).enumerate() {
            let Word { form, lemma, upos, xpos, feats, relation } = word;
            let id = index + 1;
            writeln!(f, "{id}\t{form}\t{lemma}\t{upos}\t{xpos}\t{feats}\t{head}\t{relation}\t_\t_")?;
        }
        Ok(())
    }
}

/// Reads the sentences of a file's content.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Sentence>, DataError> {
    parse_with(content.as_ref(), file, false)
}

/// Reads sentences whose column HEAD may be `_`.
///
/// # Errors
/// The first line of another form.
pub fn parse_inputs(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Sentence>, DataError> {
    parse_with(content.as_ref(), file, true)
}

fn parse_with(content: &[u8], file: &str, may_lack_heads: bool) -> Result<Vec<Sentence>, DataError> {
    let text = decode(content, file)?;
    let mut sentences = Vec::new();
    let fresh = || Draft { may_lack_heads, ..Draft::default() };
    let mut draft = fresh();
    let mut last = None;
    for line in lines(text, file) {
        last = Some(line);
        if line.text.is_empty() {
            sentences.extend(std::mem::replace(&mut draft, fresh()).finish(line)?);
        } else if let Some(comment) = line.text.strip_prefix('#') {
            if !draft.words.is_empty() {
                return Err(line.error("a word or a blank line; comments precede the words"));
            }
            draft.comments.push(comment.to_owned());
        } else {
            draft.add(line)?;
        }
    }
    if let Some(line) = last {
        sentences.extend(draft.finish(line.end())?);
    }
    Ok(sentences)
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Sentence>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these sentences.
pub fn write(sentences: &[Sentence]) -> String {
    super::text::join_lines(sentences)
}

/// Returns whether an ID marks several words written as one, `1-2`, or an empty node, `1.1`.
fn is_no_word(id: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once(['-', '.']).is_some_and(|(first, second)| number(first) && number(second))
}

/// The sentence being read.
#[derive(Default)]
struct Draft<'a> {
    comments: Vec<String>,
    words: Vec<Word>,
    heads: Vec<u32>,
    /// The line of each head, for messages.
    places: Vec<Piece<'a>>,
    /// Whether a head may be `_`, and whether one is.
    may_lack_heads: bool,
    lacks_heads: bool,
}

impl<'a> Draft<'a> {
    fn add(&mut self, line: Piece<'a>) -> Result<(), DataError> {
        let columns: [Piece<'a>; 10] = line.fields('\t', "ten columns separated by tabs")?;
        let [id, form, lemma, upos, xpos, feats, head, relation, _, _] = columns;
        if is_no_word(id.text) {
            return Ok(());
        }
        let number = self.words.len() as u32 + 1;
        let expected = format!("word number {number}");
        if id.number(number, &expected)? != number {
            return Err(id.error(expected));
        }
        let text = |column: Piece<'_>| match column.text {
            "" => Err(column.error("text, or _ for none")),
            text => Ok(text.to_owned()),
        };
        if self.may_lack_heads && head.text == "_" {
            self.lacks_heads = true;
        } else {
            self.heads.push(head.number(u32::MAX, "the number of the head, or 0")?);
        }
        self.places.push(head);
        self.words.push(Word {
            form: text(form)?,
            lemma: text(lemma)?,
            upos: text(upos)?,
            xpos: text(xpos)?,
            feats: text(feats)?,
            relation: text(relation)?,
        });
        Ok(())
    }

    /// Returns the sentence that ends at `end`, or `None` if no line precedes it.
    fn finish(self, end: Piece<'_>) -> Result<Option<Sentence>, DataError> {
        if self.words.is_empty() {
            return match self.comments.is_empty() {
                true => Ok(None),
                false => Err(end.error_found("words after the comments", "the end of the sentence")),
            };
        }
        let heads = match self.lacks_heads {
            // Each word follows the one before: any tree does, because the input states none.
            true => (0..self.words.len() as u32).collect(),
            false => self.heads,
        };
        let heads = Heads::new(heads).map_err(|problem| {
            let place = self.places[problem.word() as usize - 1];
            place.error_found("a tree with one word with head 0", problem.to_string())
        })?;
        Ok(Some(Sentence { comments: self.comments, words: self.words, heads }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: &str = "\
# text = We've slept
1-2\tWe've\t_\t_\t_\t_\t_\t_\t_\t_
1\tWe\twe\tPRON\tPRP\tNumber=Plur\t3\tnsubj\t3:nsubj\t_
2\t've\thave\tAUX\tVBP\t_\t3\taux\t_\t_
2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_
3\tslept\tsleep\tVERB\tVBN\t_\t0\troot\t_\tSpaceAfter=No

1\tNo one\tno\tX\t_\t_\t0\troot\t_\t_
";

    #[test]
    fn words_are_kept_and_other_lines_are_skipped() {
        let sentences = parse(SAMPLE, "f").unwrap();
        assert_eq!(sentences[0].comments, [" text = We've slept"]);
        let forms: Vec<_> = sentences[0].words.iter().map(|w| w.form.as_str()).collect();
        assert_eq!(forms, ["We", "'ve", "slept"]);
        assert_eq!(sentences[0].heads.heads(), [3, 3, 0]);
        assert_eq!(sentences[1].words[0].form, "No one");
    }

    #[test]
    fn sentences_read_back_equal_after_writing() {
        let sentences = parse(SAMPLE, "f").unwrap();
        let text = write(&sentences);
        assert_eq!(parse(&text, "f").unwrap(), sentences);
        assert!(text.ends_with("\t0\troot\t_\t_\n\n"));
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let word = |id: &str, head: &str| format!("{id}\ta\ta\tX\t_\t_\t{head}\tdep\t_\t_\n");
        let bad = [
            "1\ta\n".to_owned(),
            word("2", "0"),
            word("x", "0"),
            word("1", "0") + &word("2-", "1"),
            word("1", "0") + &word("2.x", "1"),
            word("1", "-1"),
            word("1", "2"),
            word("1", "1"),
            word("1", "0") + &word("2", "0"),
            word("1", "0").replace("\ta\ta", "\t\ta"),
            word("1", "0") + "# late\n",
            "# alone\n\n".to_owned(),
        ];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "f").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r##"
        f:1:1: expected ten columns separated by tabs, found 2 columns
        f:1:1: expected word number 1, found "2"
        f:1:1: expected word number 1, found "x"
        f:2:1: expected word number 2, found "2-"
        f:2:1: expected word number 2, found "2.x"
        f:1:13: expected the number of the head, or 0, found "-1"
        f:1:13: expected a tree with one word with head 0, found word 1 with a head that does not exist
        f:1:13: expected a tree with one word with head 0, found no word with head 0
        f:2:13: expected a tree with one word with head 0, found word 2 as a second one
        f:1:3: expected text, or _ for none, found nothing
        f:2:1: expected a word or a blank line; comments precede the words, found "# late"
        f:2:1: expected words after the comments, found the end of the sentence
        "##);
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
