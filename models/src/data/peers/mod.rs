//! The instances of the comparative benchmarks: workloads a to g, and graphs.
//!
//! The scripts of the other systems write their instances as JSON (`--dump-data FILE`); the structs
//! here read and write the same JSON, so that all systems run on the very same instances. Each
//! struct also has a generator with the distributions of the scripts (not their random numbers),
//! so that benchmarks run without them.
//!
//! | workload | struct | instances |
//! |---|---|---|
//! | a | [`Images`] | dense images, fixed size |
//! | b, f (trees) | [`Trees`] | random binary trees with a class |
//! | c | [`Pairs`] | pairs of dependency trees with a score |
//! | d | [`Tagged`] | sentences with a tag per word |
//! | e | [`Letters`] | names as characters with a class |
//! | f (acceptor) | [`Sequences`] | sequences with a class |
//! | g | [`Parses`] | sentences with shift and reduce actions |
//! | language models | [`Texts`] | sentences of words |
//! | graph networks | [`Graphs`] | molecules with a class |

mod graphs;
mod sequences;
mod trees;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{DataError, Place};
use super::generate::instances;
use super::random::Random;
use super::text::{decode, read_with};

pub use graphs::Graphs;
pub use sequences::{Letters, Parses, Sequences, Tagged, Texts};
pub use trees::{Dependencies, Pairs, Tree, Trees};

/// Instances of one workload.
pub trait Workload: Serialize + DeserializeOwned {
    /// Checks the rules that the structure of the JSON cannot express: equal list lengths, well-formed trees, class
    /// numbers in range. The error states the expected rule and the violation.
    fn check(&self) -> Result<(), Mismatch>;
}

/// A violation of a rule by instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The rule.
    pub expected: String,
    /// The violation, with the number of its instance (from 0).
    pub found: String,
}

impl Mismatch {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Mismatch { expected: expected.into(), found: found.into() }
    }

    /// Returns an error about instance `index` with the violation `found` unless `holds`.
    fn unless(holds: bool, index: usize, expected: &str, found: &str) -> Result<(), Self> {
        match holds {
            true => Ok(()),
            false => Err(Mismatch::new(expected, format!("{found} in instance {index}"))),
        }
    }

    /// Returns an error unless two lists have the same length.
    fn unless_paired(first: usize, second: usize, what: &str) -> Result<(), Self> {
        match first == second {
            true => Ok(()),
            false => Err(Mismatch::new(format!("{first} {what}, one per instance"), second.to_string())),
        }
    }
}

/// Reads the instances of a workload from the content of a file.
pub fn parse<W: Workload>(content: impl AsRef<[u8]>, file: &str) -> Result<W, DataError> {
    let text = decode(content.as_ref(), file)?;
    let workload: W = serde_json::from_str(text).map_err(|error| {
        let place = Place::Line { line: error.line().max(1), column: Some(error.column().max(1)) };
        // The message repeats the place at its end.
        let message = error.to_string();
        let found = message.rsplit_once(" at line ").map_or(&*message, |(found, _)| found);
        DataError::at(file, place, "the JSON of this workload", found)
    })?;
    let mismatch = |Mismatch { expected, found }| DataError::in_file(file, expected, found);
    workload.check().map_err(mismatch)?;
    Ok(workload)
}

/// Reads the instances of a workload from a file.
pub fn read<W: Workload>(path: impl AsRef<Path>) -> Result<W, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the JSON of a workload, or `None` if its trees are too deep for the reader.
pub fn write<W: Workload>(workload: &W) -> Option<String> {
    serde_json::to_string(workload).ok()
}

/// Draws a normally distributed length, rounded and clamped to the bounds.
fn length(random: &mut Random, mean: f64, deviation: f64, low: u32, high: u32) -> u32 {
    let drawn = (mean + deviation * random.normal()).round();
    drawn.clamp(f64::from(low), f64::from(high)) as u32
}

/// Draws the length of a sentence or tree of most workloads.
fn sentence_length(random: &mut Random, low: u32) -> u32 {
    length(random, 20.0, 8.0, low, 60)
}

/// Returns the number of table rows for these word numbers, at least the usual number. The scripts accept other
/// vocabulary sizes, and their files do not state the size.
fn table_size<'a>(words: impl IntoIterator<Item = &'a u32>, usual: u32) -> usize {
    let largest = words.into_iter().copied().max().unwrap_or(0) as usize;
    (largest + 1).max(usual as usize)
}

/// Draws word numbers below `words`.
fn words(random: &mut Random, length: u32, words: u32) -> Vec<u32> {
    (0..length).map(|_| random.below(u64::from(words)) as u32).collect()
}

/// Workload a: random images of 28 × 28 with random classes.
///
/// The file holds no pixels, only the parameters of the scripts' generator. [`Images::instances`] draws
/// other pixels of the same distribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    /// The number of images.
    pub examples: u32,
    /// A description of the scripts' generator.
    pub note: String,
    /// The seed.
    pub seed: u64,
}

