//! Arrivals: the results that each operand port of each signature reads.
//!
//! Ports have numbers among those of all signatures, and so have results. Storage puts results that arrive at one port into one
//! field. *Cost.* One bit for each port and each of the first 64 results; one hash-set entry for each pair beyond them.

use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::BuildMix;
use std::collections::HashSet;

/// No result.
const NONE: u32 = u32::MAX;

/// The set of pairs of an operand port and a result that arrives there.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Per port which of the first 64 results arrive there.
    bits: Vec<u64>,
    /// Per port the last of the other results that arrived. Most arrivals repeat it.
    last_other: Vec<u32>,
    /// Pairs of a port and one of the other results.
    others: HashSet<(u32, u32), BuildMix>,
}

impl Arrivals {
    pub(super) fn clear(&mut self, graph: &GraphData) {
        let ports = graph.sigs.items().iter().map(|signature| signature.operands.len()).sum();
        self.bits.clear();
        self.bits.resize(ports, 0);
        self.last_other.clear();
        self.last_other.resize(ports, NONE);
        self.others.clear();
    }

    /// Which of the first 64 results are known to arrive at each of `count` ports from `first` on.
    #[inline]
    pub(super) fn known(&self, first: usize, count: usize) -> &[u64] {
        &self.bits[first..first + count]
    }

    #[inline]
    pub(super) fn add(&mut self, port: usize, result: u32) {
        // Nearly all arrivals are known, so a test comes before the write.
        if result >= 64 || self.bits[port] >> result & 1 == 0 {
            self.add_new(port, result);
        }
    }

    #[inline(never)]
    fn add_new(&mut self, port: usize, result: u32) {
        if result < 64 {
            self.bits[port] |= 1 << result;
        } else if std::mem::replace(&mut self.last_other[port], result) != result {
            self.others.insert((port as u32, result));
        }
    }

    /// How many ports there are.
    pub(crate) fn ports(&self) -> usize {
        self.bits.len()
    }

    /// All pairs of a port and a result, in no particular order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        let first = (0u32..).zip(&self.bits).flat_map(|(port, &bits)| ones(bits).map(move |bit| (port, bit)));
        first.chain(self.others.iter().copied())
    }
}

/// The positions of the bits that are set, ascending.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(bit)
    })
}
