//! Clustering: which nodes are needed, and which may share a batch.
//!
//! *Needs* a verified graph and the values that are wanted. *Ensures* a job for every node
//! that a wanted value depends on and that takes a step of its own, with a dense type number: two
//! jobs of one type have one signature and take each index from the same kind of place (bound or
//! computed), so one kernel with one kind of operand serves them all. Lists are no jobs: their
//! elements become operands. Inputs, constants and parameters are no jobs either: they wait for
//! nothing, so they are executed first, a signature at a time.
//!
//! While operands are walked, the storage pass is told which results meet where: it needs no walk of
//! its own. What is asked of a producer again and again lies in one flat array, by value.
//!
//! *Cost.* Linear in nodes and operands; of a graph that grows, in what was emitted since the first that is needed now.

mod names;
mod types;

use crate::grow::Placed;
use crate::room::make_room;
use crate::schedule::Problem;
use crate::storage::Storage;
use autobatch_ir::graph::{Callee, GraphData, Op, Operand};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use types::TypeNumbers;

/// No job.
pub(crate) const NONE: u32 = u32::MAX;

/// The jobs of a graph, ready for a scheduler.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// The node of each job, ascending.
    pub(crate) jobs: Vec<NodeId>,
    /// The type of each job.
    pub(crate) ty: Vec<u32>,
    /// Where each job's operands begin, and where the last one's end.
    pub(crate) operand_start: Vec<u32>,
    /// Operand jobs.
    pub(crate) operands: Vec<u32>,
    /// Jobs that must be batches of their own, ascending.
    pub(crate) alone: Vec<u32>,
    numbers: TypeNumbers,
    /// Needed sources, a signature at a time.
    sources: Vec<NodeId>,
    /// The same in the order of the graph.
    found_sources: Vec<(SigId, NodeId)>,
    /// Per signature where its sources begin, and where the last one's end.
    source_start: Vec<u32>,
    needed: Vec<bool>,
    /// Of a plan that grows: its number, and the first node of what was needed last. What these lists say
    /// of earlier ones is so still: they are not needed, and no job makes them.
    grown: Option<(u64, usize)>,
    /// What of it is there already and read, a value as often as it is.
    reused: Vec<ValueId>,
    /// Nodes whose operands are still to be looked at.
    pending: Vec<NodeId>,
    sigs: Vec<SigFacts>,
    values: Vec<ValueFacts>,
}

/// What a node of a signature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Source,
    List,
    Job,
}

/// What the walk asks of a signature.
#[derive(Clone, Copy, Debug)]
struct SigFacts {
    kind: Kind,
    /// The number of its first result among the results of all signatures, and how many it has.
    results: u32,
    result_count: u32,
    /// The number of its first operand among the operands of all signatures, and how many it has: lists have any number.
    operands: u32,
    operand_count: u32,
}

/// What consumers ask of a value.
#[derive(Clone, Copy, Debug)]
struct ValueFacts {
    /// The job that makes it, or [`NONE`].
    job: u32,
    /// Which result of which signature it is, or [`LIST`].
    result: u32,
}

/// The result number of lists.
const LIST: u32 = u32::MAX;

/// Whether a node only names numbers that are there before the first step.
pub(crate) fn is_source(callee: Callee) -> bool {
    matches!(callee, Callee::Op(Op::Input(_) | Op::Fill { .. } | Op::Param))
}

impl Clusters {
    /// Fills the clusters anew, and tells `storage` which results meet; memory is kept.
    ///
    /// `split` as for [`Storage::begin`]. For what is `there` already nothing needs to be done.
    pub(crate) fn fill(
        &mut self,
        graph: &GraphData,
        wanted: &[ValueId],
        storage: &mut Storage,
        split: bool,
        there: &Placed,
    ) {
        self.reused.clear();
        let first = match there.plan() {
            None => {
                self.mark_needed(graph, wanted);
                0
            }
            Some(plan) => self.mark_new(graph, wanted, there, plan),
        };
        self.clear(graph);
        storage.begin(graph, split);
        self.walk(graph, storage, there, first);
        self.sort_sources(graph);
        let mut alone = std::mem::take(&mut self.alone);
        alone.clear();
        alone.extend(graph.alone.iter().filter_map(|&node| self.job(node)));
        alone.sort_unstable();
        alone.dedup();
        self.alone = alone;
    }

