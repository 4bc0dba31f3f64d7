//! Binary trees in flat storage, in the order of a shift-reduce machine.
//!
//! Nodes are in post-order: children before their parent, the left subtree before the right one,
//! the root last. A forward walk over `nodes()` is therefore a bottom-up evaluation order. It is also the
//! list of SHIFT (leaf) and REDUCE (inner node) transitions. No function here recurses, so only memory limits
//! the depth of a tree.

use std::fmt;

use super::error::DataError;
use super::text::Piece;

/// A node, which refers to its parts by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A leaf and the index of its content in [`BinaryTree::leaves`].
    Leaf(u32),
    /// An inner node and the indices of its left and right child in [`BinaryTree::nodes`].
    Inner(u32, u32),
}

/// A step of a walk from the root, which enters parents before their children and leaves them after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// The walk enters this node from above.
    Enter(u32),
    /// The walk leaves this node and its subtree.
    Leave(u32),
}

/// A binary tree with content of type `W` at its leaves and at least one node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BinaryTree<W> {
    leaves: Vec<W>,
    nodes: Vec<Node>,
}

impl<W> BinaryTree<W> {
    /// The contents of the leaves from left to right: the sentence.
    pub fn leaves(&self) -> &[W] {
        &self.leaves
    }

    /// The nodes in post-order; the last is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The index of the root.
    pub fn root(&self) -> u32 {
        (self.nodes.len() - 1) as u32
    }

    /// For every node, the number of edges to the deepest leaf below it.
    pub fn heights(&self) -> Vec<u32> {
        let mut heights: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            heights.push(match *node {
                Node::Leaf(_) => 0,
                Node::Inner(left, right) => 1 + heights[left as usize].max(heights[right as usize]),
            });
        }
        heights
    }

    /// Applies a recursive function to every node and returns its results, in the order of `nodes()`; the last is the
    /// root's. `leaf` takes the content of a leaf, `join` the results of the children.
    pub fn bottom_up<T: Copy>(
        &self,
        mut leaf: impl FnMut(&W) -> T,
        mut join: impl FnMut(T, T) -> T,
    ) -> Vec<T> {
        let mut given: Vec<T> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            given.push(match *node {
                Node::Leaf(place) => leaf(&self.leaves[place as usize]),
                Node::Inner(left, right) => join(given[left as usize], given[right as usize]),
            });
        }
        given
    }

    /// The number of edges from the root to the deepest leaf.
    pub fn depth(&self) -> u32 {
        self.heights().last().copied().unwrap_or(0)
    }

    /// Returns a tree of the same shape with other leaf contents.
    pub fn map<V>(&self, content: impl FnMut(&W) -> V) -> BinaryTree<V> {
        BinaryTree { leaves: self.leaves.iter().map(content).collect(), nodes: self.nodes.clone() }
    }

    /// Walks the tree from the root, left children first.
    pub fn walk(&self) -> impl Iterator<Item = Visit> + '_ {
        let mut todo = vec![Visit::Enter(self.root())];
        std::iter::from_fn(move || {
            let visit = todo.pop()?;
            if let Visit::Enter(node) = visit {
                todo.push(Visit::Leave(node));
                if let Node::Inner(left, right) = self.nodes[node as usize] {
                    todo.push(Visit::Enter(right));
                    todo.push(Visit::Enter(left));
                }
            }
            Some(visit)
        })
    }
}

/// Writes tokens separated by spaces, each inner node as `( left right )`.
impl<W: fmt::Display> fmt::Display for BinaryTree<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for visit in self.walk() {
            match visit {
                Visit::Enter(node) => match self.nodes[node as usize] {
                    Node::Leaf(leaf) => write!(f, "{separator}{}", self.leaves[leaf as usize])?,
                    Node::Inner(..) => write!(f, "{separator}(")?,
                },
                Visit::Leave(node) => {
                    if let Node::Inner(..) = self.nodes[node as usize] {
                        write!(f, "{separator})")?;
                    }
                }
            }
            separator = " ";
        }
        Ok(())
    }
}

/// Builds a tree from transitions.
#[derive(Debug, Clone)]
pub struct TreeBuilder<W> {
    leaves: Vec<W>,
    nodes: Vec<Node>,
    stack: Vec<u32>,
}

impl<W> Default for TreeBuilder<W> {
    fn default() -> Self {
        TreeBuilder { leaves: Vec::new(), nodes: Vec::new(), stack: Vec::new() }
    }
}

impl<W> TreeBuilder<W> {
    fn push(&mut self, node: Node) {
        self.stack.push(self.nodes.len() as u32);
        self.nodes.push(node);
    }

