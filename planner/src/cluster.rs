//! Clustering: which applications are needed, and which may share a batch.
//!
//! *Needs* a verified graph and the values that are wanted. *Ensures* a node for every application
//! that a wanted value depends on and that takes a step of its own, with a dense type number: two
//! nodes of one type have one signature and take each index from the same kind of place (bound or
//! computed), so one kernel with one kind of operand serves them all. Lists are no nodes: their
//! elements become operands. Inputs, constants and parameters are no nodes either: they wait for
//! nothing, so they are played first, a signature at a time.
//!
//! While operands are walked, the storage pass is told which results meet where: it needs no walk of
//! its own. What is asked of a producer again and again lies in one flat array, by value.
//!
//! *Cost.* Linear in applications and operands.

use crate::grow::Placed;
use crate::schedule::Problem;
use crate::storage::Storage;
use autobatch_ir::graph::{Callee, GraphData, Op, Operand};
use autobatch_ir::id::{AppId, SigId, ValueId};
use std::collections::BTreeMap;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// The nodes of a graph, ready for a scheduler.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// The application of each node, ascending.
    pub(crate) nodes: Vec<AppId>,
    /// The node of each application, or [`NONE`].
    pub(crate) node_of: Vec<u32>,
    /// The type of each node.
    pub(crate) ty: Vec<u32>,
    /// The signature of each type.
    pub(crate) types: Vec<SigId>,
    /// Where each node's operands begin, and where the last one's end.
    pub(crate) operand_start: Vec<u32>,
    /// Operand nodes.
    pub(crate) operands: Vec<u32>,
    /// Nodes that must be batches of their own, ascending.
    pub(crate) alone: Vec<u32>,
    /// Needed sources, a signature at a time.
    pub(crate) sources: Vec<Vec<AppId>>,
    needed: Vec<bool>,
    type_of_sig: Vec<u32>,
    /// The last places of bound numbers seen with each signature, and the type they have.
    last_mixed: Vec<(u64, u32)>,
    sigs: Vec<SigFacts>,
    values: Vec<ValueFacts>,
    source_of_sig: Vec<u32>,
}

/// What an application of a signature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Source,
    List,
    Node,
}

/// What the walk asks of a signature.
#[derive(Clone, Copy, Debug)]
struct SigFacts {
    kind: Kind,
    /// The number of its first result among the results of all signatures.
    results: u32,
    /// The number of its first operand among the operands of all signatures.
    operands: u32,
}

/// What consumers ask of a value.
#[derive(Clone, Copy, Debug)]
struct ValueFacts {
    /// The node that makes it, or [`NONE`].
    node: u32,
    /// Which result of which signature it is, or [`LIST`].
    result: u32,
}

/// The result number of lists.
const LIST: u32 = u32::MAX;

/// The types of nodes some of whose indices are bound: signature, bound places, further bound places.
type MixedTypes = BTreeMap<(SigId, [u64; 2], Vec<u64>), u32>;

