//! Sentiment treebank: one binary constituency tree per line with a label 0..4 on every node.
//!
//! A node is `(label left right)` or `(label word)`; 0 is very negative, 4 very positive. Words
//! end only at brackets and ASCII spaces (other blanks belong to words), and exactly one space separates
//! parts. So reading and writing a file keeps its bytes.

use std::fmt;
use std::path::Path;

use super::binary_tree::{BinaryTree, Node, TreeBuilder, Visit, parse_bracketed};
use super::error::DataError;
use super::text::{Piece, each_filled_line, each_line, join_lines, read_with};

/// A sentence with its parse and its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The parse; the leaves are the words.
    pub tree: BinaryTree<String>,
    /// The label 0..4 of every node, in the order of `tree.nodes()`. The last label is that of the sentence.
    pub labels: Vec<u8>,
}

impl Tree {
    /// Returns the label of the whole sentence.
    pub fn label(&self) -> u8 {
        self.labels.last().copied().unwrap_or(2)
    }
}

/// Writes one line of the format, without the line end.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for visit in self.tree.walk() {
            let (Visit::Enter(index) | Visit::Leave(index)) = visit;
            let (node, label) = (self.tree.nodes()[index as usize], self.labels[index as usize]);
            match (visit, node) {
                (Visit::Enter(_), Node::Inner(..)) => write!(f, "{separator}({label}")?,
                (Visit::Enter(_), Node::Leaf(leaf)) => {
                    write!(f, "{separator}({label} {})", self.tree.leaves()[leaf as usize])?;
                }
                (Visit::Leave(_), Node::Inner(..)) => f.write_str(")")?,
                (Visit::Leave(_), Node::Leaf(_)) => {}
            }
            separator = " ";
        }
        Ok(())
    }
}

/// Reads the trees of a file's content.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Tree>, DataError> {
    each_line(content.as_ref(), file, parse_line)
}

