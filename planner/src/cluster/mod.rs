//! Clustering: finds the needed nodes, separates sources from jobs, and numbers the types of jobs that may share a batch.
//!
//! *Needs* a verified graph and the roots, which are the values that can be read after the run. *Ensures* a job for every needed
//! node that is neither a list nor a source. Each job has a dense type number. Two jobs of one type have one signature, and for
//! each operand both read a binding or both read a computed value, so one step with one operand form per port serves both. The
//! elements of lists become operands. Sources are inputs, constants and parameters. They depend on nothing, so their steps come
//! first, one per signature.
//!
//! The walk over the operands also records which results arrive at which operand ports ([`Arrivals`]), so that storage needs no
//! walk of its own. The walk stores the facts that it needs about each value in one flat array.
//!
//! *Cost.* Linear in nodes and operands. Of a growing graph, linear in the nodes from the first that is newly needed.

mod arrivals;
mod needed;
mod print;
mod type_names;
mod type_numbers;
mod walk;

pub(crate) use arrivals::Arrivals;

use crate::ids::{JobId, TypeIndex};
use crate::pipeline::Context;
use crate::schedule::Problem;
use autobatch_ir::graph::{Callee, GraphData, Op};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use needed::Needed;
use type_numbers::TypeNumbers;
use walk::{SigFacts, ValueFacts};

/// The job number of values that no job computes.
const NONE: u32 = u32::MAX;

/// The jobs of a graph, their types and their operands.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// The node of each job, ascending.
    pub(crate) jobs: Vec<NodeId>,
    /// The type of each job.
    ty: Vec<u32>,
    /// The start of each job's operands in `operands`; the last entry is the end.
    operand_start: Vec<u32>,
    /// The jobs that each job reads.
    operands: Vec<u32>,
    /// Jobs marked `.alone()`, each a batch of one job; ascending.
    alone: Vec<u32>,
    /// The signature of each type.
    types: Vec<SigId>,
    /// Needed sources, one signature after the other.
    sources: Vec<NodeId>,
    /// The start of each signature's sources in `sources`; the last entry is the end.
    source_start: Vec<u32>,
    /// Values of the earlier plan that new jobs read; a value appears once per read.
    reused: Vec<ValueId>,
    arrivals: Arrivals,
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
    spare: Clusters,
}

impl Memory {
    /// Takes back the memory of clusters.
    pub(crate) fn recycle(&mut self, clusters: Clusters) {
        self.spare = clusters;
    }
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
    clusters.sort_sources(graph, &memory.found_sources);
    clusters.find_alone(graph);
    clusters
}

impl Clusters {
    /// Sorts sources by signature; those of one signature keep the order of the graph.
    fn sort_sources(&mut self, graph: &GraphData, found: &[(SigId, NodeId)]) {
        let Self { sources, source_start, .. } = self;
        source_start.clear();
        source_start.resize(graph.sigs.items().len() + 2, 0);
        for (sig, _) in found {
            source_start[sig.index() + 2] += 1;
        }
        for at in 2..source_start.len() {
            source_start[at] += source_start[at - 1];
        }
        sources.clear();
        sources.extend(found.iter().map(|source| source.1));
        for &(sig, node) in found {
            let at = &mut source_start[sig.index() + 1];
            sources[*at as usize] = node;
            *at += 1;
        }
        source_start.pop();
    }

    fn find_alone(&mut self, graph: &GraphData) {
        let mut alone = std::mem::take(&mut self.alone);
        alone.clear();
        alone.extend(graph.alone.iter().filter_map(|&node| self.job(node)).map(|job| job.0));
        alone.sort_unstable();
        alone.dedup();
        self.alone = alone;
    }

    /// The needed sources of each signature that has any.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (SigId, &[NodeId])> {
        let own = |(sig, ends): (usize, &[u32])| {
            (SigId::new(sig), &self.sources[ends[0] as usize..ends[1] as usize])
        };
        self.source_start.windows(2).enumerate().map(own).filter(|(_, nodes)| !nodes.is_empty())
    }

    /// The job of a node, if it is one.
    pub(crate) fn job(&self, node: NodeId) -> Option<JobId> {
        self.jobs.binary_search(&node).ok().map(|job| JobId(job as u32))
    }

    /// The signature of each type.
    pub(crate) fn types(&self) -> &[SigId] {
        &self.types
    }

    /// The signatures of jobs, a signature once for each type, then those of sources.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = SigId> {
        self.types.iter().copied().chain(self.sources().map(|(sig, _)| sig))
    }

    /// The type of a job.
    #[inline]
    pub(crate) fn type_of(&self, job: JobId) -> TypeIndex {
        TypeIndex(self.ty[job.index()])
    }

    /// The jobs that a job reads.
    #[inline]
    pub(crate) fn operands(&self, job: JobId) -> impl Iterator<Item = JobId> {
        let (start, end) = (self.operand_start[job.index()], self.operand_start[job.index() + 1]);
        self.operands[start as usize..end as usize].iter().map(|&operand| JobId(operand))
    }

    /// The existing values that jobs of a growing plan read, once for each read.
    pub(crate) fn reused(&self) -> &[ValueId] {
        &self.reused
    }

    /// Which results arrive at which operand ports.
    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// The jobs as a scheduling problem.
    pub(crate) fn problem(&self) -> Problem<'_> {
        let types = self.types.len() as u32;
        Problem::trusted(types, &self.ty, &self.alone, &self.operand_start, &self.operands)
    }
}