    /// Numbers jobs and their operands. What it writes lies in locals, because a write through one vector makes the compiler
    /// read all others again.
    fn walk(&mut self, graph: &GraphData, storage: &mut Storage, there: &Placed, first: usize) {
        let (nodes, pool) = (graph.arena.nodes(), graph.arena.operand_pool());
        let Self { jobs, ty, operand_start, operands, numbers, found_sources, needed, sigs, values, .. } =
            self;
        let (needed, sigs, values) = (needed.as_slice(), sigs.as_slice(), values.as_mut_slice());
        let (mut count, mut end) = (0, 0);
        // Side by side, so that one look says that there is room in all.
        let mut rooms = jobs.iter_mut().zip(ty.iter_mut()).zip(operand_start.iter_mut());
        for (index, (node, is_needed)) in (first..).zip(nodes[first..].iter().zip(&needed[first..])) {
            let facts = sigs[node.sig.index()];
            let results = &mut values[node.results as usize..][..facts.result_count as usize];
            if !is_needed {
                if there.has(node.results) {
                    number_results(results, NONE, facts.results);
                }
                continue;
            }
            match facts.kind {
                Kind::List => results.fill(ValueFacts { job: NONE, result: LIST }),
                Kind::Source => {
                    number_results(results, NONE, facts.results);
                    found_sources.push((node.sig, NodeId::new(index)));
                }
                Kind::Job => {
                    number_results(results, count, facts.results);
                    let ((job, ty), start) = rooms.next().expect("a job is a node");
                    (*job, *start) = (NodeId::new(index), end as u32);
                    let own = &pool[node.operands as usize..][..facts.operand_count as usize];
                    make_room(operands, end + own.len());
                    let slots = &mut operands[end..end + own.len()];
                    let place = facts.operands as usize;
                    let bound = match take_known(own, storage.known(place, own.len()), values, slots) {
                        Some((bound, kept)) => {
                            end += kept;
                            bound
                        }
                        None => {
                            let mut reads = Reads { graph, values, storage, operands, end };
                            let bound = reads.take(own, place);
                            end = reads.end;
                            bound
                        }
                    };
                    *ty = numbers.of(node.sig, own, bound);
                    count += 1;
                }
            }
        }
        let count = count as usize;
        operand_start[count] = end as u32;
        self.jobs.truncate(count);
        self.ty.truncate(count);
        self.operand_start.truncate(count + 1);
        self.operands.truncate(end);
    }

    /// Sources by signature, of each in the order of the graph.
    fn sort_sources(&mut self, graph: &GraphData) {
        let Self { found_sources, sources, source_start, .. } = self;
        source_start.clear();
        source_start.resize(graph.sigs.items().len() + 2, 0);
        for (sig, _) in &*found_sources {
            source_start[sig.index() + 2] += 1;
        }
        for at in 2..source_start.len() {
            source_start[at] += source_start[at - 1];
        }
        sources.clear();
        sources.extend(found_sources.iter().map(|source| source.1));
        for &(sig, node) in &*found_sources {
            let at = &mut source_start[sig.index() + 1];
            sources[*at as usize] = node;
            *at += 1;
        }
        source_start.pop();
    }

