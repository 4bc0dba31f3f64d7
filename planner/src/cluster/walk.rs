//! The walk over needed nodes that numbers jobs, types and operands.

use super::arrivals::{Arrivals, BITS};
use super::clusters::Clusters;
use super::type_numbers::TypeNumbers;
use crate::context::Context;
use crate::ids::{JobId, PortId, ResultId, TypeIndex};
use crate::lists::ensure_len;
use crate::schedule::{JobOperand, OperandLists};
use autobatch_ir::graph::{GraphData, Operand};
use autobatch_ir::hash::BuildMix;
use autobatch_ir::id::{NodeId, SigId, ValueId};
use std::collections::HashSet;
use std::slice;

/// The job of values that no job computes.
const NONE: JobOperand = JobOperand::NONE;

/// Scratch memory of [`walk`].
#[derive(Debug, Default)]
pub(super) struct Memory {
    numbers: TypeNumbers,
    /// Needed sources in the order of the graph.
    pub(super) found_sources: Vec<(SigId, NodeId)>,
    sigs: Vec<SigFacts>,
    values: Vec<ValueFacts>,
    known_lists: KnownLists,
}

/// The kind of a signature's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Source,
    List,
    Job,
}

/// The facts of a signature that the walk uses.
#[derive(Clone, Copy, Debug)]
struct SigFacts {
    kind: Kind,
    /// Its first result among the results of all signatures.
    results: ResultId,
    result_count: u32,
    /// Its first operand port among those of all signatures.
    ports: PortId,
    /// How many operands a node has. Lists ignore it.
    operand_count: u32,
}

/// The facts of a value that its consumers use.
#[derive(Clone, Copy, Debug)]
struct ValueFacts {
    /// The job that computes it, or [`NONE`]. Of a list, the operand that names it, [`NONE`] if no job computes an item, or
    /// [`JobOperand::UNNAMED`].
    job: JobOperand,
    /// Its number among the results of all signatures, or [`LIST`].
    result: ResultId,
}

/// The result number of lists.
const LIST: ResultId = ResultId(u32::MAX);

impl ValueFacts {
    const UNNAMED_LIST: Self = Self { job: JobOperand::UNNAMED, result: LIST };
}

