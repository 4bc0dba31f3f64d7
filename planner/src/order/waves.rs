//! Waves: the wave of a batch is one after the latest wave that it reads. Sources are wave 0.

use super::rows::{Batch, Rows, StoredBatches};
use crate::cluster::Clusters;
use crate::ids::{BlockId, JobId, KindId, WaveId};
use crate::schedule::{Batches, JobOperand, ListMaxima};
use autobatch_ir::id::{NodeId, SigId};
use bytemuck::TransparentWrapper;
use std::ops::Range;

/// Scratch memory of [`list_batches`].
#[derive(Debug, Default)]
pub(super) struct Memory {
    wave_of_job: Vec<u32>,
    list_waves: ListMaxima,
}

/// Lists batches wave after wave, sources first, and writes the nodes of sources.
pub(super) fn list_batches(
    rows: &mut Rows,
    nodes: &mut Vec<NodeId>,
    memory: &mut Memory,
    stored: StoredBatches<'_>,
) {
    let StoredBatches { clusters, batches, storage } = stored;
    rows.batches.clear();
    nodes.clear();
    for (sig, source) in clusters.sources.iter() {
        for copy in 0..storage.sigs[SigId::new(sig)].source_batches() {
            let first = nodes.len();
            nodes.extend_from_slice(source);
            let lanes = first..nodes.len();
            rows.batches.push(Batch {
                lanes,
                copy: BlockId(copy),
                ..empty(SigId::new(sig), WaveId(0), 0..0)
            });
        }
    }
    let sources = rows.batches.next_id();
    let sorted = find_waves(rows, memory, clusters, batches);
    let own = &mut rows.batches[sources..];
    if !sorted {
        // The second key keeps the batches of a wave in order: a stable sort would allocate.
        own.sort_unstable_by_key(|batch| (batch.wave, batch.jobs.start));
    }
    let mut first = nodes.len();
    for batch in own {
        batch.lanes = first..first + batch.jobs.len();
        first = batch.lanes.end;
    }
    // Gathering writes the nodes of jobs.
    nodes.resize(first, NodeId::new(0));
}

/// Appends the scheduler's batches with their waves. Returns whether the waves ascend.
fn find_waves(rows: &mut Rows, memory: &mut Memory, clusters: &Clusters, batches: &Batches) -> bool {
    let Clusters { ty, types, operand_start, operands, lists, .. } = clusters;
    let Memory { wave_of_job, list_waves } = memory;
    wave_of_job.resize(clusters.jobs.len(), 0);
    list_waves.clear();
    let first_wave = u32::from(!rows.batches.is_empty());
    // The latest wave that a batch can have. One operand of the wave before decides it, which ends the search.
    let mut latest = first_wave;
    let mut sorted = true;
    for (number, jobs) in batches.iter().enumerate() {
        let mut wave = first_wave;
        for &job in jobs {
            if wave == latest {
                break;
            }
            let (start, end) = (operand_start[job.index()], operand_start[job.index() + 1]);
            let own = &operands[start as usize..end as usize];
            let after = |job: JobId| wave_of_job[job.index()] + 1;
            wave = match lists.is_empty() {
                true => JobOperand::peel_slice(own).iter().map(|&job| after(job)).fold(wave, u32::max),
                false => {
                    own.iter().map(|&own| list_waves.of(lists, own, KindId::ANY, after)).fold(wave, u32::max)
                }
            };
        }
        sorted &= wave + 1 >= latest;
        latest = latest.max(wave + 1);
        jobs.iter().for_each(|&job| wave_of_job[job.index()] = wave);
        let sig = types[ty[jobs[0].index()]];
        rows.batches.push(empty(sig, WaveId(wave), batches.start[number]..batches.start[number + 1]));
    }
    sorted
}

/// A batch without lanes.
fn empty(sig: SigId, wave: WaveId, jobs: Range<u32>) -> Batch {
    Batch { sig, lanes: 0..0, wave, copy: BlockId(0), jobs, bound: 0, lists: 0 }
}
