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
use crate::ids::{ContributionId, PairId, WaveId};
use crate::index_vec::IndexVec;
use crate::lists::{Groups, group};
use crate::lower::{Shared, shared};
use crate::steps::append_step;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{Address, FieldId, Group, GroupRange, GroupRule, Place, Plan, StepOperand};
use std::collections::HashMap;
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

impl PairLane {
    fn step_key(&self) -> StepKey {
        let Self { wave, of, fields, .. } = *self;
        StepKey { wave, of, fields }
    }
}

/// The things that the lanes of a step have in common: their wave, their pull, and the fields of their items. Steps are ordered by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct StepKey {
    wave: WaveId,
    of: PullId,
    fields: [FieldId; 2],
}

/// A step of a wave.
struct PullStep {
    key: StepKey,
    /// Its lanes in the order of all steps.
    lanes: Range<usize>,
    /// The fields and first rows of the contributions, if they are needed.
    made: [Option<(FieldId, u32)>; 2],
}

/// A contribution that is pulled. It counts as one of the last node of its chain.
#[derive(Clone, Copy)]
pub(super) struct Pulled {
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
    /// Pairs by pull, the longest lists first, and the start of each signature among them.
    order: Vec<PairId>,
    order_starts: Vec<u32>,
    readers: Vec<NodeId>,
    lanes: Vec<PairLane>,
    /// The linked lists of the pairs of lists that hold the items of lanes, besides the first of each.
    holders: Vec<Holder>,
    /// Per value the last lane of which it is the key.
    of_key: Vec<u32>,
    steps: Vec<PullStep>,
    /// The lanes by step, those of a step by row, and the start of each step among them.
    lane_order: Vec<u32>,
    step_starts: Vec<u32>,
    /// Per node the contributions that end there, by place and number.
    pulled: Groups<Pulled>,
    ends: Vec<(NodeId, Pulled)>,
    /// Steps by what their lanes have in common, and per lane its step, as lanes were found.
    step_numbers: HashMap<StepKey, u32>,
    step_of_lane: Vec<u32>,
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
        let Emitter { needs, sigs, .. } = *emitter;
        let attends =
            |back: &ReverseStep| sigs[back.sig].derivative().is_some_and(|own| !own.pulls.is_empty());
        if !emitter.reverse_steps.all.iter().any(attends) {
            return Ok(());
        }
        self.find_readers(plan, emitter);
        self.order_readers(emitter.input.graph.sigs.items().len());
        self.find_lanes(emitter);
        self.join_readers();
        self.find_steps();
        self.allocate(plan, needs, sigs, fields)?;
        let ends = self.ends.iter().map(|&(node, own)| (node.index(), own));
        self.pulled.fill(emitter.input.graph.arena.len(), ends);
        self.pulled.sort_each_by_key(|own| (own.place, own.number));
        Ok(())
    }

    /// Groups the lanes by step, and orders those of a step by row.
    fn find_steps(&mut self) {
        let Self { lanes, steps, lane_order, step_starts, step_numbers, step_of_lane, .. } = self;
        step_numbers.clear();
        step_of_lane.clear();
        let mut latest = None;
        for lane in &*lanes {
            let key = lane.step_key();
            // Lanes of one step are mostly found one after the other.
            let known = latest.filter(|&(known, _)| known == key).map(|(_, number)| number);
            let next = step_numbers.len() as u32;
            let number = known.unwrap_or_else(|| *step_numbers.entry(key).or_insert(next));
            latest = Some((key, number));
            step_of_lane.push(number);
        }
        let mut found: Vec<_> = step_numbers.iter().map(|(&key, &number)| (key, number)).collect();
        found.sort_unstable();
        let mut rank = vec![0; found.len()];
        (0..).zip(&found).for_each(|(place, &(_, number))| rank[number as usize] = place);
        let of_step = step_of_lane.iter().map(|&number| rank[number as usize]);
        group(found.len(), of_step.zip(0..), step_starts, lane_order);
        for (&(key, _), ends) in found.iter().zip(step_starts.windows(2)) {
            let own = ends[0] as usize..ends[1] as usize;
            lane_order[own.clone()].sort_unstable_by_key(|&lane| {
                let PairLane { rows, items, .. } = &lanes[lane as usize];
                (*rows, *items)
            });
            steps.push(PullStep { key, lanes: own, made: [None; 2] });
        }
    }

    /// The contributions of a node to the items of an operand, ascending by item and use.
    pub(super) fn ending_at<'p>(
        &'p self,
        node: NodeId,
        uses: &'p Range<usize>,
    ) -> impl Iterator<Item = &'p Pulled> {
        self.pulled.of(node.index()).iter().filter(|own| uses.contains(&own.number.index()))
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
        let Self { readers, lanes, steps, lane_order, ends, .. } = self;
        ends.clear();
        for PullStep { key, lanes: own, made } in steps {
            let pull = pull_of(sigs, key.of);
            for (side, made) in made.iter_mut().enumerate() {
                let Some(number) = pull.gradients[side] else { continue };
                let field = fields.get_or_add(plan, key.fields[side]);
                let first = grow(plan, field, own.len() as u32)?;
                *made = Some((field, first));
                for (row, &lane) in (first..).zip(&lane_order[own.clone()]) {
                    let lane = &lanes[lane as usize];
                    let item = lane.items[side];
                    if needs[item.index()] {
                        let node = readers[lane.readers.start];
                        ends.push((node, Pulled { place: lane.place, number, item, row }));
                    }
                }
            }
        }
        Ok(())
    }

    /// Emits the steps that pull behind the reverse of a forward wave.
    pub(super) fn emit(&self, plan: &mut Plan, wave: WaveId, emitter: &Emitter<'_>) {
        let first = self.steps.partition_point(|step| step.key.wave < wave);
        for step in self.steps[first..].iter().take_while(|step| step.key.wave == wave) {
            let of_step = &self.lane_order[step.lanes.clone()];
            let lanes = of_step.iter().map(|&lane| &self.lanes[lane as usize]);
            let pull = pull_of(emitter.sigs, step.key.of);
            let kernel = kernel_id(plan, &pull.kernel);
            append_step(plan, kernel, |plan, _| {
                for side in [0, 1] {
                    let address = Address::of(&mut plan.tables, lanes.clone().map(|lane| lane.rows[side]));
                    plan.operands.push(StepOperand::of_field(step.key.fields[side], address));
                }
                let field = emitter.part_of(step.key.of.sig, pull.part);
                let readers = lanes.clone().map(|lane| &lane.readers);
                let address = self.write_readers(plan, readers, emitter);
                plan.operands.push(StepOperand::of_field(field, address));
                let made = step.made.iter().flatten();
                plan.places.extend(made.map(|&(field, start)| Place::Rows { field, start }));
                let last = |lane: &PairLane| self.readers[lane.readers.start];
                plan.lanes.extend(lanes.clone().map(last));
            });
        }
    }

    /// Writes the rows of the readers of lanes.
    fn write_readers<'p>(
        &self,
        plan: &mut Plan,
        ranges: impl ExactSizeIterator<Item = &'p Range<usize>> + Clone,
        emitter: &Emitter<'_>,
    ) -> Address {
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
        for Shared { end, first, rule, .. } in shared(ranges.clone(), rule) {
            let table = plan.tables.len();
            append(&mut plan.tables, first);
            let len = (plan.tables.len() - table) as u32;
            let range = GroupRange::of_last(&mut plan.tables, table);
            plan.groups.push(Group { end, len, range, rule });
        }
        let groups = plan.groups.len() - mark.0;
        if groups * size_of::<Group>() / size_of::<u32>() < ranges.len() {
            return Address::of_last_groups(&mut plan.groups, &mut plan.tables, mark.0, mark.1, []);
        }
        plan.groups.truncate(mark.0);
        plan.tables.truncate(mark.1);
        Address::of_lists(&mut plan.tables, ranges, append)
    }
}

fn pull_of(sigs: &Signatures, of: PullId) -> &Pull {
    let derivative = sigs[of.sig].derivative().expect("signatures that pull have a derivative");
    &derivative.pulls[of.number as usize]
}
