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
mod clusters;
mod needed;
mod type_numbers;
mod walk;

pub(crate) use arrivals::Arrivals;
pub(crate) use clusters::Clusters;

use crate::context::Context;
use crate::ids::{Id, JobId};
use autobatch_ir::id::SigId;
use needed::Needed;

/// Scratch memory of [`cluster`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    needed: Needed,
    walk: walk::Memory,
}

/// Finds the jobs and sources that the roots depend on.
pub(crate) fn cluster(context: &Context<'_>, memory: &mut Memory, clusters: &mut Clusters) {
    let graph = context.graph;
    let first = memory.needed.mark(context, &mut clusters.reused);
    clusters.arrivals.clear(graph);
    walk::walk(context, memory.needed.marks(), &mut memory.walk, clusters, first);
    let Clusters { jobs, types, alone, sources, signatures, .. } = clusters;
    let found = memory.walk.found_sources.iter();
    sources.fill(graph.sigs.items().len(), found.map(|&(sig, node)| (sig.index(), node)));
    alone.clear();
    alone.extend(graph.alone.iter().filter_map(|node| jobs.binary_search(node).ok()).map(JobId::from_index));
    alone.sort_unstable();
    alone.dedup();
    signatures.clear();
    signatures.extend(types.iter().copied().chain(sources.iter().map(|(sig, _)| SigId::new(sig))));
    signatures.sort_unstable();
    signatures.dedup();
}
