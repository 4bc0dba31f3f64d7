//! The binary tree in which the sums of shards are added, and the division of its leaves among ranks.
//!
//! A node is a range of leaves. The children of a node are its two halves, and the left half is longer by one if the
//! number of leaves is odd. The root holds all leaves.

use std::ops::Range;

/// The first leaf of the right child of a node with at least two leaves.
#[must_use]
pub fn middle(node: &Range<usize>) -> usize {
    node.start + node.len().div_ceil(2)
}

/// The value of a node, as [`sum`] asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given<T> {
    /// The sum of the node is known.
    Sum(T),
    /// The node is the sum of its children.
    Children,
}

/// Adds the leaves of a node in the order of the tree. `given` is called from left to right, and must know every leaf.
///
/// # Errors
/// The first error of `given`.
pub fn sum<T, E>(
    node: Range<usize>,
    given: &mut impl FnMut(&Range<usize>) -> Result<Given<T>, E>,
    add: &mut impl FnMut(&mut T, T),
) -> Result<T, E> {
    match given(&node)? {
        Given::Sum(sum) => Ok(sum),
        Given::Children => {
            let middle = middle(&node);
            let mut left = sum(node.start..middle, given, add)?;
            let right = sum(middle..node.end, given, add)?;
            add(&mut left, right);
            Ok(left)
        }
    }
}

/// The leaves that a rank computes. The ranges of all ranks divide the leaves in order. Some are empty if there are more
/// ranks than leaves.
#[must_use]
pub fn leaves_of(rank: usize, ranks: usize, leaves: usize) -> Range<usize> {
    leaves * rank / ranks..leaves * (rank + 1) / ranks
}

/// The largest nodes that together hold exactly a range of leaves, from left to right.
#[must_use]
pub fn cover(leaves: usize, range: Range<usize>) -> Vec<Range<usize>> {
    let mut nodes = Vec::new();
    push_cover(0..leaves, &range, &mut nodes);
    nodes
}

/// Appends the largest nodes below a node, or the node itself, that `fits` accepts, from left to right. A leaf always fits.
pub fn divide(node: Range<usize>, fits: &impl Fn(&Range<usize>) -> bool, nodes: &mut Vec<Range<usize>>) {
    if node.len() <= 1 || fits(&node) {
        nodes.push(node);
        return;
    }
    let middle = middle(&node);
    divide(node.start..middle, fits, nodes);
    divide(middle..node.end, fits, nodes);
}

fn push_cover(node: Range<usize>, range: &Range<usize>, nodes: &mut Vec<Range<usize>>) {
    if node.is_empty() || range.is_empty() || node.end <= range.start || range.end <= node.start {
        return;
    }
    if range.start <= node.start && node.end <= range.end {
        nodes.push(node);
        return;
    }
    let middle = middle(&node);
    push_cover(node.start..middle, range, nodes);
    push_cover(middle..node.end, range, nodes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// The order of additions as text.
    fn order(leaves: usize) -> String {
        let mut given = |node: &Range<usize>| {
            Ok::<_, Infallible>(match node.len() {
                1 => Given::Sum(node.start.to_string()),
                _ => Given::Children,
            })
        };
        let mut add = |left: &mut String, right: String| *left = format!("({left} {right})");
        match sum(0..leaves, &mut given, &mut add) {
            Ok(sum) => sum,
            Err(never) => match never {},
        }
    }

    #[test]
    fn the_tree_halves_its_nodes() {
        assert_eq!(order(1), "0");
        assert_eq!(order(3), "((0 1) 2)");
        assert_eq!(order(8), "(((0 1) (2 3)) ((4 5) (6 7)))");
        assert_eq!(order(7), "(((0 1) (2 3)) ((4 5) 6))");
    }

    #[test]
    fn covers_hold_each_leaf_once_and_rebuild_the_tree() {
        for leaves in 1..=20 {
            for ranks in 1..=24 {
                let mut nodes = Vec::new();
                for rank in 0..ranks {
                    nodes.extend(cover(leaves, leaves_of(rank, ranks, leaves)));
                }
                let all: Vec<usize> = nodes.iter().cloned().flatten().collect();
                assert!(all.into_iter().eq(0..leaves), "{leaves} leaves, {ranks} ranks: {nodes:?}");
                // Adding the nodes of all ranks follows the order of the whole tree.
                let mut left = nodes.into_iter().peekable();
                let mut given = |node: &Range<usize>| {
                    Ok::<_, Infallible>(match left.next_if(|next| next == node) {
                        Some(node) => Given::Sum(node),
                        None => Given::Children,
                    })
                };
                let mut add = |left: &mut Range<usize>, right: Range<usize>| {
                    assert_eq!(left.end, right.start);
                    left.end = right.end;
                };
                assert_eq!(sum(0..leaves, &mut given, &mut add), Ok(0..leaves));
            }
        }
        assert_eq!(cover(8, 2..7), [2..4, 4..6, 6..7]);
        assert_eq!(cover(8, 0..6), [0..4, 4..6]);
        assert!(cover(8, 3..3).is_empty());
    }
}
