//! The looking half of a reduce: marks what a set touches and decides, before anything changes, whether it fits.

use super::{NONE, Node, NodeKind, PqTree};

/// What the current set means for a node; valid where `stamp` is the tree's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) stamp: u32,
    /// Pertinent children that are not counted yet.
    pub(super) pending: u32,
    /// Leaves of the set at or below the node.
    pub(super) count: u32,
    /// Leaves at or below the pertinent children, as the set found them.
    pub(super) below: u32,
    pub(super) fulls: u32,
    pub(super) partials: u32,
    pub(super) partial: [u32; 2],
    pub(super) first_full: u32,
    /// The next full sibling in the parent's list.
    pub(super) next_full: u32,
    pub(super) min_pos: u32,
    pub(super) max_pos: u32,
    pub(super) chain: u32,
}

impl Mark {
    pub(super) const CLEAR: Mark = Mark {
        stamp: 0,
        pending: 0,
        count: 0,
        below: 0,
        fulls: 0,
        partials: 0,
        partial: [NONE; 2],
        first_full: NONE,
        next_full: NONE,
        min_pos: u32::MAX,
        max_pos: 0,
        chain: NONE,
    };
}

impl Mark {
    fn is_run(&self) -> bool {
        self.max_pos - self.min_pos + 1 == self.fulls + self.partials
    }

    fn ends_at(&self, pos: u32) -> bool {
        pos == self.min_pos || pos == self.max_pos
    }
}

impl PqTree {
    /// Marks the pertinent nodes and lists them bottom-up in `order`; the lowest node that holds the whole set is the answer.
    pub(super) fn mark(&mut self, set: &[u32]) -> Option<u32> {
        self.queue.clear();
        self.order.clear();
        if set.iter().any(|&leaf| leaf >= self.leaves) {
            return None;
        }
        self.next_stamp();
        for &leaf in set {
            if self.stamped(leaf) {
                self.order.push(leaf);
                self.marks[leaf as usize].count = 1;
            }
        }
        self.climb();
        let total = self.order.len() as u32;
        let mut head = 0;
        while let Some(&u) = self.order.get(head) {
            head += 1;
            if self.marks[u as usize].count == total {
                self.work += (head + self.queue.len()) as u64;
                return Some(u);
            }
            self.count_into_parent(u);
        }
        None
    }

    /// Walks up from all leaves of the set at once, breadth first, until the walks have met in one node.
    pub(super) fn climb(&mut self) {
        let mut past_root = 0;
        let mut head = 0;
        while self.queue.len() - head + past_root > 1 {
            let u = self.queue[head];
            head += 1;
            let parent = self.nodes[u as usize].parent;
            if parent == NONE {
                past_root = 1;
            } else {
                self.stamped(parent);
                self.marks[parent as usize].pending += 1;
            }
        }
    }

    /// Clears the node's mark on first sight and queues it; says whether it was the first sight.
    pub(super) fn stamped(&mut self, node: u32) -> bool {
        let mark = &mut self.marks[node as usize];
        if mark.stamp == self.stamp {
            return false;
        }
        *mark = Mark { stamp: self.stamp, ..Mark::CLEAR };
        self.queue.push(node);
        true
    }

    pub(super) fn next_stamp(&mut self) {
        if self.stamp == u32::MAX {
            self.marks.fill(Mark::CLEAR);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    pub(super) fn count_into_parent(&mut self, u: u32) {
        let Node { parent, pos, leaves, .. } = self.nodes[u as usize];
        let full = self.is_full(u);
        let count = self.marks[u as usize].count;
        let mark = &mut self.marks[parent as usize];
        mark.count += count;
        mark.below += leaves;
        mark.min_pos = mark.min_pos.min(pos);
        mark.max_pos = mark.max_pos.max(pos);
        mark.pending -= 1;
        let done = mark.pending == 0;
        if full {
            mark.fulls += 1;
            let next = std::mem::replace(&mut mark.first_full, u);
            self.marks[u as usize].next_full = next;
        } else {
            if let Some(place) = mark.partial.get_mut(mark.partials as usize) {
                *place = u;
            }
            mark.partials += 1;
        }
        if done {
            self.order.push(parent);
        }
    }

    pub(super) fn is_full(&self, u: u32) -> bool {
        self.marks[u as usize].count == self.nodes[u as usize].leaves
    }

    /// Whether every pertinent node has a shape that the set can be made consecutive in.
    pub(super) fn fits(&self, top: u32) -> bool {
        self.order
            .iter()
            .all(|&u| self.is_full(u) || (u == top && self.top_fits(u)) || (u != top && self.inner_fits(u)))
    }

    pub(super) fn top_fits(&self, u: u32) -> bool {
        let mark = &self.marks[u as usize];
        mark.partials <= 2
            && (self.kind(u) == NodeKind::P
                || (mark.is_run()
                    && mark.partial[..mark.partials as usize]
                        .iter()
                        .all(|&x| mark.ends_at(self.nodes[x as usize].pos))))
    }

    pub(super) fn inner_fits(&self, u: u32) -> bool {
        let mark = &self.marks[u as usize];
        mark.partials <= 1 && (self.kind(u) == NodeKind::P || (mark.is_run() && self.full_side(u).is_some()))
    }

    /// For a partial Q node with at most one partial child: whether its full children stand at the back (`Some(true)`), at the
    /// front (`Some(false)`), or in the way.
    pub(super) fn full_side(&self, u: u32) -> Option<bool> {
        let mark = &self.marks[u as usize];
        let last = self.nodes[u as usize].children.len() as u32 - 1;
        let partial = (mark.partials == 1).then(|| self.nodes[mark.partial[0] as usize].pos);
        if mark.max_pos == last && partial.is_none_or(|p| p == mark.min_pos) {
            Some(true)
        } else if mark.min_pos == 0 && partial.is_none_or(|p| p == mark.max_pos) {
            Some(false)
        } else {
            None
        }
    }
}
