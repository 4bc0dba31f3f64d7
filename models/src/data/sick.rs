//! Pairs of dependency-parsed sentences with a similarity 1..5.
//!
//! A split is a folder of eight files. Line n of each file belongs to pair n. For each sentence, `a`
//! and `b`, the files hold tokens (`a.toks`), heads (`a.parents`, counted from 1, root 0) and relations
//! (`a.rels`), separated by one space. `sim.txt` and `id.txt` describe the pair.

use std::path::Path;

use super::dependency::Heads;
use super::error::DataError;
use super::text::{Piece, decode, lines, read_with};

/// A parsed sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The words.
    pub tokens: Vec<String>,
    /// The head of every word.
    pub heads: Heads,
    /// The relation of every word to its head.
    pub relations: Vec<String>,
}

/// Two sentences and their similarity.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The number of the pair in the corpus.
    pub id: u32,
    /// The first sentence.
    pub a: Sentence,
    /// The second sentence.
    pub b: Sentence,
    /// The similarity from 1 (unrelated) to 5 (equal in meaning).
    pub similarity: f32,
}

impl Pair {
    /// Returns the probabilities of the grades 1..5. Their mean is the similarity and their support is the two
    /// neighbouring grades. This is the usual target of a divergence loss.
    pub fn grades(&self) -> [f32; 5] {
        let mut grades = [0.0; 5];
        let position = (self.similarity - 1.0).clamp(0.0, 4.0);
        let (low, share) = (position.floor(), position - position.floor());
        grades[low as usize] = 1.0 - share;
        if share > 0.0 {
            grades[low as usize + 1] = share;
        }
        grades
    }
}

/// The names of a split's files, in the order of [`Contents`].
pub const FILES: [&str; 8] =
    ["a.toks", "a.parents", "a.rels", "b.toks", "b.parents", "b.rels", "sim.txt", "id.txt"];

/// The contents of a split's files, in the order of [`FILES`].
pub type Contents<T> = [T; 8];

/// Reads the pairs of a split from the contents of its files; `folder` appears in messages.
pub fn parse<T: AsRef<[u8]>>(contents: &Contents<T>, folder: &str) -> Result<Vec<Pair>, DataError> {
    let names = FILES.map(|file| format!("{folder}/{file}"));
    let mut files: Vec<Vec<Piece<'_>>> = Vec::with_capacity(FILES.len());
    for (content, name) in contents.iter().zip(&names) {
        files.push(lines(decode(content.as_ref(), name)?, name).collect());
    }
    let count = files[0].len();
    for (file, name) in files.iter().zip(&names) {
        if file.len() != count {
            let expected = format!("{count} lines, as many as in {}", FILES[0]);
            return Err(DataError::in_file(name, expected, format!("{} lines", file.len())));
        }
    }
    (0..count)
        .map(|line| {
            let at = |file: usize| files[file][line];
            Ok(Pair {
                id: at(7).number(u32::MAX, "the number of the pair")?,
                a: parse_sentence(at(0), at(1), at(2))?,
                b: parse_sentence(at(3), at(4), at(5))?,
                similarity: parse_similarity(at(6))?,
            })
        })
        .collect()
}

/// Reads a split from its folder.
pub fn read(folder: impl AsRef<Path>) -> Result<Vec<Pair>, DataError> {
    let folder = folder.as_ref();
    let mut contents: Contents<Vec<u8>> = Default::default();
    for (content, file) in contents.iter_mut().zip(FILES) {
        *content = read_with(&folder.join(file), |bytes, _| Ok(bytes.to_vec()))?;
    }
    parse(&contents, &folder.display().to_string())
}

/// Reads a split whose folder may lack `sim.txt`, the similarities, and `id.txt`, the numbers of the pairs.
///
/// # Errors
/// A file cannot be read, or has another form.
pub fn read_inputs(folder: impl AsRef<Path>) -> Result<Vec<Pair>, DataError> {
    let folder = folder.as_ref();
    let mut contents: Contents<Vec<u8>> = Default::default();
    for (content, file) in contents.iter_mut().zip(FILES) {
        let path = folder.join(file);
        if path.exists() || !["sim.txt", "id.txt"].contains(&file) {
            *content = read_with(&path, |bytes, _| Ok(bytes.to_vec()))?;
        }
    }
    let count = lines(&String::from_utf8_lossy(&contents[0]), FILES[0]).count();
    if contents[6].is_empty() {
        contents[6] = "3.0\n".repeat(count).into_bytes();
    }
    if contents[7].is_empty() {
        contents[7] = (1..=count).map(|number| format!("{number}\n")).collect::<String>().into_bytes();
    }
    parse(&contents, &folder.display().to_string())
}

/// Returns the contents of the files of a split with these pairs.
pub fn write(pairs: &[Pair]) -> Contents<String> {
    let mut contents: Contents<String> = Default::default();
    for Pair { id, a, b, similarity } in pairs {
        let heads = |sentence: &Sentence| {
            let heads: Vec<String> = sentence.heads.heads().iter().map(u32::to_string).collect();
            heads.join(" ")
        };
        let line = [
            a.tokens.join(" "),
            heads(a),
            a.relations.join(" "),
            b.tokens.join(" "),
            heads(b),
            b.relations.join(" "),
            similarity.to_string(),
            id.to_string(),
        ];
        for (content, text) in contents.iter_mut().zip(line) {
            content.push_str(&text);
            content.push('\n');
        }
    }
    contents
}

