//! The directions of Q nodes and the orders of P nodes, so that the kept slots of a batch run in one lane order.
//!
//! After broadcasting, the slots of a batch have equal restricted trees up to which way each Q node points and how each P node
//! is ordered. Two slots are compared node by node: a pair of Q nodes gives a parity (same or opposite direction), a pair of
//! P nodes a bijection of their children. A union-find carries these relations to the root of each class; a cycle that does
//! not close refuses the slot whose relation came last. P nodes with two children become Q nodes first: for two children a
//! bijection is a parity.

use super::Problem;
use super::broadcast::{Candidate, Kept};
use super::classes::{Classes, Relation, bijection, parity};
use super::pqtree::{NodeKind, PqTree, Restricted};

/// A tree with every kept slot's relations taken or refused.
pub(super) struct Oriented {
    tree: PqTree,
    classes: Classes,
    /// Slots whose relations contradicted earlier ones.
    pub(super) refused: Vec<u32>,
}

/// Settles directions for all kept slots, heavier ones first.
pub(super) fn orient(problem: &Problem, kept: Kept) -> Oriented {
    let Kept { mut tree, slots, .. } = kept;
    tree.settle_pairs();
    let nodes = tree.node_bound();
    let mut oriented = Oriented { tree, classes: Classes::new(nodes), refused: Vec::new() };
    let mut first_of: Vec<Option<Candidate>> = vec![None; problem.batches() as usize];
    let mut lane_of = vec![0; problem.rows() as usize];
    for candidate in slots {
        match &first_of[candidate.batch as usize] {
            None => first_of[candidate.batch as usize] = Some(candidate),
            Some(first) => {
                let first = Part::of(problem, &mut oriented.tree, first, &mut lane_of);
                let other = Part::of(problem, &mut oriented.tree, &candidate, &mut lane_of);
                let mark = oriented.classes.mark();
                if oriented.relate(&first, &other).is_none() {
                    oriented.classes.take_back(mark);
                    oriented.refused.push(candidate.slot);
                }
            }
        }
    }
    oriented
}

/// One slot's restricted tree in lane space.
struct Part {
    tree: Restricted,
    /// Per node its lanes' least and their number: unique among the nested or disjoint sets of one tree.
    keys: Vec<(u32, u32)>,
    /// Node indices by key.
    sorted: Vec<u32>,
}

impl Part {
    fn of(problem: &Problem, tree: &mut PqTree, slot: &Candidate, lane_of: &mut [u32]) -> Part {
        let lanes = problem.all_batches()[slot.batch as usize].lanes;
        let rows = problem.slot_rows(problem.slot(slot.slot as usize), lanes);
        for (lane, &row) in (0u32..).zip(rows) {
            lane_of[row as usize] = lane;
        }
        let part = tree.restrict(rows);
        let mut keys: Vec<(u32, u32)> = part.nodes.iter().map(|n| (u32::MAX, n.size)).collect();
        for (index, node) in part.nodes.iter().enumerate().rev() {
            if node.kind == NodeKind::Leaf {
                keys[index].0 = lane_of[part.leaves[node.first as usize] as usize];
            } else {
                keys[index].0 = part.children(index).map(|c| keys[c].0).min().unwrap_or(u32::MAX);
            }
        }
        let mut sorted: Vec<u32> = (0..keys.len() as u32).collect();
        sorted.sort_unstable_by_key(|&i| keys[i as usize]);
        Part { tree: part, keys, sorted }
    }

    fn child_keys(&self, node: usize) -> Vec<(u32, u32)> {
        self.tree.children(node).map(|c| self.keys[c]).collect()
    }
}

impl Oriented {
    /// Takes the relations between two slots of a batch; `None` if they contradict what is known.
    fn relate(&mut self, a: &Part, b: &Part) -> Option<()> {
        if a.sorted.len() != b.sorted.len() {
            return None;
        }
        for (&u, &v) in a.sorted.iter().zip(&b.sorted) {
            let (u, v) = (u as usize, v as usize);
            let (node, other) = (a.tree.nodes[u], b.tree.nodes[v]);
            if a.keys[u] != b.keys[v] || node.kind != other.kind {
                return None;
            }
            let relation = match node.kind {
                NodeKind::Leaf => continue,
                NodeKind::Q => parity(&a.child_keys(u), b.child_keys(v))?,
                NodeKind::P => bijection(&a.child_keys(u), &b.child_keys(v))?,
            };
            self.classes.join(node.origin, other.origin, &relation)?;
        }
        Some(())
    }

    /// The leaves in memory order. What the relations leave open follows `wish`: a place per leaf.
    pub(super) fn frontier(&self, wish: &[u32]) -> Vec<u32> {
        let least = self.least(wish);
        let mut order = Vec::with_capacity(wish.len());
        let mut stack = vec![self.tree.root()];
        while let Some(u) = stack.pop() {
            match self.tree.kind(u) {
                NodeKind::Leaf => order.push(u),
                NodeKind::P | NodeKind::Q => stack.extend(self.ordered_children(u, &least).into_iter().rev()),
            }
        }
        order
    }

    /// Per node the least wish among its leaves.
    fn least(&self, wish: &[u32]) -> Vec<u32> {
        let mut least = vec![u32::MAX; self.tree.node_bound() as usize];
        let mut preorder = Vec::with_capacity(self.tree.node_bound() as usize);
        let mut stack = vec![self.tree.root()];
        while let Some(u) = stack.pop() {
            preorder.push(u);
            stack.extend(self.tree.children(u));
        }
        for &u in preorder.iter().rev() {
            least[u as usize] = match self.tree.kind(u) {
                NodeKind::Leaf => wish.get(u as usize).copied().unwrap_or(u32::MAX),
                _ => self.tree.children(u).iter().map(|&c| least[c as usize]).min().unwrap_or(u32::MAX),
            };
        }
        least
    }

    fn ordered_children(&self, u: u32, least: &[u32]) -> Vec<u32> {
        let mut children = self.tree.children(u).to_vec();
        let (root, relation) = self.classes.find(u).unwrap_or((u, None));
        let model = self.tree.children(root);
        match self.tree.kind(u) {
            NodeKind::Leaf => {}
            NodeKind::Q => {
                let end = |c: Option<&u32>| c.map(|&c| least[c as usize]);
                let reversed = end(model.first()) > end(model.last());
                if reversed ^ matches!(relation, Some(Relation::Parity(true))) {
                    children.reverse();
                }
            }
            NodeKind::P => {
                let rank = |i: usize| match &relation {
                    Some(Relation::Map(map)) => map[i] as usize,
                    _ => i,
                };
                let mut indices: Vec<usize> = (0..children.len()).collect();
                indices.sort_by_key(|&i| (least[model[rank(i)] as usize], rank(i)));
                children = indices.into_iter().map(|i| children[i]).collect();
            }
        }
        children
    }
}
