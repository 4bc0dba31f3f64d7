//! Pulls: the steps that make the gradients of keys and values, one lane per pair of items.
//!
//! *Needs* the steps of the reverse, whose lanes leave a row for every node that attends. *Ensures* for each pair of items, of
//! which one needs a gradient, one chain over all nodes that attend to the pair, in graph order, as in `reference::reverse`.
//!
//! *How.* The readers of a pair of items are those of the pairs of lists that were the first to hold it: one pair of lists in a
//! sentence, one per neighbour in a graph. So no row belongs to an edge of a graph. The pairs of lists form trees: both lists
//! of a pair may have grown by one item from those of another. All items that a pair was the first to hold have the same
//! readers: the nodes that read the pair, or one that grew from it. Pairs are visited from the longest back, so a pair has the
//! readers of the one that grew from it and its own, which mostly come before in the graph. So readers lie in one buffer, of
//! which each pair names a range. In a plan, neighbouring lanes with one range, or each with one reader less, are groups. So
//! the cost is linear in items and readers.
//!
//! A step pulls in the wave behind the last of its readers in reverse, which is the first of them forward. Items are computed
//! before any node reads them, so their gradients are read later.

mod find;

use super::edit::{grow, kernel_id};
use super::emitter::Emitter;
use super::kernel::Pull;
use super::reverse_steps::{ContributionFields, ReverseStep};
use super::signatures::Signatures;
use crate::error::PlanError;
use crate::ids::{ContributionId, PairId, PartId, WaveId};
use crate::index_vec::IndexVec;
use crate::lower::{Shared, shared};
use crate::steps::append_step;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{Address, FieldId, Group, GroupRange, GroupRule, Place, Plan, StepOperand};
use std::ops::Range;

/// No pair.
const NO_PAIR: PairId = PairId(u32::MAX);

/// No link, no wave.
const NONE: u32 = u32::MAX;

/// Two lists that some nodes attend to, or that such lists grew from.
struct Pair {
    of: PullId,
    lists: [ValueId; 2],
    /// The pair that both lists grew from.
    before: PairId,
    /// The nodes that read the pair: the last of a linked list that descends.
    last_own: u32,
    /// All readers, descending, in the buffer.
    readers: Range<usize>,
    /// The first wave of the readers in forward order.
    wave: WaveId,
    /// The number of items of each list.
    length: u32,
    /// An earlier pair with the same list of keys.
    same_keys: PairId,
}

/// A pull of a signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PullId {
    sig: SigId,
    number: u32,
}

/// A pair of items that pulls.
struct PairLane {
    wave: WaveId,
    of: PullId,
    fields: [FieldId; 2],
    rows: [u32; 2],
    /// All nodes that attend to both, descending, in the buffer.
    readers: Range<usize>,
    /// The place of the items in the lists of the first of them, the last node.
    place: u32,
    items: [ValueId; 2],
    /// An earlier lane of the same pull and key.
    same_key: u32,
    /// The last of a linked list of the other pairs of lists that hold the items.
    others: u32,
}

/// A pair of lists that holds the items of a lane.
struct Holder {
    pair: PairId,
    place: u32,
    before: u32,
}

/// A step of a wave: the lanes of one pull whose items lie in the same fields.
struct PullStep {
    lanes: Range<usize>,
    /// The fields and first rows of the contributions, if they are needed.
    made: [Option<(FieldId, u32)>; 2],
}

/// A contribution that is pulled. It counts as one of the last node of its chain.
pub(super) struct Pulled {
    node: NodeId,
    /// The place of the item in its list.
    place: u32,
    /// The number of the contribution.
    number: ContributionId,
    pub(super) item: ValueId,
    pub(super) row: u32,
}

/// All pulls of a plan. Their memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Pulls {
    pairs: IndexVec<PairId, Pair>,
    /// Per value the last pair of which it is the list of keys.
    of_keys: Vec<PairId>,
    /// The linked lists of the readers of pairs: a node and the link before.
    own: Vec<(NodeId, u32)>,
    /// Pairs by pull, the longest lists first.
    order: Vec<PairId>,
    readers: Vec<NodeId>,
    /// In the order of steps: by wave, pull, and fields.
    lanes: Vec<PairLane>,
    /// The linked lists of the pairs of lists that hold the items of lanes, besides the first of each.
    holders: Vec<Holder>,
    /// Per value the last lane of which it is the key.
    of_key: Vec<u32>,
    steps: Vec<PullStep>,
    pulled: Vec<Pulled>,
}

impl Pulls {
    /// Finds all pairs of items that pull gradients, and gives their contributions rows.
    pub(super) fn collect(
        &mut self,
        plan: &mut Plan,
        emitter: &Emitter<'_>,
        fields: &mut ContributionFields,
    ) -> Result<(), PlanError> {
        self.pairs.clear();
        self.own.clear();
        self.readers.clear();
        self.lanes.clear();
        self.steps.clear();
        self.pulled.clear();
        let Emitter { needs, sigs, .. } = *emitter;
        let attends =
            |back: &ReverseStep| sigs[back.sig].derivative().is_some_and(|own| !own.pulls.is_empty());
        if !emitter.reverse_steps.all.iter().any(attends) {
            return Ok(());
        }
        self.find_readers(plan, emitter);
        self.order_readers();
        self.find_lanes(emitter);
        self.join_readers();
        self.lanes.sort_unstable_by_key(|lane| (lane.wave, lane.of, lane.fields, lane.rows, lane.items));
        self.allocate(plan, needs, sigs, fields)?;
        self.pulled.sort_unstable_by_key(|own| (own.node, own.place, own.number));
        Ok(())
    }

