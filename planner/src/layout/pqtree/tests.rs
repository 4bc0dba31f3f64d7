//! The PQ-tree against enumeration of all orders, and against another implementation on larger random families.

use super::super::random::{SplitMix64, rounds};
use super::*;
use std::collections::BTreeSet;

/// Every order that the subtree allows.
fn orders(tree: &PqTree, node: u32) -> Vec<Vec<u32>> {
    let children = tree.children(node);
    let arrangements = match tree.kind(node) {
        NodeKind::Leaf => return vec![vec![node]],
        NodeKind::P => permutations(children),
        NodeKind::Q => vec![children.to_vec(), children.iter().rev().copied().collect()],
    };
    let mut found = Vec::new();
    for arrangement in arrangements {
        let mut partial = vec![Vec::new()];
        for child in arrangement {
            let tails = orders(tree, child);
            partial = partial
                .iter()
                .flat_map(|head: &Vec<u32>| tails.iter().map(move |t| [&head[..], t].concat()))
                .collect();
        }
        found.extend(partial);
    }
    found
}

fn permutations(items: &[u32]) -> Vec<Vec<u32>> {
    let mut found = vec![Vec::new()];
    for &item in items {
        found = found
            .iter()
            .flat_map(|p: &Vec<u32>| {
                (0..=p.len()).map(move |at| {
                    let mut p = p.clone();
                    p.insert(at, item);
                    p
                })
            })
            .collect();
    }
    found
}

fn consecutive(order: &[u32], set: &[u32]) -> bool {
    let places: Vec<usize> = set.iter().filter_map(|x| order.iter().position(|y| y == x)).collect();
    let distinct: BTreeSet<usize> = places.iter().copied().collect();
    match (distinct.first(), distinct.last()) {
        (Some(first), Some(last)) => last - first + 1 == distinct.len(),
        _ => true,
    }
}

/// The tree as text: `(P)`, `[Q]`.
fn spell(tree: &PqTree) -> String {
    enum Step {
        Node(u32),
        Close(char),
    }
    let mut text = String::new();
    let mut stack = vec![Step::Node(tree.root())];
    while let Some(step) = stack.pop() {
        match step {
            Step::Close(c) => text.push(c),
            Step::Node(u) => {
                let (open, close) = match tree.kind(u) {
                    NodeKind::Leaf => {
                        text.push_str(&format!("{u} "));
                        continue;
                    }
                    NodeKind::P => ('(', ')'),
                    NodeKind::Q => ('[', ']'),
                };
                text.push(open);
                stack.push(Step::Close(close));
                stack.extend(tree.children(u).iter().rev().map(|&c| Step::Node(c)));
            }
        }
    }
    text
}

/// Links, positions, leaf counts and the least number of children.
fn assert_sound(tree: &PqTree) {
    let mut preorder = Vec::new();
    let mut stack = vec![tree.root];
    while let Some(u) = stack.pop() {
        preorder.push(u);
        for (pos, &child) in (0u32..).zip(tree.children(u)) {
            let node = &tree.nodes[child as usize];
            assert_eq!((node.parent, node.pos), (u, pos), "link of {child} in {}", spell(tree));
            stack.push(child);
        }
    }
    for &u in preorder.iter().rev() {
        let children = tree.children(u);
        let least = match tree.kind(u) {
            NodeKind::Leaf => continue,
            NodeKind::P if u == tree.root => 0,
            NodeKind::P => 2,
            NodeKind::Q => 3,
        };
        assert!(children.len() >= least, "node {u} is too small in {}", spell(tree));
        let leaves: u32 = children.iter().map(|&c| tree.nodes[c as usize].leaves).sum();
        assert_eq!(leaves, tree.nodes[u as usize].leaves, "leaves of {u} in {}", spell(tree));
    }
    let mut frontier = tree.frontier();
    frontier.sort_unstable();
    assert!(frontier.into_iter().eq(0..tree.len()));
}