/// Whether an application only names numbers that are there before the first step.
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
        self.mark_needed(graph, wanted, there);
        self.clear(graph);
        storage.begin(graph, split);
        let (apps, pool) = (graph.arena.apps(), graph.arena.operand_pool());
        let mut mixed = MixedTypes::new();
        for (index, app) in apps.iter().enumerate() {
            if !self.needed[index] {
                if there.has(app.results) {
                    let results = self.sigs[app.sig.index()].results;
                    let end = apps.get(index + 1).map_or(graph.arena.values(), |next| next.results as usize);
                    number_results(&mut self.values[app.results as usize..end], NONE, results);
                }
                continue;
            }
            let (operands_end, results_end) =
                apps.get(index + 1).map_or((pool.len(), graph.arena.values()), |next| {
                    (next.operands as usize, next.results as usize)
                });
            let operands = &pool[app.operands as usize..operands_end];
            let facts = self.sigs[app.sig.index()];
            let results = &mut self.values[app.results as usize..results_end];
            match facts.kind {
                Kind::List => results.fill(ValueFacts { node: NONE, result: LIST }),
                Kind::Source => {
                    number_results(results, NONE, facts.results);
                    self.push_source(app.sig, AppId::new(index));
                }
                Kind::Node => {
                    let node = self.nodes.len() as u32;
                    number_results(results, node, facts.results);
                    self.node_of[index] = node;
                    self.nodes.push(AppId::new(index));
                    self.operand_start.push(self.operands.len() as u32);
                    let bound = self.push_operands(graph, operands, facts.operands, storage);
                    let ty = self.type_number(operands, bound, app.sig, &mut mixed);
                    self.ty.push(ty);
                }
            }
        }
        self.operand_start.push(self.operands.len() as u32);
        self.sources.sort_by_key(|apps| graph.arena.app(apps[0]).sig);
        self.alone.clear();
        self.alone.extend(graph.alone.iter().map(|id| self.node_of[id.index()]).filter(|&node| node != NONE));
        self.alone.sort_unstable();
        self.alone.dedup();
    }

    /// What a scheduler needs to know.
    pub(crate) fn problem(&self) -> Problem<'_> {
        let types = self.types.len() as u32;
        Problem::trusted(types, &self.ty, &self.alone, &self.operand_start, &self.operands)
    }

    fn clear(&mut self, graph: &GraphData) {
        self.nodes.clear();
        self.ty.clear();
        self.types.clear();
        self.operands.clear();
        self.operand_start.clear();
        self.sources.clear();
        self.node_of.clear();
        self.node_of.resize(graph.arena.len(), NONE);
        // What is needed is written before it is read.
        self.values.resize(graph.arena.values(), ValueFacts { node: NONE, result: LIST });
        let sigs = graph.sigs.items();
        for numbers in [&mut self.type_of_sig, &mut self.source_of_sig] {
            numbers.clear();
            numbers.resize(sigs.len(), NONE);
        }
        self.last_mixed.clear();
        self.last_mixed.resize(sigs.len(), (0, NONE));
        self.sigs.clear();
        let (mut results, mut operands) = (0, 0);
        for signature in sigs {
            let kind = match signature.is_list() {
                true => Kind::List,
                false if is_source(signature.callee) => Kind::Source,
                false => Kind::Node,
            };
            self.sigs.push(SigFacts { kind, results, operands });
            results += signature.results.len() as u32;
            operands += signature.operands.len() as u32;
        }
    }

    fn mark_needed(&mut self, graph: &GraphData, wanted: &[ValueId], there: &Placed) {
        let (apps, pool) = (graph.arena.apps(), graph.arena.operand_pool());
        self.needed.clear();
        self.needed.resize(apps.len(), false);
        for &value in wanted {
            self.needed[graph.arena.producer(value).index()] = true;
        }
        let mut end = pool.len();
        for (index, app) in apps.iter().enumerate().rev() {
            let start = app.operands as usize;
            if there.has(app.results) {
                self.needed[index] = false;
            } else if self.needed[index] {
                for value in pool[start..end].iter().filter_map(|operand| operand.as_value()) {
                    self.needed[graph.arena.producer(value).index()] = true;
                }
            }
            end = start;
        }
    }

    fn push_source(&mut self, sig: SigId, app: AppId) {
        let place = &mut self.source_of_sig[sig.index()];
        if *place == NONE {
            *place = self.sources.len() as u32;
            self.sources.push(Vec::new());
        }
        self.sources[*place as usize].push(app);
    }

    /// Appends the operand nodes; a bit says which of the first 64 operands are bound numbers.
    #[inline]
    fn push_operands(
        &mut self,
        graph: &GraphData,
        operands: &[Operand],
        first_place: u32,
        storage: &mut Storage,
    ) -> u64 {
        let mut bound = 0;
        for (place, operand) in operands.iter().enumerate() {
            let Some(value) = operand.as_value() else {
                bound |= 1 << (place & 63);
                continue;
            };
            let at = first_place as usize + place;
            let facts = self.values[value.index()];
            if facts.result == LIST {
                for item in graph.arena.operands(graph.arena.producer(value)) {
                    let Some(item) = item.as_value() else { continue };
                    let facts = self.values[item.index()];
                    storage.meet(at, facts.result);
                    if facts.node != NONE {
                        self.operands.push(facts.node);
                    }
                }
                continue;
            }
            storage.meet(at, facts.result);
            if facts.node != NONE {
                self.operands.push(facts.node);
            }
        }
        bound
    }

    /// The type of a node: its signature, unless some of its indices are computed and some bound.
    #[inline]
    fn type_number(&mut self, operands: &[Operand], bound: u64, sig: SigId, mixed: &mut MixedTypes) -> u32 {
        let known = if bound == 0 {
            &mut self.type_of_sig[sig.index()]
        } else if operands.len() > 64 {
            mixed.entry(bound_places(operands, sig)).or_insert(NONE)
        } else {
            let (last, number) = self.last_mixed[sig.index()];
            if last == bound && number != NONE {
                return number;
            }
            mixed.entry((sig, [bound, 0], Vec::new())).or_insert(NONE)
        };
        if *known == NONE {
            *known = self.types.len() as u32;
            self.types.push(sig);
        }
        let number = *known;
        if operands.len() <= 64 {
            self.last_mixed[sig.index()] = (bound, number);
        }
        number
    }
}

#[inline]
fn number_results(values: &mut [ValueFacts], node: u32, first: u32) {
    for (result, facts) in (first..).zip(values) {
        *facts = ValueFacts { node, result };
    }
}

/// The bound places of an application with more than 64 operands.
fn bound_places(operands: &[Operand], sig: SigId) -> (SigId, [u64; 2], Vec<u64>) {
    let mut words = operands.chunks(64).map(|places| {
        let bound = |operand: &Operand| u64::from(operand.as_value().is_none());
        (0..).zip(places).fold(0, |mask, (bit, operand)| mask | bound(operand) << bit)
    });
    let first = [words.next().unwrap_or(0), words.next().unwrap_or(0)];
    (sig, first, words.collect())
}
