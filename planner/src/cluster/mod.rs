//! Clustering: finds the needed nodes, separates sources from jobs, and numbers the types of jobs that may share a batch.
//!
//! *Needs* a verified graph and the roots, which are the values that can be read after the run. *Ensures* a job for every needed
//! node that is neither a list nor a source. Each job has a dense type number. Two jobs of one type have one signature, and for
//! each operand both read a binding or both read a computed value, so one step with one operand form per port serves both. The
//! elements of lists become operands; a long list becomes a list of operands that its readers name. Sources are inputs,
//! constants and parameters. They depend on nothing, so their steps come first, one per signature.
//!
//! The walk over the operands also records which results arrive at which operand ports ([`Arrivals`]), so that storage needs no
//! walk of its own. The walk stores the facts that it needs about each value in one flat array.
//!
//! *Cost.* Linear in nodes and operands. Of a growing graph, linear in the nodes from the first that is newly needed.

mod arrivals;
mod needed;
mod type_numbers;
mod walk;

pub(crate) use arrivals::Arrivals;

use crate::lists::Groups;
use crate::pipeline::Context;
use crate::schedule::OperandLists;
use autobatch_ir::graph::{Callee, Op};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use needed::Needed;
use type_numbers::TypeNumbers;
use walk::{KnownLists, SigFacts, ValueFacts};

/// The job number of values that no job computes.
const NONE: u32 = u32::MAX;

/// The jobs of a graph, their types and their operands.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// The node of each job, ascending.
    pub(crate) jobs: Vec<NodeId>,
    /// The type of each job.
    pub(crate) ty: Vec<u32>,
    /// The start of each job's operands in `operands`; the last entry is the end.
    pub(crate) operand_start: Vec<u32>,
    /// The jobs that each job reads, and the lists of jobs that it names.
    pub(crate) operands: Vec<u32>,
    pub(crate) lists: OperandLists,
    /// Jobs marked `.alone()`, each a batch of one job; ascending.
    pub(crate) alone: Vec<u32>,
    /// The signature of each type.
    pub(crate) types: Vec<SigId>,
    /// The needed sources of each signature.
    pub(crate) sources: Groups<NodeId>,
    /// The signatures of jobs and sources, ascending.
    pub(crate) signatures: Vec<SigId>,
    /// Values of the earlier plan that new jobs read, besides the items of lists; a value appears once per read.
    pub(crate) reused: Vec<ValueId>,
    /// The results that arrive at each operand port.
    pub(crate) arrivals: Arrivals,
}

/// Scratch memory of [`cluster`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    needed: Needed,
    numbers: TypeNumbers,
    /// Needed sources in the order of the graph.
    found_sources: Vec<(SigId, NodeId)>,
    sigs: Vec<SigFacts>,
    values: Vec<ValueFacts>,
    known_lists: KnownLists,
    /// The memory of the last product.
    pub(crate) spare: Clusters,
}

/// Whether this callee is an input, a constant or a parameter.
pub(crate) fn is_source(callee: Callee) -> bool {
    matches!(callee, Callee::Op(Op::Input(_) | Op::Fill { .. } | Op::Param))
}

/// Finds the jobs and sources that the roots depend on.
pub(crate) fn cluster(context: &Context<'_>, memory: &mut Memory) -> Clusters {
    let graph = context.graph;
    let mut clusters = std::mem::take(&mut memory.spare);
    let first = memory.needed.mark(context, &mut clusters.reused);
    clusters.arrivals.clear(graph);
    walk::walk(context, memory, &mut clusters, first);
    let Clusters { jobs, types, alone, sources, signatures, .. } = &mut clusters;
    let found = memory.found_sources.iter();
    sources.fill(graph.sigs.items().len(), found.map(|&(sig, node)| (sig.index(), node)));
    alone.clear();
    alone.extend(graph.alone.iter().filter_map(|node| jobs.binary_search(node).ok()).map(|job| job as u32));
    alone.sort_unstable();
    alone.dedup();
    signatures.clear();
    signatures.extend(types.iter().copied().chain(sources.iter().map(|(sig, _)| SigId::new(sig))));
    signatures.sort_unstable();
    signatures.dedup();
    clusters
}
