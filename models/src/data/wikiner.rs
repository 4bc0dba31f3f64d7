//! Named entities: one sentence per line, tokens `word|TAG` separated by one space.
//!
//! Tags follow IOB1: `O` is outside, `I-X` inside an entity of type X. `B-X` marks only the first word
//! of an entity that directly follows another of the same type. The last `|` of a token separates the tag,
//! so words may contain `|`.

use std::fmt;
use std::path::Path;

use super::error::DataError;
use super::text::{Piece, each_filled_line, each_line, join_lines, read_with};

/// The kind of a named entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// A person.
    Person,
    /// A place.
    Location,
    /// An organisation.
    Organisation,
    /// Any other name.
    Other,
}

impl Entity {
    /// All kinds.
    pub const ALL: [Entity; 4] = [Entity::Person, Entity::Location, Entity::Organisation, Entity::Other];

    /// Returns the name of the kind in tags.
    pub fn name(self) -> &'static str {
        match self {
            Entity::Person => "PER",
            Entity::Location => "LOC",
            Entity::Organisation => "ORG",
            Entity::Other => "MISC",
        }
    }
}

/// The tag of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tag {
    /// Not part of a name.
    Outside,
    /// Part of a name.
    Inside(Entity),
    /// The first word of a name that follows another of the same kind.
    Begin(Entity),
}

impl Tag {
    /// The number of different tags.
    pub const COUNT: u32 = 9;

    /// Returns a number below [`Tag::COUNT`]: outside is 0, then come inside and begin.
    pub fn index(self) -> u32 {
        match self {
            Tag::Outside => 0,
            Tag::Inside(entity) => 1 + entity as u32,
            Tag::Begin(entity) => 5 + entity as u32,
        }
    }

    /// Returns the tag with this number.
    pub fn from_index(index: u32) -> Option<Tag> {
        let entity = |number: u32| Entity::ALL.get(number as usize).copied();
        match index {
            0 => Some(Tag::Outside),
            1..=4 => entity(index - 1).map(Tag::Inside),
            _ => entity(index.checked_sub(5)?).map(Tag::Begin),
        }
    }

    /// Returns the tag with the spelling `text`.
    pub fn from_text(text: &str) -> Option<Tag> {
        if text == "O" {
            return Some(Tag::Outside);
        }
        let (kind, name) = text.split_once('-')?;
        let entity = Entity::ALL.into_iter().find(|entity| entity.name() == name)?;
        match kind {
            "I" => Some(Tag::Inside(entity)),
            "B" => Some(Tag::Begin(entity)),
            _ => None,
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tag::Outside => f.write_str("O"),
            Tag::Inside(entity) => write!(f, "I-{}", entity.name()),
            Tag::Begin(entity) => write!(f, "B-{}", entity.name()),
        }
    }
}

/// A word and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The word.
    pub word: String,
    /// The tag of the word.
    pub tag: Tag,
}

/// A tagged sentence of one or more tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The tokens in order.
    pub tokens: Vec<Token>,
}

/// Writes one line of the format, without the line end.
impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Token { word, tag }) in self.tokens.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(f, "{separator}{word}|{tag}")?;
        }
        Ok(())
    }
}

/// Reads the sentences of a file's content.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Sentence>, DataError> {
    each_line(content.as_ref(), file, |line| {
        let tokens = line.split(' ').map(parse_token).collect::<Result<_, _>>()?;
        Ok(Sentence { tokens })
    })
}

/// Reads sentences whose words may lack a tag. A word without `|` gets the tag `O`. Skips blank lines.
pub fn parse_words(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Sentence>, DataError> {
    let token = |token: Piece<'_>| match token.text {
        "" => Err(token.error("a word; words are separated by one space")),
        word if !word.contains('|') => Ok(Token { word: word.to_owned(), tag: Tag::Outside }),
        _ => parse_token(token),
    };
    each_filled_line(content.as_ref(), file, |line| {
        Ok(Sentence { tokens: line.split(' ').map(token).collect::<Result<_, _>>()? })
    })
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Sentence>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these sentences.
pub fn write(sentences: &[Sentence]) -> String {
    join_lines(sentences)
}

fn parse_token(token: Piece<'_>) -> Result<Token, DataError> {
    let (word, tag) = token
        .rsplit_once('|')
        .filter(|(word, _)| !word.text.is_empty())
        .ok_or_else(|| token.error("word|TAG"))?;
    Ok(Token {
        word: word.text.to_owned(),
        tag: Tag::from_text(tag.text)
            .ok_or_else(|| tag.error("O, or I- or B- with PER, LOC, ORG or MISC"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_lack_a_tag_and_tags_have_numbers() {
        let sentences = parse_words("Ada|I-PER lives here\n", "f").unwrap();
        assert_eq!(sentences[0].to_string(), "Ada|I-PER lives|O here|O");
        assert!(parse_words("two  blanks", "f").is_err());
        let tags = (0..=Tag::COUNT).map(|number| Tag::from_index(number).map(Tag::index));
        let numbers: Vec<Option<u32>> = (0..Tag::COUNT).map(Some).chain([None]).collect();
        assert_eq!(tags.collect::<Vec<_>>(), numbers);
    }
    use crate::data::mutation::survives;

    const SAMPLE: &str = "Anna|I-PER saw|O Rome|I-LOC Oslo|B-LOC\n|||O\nÄ|I-MISC .|O\n";

    #[test]
    fn sentences_keep_their_text_when_read_and_written() {
        let sentences = parse(SAMPLE, "f").unwrap();
        assert_eq!(sentences[0].tokens[3].tag, Tag::Begin(Entity::Location));
        assert_eq!(sentences[1].tokens[0].word, "||");
        assert_eq!(write(&sentences), SAMPLE);
    }

    #[test]
    fn every_tag_has_its_own_number_and_spelling() {
        let tags =
            [Tag::Outside].into_iter().chain(Entity::ALL.map(Tag::Inside)).chain(Entity::ALL.map(Tag::Begin));
        for (index, tag) in tags.enumerate() {
            assert_eq!(tag.index() as usize, index);
            assert_eq!(Tag::from_text(&tag.to_string()), Some(tag));
            assert!(tag.index() < Tag::COUNT);
        }
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let bad = ["a|O b", "a|O b|X-PER", "a|O  b|O", "|O", "a|I-", "\n"];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "f").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        f:1:5: expected word|TAG, found "b"
        f:1:7: expected O, or I- or B- with PER, LOC, ORG or MISC, found "X-PER"
        f:1:5: expected word|TAG, found nothing
        f:1:1: expected word|TAG, found "|O"
        f:1:3: expected O, or I- or B- with PER, LOC, ORG or MISC, found "I-"
        f:1:1: expected word|TAG, found the end of the line
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
