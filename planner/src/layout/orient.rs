//! The directions of Q nodes and the orders of P nodes, so that the kept slots of a batch run in one lane order.
//!
//! After broadcasting, the slots of a batch have equal restricted trees up to which way each Q node points and how each P node
//! is ordered. Two slots are compared node by node: a pair of Q nodes gives a parity (same or opposite direction), a pair of
//! P nodes a bijection of their children. A union-find carries these relations to the root of each class; a cycle that does
//! not close refuses the slot whose relation came last. P nodes with two children become Q nodes first: for two children a
//! bijection is a parity.
//!
//! Union by size without path compression, so that the relations of a refused slot can be taken back one by one.

use super::Problem;
use super::broadcast::{Candidate, Kept};
use super::pqtree::{NodeKind, PqTree, Restricted};

/// How a node's children relate to those of its class's root.
#[derive(Clone, Debug)]
enum Relation {
    /// Q: opposite direction or not.
    Parity(bool),
    /// P: child `i` here corresponds to child `map[i]` there.
    Map(Vec<u32>),
}

impl Relation {
    /// First `self` (a to b), then `next` (b to c).
    fn then(&self, next: &Relation) -> Option<Relation> {
        match (self, next) {
            (Relation::Parity(a), Relation::Parity(b)) => Some(Relation::Parity(a ^ b)),
            (Relation::Map(a), Relation::Map(b)) => {
                let through: Option<Vec<u32>> = a.iter().map(|&i| b.get(i as usize).copied()).collect();
                through.map(Relation::Map)
            }
            _ => None,
        }
    }

    fn inverse(&self) -> Relation {
        match self {
            Relation::Parity(p) => Relation::Parity(*p),
            Relation::Map(map) => {
                let mut inverse = vec![0; map.len()];
                for (i, &image) in (0u32..).zip(map) {
                    inverse[image as usize] = i;
                }
                Relation::Map(inverse)
            }
        }
    }

    fn is_identity(&self) -> bool {
        match self {
            Relation::Parity(p) => !p,
            Relation::Map(map) => (0u32..).zip(map).all(|(i, &image)| i == image),
        }
    }
}

/// A tree with every kept slot's relations taken or refused.
pub(super) struct Oriented {
    tree: PqTree,
    /// Per node its parent in the union-find and the relation to it; itself where it is a root.
    parent: Vec<u32>,
    relation: Vec<Option<Relation>>,
    size: Vec<u32>,
    joined: Vec<u32>,
    /// Slots whose relations contradicted earlier ones.
    pub(super) refused: Vec<u32>,
}

/// Settles directions for all kept slots, heavier ones first.
pub(super) fn orient(problem: &Problem, kept: Kept) -> Oriented {
    let Kept { mut tree, slots, .. } = kept;
    tree.settle_pairs();
    let nodes = tree.node_bound();
    let mut oriented = Oriented {
        tree,
        parent: (0..nodes).collect(),
        relation: vec![None; nodes as usize],
        size: vec![1; nodes as usize],
        joined: Vec::new(),
        refused: Vec::new(),
    };
    let mut first_of: Vec<Option<Candidate>> = vec![None; problem.batches() as usize];
    let mut lane_of = vec![0; problem.rows() as usize];
    for candidate in slots {
        match &first_of[candidate.batch as usize] {
            None => first_of[candidate.batch as usize] = Some(candidate),
            Some(first) => {
                let first = Part::of(problem, &mut oriented.tree, first, &mut lane_of);
                let other = Part::of(problem, &mut oriented.tree, &candidate, &mut lane_of);
                let mark = oriented.joined.len();
                if oriented.relate(&first, &other).is_none() {
                    oriented.take_back(mark);
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
            self.join(node.origin, other.origin, &relation)?;
        }
        Some(())
    }

    /// The root of the node's class and the relation from the node to it.
    fn find(&self, node: u32) -> Option<(u32, Option<Relation>)> {
        let mut at = node;
        let mut path: Option<Relation> = None;
        while self.parent[at as usize] != at {
            let step = self.relation[at as usize].as_ref()?;
            path = Some(match path {
                None => step.clone(),
                Some(path) => path.then(step)?,
            });
            at = self.parent[at as usize];
        }
        Some((at, path))
    }

    /// Records that `a` relates to `b`; `None` on a contradiction.
    fn join(&mut self, a: u32, b: u32, relation: &Relation) -> Option<()> {
        let (root_a, to_a) = self.find(a)?;
        let (root_b, to_b) = self.find(b)?;
        // From the root of a through a and b to the root of b.
        let mut link = relation.clone();
        if let Some(to_a) = to_a {
            link = to_a.inverse().then(&link)?;
        }
        if let Some(to_b) = to_b {
            link = link.then(&to_b)?;
        }
        if root_a == root_b {
            return link.is_identity().then_some(());
        }
        let (child, parent) = if self.size[root_a as usize] <= self.size[root_b as usize] {
            (root_a, root_b)
        } else {
            link = link.inverse();
            (root_b, root_a)
        };
        self.parent[child as usize] = parent;
        self.relation[child as usize] = Some(link);
        self.size[parent as usize] += self.size[child as usize];
        self.joined.push(child);
        Some(())
    }

    fn take_back(&mut self, mark: usize) {
        for child in self.joined.drain(mark..).rev() {
            let parent = std::mem::replace(&mut self.parent[child as usize], child);
            self.relation[child as usize] = None;
            self.size[parent as usize] -= self.size[child as usize];
        }
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
        let mut least = vec![u32::MAX; self.parent.len()];
        let mut preorder = Vec::with_capacity(self.parent.len());
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
        let (root, relation) = self.find(u).unwrap_or((u, None));
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

fn parity(a: &[(u32, u32)], mut b: Vec<(u32, u32)>) -> Option<Relation> {
    if a == b {
        return Some(Relation::Parity(false));
    }
    b.reverse();
    (a == b).then_some(Relation::Parity(true))
}

fn bijection(a: &[(u32, u32)], b: &[(u32, u32)]) -> Option<Relation> {
    let mut sorted: Vec<u32> = (0..b.len() as u32).collect();
    sorted.sort_unstable_by_key(|&i| b[i as usize]);
    let find = |key: &(u32, u32)| sorted.binary_search_by_key(key, |&i| b[i as usize]).ok().map(|at| sorted[at]);
    let map: Option<Vec<u32>> = a.iter().map(find).collect();
    map.filter(|_| a.len() == b.len()).map(Relation::Map)
}
