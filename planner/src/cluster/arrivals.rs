//! Arrivals: the results that each operand port of each signature reads.
//!
//! Ports have numbers among those of all signatures, and so have results. Storage puts results that arrive at one port into one
//! field. *Cost.* One bit for each port and each of the first 64 results; one hash-set entry for each pair beyond them.

use crate::ids::{PortId, ResultId};
use crate::index_vec::IndexVec;
use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::BuildMix;
use std::collections::HashSet;
use std::ops::Range;

/// The number of results that have a bit.
pub(super) const BITS: u32 = u64::BITS;

/// The set of pairs of an operand port and a result that arrives there.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Per port which of the first 64 results arrive there.
    bits: IndexVec<PortId, u64>,
    /// Per port the last of the other results that arrived. Most arrivals repeat it.
    last_other: IndexVec<PortId, Option<ResultId>>,
    /// Pairs of a port and one of the other results.
    others: HashSet<(PortId, ResultId), BuildMix>,
}

impl Arrivals {
    pub(super) fn clear(&mut self, graph: &GraphData) {
        let ports = graph.sigs.items().iter().map(|signature| signature.operands.len()).sum();
        self.bits.refill(ports, 0);
        self.last_other.refill(ports, None);
        self.others.clear();
    }

    /// Which of the first 64 results are known to arrive at each of some ports.
    #[inline]
    pub(super) fn known(&self, ports: Range<PortId>) -> &[u64] {
        &self.bits[ports]
    }

    #[inline]
    pub(super) fn add(&mut self, port: PortId, result: ResultId) {
        // Nearly all arrivals are known, so a test comes before the write.
        if result.0 >= BITS || self.bits[port] >> result.0 & 1 == 0 {
            self.add_new(port, result);
        }
    }

    #[inline(never)]
    fn add_new(&mut self, port: PortId, result: ResultId) {
        if result.0 < BITS {
            self.bits[port] |= 1 << result.0;
        } else if self.last_other[port].replace(result) != Some(result) {
            self.others.insert((port, result));
        }
    }

    /// How many ports there are.
    pub(crate) fn ports(&self) -> usize {
        self.bits.len()
    }

    /// All pairs of a port and a result, in no particular order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (PortId, ResultId)> {
        let of_port = |(port, &bits)| ones(bits).map(move |bit| (port, ResultId(bit)));
        let first = self.bits.entries().flat_map(of_port);
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
