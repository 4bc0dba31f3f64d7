//! The memory that plans are written in.

use super::Run;
use crate::known_kernels::KnownKernels;
use autobatch_ir::plan::{Certificate, FieldId, KernelId, Plan};

/// Working memory of lowering. A plan is written here and moved when its size is known, so that it holds little more than it
/// needs and nothing of it moves twice.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(super) kernel_ids: Vec<Option<KernelId>>,
    pub(super) known_kernels: KnownKernels,
    /// The slots of the operands of a step, and their rows.
    pub(super) runs: Vec<(usize, Run)>,
    /// Where the values are that were asked for.
    pub(super) asked: Vec<(FieldId, u32)>,
    /// The lists of a plan, empty.
    lists: Plan,
    /// The lists of a plan that nobody needs any more, empty.
    spare: Plan,
}

impl Draft {
    /// The lists that a plan writes, empty.
    pub(super) fn lend(&mut self) -> Plan {
        std::mem::take(&mut self.lists)
    }

    /// Takes the lists of a plan that nobody needs any more.
    pub(crate) fn recycle(&mut self, plan: Plan) {
        let spare = &mut self.spare;
        *spare = plan;
        spare.stores.clear();
        spare.slabs.clear();
        spare.fields.clear();
        spare.kernels.clear();
        spare.steps.clear();
        spare.waves.clear();
        spare.operands.clear();
        spare.places.clear();
        spare.store_args.clear();
        spare.lanes.clear();
        spare.tables.clear();
        spare.reductions.clear();
        spare.outputs.clear();
    }

    /// The plan in lists that are as long as they must be, or in spare ones that are hardly longer. Takes back those that it was
    /// written in.
    pub(super) fn settle(&mut self, mut plan: Plan) -> Plan {
        fn settled<T>(list: &mut Vec<T>, spare: &mut Vec<T>) -> Vec<T> {
            let least = list.len();
            let fits = (least..=least + least / 8).contains(&spare.capacity());
            let mut settled = if fits { std::mem::take(spare) } else { Vec::with_capacity(least) };
            settled.append(list);
            settled
        }
        let mut spare = std::mem::take(&mut self.spare);
        let Plan { structure, mode, words, floats, certificate, .. } = plan;
        let made = Plan {
            module: std::mem::take(&mut plan.module),
            structure,
            mode,
            stores: settled(&mut plan.stores, &mut spare.stores),
            words,
            floats,
            slabs: settled(&mut plan.slabs, &mut spare.slabs),
            fields: settled(&mut plan.fields, &mut spare.fields),
            kernels: settled(&mut plan.kernels, &mut spare.kernels),
            steps: settled(&mut plan.steps, &mut spare.steps),
            waves: settled(&mut plan.waves, &mut spare.waves),
            operands: settled(&mut plan.operands, &mut spare.operands),
            places: settled(&mut plan.places, &mut spare.places),
            store_args: settled(&mut plan.store_args, &mut spare.store_args),
            lanes: settled(&mut plan.lanes, &mut spare.lanes),
            tables: settled(&mut plan.tables, &mut spare.tables),
            reductions: settled(&mut plan.reductions, &mut spare.reductions),
            outputs: settled(&mut plan.outputs, &mut spare.outputs),
            certificate,
        };
        self.lists = Plan { certificate: Certificate::default(), ..plan };
        made
    }
}
