//! A union-find whose links carry relations: directions of Q nodes, child bijections of P nodes.
//!
//! Union by size without path compression, so that joins can be taken back one by one.

/// How a node's children relate to those of its class's root.
#[derive(Clone, Debug)]
pub(super) enum Relation {
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

/// Classes of nodes whose orders determine each other.
pub(super) struct Classes {
    /// Per node its parent and the relation to it; itself where it is a root.
    parent: Vec<u32>,
    relation: Vec<Option<Relation>>,
    size: Vec<u32>,
    joined: Vec<u32>,
}

impl Classes {
    /// Every node on its own.
    pub(super) fn new(nodes: u32) -> Classes {
        Classes {
            parent: (0..nodes).collect(),
            relation: vec![None; nodes as usize],
            size: vec![1; nodes as usize],
            joined: Vec::new(),
        }
    }

    /// The joins so far, for [`Classes::take_back`].
    pub(super) fn mark(&self) -> usize {
        self.joined.len()
    }

    /// The root of the node's class and the relation from the node to it.
    pub(super) fn find(&self, node: u32) -> Option<(u32, Option<Relation>)> {
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
    pub(super) fn join(&mut self, a: u32, b: u32, relation: &Relation) -> Option<()> {
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

    /// Takes back all joins since the mark.
    pub(super) fn take_back(&mut self, mark: usize) {
        for child in self.joined.drain(mark..).rev() {
            let parent = std::mem::replace(&mut self.parent[child as usize], child);
            self.relation[child as usize] = None;
            self.size[parent as usize] -= self.size[child as usize];
        }
    }
}

/// Two Q nodes with these children: same direction, opposite, or unlike.
pub(super) fn parity(a: &[(u32, u32)], mut b: Vec<(u32, u32)>) -> Option<Relation> {
    if a == b {
        return Some(Relation::Parity(false));
    }
    b.reverse();
    (a == b).then_some(Relation::Parity(true))
}

/// Two P nodes with these children: which corresponds to which, or unlike.
pub(super) fn bijection(a: &[(u32, u32)], b: &[(u32, u32)]) -> Option<Relation> {
    let mut sorted: Vec<u32> = (0..b.len() as u32).collect();
    sorted.sort_unstable_by_key(|&i| b[i as usize]);
    let find =
        |key: &(u32, u32)| sorted.binary_search_by_key(key, |&i| b[i as usize]).ok().map(|at| sorted[at]);
    let map: Option<Vec<u32>> = a.iter().map(find).collect();
    map.filter(|_| a.len() == b.len()).map(Relation::Map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(of: [u32; 3]) -> Relation {
        Relation::Map(of.to_vec())
    }

    #[test]
    fn bijections_compose_along_joins_and_contradictions_are_refused() {
        let mut classes = Classes::new(8);
        // 0 -> 1 -> 2 by two different turns, then 3 joins from the other side.
        assert!(classes.join(0, 1, &map([1, 2, 0])).is_some());
        assert!(classes.join(1, 2, &map([1, 0, 2])).is_some());
        assert!(classes.join(3, 0, &map([2, 1, 0])).is_some());
        // Child 0 of node 0 is child 1 of node 1 is child 0 of node 2.
        assert!(classes.join(0, 2, &map([0, 2, 1])).is_some());
        assert!(classes.join(0, 2, &map([1, 2, 0])).is_none());
        // Node 3 to node 2 runs through node 0: 0 -> 2 -> 1, 1 -> 1 -> 2, 2 -> 0 -> 0.
        assert!(classes.join(3, 2, &map([1, 2, 0])).is_some());
        assert!(classes.join(2, 3, &map([2, 0, 1])).is_some());
        assert!(classes.join(2, 3, &map([1, 2, 0])).is_none());
    }

    #[test]
    fn directions_compose_and_joins_can_be_taken_back() {
        let mut classes = Classes::new(4);
        let (same, opposite) = (Relation::Parity(false), Relation::Parity(true));
        assert!(classes.join(0, 1, &opposite).is_some());
        let mark = classes.mark();
        assert!(classes.join(1, 2, &opposite).is_some());
        assert!(classes.join(0, 2, &opposite).is_none());
        assert!(classes.join(0, 2, &same).is_some());
        classes.take_back(mark);
        assert!(classes.join(0, 2, &opposite).is_some());
        assert!(classes.join(1, 2, &same).is_some());
        // Unlike relations do not compose.
        assert!(classes.join(0, 3, &map([0, 1, 2])).is_none());
    }

    #[test]
    fn unlike_children_have_no_relation() {
        let (a, b) = ([(0, 1), (1, 2)], [(0, 1), (1, 1)]);
        assert!(parity(&a, b.to_vec()).is_none());
        assert!(bijection(&a, &b).is_none());
        assert!(bijection(&a[..1], &a).is_none());
    }
}
