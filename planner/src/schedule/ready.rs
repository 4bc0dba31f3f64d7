//! The ready nodes of a part, by type.
//!
//! A type never has more ready nodes than its population, so all types share one block of memory: whatever types took turns
//! before, a second part of the same size finds what it needs there.

use super::part::Part;

/// Ready nodes of every type, in no particular order.
#[derive(Default)]
pub(super) struct Ready {
    /// Per type where its ready nodes begin and end. Those before were ready once.
    spans: Vec<(u32, u32)>,
    nodes: Vec<u32>,
}

impl Ready {
    /// Nothing is ready.
    pub(super) fn reset(&mut self, part: &Part) {
        self.spans.clear();
        let mut start = 0;
        for &population in &part.population {
            self.spans.push((start, start));
            start += population;
        }
        // What is ready is written before it is read.
        self.nodes.resize(start as usize, 0);
    }

    /// How many types there are.
    pub(super) fn types(&self) -> u32 {
        self.spans.len() as u32
    }

    /// The ready nodes of a type.
    #[inline]
    pub(super) fn of(&self, ty: u32) -> &[u32] {
        let (from, to) = self.spans[ty as usize];
        &self.nodes[from as usize..to as usize]
    }

    /// How many nodes of a type are ready.
    #[inline]
    pub(super) fn count(&self, ty: u32) -> u32 {
        let (from, to) = self.spans[ty as usize];
        to - from
    }

    /// Adds a node of a type; false if there is no such type: the node is alone.
    #[inline]
    pub(super) fn push(&mut self, ty: u32, node: u32) -> bool {
        let Some((_, end)) = self.spans.get_mut(ty as usize) else { return false };
        self.nodes[*end as usize] = node;
        *end += 1;
        true
    }

    /// Moves the ready nodes of a type to `batch`.
    pub(super) fn take(&mut self, ty: u32, batch: &mut Vec<u32>) {
        batch.clear();
        batch.extend_from_slice(self.of(ty));
        let (from, to) = &mut self.spans[ty as usize];
        *from = *to;
    }

    /// Copies what is ready into the memory that `self` already has.
    pub(super) fn copy(&mut self, other: &Self) {
        self.spans.clone_from(&other.spans);
        self.nodes.resize(other.nodes.len(), 0);
        for &(from, to) in &other.spans {
            let ready = from as usize..to as usize;
            self.nodes[ready.clone()].copy_from_slice(&other.nodes[ready]);
        }
    }
}
