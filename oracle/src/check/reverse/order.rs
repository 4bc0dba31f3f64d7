//! The order of the sums that make the gradients of parameters: ascending by signature, place in its body, and node.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::blocks::lie_apart;
use autobatch_ir::plan::{Plan, Reduction, StoreId};
use std::collections::BTreeMap;
use std::ops::Range;

/// The place of a row in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The rank of the signature.
    pub(super) signature: u32,
    /// The number of the use of the parameter in the body of the signature.
    pub(super) number: usize,
    pub(super) node: u32,
}

/// The most different blocks of a store that are compared with one another, unless all lie apart. The reductions of a store
/// with more of them must stand in one order.
const MAX_OVERLAPPING: usize = 1 << 12;

/// The last places in all sums so far.
pub(super) struct Sums {
    ranks: Vec<u32>,
    stores: BTreeMap<StoreId, StoreSums>,
}

#[derive(Default)]
struct StoreSums {
    /// By the corners of the block.
    last: BTreeMap<[u64; 4], (Block, Place)>,
    /// Whether different blocks share no element.
    lie_apart: bool,
}

type Block = [Range<u64>; 2];

fn corners([rows, columns]: &Block) -> [u64; 4] {
    [rows.start, rows.end, columns.start, columns.end]
}

fn overlap(one: &Block, other: &Block) -> bool {
    one.iter().zip(other).all(|(a, b)| a.start < b.end && b.start < a.end)
}

impl Sums {
    pub(super) fn of(graph: &GraphData, plan: &Plan) -> Self {
        let ranks = graph.sigs.ranks(&graph.types);
        let mut blocks: BTreeMap<StoreId, BTreeMap<[u64; 4], Block>> = BTreeMap::new();
        for sum in &plan.reductions {
            let block = sum.block(plan);
            blocks.entry(sum.store).or_default().insert(corners(&block), block);
        }
        let apart = |blocks: BTreeMap<[u64; 4], Block>| StoreSums {
            lie_apart: lie_apart(blocks.into_values()),
            ..StoreSums::default()
        };
        Self { ranks, stores: blocks.into_iter().map(|(store, blocks)| (store, apart(blocks))).collect() }
    }

    pub(super) fn rank(&self, sig: SigId) -> u32 {
        self.ranks[sig.index()]
    }

    /// The last place so far in the sums of the elements that a reduction adds to.
    pub(super) fn last(&self, plan: &Plan, sum: &Reduction) -> Option<Place> {
        let StoreSums { last, lie_apart } = self.stores.get(&sum.store)?;
        let own = sum.block(plan);
        match lie_apart {
            true => last.get(&corners(&own)).map(|(_, place)| *place),
            false if last.len() > MAX_OVERLAPPING => last.values().map(|(_, place)| *place).max(),
            false => last.values().filter(|(block, _)| overlap(&own, block)).map(|(_, place)| *place).max(),
        }
    }

    /// Adds a reduction that ends at a place.
    pub(super) fn add(&mut self, plan: &Plan, sum: &Reduction, last: Option<Place>) {
        if let (Some(store), Some(place)) = (self.stores.get_mut(&sum.store), last) {
            let block = sum.block(plan);
            store.last.insert(corners(&block), (block, place));
        }
    }
}