    /// The contributions of a node to the items of an operand, ascending by item and use.
    pub(super) fn ending_at<'p>(
        &'p self,
        node: NodeId,
        uses: &'p Range<usize>,
    ) -> impl Iterator<Item = &'p Pulled> {
        let first = self.pulled.partition_point(|own| own.node < node);
        let of_node = self.pulled[first..].iter().take_while(move |own| own.node == node);
        of_node.filter(|own| uses.contains(&own.number.index()))
    }

    /// The row of a contribution of a node to one item, if the chain of the item ends there.
    pub(super) fn row(&self, node: NodeId, number: usize, place: u32) -> Option<u32> {
        self.ending_at(node, &(number..number + 1)).find(|own| own.place == place).map(|own| own.row)
    }

    /// Gives the contributions of every step rows, and notes them.
    fn allocate(
        &mut self,
        plan: &mut Plan,
        needs: &[bool],
        sigs: &Signatures,
        fields: &mut ContributionFields,
    ) -> Result<(), PlanError> {
        let Self { readers, lanes, steps, pulled, .. } = self;
        let mut start = 0;
        for lanes in lanes.chunk_by(same_step) {
            let pull = pull_of(sigs, lanes[0].of);
            let mut made = [None; 2];
            for (side, made) in made.iter_mut().enumerate() {
                let Some(number) = pull.gradients[side] else { continue };
                let field = fields.get_or_add(plan, lanes[0].fields[side]);
                let first = grow(plan, field, lanes.len() as u32)?;
                *made = Some((field, first));
                for (row, lane) in (first..).zip(lanes) {
                    let item = lane.items[side];
                    if needs[item.index()] {
                        let node = readers[lane.readers.start];
                        pulled.push(Pulled { node, place: lane.place, number, item, row });
                    }
                }
            }
            steps.push(PullStep { lanes: start..start + lanes.len(), made });
            start += lanes.len();
        }
        Ok(())
    }

    /// Emits the steps that pull behind the reverse of a forward wave.
    pub(super) fn emit(&self, plan: &mut Plan, wave: WaveId, emitter: &Emitter<'_>) {
        let wave_of = |step: &PullStep| self.lanes[step.lanes.start].wave;
        let first = self.steps.partition_point(|step| wave_of(step) < wave);
        for step in self.steps[first..].iter().take_while(|step| wave_of(step) == wave) {
            let lanes = &self.lanes[step.lanes.clone()];
            let pull = pull_of(emitter.sigs, lanes[0].of);
            let kernel = kernel_id(plan, &pull.kernel);
            append_step(plan, kernel, |plan, _| {
                for side in [0, 1] {
                    let address = Address::of(&mut plan.tables, lanes.iter().map(|lane| lane.rows[side]));
                    plan.operands.push(StepOperand::of_field(lanes[0].fields[side], address));
                }
                let readers = self.write_readers(plan, lanes, pull.part, emitter);
                plan.operands.push(readers);
                let made = step.made.iter().flatten();
                plan.places.extend(made.map(|&(field, start)| Place::Rows { field, start }));
                let last = |lane: &PairLane| self.readers[lane.readers.start];
                plan.lanes.extend(lanes.iter().map(last));
            });
        }
    }

    /// Writes the rows of the readers of lanes.
    fn write_readers(
        &self,
        plan: &mut Plan,
        lanes: &[PairLane],
        part: PartId,
        emitter: &Emitter<'_>,
    ) -> StepOperand {
        let ranges = || lanes.iter().map(|lane| &lane.readers);
        let field = emitter.part_of(lanes[0].of.sig, part);
        let append = |tables: &mut Vec<u32>, readers: &Range<usize>| {
            let row = |&node: &NodeId| {
                let (back, lane) = emitter.reverse_steps.of(node).expect("readers have a reverse");
                back.parts + lane
            };
            tables.extend(self.readers[readers.clone()].iter().rev().map(row));
        };
        // Readers descend, so the first of them in graph order is at the end of a range.
        let rule = |last: &Range<usize>, next: &Range<usize>| match next == last {
            true => Some(GroupRule::All),
            false => (next.start == last.start && next.end + 1 == last.end).then_some(GroupRule::Suffix),
        };
        let mark = (plan.groups.len(), plan.tables.len());
        for Shared { end, first, rule, .. } in shared(ranges(), rule) {
            let table = plan.tables.len();
            append(&mut plan.tables, first);
            let len = (plan.tables.len() - table) as u32;
            let range = GroupRange::of_last(&mut plan.tables, table);
            plan.groups.push(Group { end, len, range, rule });
        }
        let groups = plan.groups.len() - mark.0;
        let address = if groups * size_of::<Group>() / size_of::<u32>() < lanes.len() {
            Address::of_last_groups(&mut plan.groups, &mut plan.tables, mark.0, mark.1, [])
        } else {
            plan.groups.truncate(mark.0);
            plan.tables.truncate(mark.1);
            Address::of_lists(&mut plan.tables, ranges(), append)
        };
        StepOperand::of_field(field, address)
    }
}

fn pull_of(sigs: &Signatures, of: PullId) -> &Pull {
    let derivative = sigs[of.sig].derivative().expect("signatures that pull have a derivative");
    &derivative.pulls[of.number as usize]
}

fn same_step(a: &PairLane, b: &PairLane) -> bool {
    (a.wave, a.of, a.fields) == (b.wave, b.of, b.fields)
}
