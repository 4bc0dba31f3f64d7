//! Lowering: turns batches with rows into steps with operands.
//!
//! *Needs* ordered batches and the kernels of their signatures. *Ensures* a complete plan. An operand whose rows are consecutive, or
//! a constant distance apart, or all the same, is direct; every other operand is gathered through a table. Lists become segments, in
//! the order of the model. *Cost.* Linear in operands.

mod declare;
mod kernel_numbers;
mod operands;
mod places;
#[cfg(test)]
mod tests;

pub(crate) use operands::{Shared, shared};
pub(crate) use places::Places;

use crate::certificate::certify;
use crate::ids::{BatchId, BlockId, RowId};
use crate::kernels::Kernels;
use crate::order::Rows;
use crate::stage::{Product, Stage};
use crate::steps::append_step;
use crate::storage::SigStorage;
use autobatch_ir::graph::{GraphData, ParamArg};
use autobatch_ir::plan::{FieldId, KernelId, Place, Plan};
use declare::declare;
use kernel_numbers::KernelNumbers;
use operands::{SlotAddress, result_start, write_operands};
use places::add_outputs;
use std::fmt::{self, Write};

/// Scratch memory of [`lower`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    kernel_ids: Vec<Option<KernelId>>,
    kernel_numbers: KernelNumbers,
    runs: Vec<SlotAddress>,
    /// The places of wanted values.
    found: Vec<(FieldId, RowId)>,
}

/// Writes the steps of all batches behind those of a growing plan; `bound` is the least number of batches.
pub(crate) fn lower(
    places: &Places<'_>,
    memory: &mut Memory,
    kernels: &Kernels,
    bound: u32,
    plan: &mut Plan,
) {
    let Places { context, storage, rows } = *places;
    let graph = context.graph;
    let Memory { kernel_ids, kernel_numbers, runs, found } = memory;
    let (first_step, first_wave) = (plan.steps.len(), plan.waves.len());
    declare(places, plan);
    kernel_numbers.clear();
    kernel_ids.clear();
    kernel_ids.resize(graph.sigs.items().len(), None);
    for (id, batch) in rows.batches.entries() {
        let sig = batch.sig.index();
        let kernel = *kernel_ids[sig].get_or_insert_with(|| {
            let kernel =
                kernels.of_sig[sig].as_ref().expect("every signature that takes a step has a kernel");
            KernelId(kernel_numbers.number(&mut plan.kernels, kernel))
        });
        let mut write_step = |results: &[(FieldId, BlockId)]| {
            append_step(plan, kernel, |plan, _| {
                for &(field, block) in results {
                    plan.places.push(Place::Rows { field, start: result_start(rows, id, block) });
                }
                write_operands(places, id, plan, runs);
                plan.store_args.extend(graph.sigs.get(batch.sig).params.iter().map(|arg| match *arg {
                    ParamArg::Module(param) => Plan::store_of(param),
                    ParamArg::Port(_) => unreachable!("verified graphs name parameters of the module"),
                }));
                plan.lanes.extend_from_slice(&rows.nodes[batch.lanes.clone()]);
            });
        };
        let SigStorage { results, extra_fields, .. } = &storage.sigs[batch.sig];
        if extra_fields.is_empty() {
            write_step(results);
        } else {
            // A step writes one field of a copy of a constant.
            let fields = results.iter().chain(extra_fields).filter(|&&(_, block)| block == batch.copy);
            fields.for_each(|&(field, _)| write_step(&[(field, BlockId(0))]));
        }
        // The first wave of the batches is the first new wave of the plan.
        plan.waves.truncate(first_wave + (batch.wave.0 - rows.batches[BatchId(0)].wave.0) as usize);
        plan.waves.push(plan.steps.len() as u32);
    }
    add_outputs(places, found, plan);
    plan.certificate.bound = bound;
    let end = plan.steps.len();
    certify(plan, first_step, end);
}

/// Prints the plan as its text.
impl Product for Plan {
    type After = Rows;
    const STAGE: Stage = Stage {
        name: "lower",
        turns: "rows and kernels -> plan",
        what: "Writes steps. Operands are direct ranges of rows where possible and gathered through tables otherwise.",
    };

    fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        out.write_str(&self.to_text())
    }
}