/// Numbers jobs and their operands, from the first node on whose facts may differ from the call before.
///
/// The lists that the loop writes are locals: after a write through one vector of a struct the compiler reads the others again.
pub(super) fn walk(
    context: &Context<'_>,
    needed: &[bool],
    memory: &mut Memory,
    clusters: &mut Clusters,
    first: usize,
) {
    let graph = context.graph;
    begin(graph, memory, clusters);
    let Memory { numbers, found_sources, sigs, values, known_lists, .. } = memory;
    let Clusters { jobs, ty, operand_start, operands, lists, arrivals, .. } = clusters;
    let (nodes, pool) = (graph.arena.nodes(), graph.arena.operand_pool());
    let (sigs, values) = (sigs.as_slice(), values.as_mut_slice());
    let (mut count, mut end) = (0, 0);
    // One iterator over the three lists, so that one bounds check serves all.
    let mut slots = jobs.iter_mut().zip(ty.iter_mut()).zip(operand_start.iter_mut());
    for (index, (node, is_needed)) in (first..).zip(nodes[first..].iter().zip(&needed[first..])) {
        let facts = sigs[node.sig.index()];
        let results = &mut values[node.results as usize..][..facts.result_count as usize];
        if !is_needed {
            if context.existing.has(node.results) {
                number_results(results, NONE, facts.results);
            } else if facts.kind == Kind::List {
                results.fill(ValueFacts::UNNAMED_LIST);
            }
            continue;
        }
        match facts.kind {
            Kind::List => results.fill(ValueFacts::UNNAMED_LIST),
            Kind::Source => {
                number_results(results, NONE, facts.results);
                found_sources.push((node.sig, NodeId::new(index)));
            }
            Kind::Job => {
                number_results(results, JobOperand::job(JobId(count)), facts.results);
                let ((job, ty), start) = slots.next().expect("there are at most as many jobs as nodes");
                (*job, *start) = (NodeId::new(index), end as u32);
                let own = &pool[node.operands as usize..][..facts.operand_count as usize];
                ensure_len(operands, end + own.len());
                let targets = &mut operands[end..end + own.len()];
                let ports = facts.ports..PortId(facts.ports.0 + facts.operand_count);
                let bound = match read_known(own, arrivals.known(ports), values, targets) {
                    Some((bound, read)) => {
                        end += read;
                        bound
                    }
                    None => {
                        let mut reader =
                            Reader { graph, values, arrivals, operands, lists, known_lists, first, end };
                        let bound = reader.read(own, facts.ports);
                        end = reader.end;
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
    jobs.truncate(count);
    ty.truncate(count);
    operand_start.truncate(count + 1);
    operands.truncate(end);
    numbers.give_types(&mut clusters.types);
}

/// Makes the lists long enough for all nodes and finds the facts of signatures.
fn begin(graph: &GraphData, memory: &mut Memory, clusters: &mut Clusters) {
    let (nodes, signatures) = (graph.arena.len(), graph.sigs.items());
    // The walk writes these lists before it reads them.
    clusters.jobs.resize(nodes, NodeId::new(0));
    clusters.ty.resize(nodes, TypeIndex(0));
    clusters.operand_start.resize(nodes + 1, 0);
    clusters.lists.clear();
    memory.known_lists.arrived.clear();
    memory.values.resize(graph.arena.values(), ValueFacts::UNNAMED_LIST);
    for list in memory.known_lists.named.drain(..) {
        if let Some(facts) = memory.values.get_mut(list.index()) {
            *facts = ValueFacts::UNNAMED_LIST;
        }
    }
    memory.found_sources.clear();
    memory.numbers.clear(signatures.len(), &mut clusters.types);
    memory.sigs.clear();
    let (mut first_result, mut first_port) = (0, 0);
    for signature in signatures {
        let kind = match signature.is_list() {
            true => Kind::List,
            false if signature.callee.is_source() => Kind::Source,
            false => Kind::Job,
        };
        let (result_count, operand_count) = (signature.results.len() as u32, signature.operands.len() as u32);
        let (results, ports) = (ResultId(first_result), PortId(first_port));
        memory.sigs.push(SigFacts { kind, results, result_count, ports, operand_count });
        first_result += result_count;
        first_port += operand_count;
    }
}

/// Writes the jobs that compute the operands, if each operand is known to arrive at its port, as nearly all are. Returns a bit
/// for each of the first 64 operands that are bindings, and how many jobs it wrote.
///
/// Separate from [`Reader`], so that the counters stay in registers.
#[inline]
fn read_known(
    own: &[Operand],
    known: &[u64],
    values: &[ValueFacts],
    targets: &mut [JobOperand],
) -> Option<(u64, usize)> {
    let (mut bound, mut read, known) = (0, 0, &known[..own.len()]);
    for index in 0..own.len() {
        let Some(value) = own[index].as_value() else {
            bound |= 1 << (index & 63);
            continue;
        };
        let facts = values[value.index()];
        if facts.result.0 >= BITS || known[index] >> facts.result.0 & 1 == 0 {
            return None;
        }
        // An unconditional write: whether an operand is a job is hard to predict.
        targets[read] = facts.job;
        read += usize::from(facts.job != NONE);
    }
    Some((bound, read))
}

/// Reads the operands of a job that takes a list, or a result that arrives at a port for the first time.
struct Reader<'a> {
    graph: &'a GraphData,
    values: &'a mut [ValueFacts],
    arrivals: &'a mut Arrivals,
    /// Operand jobs, up to `end`.
    operands: &'a mut Vec<JobOperand>,
    lists: &'a mut OperandLists,
    known_lists: &'a mut KnownLists,
    /// The first node of the walk.
    first: usize,
    end: usize,
}

/// The number of items from which a list is named instead of copied to the operands of its readers.
const LONG_LIST: usize = 6;

/// The lists that were read by name: long lists, and grown lists with the lists that they grew from.
#[derive(Debug, Default)]
struct KnownLists {
    /// The lists that have a name.
    named: Vec<ValueId>,
    /// The pairs of a list and a port whose arrivals are noted.
    arrived: HashSet<(ValueId, PortId), BuildMix>,
    /// Working memory: lists that wait for the name of the list that they grew from, and their items.
    grown: Vec<(ValueId, Operand)>,
}

impl Reader<'_> {
    /// Does what [`read_known`] does, for any operands.
    #[inline(never)]
    fn read(&mut self, own: &[Operand], first_port: PortId) -> u64 {
        let mut bound = 0;
        for (index, operand) in own.iter().enumerate() {
            let Some(value) = operand.as_value() else {
                bound |= 1 << (index & 63);
                continue;
            };
            let (facts, port) = (self.values[value.index()], PortId(first_port.0 + index as u32));
            if facts.result == LIST {
                self.read_list(value, port, own.len() - index);
                continue;
            }
            self.read_value(facts, port);
        }
        bound
    }

    /// Appends the elements of a list and leaves space for the `after` operands that follow.
    fn read_list(&mut self, list: ValueId, port: PortId, after: usize) {
        let node = self.graph.arena.producer(list);
        let items = self.graph.arena.operands(node);
        if items.len() >= LONG_LIST || self.graph.arena.appended(node, &self.graph.sigs).is_some() {
            return self.read_named_list(list, port, after);
        }
        ensure_len(self.operands, self.end + items.len() + after);
        for item in items.iter().filter_map(|item| item.as_value()) {
            self.read_value(self.values[item.index()], port);
        }
    }

    /// Reads a list by its name.
    fn read_named_list(&mut self, list: ValueId, port: PortId, after: usize) {
        self.note_arrivals(list, port);
        let name = self.name_of(list);
        if name != NONE {
            ensure_len(self.operands, self.end + 1 + after);
            self.operands[self.end] = name;
            self.end += 1;
        }
    }

    /// Notes once that the items of a list, and of the lists that it grew from, arrive at a port.
    fn note_arrivals(&mut self, mut list: ValueId, port: PortId) {
        let arena = &self.graph.arena;
        // The storage of a growing plan, the only one whose walk begins later, does not depend on arrivals.
        while arena.producer(list).index() >= self.first && self.known_lists.arrived.insert((list, port)) {
            let node = arena.producer(list);
            let grown = arena.appended(node, &self.graph.sigs);
            let items =
                grown.as_ref().map_or_else(|| arena.operands(node), |(_, item)| slice::from_ref(item));
            for item in items.iter().filter_map(|item| item.as_value()) {
                self.arrivals.add(port, self.values[item.index()].result);
            }
            let Some((from, _)) = grown else { return };
            list = from;
        }
    }

    /// The operand that names a list, which is listed when it is asked for first; [`NONE`] if no job computes an item.
    fn name_of(&mut self, list: ValueId) -> JobOperand {
        let arena = &self.graph.arena;
        let KnownLists { named, grown, .. } = &mut *self.known_lists;
        let mut at = list;
        let mut name = loop {
            let known = self.values[at.index()].job;
            if known != JobOperand::UNNAMED {
                break known;
            }
            let node = arena.producer(at);
            if node.index() < self.first {
                // No job comes before the first node of the walk.
                break NONE;
            }
            let Some((from, item)) = arena.appended(node, &self.graph.sigs) else {
                let jobs = arena.operands(node).iter().filter_map(|item| item.as_value());
                let mut jobs =
                    jobs.map(|item| self.values[item.index()].job).filter(|&job| job != NONE).peekable();
                let name = if jobs.peek().is_some() { self.lists.push(jobs) } else { NONE };
                self.values[at.index()].job = name;
                named.push(at);
                break name;
            };
            grown.push((at, item));
            at = from;
        };
        while let Some((list, item)) = grown.pop() {
            let job = item.as_value().map_or(NONE, |item| self.values[item.index()].job);
            if job != NONE {
                name = self.lists.push([name, job].into_iter().filter(|&item| item != NONE));
            }
            self.values[list.index()].job = name;
            named.push(list);
        }
        name
    }

    #[inline]
    fn read_value(&mut self, facts: ValueFacts, port: PortId) {
        self.arrivals.add(port, facts.result);
        self.operands[self.end] = facts.job;
        self.end += usize::from(facts.job != NONE);
    }
}

/// Notes the job that computes the values, and that they are the results from `first` on. One and two results, nearly all cases,
/// need no loop.
#[inline]
fn number_results(values: &mut [ValueFacts], job: JobOperand, first: ResultId) {
    let facts = |place: u32| ValueFacts { job, result: ResultId(first.0 + place) };
    match values {
        [one] => *one = facts(0),
        [one, two] => [*one, *two] = [facts(0), facts(1)],
        many => (0..).zip(many).for_each(|(place, value)| *value = facts(place)),
    }
}