fn parse_similarity(piece: Piece<'_>) -> Result<f32, DataError> {
    match piece.text.parse::<f32>() {
        Ok(similarity) if (1.0..=5.0).contains(&similarity) => Ok(similarity),
        _ => Err(piece.error("a similarity 1..5")),
    }
}

fn parse_sentence(tokens: Piece<'_>, heads: Piece<'_>, relations: Piece<'_>) -> Result<Sentence, DataError> {
    let texts = |line: Piece<'_>, what: &str| {
        line.split(' ')
            .map(|part| match part.text {
                "" => Err(part.error(what)),
                text => Ok(text.to_owned()),
            })
            .collect::<Result<Vec<String>, DataError>>()
    };
    let tokens = texts(tokens, "a word; words are separated by one space")?;
    let count = tokens.len();
    let same_count = |line: Piece<'_>, found: usize, what: &str| match found == count {
        true => Ok(()),
        false => Err(line.error_found(format!("{count} {what}, one per word"), found.to_string())),
    };
    let numbers: Vec<u32> = heads
        .split(' ')
        .map(|part| part.number(u32::MAX, "the number of the head, or 0"))
        .collect::<Result<_, _>>()?;
    same_count(heads, numbers.len(), "heads")?;
    let relation_names = texts(relations, "a relation; relations are separated by one space")?;
    same_count(relations, relation_names.len(), "relations")?;
    let tree = Heads::new(numbers)
        .map_err(|problem| heads.error_found("a tree with one word with head 0", problem.to_string()))?;
    Ok(Sentence { tokens, heads: tree, relations: relation_names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: Contents<&str> = [
        "A dog runs\nYes\n",
        "2 3 0\n0\n",
        "det nsubj root\nroot\n",
        "Dogs run\nIt is\n",
        "2 0\n2 0\n",
        "nsubj root\nnsubj root\n",
        "3.65\n1\n",
        "12\n13\n",
    ];

    fn with(file: usize, content: &'static str) -> Contents<&'static str> {
        let mut contents = SAMPLE;
        contents[file] = content;
        contents
    }

    #[test]
    fn pairs_keep_their_text_when_read_and_written() {
        let pairs = parse(&SAMPLE, "train").unwrap();
        assert_eq!((pairs[0].id, pairs[0].similarity), (12, 3.65));
        assert_eq!(pairs[0].a.heads.heads(), [2, 3, 0]);
        assert_eq!(pairs[1].b.relations, ["nsubj", "root"]);
        assert_eq!(write(&pairs), SAMPLE);
    }

    #[test]
    fn grades_have_the_similarity_as_their_mean() {
        let mut pair = parse(&SAMPLE, "f").unwrap().remove(0);
        for (similarity, grades) in [
            (1.0, [1.0, 0.0, 0.0, 0.0, 0.0]),
            (3.5, [0.0, 0.0, 0.5, 0.5, 0.0]),
            (5.0, [0.0, 0.0, 0.0, 0.0, 1.0]),
        ] {
            pair.similarity = similarity;
            assert_eq!(pair.grades(), grades);
        }
    }

    #[test]
    fn errors_name_the_file_and_place_of_the_mistake() {
        let bad = [
            with(1, "2 3\n0\n"),
            with(1, "2 3 0\n"),
            with(1, "2 3 3\n0\n"),
            with(1, "2 x 0\n0\n"),
            with(2, "det root\nroot\n"),
            with(0, "A  dog\nYes\n"),
            with(6, "3.65\nNaN\n"),
            with(6, "5.01\n1\n"),
            with(7, "12\n-1\n"),
        ];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "train").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        train/a.parents:1:1: expected 3 heads, one per word, found 2
        train/a.parents: expected 2 lines, as many as in a.toks, found 1 lines
        train/a.parents:1:1: expected a tree with one word with head 0, found no word with head 0
        train/a.parents:1:3: expected the number of the head, or 0, found "x"
        train/a.rels:1:1: expected 3 relations, one per word, found 2
        train/a.toks:1:3: expected a word; words are separated by one space, found nothing
        train/sim.txt:2:1: expected a similarity 1..5, found "NaN"
        train/sim.txt:1:1: expected a similarity 1..5, found "5.01"
        train/id.txt:2:1: expected the number of the pair, found "-1"
        "#);
    }

    #[test]
    fn damaged_content_never_panics() {
        for file in 0..FILES.len() {
            survives(SAMPLE[file].as_bytes(), |bytes| {
                let mut contents = SAMPLE.map(str::as_bytes);
                contents[file] = bytes;
                if let Ok(pairs) = parse(&contents, "f") {
                    assert_eq!(parse(&write(&pairs), "f").unwrap(), pairs);
                }
            });
        }
    }
}