/// Reads trees whose nodes may lack labels: `( great fun )` instead of `(3 (3 great) (2 fun))`. Skips blank lines.
///
/// # Errors
/// The first line of another form.
pub fn parse_inputs(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Tree>, DataError> {
    each_filled_line(content.as_ref(), file, |line| match is_labelled(line) {
        true => parse_line(line),
        false => parse_bracketed(line, word_of).map(unlabelled),
    })
}

/// Reads sentences: trees with or without labels, or words without brackets. Skips blank lines.
///
/// # Errors
/// The first line of another form.
pub fn parse_sentences(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Tree>, DataError> {
    each_filled_line(content.as_ref(), file, |line| match line.text.starts_with('(') {
        true if is_labelled(line) => parse_line(line),
        true => parse_bracketed(line, word_of).map(unlabelled),
        false => {
            let mut builder = TreeBuilder::default();
            for (number, word) in line.split(' ').enumerate() {
                builder.shift(word_of(word)?);
                if number > 0 {
                    builder.reduce();
                }
            }
            builder.finish().map(unlabelled).ok_or_else(|| line.error("words"))
        }
    })
}

/// Whether a line begins with a label behind its bracket.
fn is_labelled(line: Piece<'_>) -> bool {
    line.text.starts_with('(') && line.text[1..].starts_with(|c: char| c.is_ascii_digit())
}

fn word_of(token: Piece<'_>) -> Result<String, DataError> {
    match token.text {
        "" => Err(token.error("a word; words are separated by one space")),
        word => Ok(word.to_owned()),
    }
}

/// A tree without labels; the label 0 stands for an unknown one.
fn unlabelled(tree: BinaryTree<String>) -> Tree {
    Tree { labels: vec![0; tree.nodes().len()], tree }
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Tree>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these trees.
pub fn write(trees: &[Tree]) -> String {
    join_lines(trees)
}

/// The rest of a line.
struct Cursor<'a> {
    rest: Piece<'a>,
}

impl<'a> Cursor<'a> {
    /// Takes the text up to the next bracket or space.
    fn word(&mut self) -> Piece<'a> {
        let text = self.rest.text;
        let end = text.find(['(', ')', ' ']).unwrap_or(text.len());
        let word = self.rest.sub(0, end);
        self.rest = self.rest.sub(end, text.len());
        word
    }

    fn eat(&mut self, wanted: char, expected: &str) -> Result<(), DataError> {
        if !self.rest.text.starts_with(wanted) {
            return Err(self.rest.error(expected));
        }
        self.rest = self.rest.sub(1, self.rest.text.len());
        Ok(())
    }

    fn label(&mut self) -> Result<u8, DataError> {
        let word = self.word();
        Ok(word.number(4, "a label 0..4")? as u8)
    }
}

fn parse_line(line: Piece<'_>) -> Result<Tree, DataError> {
    let mut cursor = Cursor { rest: line };
    let mut builder = TreeBuilder::default();
    let mut labels = Vec::new();
    // The labels of the open inner nodes, and whether their left child is complete.
    let mut open: Vec<(u8, bool)> = Vec::new();
    loop {
        cursor.eat('(', "an opening bracket")?;
        let label = cursor.label()?;
        cursor.eat(' ', "a space after the label")?;
        if cursor.rest.text.starts_with('(') {
            open.push((label, false));
            continue;
        }
        let word = cursor.word();
        if word.text.is_empty() {
            return Err(cursor.rest.error("a word or a subtree"));
        }
        cursor.eat(')', "a closing bracket after the word")?;
        builder.shift(word.text.to_owned());
        labels.push(label);
        while let Some((label, true)) = open.last().copied() {
            cursor.eat(')', "a closing bracket after the right child")?;
            open.pop();
            builder.reduce();
            labels.push(label);
        }
        match open.last_mut() {
            Some((_, left_is_done)) => *left_is_done = true,
            None => break,
        }
        cursor.eat(' ', "a space before the right child")?;
    }
    if !cursor.rest.text.is_empty() {
        return Err(cursor.rest.error("the end of the line"));
    }
    let tree = builder.finish().expect("every inner node is reduced at the end of its right child");
    Ok(Tree { tree, labels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: &str = "(3 (2 A) (4 (1 (2 not) (0 dull)) (2 day)))\n(2 yes)\n(1 (2 no\u{a0}way) (1 \\/))\n";

    #[test]
    fn trees_are_read_with_the_label_of_every_node() {
        let trees = parse(SAMPLE, "f").unwrap();
        assert_eq!(trees[0].tree.leaves(), ["A", "not", "dull", "day"]);
        assert_eq!(trees[0].labels, [2, 2, 0, 1, 2, 4, 3]);
        assert_eq!((trees[0].label(), trees[1].label()), (3, 2));
        assert_eq!(trees[2].tree.leaves(), ["no\u{a0}way", "\\/"]);
    }

    #[test]
    fn trees_keep_their_text_when_read_and_written() {
        assert_eq!(write(&parse(SAMPLE, "f").unwrap()), SAMPLE);
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let bad = [
            "(2 ok)\n(x a)",
            "(5 a)",
            "(2 a",
            "(2 a) b",
            "(2 (1 a))",
            "(2 (1 a) (1 b) (1 c))",
            "(2 )",
            "\n",
            "2 a",
            "(2a)",
        ];
        let errors: Vec<_> =
            bad.iter().map(|text| parse(text, "sst/valid.txt").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        sst/valid.txt:2:2: expected a label 0..4, found "x"
        sst/valid.txt:1:2: expected a label 0..4, found "5"
        sst/valid.txt:1:5: expected a closing bracket after the word, found the end of the line
        sst/valid.txt:1:6: expected the end of the line, found " b"
        sst/valid.txt:1:9: expected a space before the right child, found ")"
        sst/valid.txt:1:15: expected a closing bracket after the right child, found " (1 c))"
        sst/valid.txt:1:4: expected a word or a subtree, found ")"
        sst/valid.txt:1:1: expected an opening bracket, found the end of the line
        sst/valid.txt:1:1: expected an opening bracket, found "2 a"
        sst/valid.txt:1:2: expected a label 0..4, found "2a"
        "#);
    }

    #[test]
    fn deep_trees_do_not_overflow_the_stack() {
        let depth = 100_000;
        let text = format!("{}(2 a){}", "(2 ".repeat(depth), " (2 b))".repeat(depth));
        let trees = parse(&text, "f").unwrap();
        assert_eq!(trees[0].tree.depth() as usize, depth);
        assert_eq!(trees[0].to_string(), text);
        assert!(parse("(2 ".repeat(depth), "f").is_err());
    }

    #[test]
    fn damaged_content_never_panics() {
        survives(SAMPLE.as_bytes(), |bytes| {
            if let Ok(trees) = parse(bytes, "f") {
                assert_eq!(parse(write(&trees), "f").unwrap(), trees);
            }
        });
    }
}