    /// Pushes a leaf onto the stack.
    pub fn shift(&mut self, content: W) {
        let leaf = self.leaves.len() as u32;
        self.leaves.push(content);
        self.push(Node::Leaf(leaf));
    }

    /// Joins the two topmost subtrees. Returns false and does nothing if the stack has fewer than two.
    pub fn reduce(&mut self) -> bool {
        let [.., left, right] = self.stack[..] else {
            return false;
        };
        self.stack.truncate(self.stack.len() - 2);
        self.push(Node::Inner(left, right));
        true
    }

    /// The contents shifted so far.
    pub fn leaves(&self) -> &[W] {
        &self.leaves
    }

    /// The number of subtrees on the stack.
    pub fn open(&self) -> usize {
        self.stack.len()
    }

    /// Returns the tree if the stack holds exactly one.
    pub fn finish(self) -> Option<BinaryTree<W>> {
        (self.stack.len() == 1).then_some(BinaryTree { leaves: self.leaves, nodes: self.nodes })
    }
}

/// Reads tokens separated by single spaces with strictly binary brackets around inner nodes.
pub(crate) fn parse_bracketed<W>(
    text: Piece<'_>,
    mut leaf: impl FnMut(Piece<'_>) -> Result<W, DataError>,
) -> Result<BinaryTree<W>, DataError> {
    let mut builder = TreeBuilder::default();
    // The number of parts of each open bracket so far.
    let mut open: Vec<u8> = Vec::new();
    for token in text.split(' ') {
        if open.is_empty() && builder.open() > 0 {
            return Err(token.error("the end of the tree"));
        }
        match token.text {
            "" => return Err(token.error("a token; tokens are separated by one space")),
            ")" => {
                if open.pop() != Some(2) {
                    return Err(token.error("two parts before the closing bracket"));
                }
                builder.reduce();
            }
            _ if open.last() == Some(&2) => return Err(token.error("a closing bracket")),
            "(" => {
                open.push(0);
                continue;
            }
            _ => builder.shift(leaf(token)?),
        }
        if let Some(parts) = open.last_mut() {
            *parts += 1;
        }
    }
    builder.finish().filter(|_| open.is_empty()).ok_or_else(|| text.end().error("a closing bracket"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::text::lines;

    fn parse(text: &str) -> Result<BinaryTree<String>, DataError> {
        let line = lines(text, "f").next().expect("the samples have a line");
        parse_bracketed(line, |token| Ok(token.text.to_owned()))
    }

    #[test]
    fn nodes_are_in_post_order() {
        let tree = parse("( ( a b ) c )").unwrap();
        assert_eq!(
            tree.nodes(),
            [Node::Leaf(0), Node::Leaf(1), Node::Inner(0, 1), Node::Leaf(2), Node::Inner(2, 3)]
        );
        assert_eq!(tree.leaves(), ["a", "b", "c"]);
        assert_eq!((tree.heights(), tree.depth()), (vec![0, 0, 1, 0, 2], 2));
        assert_eq!(tree.to_string(), "( ( a b ) c )");
        assert_eq!(tree.map(String::len).leaves(), [1, 1, 1]);
    }

    #[test]
    fn a_single_word_is_a_tree() {
        let tree = parse("a").unwrap();
        assert_eq!((tree.root(), tree.depth(), tree.to_string()), (0, 0, "a".to_owned()));
    }

    #[test]
    fn brackets_must_be_binary_and_balanced() {
        let errors: Vec<_> = ["( a )", "( a b c )", "( a b", "( a b ) c", ")", "( a  b )"]
            .map(|text| parse(text).unwrap_err().to_string())
            .into();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        f:1:5: expected two parts before the closing bracket, found ")"
        f:1:7: expected a closing bracket, found "c"
        f:1:6: expected a closing bracket, found the end of the line
        f:1:9: expected the end of the tree, found "c"
        f:1:1: expected two parts before the closing bracket, found ")"
        f:1:5: expected a token; tokens are separated by one space, found nothing
        "#);
    }

    #[test]
    fn very_deep_trees_are_read_and_written() {
        let depth = 100_000;
        let text = format!("{}a{}", "( ".repeat(depth), " b )".repeat(depth));
        let tree = parse(&text).unwrap();
        assert_eq!(tree.depth() as usize, depth);
        assert_eq!(tree.to_string(), text);
    }

    #[test]
    fn a_builder_rejects_invalid_trees() {
        let mut builder = TreeBuilder::default();
        builder.shift(1);
        assert!(!builder.reduce());
        builder.shift(2);
        assert!(builder.clone().finish().is_none());
        assert!(builder.reduce());
        assert_eq!(builder.finish().unwrap().leaves(), [1, 2]);
    }
}