    /// The needed sources of each signature that has any.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (SigId, &[NodeId])> {
        let own = |(sig, ends): (usize, &[u32])| {
            (SigId::new(sig), &self.sources[ends[0] as usize..ends[1] as usize])
        };
        self.source_start.windows(2).enumerate().map(own).filter(|(_, nodes)| !nodes.is_empty())
    }

    /// The job of a node, if it is one.
    pub(crate) fn job(&self, node: NodeId) -> Option<u32> {
        self.jobs.binary_search(&node).ok().map(|job| job as u32)
    }

    /// The signature of each type.
    pub(crate) fn types(&self) -> &[SigId] {
        self.numbers.types()
    }

    /// What a scheduler needs to know.
    pub(crate) fn problem(&self) -> Problem<'_> {
        let types = self.types().len() as u32;
        Problem::trusted(types, &self.ty, &self.alone, &self.operand_start, &self.operands)
    }

    /// Forgets everything but what is needed.
    fn clear(&mut self, graph: &GraphData) {
        let (nodes, sigs) = (graph.arena.len(), graph.sigs.items());
        // What is needed is written before it is read.
        self.jobs.resize(nodes, NodeId::new(0));
        self.ty.resize(nodes, 0);
        self.operand_start.resize(nodes + 1, 0);
        self.values.resize(graph.arena.values(), ValueFacts { job: NONE, result: LIST });
        self.found_sources.clear();
        self.numbers.clear(sigs.len());
        self.sigs.clear();
        let (mut results, mut operands) = (0, 0);
        for signature in sigs {
            let kind = match signature.is_list() {
                true => Kind::List,
                false if is_source(signature.callee) => Kind::Source,
                false => Kind::Job,
            };
            let (result_count, operand_count) =
                (signature.results.len() as u32, signature.operands.len() as u32);
            self.sigs.push(SigFacts { kind, results, result_count, operands, operand_count });
            results += result_count;
            operands += operand_count;
        }
    }

    /// Marks what is needed of a graph that grows and is not there; gives the first node of which these lists may say
    /// something else by now.
    fn mark_new(&mut self, graph: &GraphData, wanted: &[ValueId], there: &Placed, plan: u64) -> usize {
        let Self { needed, pending, reused, grown, .. } = self;
        let last = grown.filter(|grown| grown.0 == plan).map_or(0, |grown| grown.1);
        needed.truncate(last);
        needed.resize(graph.arena.len(), false);
        let mut first = needed.len();
        let mut mark = |node: NodeId, pending: &mut Vec<NodeId>| {
            if !std::mem::replace(&mut needed[node.index()], true) {
                first = first.min(node.index());
                pending.push(node);
            }
        };
        for &value in wanted.iter().filter(|&&value| there.get(value).is_none()) {
            mark(graph.arena.producer(value), pending);
        }
        while let Some(node) = pending.pop() {
            for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                match there.get(value) {
                    Some(_) => reused.push(value),
                    None => mark(graph.arena.producer(value), pending),
                }
            }
        }
        *grown = Some((plan, first));
        first.min(last)
    }

    /// What the needed nodes of a graph that grows read and is there, a value as often as it is read.
    pub(crate) fn reused(&self) -> &[ValueId] {
        &self.reused
    }

    /// Marks what is needed. That nearly always everything is shows without asking whether a reader is needed itself: where every
    /// node is wanted or read by a later one, the last is wanted, and so all that it reads is needed, and so on backwards.
    fn mark_needed(&mut self, graph: &GraphData, wanted: &[ValueId]) {
        self.grown = None;
        self.mark_wanted(graph, wanted);
        if let Some(last) = graph.arena.values().checked_sub(1).map(ValueId::new) {
            let needed = self.needed.as_mut_slice();
            let maker = graph.arena.producer(last).index();
            let is_wanted = needed[maker];
            for operand in graph.arena.operand_pool() {
                // Written always, for what names no value as if it named the last, which nobody reads: which operands do is hard to
                // predict.
                needed[graph.arena.producer(operand.as_value().unwrap_or(last)).index()] = true;
            }
            needed[maker] = is_wanted;
        }
        // All are looked at: nearly always all are needed, and so many are taken at a time.
        if !self.needed.iter().fold(true, |all, &needed| all & needed) {
            self.mark_wanted(graph, wanted);
            self.mark_backwards(graph);
        }
    }

    /// Marks what makes the wanted values and nothing else.
    fn mark_wanted(&mut self, graph: &GraphData, wanted: &[ValueId]) {
        self.needed.clear();
        self.needed.resize(graph.arena.len(), false);
        for &value in wanted {
            self.needed[graph.arena.producer(value).index()] = true;
        }
    }

    /// Marks what the marked nodes read.
    fn mark_backwards(&mut self, graph: &GraphData) {
        let (nodes, pool) = (graph.arena.nodes(), graph.arena.operand_pool());
        let needed = self.needed.as_mut_slice();
        let mut end = pool.len();
        for (index, node) in nodes.iter().enumerate().rev() {
            let start = node.operands as usize;
            if needed[index] {
                for value in pool[start..end].iter().filter_map(|operand| operand.as_value()) {
                    needed[graph.arena.producer(value).index()] = true;
                }
            }
            end = start;
        }
    }
}

