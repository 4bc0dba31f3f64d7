//! Finds the pairs of lists, their readers, and the pairs of items that pull.

use super::{Holder, NO_PAIR, NONE, Pair, PairLane, PullId, Pulls};
use crate::differentiate::emitter::Emitter;
use crate::differentiate::input::Input;
use crate::ids::{PairId, WaveId};
use crate::lists::group;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::Plan;
use std::borrow::Cow;
use std::ops::Range;

impl Pulls {
    /// Finds all pairs of lists that some node attends to or that such lists grew from, and the nodes that read each.
    pub(super) fn find_readers(&mut self, plan: &Plan, emitter: &Emitter<'_>) {
        let Emitter { input, sigs, reverse_steps, .. } = *emitter;
        let graph = input.graph;
        self.of_keys.clear();
        self.of_keys.resize(graph.arena.values(), NO_PAIR);
        // Neighbouring nodes mostly read one pair.
        let mut latest: Vec<(PullId, PairId)> = Vec::new();
        for node in graph.arena.ids() {
            let Some((back, _)) = reverse_steps.of(node) else { continue };
            let Some(derivative) = sigs[back.sig].derivative() else { continue };
            if derivative.pulls.is_empty() {
                continue;
            }
            let wave = WaveId(plan.waves.partition_point(|&end| end as usize <= back.step) as u32);
            let operands = graph.arena.operands(node);
            for (number, pull) in (0..).zip(&derivative.pulls) {
                let [Some(keys), Some(values)] = pull.lists.map(|list| operands[list as usize].as_value())
                else {
                    continue;
                };
                let (of, lists) = (PullId { sig: back.sig, number }, [keys, values]);
                let known = latest
                    .get(number as usize)
                    .filter(|&&(own, pair)| own == of && self.pairs[pair].lists == lists);
                let pair = known.map_or_else(|| self.pair(graph, of, lists), |known| known.1);
                latest.resize(latest.len().max(number as usize + 1), (of, pair));
                latest[number as usize] = (of, pair);
                let own = &mut self.pairs[pair];
                own.wave = own.wave.min(wave);
                self.own.push((node, own.last_own));
                own.last_own = self.own.len() as u32 - 1;
            }
        }
    }

    /// The number of a pair. Adds it, and all pairs that its lists grew from.
    fn pair(&mut self, graph: &GraphData, of: PullId, mut lists: [ValueId; 2]) -> PairId {
        let (mut first, mut after) = (None, None::<PairId>);
        loop {
            let next = self.pairs.next_id();
            let last = self.of_keys[lists[0].index()];
            let mut number = last;
            while let Some(pair) = self.pairs.get(number).filter(|pair| (pair.of, pair.lists) != (of, lists))
            {
                number = pair.same_keys;
            }
            if number == NO_PAIR {
                number = next;
            }
            let first = *first.get_or_insert(number);
            if let Some(after) = after {
                self.pairs[after].before = number;
            }
            if number < next {
                return first;
            }
            let (before, readers, wave) = (NO_PAIR, 0..0, WaveId(NONE));
            let same_keys = std::mem::replace(&mut self.of_keys[lists[0].index()], next);
            let last_own = NONE;
            self.pairs.push(Pair { of, lists, before, last_own, readers, wave, length: 0, same_keys });
            let Some(grown_from) = graph.arena.grown_together(lists, &graph.sigs) else { return first };
            (lists, after) = (grown_from, Some(number));
        }
    }

    /// Gives every pair its readers. Pairs belong to pulls of this many signatures.
    pub(super) fn order_readers(&mut self, signatures: usize) {
        let Self { pairs, own, order, order_starts, readers, .. } = self;
        // Pairs are mostly found in the order of their lists, so those of a signature are nearly sorted.
        let latest_first = pairs.ids().rev().map(|pair| (pairs[pair].of.sig.index(), pair));
        group(signatures, latest_first, order_starts, order);
        for ends in order_starts.windows(2) {
            // A list comes behind the list that it grew from.
            order[ends[0] as usize..ends[1] as usize].sort_unstable_by_key(|&pair| {
                let Pair { of, lists, .. } = &pairs[pair];
                (of.number, std::cmp::Reverse(*lists))
            });
        }
        for &number in &*order {
            let pair = &pairs[number];
            let (from_longer, before) = (pair.readers.clone(), pair.before);
            // The readers of a longer pair lie at the end of the buffer, if one pair grew from this.
            let start = match from_longer.end == readers.len() {
                true if !from_longer.is_empty() => from_longer.start,
                _ => {
                    let start = readers.len();
                    readers.extend_from_within(from_longer);
                    start
                }
            };
            let own_start = readers.len();
            let mut link = pair.last_own;
            while let Some(&(node, earlier)) = own.get(link as usize) {
                readers.push(node);
                link = earlier;
            }
            // The readers of a shorter pair may not all be before those of the longer one.
            let mut all = start..readers.len();
            if all.contains(&own_start) && own_start > start && readers[own_start - 1] < readers[own_start] {
                all = sorted_copy(readers, [all, 0..0]);
            }
            let wave = pair.wave;
            pairs[number].readers = all.clone();
            let Some(grown_from) = pairs.get_mut(before) else { continue };
            grown_from.wave = grown_from.wave.min(wave);
            // Several pairs may have grown from one.
            grown_from.readers = match grown_from.readers.is_empty() {
                true => all,
                false => sorted_copy(readers, [grown_from.readers.clone(), all]),
            };
        }
    }