#[test]
fn the_tree_represents_exactly_the_orders_that_keep_all_accepted_sets_together() {
    for seed in 0..rounds(400) {
        let mut random = SplitMix64(seed);
        let n = if seed % 40 == 0 { 7 } else { 2 + random.below(5) };
        let all = permutations(&(0..n).collect::<Vec<_>>());
        let mut tree = PqTree::new(n);
        let mut allowed: BTreeSet<Vec<u32>> = all.into_iter().collect();
        for _ in 0..6 {
            let size = 1 + random.below(n);
            let set = random.set(n, size);
            let before = spell(&tree);
            let kept: BTreeSet<Vec<u32>> = allowed.iter().filter(|o| consecutive(o, &set)).cloned().collect();
            match tree.reduce(&set) {
                Reduction::Refused => {
                    assert!(kept.is_empty(), "seed {seed}: {set:?} is possible in {before}");
                    assert_eq!(spell(&tree), before, "seed {seed}: a refusal changed the tree");
                }
                Reduction::Implied => {
                    assert_eq!(kept, allowed, "seed {seed}: {set:?} is not implied by {before}");
                    assert_eq!(spell(&tree), before, "seed {seed}");
                }
                Reduction::Narrowed => {
                    assert!(kept.len() < allowed.len(), "seed {seed}: {set:?} was implied by {before}");
                    let found = orders(&tree, tree.root());
                    let distinct: BTreeSet<Vec<u32>> = found.iter().cloned().collect();
                    assert_eq!(distinct, kept, "seed {seed}: {before} with {set:?} became {}", spell(&tree));
                    assert_eq!(found.len(), distinct.len(), "seed {seed}: an order is represented twice");
                    allowed = kept;
                }
            }
            assert_sound(&tree);
        }
    }
}

/// Sets that agree with a hidden order, disturbed now and then, so that large families are accepted.
fn nearly_consistent_set(random: &mut SplitMix64, hidden: &[u32]) -> Vec<u32> {
    let n = hidden.len() as u32;
    let most = if random.below(3) == 0 { n } else { 6.min(n) };
    let size = 1 + random.below(most);
    let start = random.below(n - size + 1);
    let mut set = hidden[start as usize..(start + size) as usize].to_vec();
    if random.below(5) == 0 {
        let extra = random.below(n);
        if !set.contains(&extra) {
            set.push(extra);
        }
    }
    set
}

#[test]
fn large_random_families_are_accepted_and_refused_as_by_another_implementation() {
    for seed in 0..rounds(60) {
        let mut random = SplitMix64(seed ^ 0xabcd);
        let n = 5 + random.below(60);
        let hidden = random.set(n, n);
        let mut tree = PqTree::new(n);
        let leaves: Vec<u32> = (0..n).collect();
        let mut oracle = pq_tree::PQTree::from_leaves(&leaves).unwrap();
        let mut accepted: Vec<Vec<u32>> = Vec::new();
        for _ in 0..60 {
            let set = nearly_consistent_set(&mut random, &hidden);
            let before = spell(&tree);
            let theirs = oracle.clone().reduction(&set);
            let ours = tree.reduce(&set);
            assert_eq!(ours != Reduction::Refused, theirs.is_ok(), "seed {seed}: {set:?} on {before}");
            match theirs {
                Ok(next) => {
                    oracle = next;
                    accepted.push(set);
                }
                Err(_) => assert_eq!(spell(&tree), before, "seed {seed}: a refusal changed the tree"),
            }
            assert_sound(&tree);
        }
        let frontier = tree.frontier();
        assert!(accepted.iter().all(|s| consecutive(&frontier, s)), "seed {seed}");
    }
}

#[test]
fn a_rollback_restores_the_tree_and_the_next_trial_is_unharmed() {
    for seed in 0..rounds(40) {
        let mut random = SplitMix64(seed ^ 0x5555);
        let n = 5 + random.below(40);
        let hidden = random.set(n, n);
        let mut tree = PqTree::new(n);
        let mut plain = PqTree::new(n);
        for _ in 0..20 {
            tree.checkpoint();
            let before = spell(&tree);
            let sets: Vec<Vec<u32>> = (0..3).map(|_| nearly_consistent_set(&mut random, &hidden)).collect();
            let results: Vec<Reduction> = sets.iter().map(|s| tree.reduce(s)).collect();
            if random.below(2) == 0 {
                tree.rollback();
                assert_eq!(spell(&tree), before, "seed {seed}");
            } else {
                let again: Vec<Reduction> = sets.iter().map(|s| plain.reduce(s)).collect();
                assert_eq!(results, again, "seed {seed}");
                assert_eq!(spell(&tree), spell(&plain), "seed {seed}");
            }
            assert_sound(&tree);
        }
        assert!(tree.nodes.len() < 4 * n as usize + 80, "seed {seed}: ids are used again");
    }
}