/// Writes the jobs that make the operands, if all of these were met before at the same places, as nearly all are. Gives a bit
/// for each of the first 64 operands that are bound numbers, and how many jobs there are.
///
/// Apart from [`Reads`], so that what the walk counts stays in registers.
#[inline]
fn take_known(
    own: &[Operand],
    known: &[u64],
    values: &[ValueFacts],
    slots: &mut [u32],
) -> Option<(u64, usize)> {
    let (mut bound, mut kept, known) = (0, 0, &known[..own.len()]);
    for place in 0..own.len() {
        let Some(value) = own[place].as_value() else {
            bound |= 1 << (place & 63);
            continue;
        };
        let facts = values[value.index()];
        if facts.result >= 64 || known[place] >> facts.result & 1 == 0 {
            return None;
        }
        // Written always and kept by a sum: which operands are jobs is hard to predict.
        slots[kept] = facts.job;
        kept += usize::from(facts.job != NONE);
    }
    Some((bound, kept))
}

/// The operands of a job that reads a list, or what did not meet before.
struct Reads<'a> {
    graph: &'a GraphData,
    values: &'a [ValueFacts],
    storage: &'a mut Storage,
    /// Operand jobs, as far as `end`.
    operands: &'a mut Vec<u32>,
    end: usize,
}

impl Reads<'_> {
    /// As [`take_known`], whatever is met.
    #[inline(never)]
    fn take(&mut self, own: &[Operand], first_place: usize) -> u64 {
        let mut bound = 0;
        for (place, operand) in own.iter().enumerate() {
            let Some(value) = operand.as_value() else {
                bound |= 1 << (place & 63);
                continue;
            };
            let facts = self.values[value.index()];
            if facts.result == LIST {
                self.take_list(value, first_place + place, own.len() - place);
                continue;
            }
            self.take_one(facts, first_place + place);
        }
        bound
    }

    /// Appends the elements of a list, and leaves room for the operands after it.
    fn take_list(&mut self, list: ValueId, place: usize, after: usize) {
        let items = self.graph.arena.operands(self.graph.arena.producer(list));
        make_room(self.operands, self.end + items.len() + after);
        for item in items.iter().filter_map(|item| item.as_value()) {
            self.take_one(self.values[item.index()], place);
        }
    }

    #[inline]
    fn take_one(&mut self, facts: ValueFacts, place: usize) {
        self.storage.meet(place, facts.result);
        self.operands[self.end] = facts.job;
        self.end += usize::from(facts.job != NONE);
    }
}

/// Says which job makes the values, and that they are the results from `first` on. Nearly always they are one or two, for which a
/// loop is long.
#[inline]
fn number_results(values: &mut [ValueFacts], job: u32, first: u32) {
    let facts = |result: u32| ValueFacts { job, result };
    match values {
        [one] => *one = facts(first),
        [one, two] => [*one, *two] = [facts(first), facts(first + 1)],
        many => (first..).zip(many).for_each(|(result, value)| *value = facts(result)),
    }
}