impl Images {
    /// Numbers per image.
    pub const PIXELS: usize = 28 * 28;
    /// The number of classes.
    pub const CLASSES: u32 = 10;
    /// The maximum number of images.
    pub const MAX_EXAMPLES: u32 = 1_000_000;

    /// Makes the description of `examples` images; the usual number is 2000.
    pub fn generate(seed: u64, examples: u32) -> Self {
        let note = "pixels uniform in [0, 1), classes uniform in 0..10".to_owned();
        Images { examples: examples.min(Self::MAX_EXAMPLES), note, seed }
    }

    /// Draws the images one by one: pixels in `[0, 1)` and a class below [`Images::CLASSES`].
    pub fn instances(&self) -> impl Iterator<Item = (Vec<f32>, u32)> + use<> {
        let seed = self.seed;
        (0..self.examples).map(move |index| {
            let mut random = Random::stream(seed, u64::from(index));
            // With 24 bits the conversion is exact and the result stays below 1.
            let pixel = |random: &mut Random| (random.bits() >> 40) as f32 / (1_u32 << 24) as f32;
            let pixels = (0..Self::PIXELS).map(|_| pixel(&mut random)).collect();
            (pixels, random.below(u64::from(Self::CLASSES)) as u32)
        })
    }
}

impl Workload for Images {
    fn check(&self) -> Result<(), Mismatch> {
        let expected = format!("at most {} examples", Self::MAX_EXAMPLES);
        match self.examples <= Self::MAX_EXAMPLES {
            true => Ok(()),
            false => Err(Mismatch::new(expected, self.examples.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Summary;
    use crate::data::mutation::survives;

    fn returns<W: Workload + PartialEq + std::fmt::Debug>(workload: W) {
        let json = write(&workload).unwrap();
        assert_eq!(parse::<W>(&json, "generated").unwrap(), workload);
    }

    #[test]
    fn generated_instances_are_in_the_format_of_the_scripts() {
        returns(Images::generate(1, 20));
        returns(Trees::generate(1, 20, 20.0, 1000));
        returns(Pairs::generate(1, 20));
        returns(Tagged::generate(1, 20, None));
        returns(Letters::generate(1, 20));
        returns(Sequences::generate(1, 20));
        returns(Parses::generate(1, 20));
        returns(Graphs::generate(1, 20));
    }

    #[test]
    fn json_of_the_scripts_is_read() {
        let images: Images = parse(r#"{"examples": 3, "note": "n", "seed": 1234}"#, "f").unwrap();
        assert_eq!(images.instances().count(), 3);
        let trees: Trees = parse(r#"{"trees": [[1, [2, 3]], 4], "labels": [0, 2]}"#, "f").unwrap();
        assert_eq!(trees.trees[0].0.to_string(), "( 1 ( 2 3 ) )");
        let pairs: Pairs = parse(
            r#"{"pairs": [[{"parent": [-1, 0], "words": [5, 6]}, {"parent": [-1], "words": [7]}, 3.25]]}"#,
            "f",
        )
        .unwrap();
        assert_eq!((pairs.pairs[0].0.parent.as_slice(), pairs.pairs[0].2), (&[-1, 0][..], 3.25));
        assert_eq!((trees.word_rows(), pairs.word_rows()), (1000, 2400));
        let tagged: Tagged = parse(r#"{"words": [[1, 20000]], "tags": [[0, 16]]}"#, "f").unwrap();
        assert_eq!((tagged.word_rows(), tagged.tag_count()), (20_001, 17));
        let parses: Parses = parse(r#"{"words": [[8, 9]], "actions": [[0, 0, 2]]}"#, "f").unwrap();
        assert_eq!(parses.words, [[8, 9]]);
    }

    #[test]
    fn inconsistent_instances_are_rejected() {
        fn say<W: Workload + std::fmt::Debug>(json: &str) -> String {
            parse::<W>(json, "f.json").unwrap_err().to_string()
        }
        let deep = format!(r#"{{"trees": [{}], "labels": [0]}}"#, "[".repeat(100_000));
        let errors = [
            say::<Images>(r#"{"examples": 4294967295, "note": "", "seed": 1}"#),
            say::<Trees>(r#"{"trees": [[1, 2, 3]], "labels": [0]}"#),
            say::<Trees>(r#"{"trees": [[1]], "labels": [0]}"#),
            say::<Trees>(r#"{"trees": [-1], "labels": [0]}"#),
            say::<Trees>(r#"{"trees": [1, 2], "labels": [0]}"#),
            say::<Trees>(r#"{"trees": [1], "labels": [3]}"#),
            say::<Trees>(&deep),
            say::<Pairs>(
                r#"{"pairs": [[{"parent": [-1, 1], "words": [5, 6]}, {"parent": [-1], "words": [7]}, 3]]}"#,
            ),
            say::<Pairs>(
                r#"{"pairs": [[{"parent": [-1], "words": [5]}, {"parent": [-1], "words": []}, 3]]}"#,
            ),
            say::<Pairs>(
                r#"{"pairs": [[{"parent": [-1], "words": [5]}, {"parent": [-1], "words": [5]}, 6]]}"#,
            ),
            say::<Tagged>(r#"{"words": [[1, 2]], "tags": [[0]]}"#),
            say::<Letters>(r#"{"chars": [[57]], "labels": [0]}"#),
            say::<Sequences>(r#"{"words": [[]], "labels": [0]}"#),
            say::<Parses>(r#"{"words": [[1, 2]], "actions": [[0, 1, 0]]}"#),
            say::<Parses>(r#"{"words": [[1]], "actions": [[0, 0, 1]]}"#),
            say::<Parses>(r#"{"words": [[1]], "actions": [[3]]}"#),
            say::<Graphs>(r#"{"labels": [[1, 7]], "edges": [[]], "classes": [0]}"#),
            say::<Graphs>(r#"{"labels": [[1, 2]], "edges": [[[0, 2]]], "classes": [0]}"#),
            say::<Graphs>(r#"{"labels": [[1, 2]], "edges": [[[0, 1]]], "classes": [2]}"#),
        ];
        insta::assert_snapshot!(errors.join("\n"), @"
        f.json: expected at most 1000000 examples, found 4294967295
        f.json:1:20: expected the JSON of this workload, found invalid length 3, expected a word number or a list of two subtrees
        f.json:1:14: expected the JSON of this workload, found invalid length 1, expected a word number or a list of two subtrees
        f.json:1:13: expected the JSON of this workload, found invalid type: integer `-1`, expected a word number or a list of two subtrees
        f.json: expected 2 labels, one per instance, found 1
        f.json: expected classes 0..2, found class 3 in instance 0
        f.json:1:137: expected the JSON of this workload, found recursion limit exceeded
        f.json: expected parent -1 for the first word and earlier words for the others, found others in instance 0
        f.json: expected one parent per word and at least one word, found other lengths in instance 0
        f.json: expected scores 1..5, found score 6 in instance 0
        f.json: expected one tag per word, found 1 tags in instance 0
        f.json: expected characters below 57, found 57 in instance 0
        f.json: expected one or more words, found none in instance 0
        f.json: expected actions 0, 1 or 2 that shift every word and join all into one, found others in instance 0
        f.json: expected actions 0, 1 or 2 that shift every word and join all into one, found others in instance 0
        f.json: expected actions 0, 1 or 2 that shift every word and join all into one, found others in instance 0
        f.json: expected labels of nodes below 7, found 7 in instance 0
        f.json: expected nodes 0..2, found node 2 in instance 0
        f.json: expected classes below 2, found class 2 in instance 0
        ");
    }

    #[test]
    fn distributions_match_the_scripts() {
        let trees = Trees::generate(1, 1000, 20.0, 1000);
        let leaves = Summary::of(trees.trees.iter().map(|t| t.0.leaves().len()));
        assert!((19.0..21.0).contains(&leaves.mean()) && leaves.max <= 60, "{leaves}");
        let letters = Letters::generate(1, 1000);
        let lengths = Summary::of(letters.chars.iter().map(Vec::len));
        assert!((6.7..7.3).contains(&lengths.mean()) && lengths.max <= 20, "{lengths}");
        let same = Tagged::generate(1, 10, Some(20));
        assert!(same.words.iter().all(|words| words.len() == 20));
        let parses = Parses::generate(1, 64);
        let actions: usize = parses.actions.iter().map(Vec::len).sum();
        let words: usize = parses.words.iter().map(Vec::len).sum();
        assert_eq!(actions, 2 * words - 64);
        let pixels: Vec<f32> = Images::generate(1, 20).instances().flat_map(|(pixels, _)| pixels).collect();
        let mean = pixels.iter().sum::<f32>() / pixels.len() as f32;
        assert!((0.48..0.52).contains(&mean) && pixels.iter().all(|p| (0.0..1.0).contains(p)));
    }

    #[test]
    fn damaged_content_never_panics() {
        let json = write(&Trees::generate(1, 3, 4.0, 10)).unwrap();
        survives(json.as_bytes(), |bytes| drop(parse::<Trees>(bytes, "f")));
        let json = write(&Pairs::generate(1, 2)).unwrap();
        survives(json.as_bytes(), |bytes| drop(parse::<Pairs>(bytes, "f")));
        let json = write(&Parses::generate(1, 2)).unwrap();
        survives(json.as_bytes(), |bytes| drop(parse::<Parses>(bytes, "f")));
    }
}