    /// Adds a lane for every pair of items of which one needs a gradient, and notes every pair of lists that was the first to
    /// hold it.
    pub(super) fn find_lanes(&mut self, emitter: &Emitter<'_>) {
        let Emitter { input: &Input { graph, places, .. }, needs, .. } = *emitter;
        let Self { pairs, lanes, order, of_key, holders, .. } = self;
        of_key.clear();
        of_key.resize(graph.arena.values(), NONE);
        holders.clear();
        let (mut first_lane, mut pull) = (0, None);
        // A list comes behind the list that it grew from.
        for &number in order.iter().rev() {
            let pair = &pairs[number];
            if pull != Some(pair.of) {
                (first_lane, pull) = (lanes.len(), Some(pair.of));
            }
            let first = pairs.get(pair.before).map_or(0, |before| before.length);
            let is_grown = pair.before != NO_PAIR;
            let [keys, values] = pair.lists.map(|list| {
                let appended = || graph.arena.appended(graph.arena.producer(list), &graph.sigs);
                match is_grown.then(appended).flatten() {
                    Some((_, item)) => Cow::Owned(vec![item]),
                    None => graph.arena.items(list, &graph.sigs),
                }
            });
            pairs[number].length = first + keys.len() as u32;
            let pair = &pairs[number];
            for (place, (key, value)) in (first..).zip(keys.iter().zip(&*values)) {
                let [Some(key), Some(value)] = [key.as_value(), value.as_value()] else { continue };
                let items = [key, value];
                if !items.iter().any(|item| needs[item.index()]) {
                    continue;
                }
                let same_key = of_key[key.index()];
                let mut known = same_key;
                while let Some(lane) = lanes.get(known as usize).filter(|_| known as usize >= first_lane) {
                    if lane.items == items {
                        break;
                    }
                    known = lane.same_key;
                }
                if known != NONE && known as usize >= first_lane {
                    let lane = &mut lanes[known as usize];
                    holders.push(Holder { pair: number, place, before: lane.others });
                    lane.others = holders.len() as u32 - 1;
                    continue;
                }
                of_key[key.index()] = lanes.len() as u32;
                let [of_key, of_value] = items.map(|item| places.of(item));
                lanes.push(PairLane {
                    wave: pair.wave,
                    of: pair.of,
                    fields: [of_key.0, of_value.0],
                    rows: [of_key.1.0, of_value.1.0],
                    readers: pair.readers.clone(),
                    place,
                    items,
                    same_key,
                    others: NONE,
                });
            }
        }
    }

    /// Gives the lanes whose items several pairs of lists hold the readers of all of them.
    pub(super) fn join_readers(&mut self) {
        let Self { pairs, lanes, readers, holders, .. } = self;
        for lane in lanes.iter_mut().filter(|lane| lane.others != NONE) {
            let start = readers.len();
            readers.extend_from_within(lane.readers.clone());
            let mut last = (readers[start], lane.place);
            let mut link = lane.others;
            while let Some(&Holder { pair, place, before }) = holders.get(link as usize) {
                let pair = &pairs[pair];
                readers.extend_from_within(pair.readers.clone());
                last = last.max((readers[pair.readers.start], place));
                lane.wave = lane.wave.min(pair.wave);
                link = before;
            }
            readers[start..].sort_unstable_by_key(|&node| std::cmp::Reverse(node));
            (lane.readers, lane.place) = (start..readers.len(), last.1);
        }
    }
}

/// Appends the readers of two ranges in descending order; gives their range.
fn sorted_copy(readers: &mut Vec<NodeId>, ranges: impl IntoIterator<Item = Range<usize>>) -> Range<usize> {
    let start = readers.len();
    ranges.into_iter().for_each(|range| readers.extend_from_within(range));
    readers[start..].sort_unstable_by_key(|&node| std::cmp::Reverse(node));
    start..readers.len()
}