#[test]
fn a_restriction_spans_the_consecutive_sets_inside_a_subset() {
    for seed in 0..rounds(200) {
        let mut random = SplitMix64(seed ^ 0x7777);
        let n = 3 + random.below(4);
        let mut tree = PqTree::new(n);
        for _ in 0..3 {
            let size = 2 + random.below(n - 1);
            let set = random.set(n, size);
            tree.reduce(&set);
        }
        let size = 1 + random.below(n);
        let subset = random.set(n, size);
        let part = tree.restrict(&subset);
        let mut leaves = part.leaves.clone();
        leaves.sort_unstable();
        let mut expected = subset.clone();
        expected.sort_unstable();
        assert_eq!(leaves, expected, "seed {seed}");
        // The orders seen through the subset are exactly those that keep the spanning sets together.
        let seen: BTreeSet<Vec<u32>> = orders(&tree, tree.root())
            .into_iter()
            .map(|order| order.into_iter().filter(|x| subset.contains(x)).collect())
            .collect();
        let sets: Vec<Vec<u32>> =
            part.consecutive_sets().into_iter().map(|s| part.leaves[s].to_vec()).collect();
        let spanned: BTreeSet<Vec<u32>> =
            permutations(&subset).into_iter().filter(|o| sets.iter().all(|s| consecutive(o, s))).collect();
        assert_eq!(seen, spanned, "seed {seed}: {} in {subset:?} gives {sets:?}", spell(&tree));
        assert!(part.nodes.iter().enumerate().all(|(i, node)| {
            let sizes: u32 = part.children(i).map(|c| part.nodes[c].size).sum();
            node.kind == NodeKind::Leaf || sizes == node.size
        }));
    }
}

#[test]
fn nested_sets_of_every_size_neither_overflow_the_stack_nor_take_quadratic_nodes() {
    let n = 20_000;
    let mut tree = PqTree::new(n);
    for end in 2..=n / 10 {
        // Prefixes, each one longer: the tree becomes a path of P nodes.
        let set: Vec<u32> = (0..end).collect();
        assert_ne!(tree.reduce(&set), Reduction::Refused);
    }
    // From one end of the path to the other: one reduce opens every level.
    let last = n / 10 - 1;
    assert_eq!(tree.reduce(&[0, last]), Reduction::Narrowed);
    assert_eq!(tree.reduce(&[0, n - 1]), Reduction::Refused);
    assert_eq!(tree.reduce(&[last, n - 1]), Reduction::Narrowed);
    assert_eq!(tree.reduce(&[last - 1, n - 1]), Reduction::Refused);
    assert_eq!(tree.restrict(&(0..n / 10).collect::<Vec<_>>()).leaves.len() as u32, n / 10);
    assert_eq!(tree.frontier().len() as u32, n);
    assert_sound(&tree);
}

#[test]
fn small_and_wrong_sets_are_answered_without_change() {
    let mut tree = PqTree::new(3);
    assert_eq!(tree.reduce(&[]), Reduction::Implied);
    assert_eq!(tree.reduce(&[1]), Reduction::Implied);
    assert_eq!(tree.reduce(&[1, 1]), Reduction::Implied);
    assert_eq!(tree.reduce(&[0, 3]), Reduction::Refused);
    assert_eq!(tree.reduce(&[2, 0, 1]), Reduction::Implied);
    assert_eq!(spell(&tree), "(0 1 2 )");
    tree.rollback();
    assert_eq!(spell(&tree), "(0 1 2 )");
    let mut empty = PqTree::new(0);
    assert!(empty.is_empty() && empty.frontier().is_empty());
    assert_eq!(empty.reduce(&[0]), Reduction::Refused);
    assert!(empty.restrict(&[]).nodes.is_empty());
}
