//! Joins elementwise stages into straight lines.
//!
//! *Needs* map stages of one instruction each, in program order. *Ensures* the same values: an instruction moves up into an earlier
//! map stage of its width, never across a stage that writes one of its operands. A result that only its own stage reads loses its
//! register. A copy of a result without a register becomes that result's register. Fusion reassociates nothing, so bits stay.
//!
//! ```text
//! map 4 { t1 = tanh v0 }   map 4 { t2 = sigmoid v1 }   map 4 { r = mul t1 t2 }
//! map 4 { 0 = tanh v0   1 = sigmoid v1   2 = mul 0 1 -> r }
//! ```

use autobatch_ir::plan::{Code, Instr, Kernel, ListSource, ProdInit, RegKind, Source, Stage, View};
use std::collections::HashMap;

/// Joins the map stages of a kernel and drops the registers that this makes unused.
pub(crate) fn fuse(kernel: &mut Kernel) {
    let mut fused = Fused::new(kernel.regs.len(), kernel.stages.len());
    for stage in kernel.stages.drain(..) {
        match stage {
            Stage::Map { width, code } => fused.place(width, code),
            other => fused.push(other),
        }
    }
    kernel.stages = fused.stages;
    drop_private_results(kernel);
    drop_copies(kernel);
    drop_unused_registers(kernel);
}

/// A write to a view of a register.
#[derive(Clone, Copy)]
struct Write {
    view: View,
    stage: usize,
    /// The instruction of a map stage; `None` for other stages.
    local: Option<u32>,
}

/// The stages so far, with indices of the writes to each register and of the map stages of each width. A kernel may have a million
/// instructions, so no search visits all of them.
struct Fused {
    stages: Vec<Stage>,
    /// Per register.
    writes: Vec<Vec<Write>>,
    /// The map stages of each width, ascending.
    lines: HashMap<u32, Vec<usize>>,
}

impl Fused {
    fn new(regs: usize, stages: usize) -> Self {
        Self { stages: Vec::with_capacity(stages), writes: vec![Vec::new(); regs], lines: HashMap::new() }
    }

    /// Appends a stage that is not a map.
    fn push(&mut self, stage: Stage) {
        let number = self.stages.len();
        for view in stage_writes(&stage) {
            self.writes[view.reg as usize].push(Write { view, stage: number, local: None });
        }
        self.stages.push(stage);
    }

    /// Appends instructions to the earliest stage of their width that comes after all writes to their operands.
    fn place(&mut self, width: u32, code: Vec<Instr>) {
        let mut reads = Vec::new();
        code.iter().for_each(|instr| instr_reads(instr, &mut reads));
        let last = reads.iter().flat_map(|read| self.writers(read)).map(|write| write.stage).max();
        // The last writer itself serves if it is a map of this width and every read takes a whole result.
        let from = match last {
            None => 0,
            Some(at) if self.joins(at, width, &reads) => at,
            Some(at) => at + 1,
        };
        let lines = self.lines.entry(width).or_default();
        let target = lines.get(lines.partition_point(|&line| line < from)).copied().unwrap_or_else(|| {
            lines.push(self.stages.len());
            self.stages.push(Stage::Map { width, code: Vec::new() });
            self.stages.len() - 1
        });
        for mut instr in code {
            for source in &mut instr.sources {
                if let Source::View(view) = source
                    && let Some(local) = self.local(target, *view)
                {
                    *source = Source::Local(local);
                }
            }
            let Stage::Map { code: line, .. } = &mut self.stages[target] else {
                unreachable!("`lines` lists map stages")
            };
            if let Some(view) = instr.store {
                let write = Write { view, stage: target, local: Some(line.len() as u32) };
                self.writes[view.reg as usize].push(write);
            }
            line.push(instr);
        }
    }

    /// The writes that overlap a read.
    fn writers<'f>(&'f self, read: &'f (View, bool)) -> impl Iterator<Item = &'f Write> {
        self.writes[read.0.reg as usize].iter().filter(|write| overlaps(&write.view, read))
    }

    /// The instruction of a map stage that writes a view.
    fn local(&self, stage: usize, view: View) -> Option<u32> {
        let made = |write: &&Write| write.stage == stage && write.view == view;
        self.writes[view.reg as usize].iter().find(made)?.local
    }

    /// Whether an instruction with these reads may join a stage: it reads each result of the stage whole and element by element, or
    /// not at all.
    fn joins(&self, at: usize, width: u32, reads: &[(View, bool)]) -> bool {
        let Stage::Map { width: own, .. } = &self.stages[at] else { return false };
        let whole = |read: &(View, bool)| {
            self.writers(read).filter(|write| write.stage == at).all(|write| read.0 == write.view && !read.1)
        };
        *own == width && reads.iter().all(whole)
    }
}

fn overlaps(write: &View, read: &(View, bool)) -> bool {
    let read = &read.0;
    let end = |view: &View| u64::from(view.start) + u64::from(view.width);
    write.reg == read.reg && u64::from(write.start) < end(read) && u64::from(read.start) < end(write)
}

/// Lists the views that an instruction reads, and whether it reads them as scalars.
fn instr_reads(instr: &Instr, reads: &mut Vec<(View, bool)>) {
    for source in &instr.sources {
        match source {
            Source::View(view) => reads.push((*view, false)),
            Source::Scalar(view) => reads.push((*view, true)),
            Source::Local(_) | Source::Const(_) => {}
        }
    }
}

/// The views that a stage writes.
pub(crate) fn stage_writes(stage: &Stage) -> Vec<View> {
    match stage {
        Stage::Prod { dst, .. } | Stage::Seg { dst, .. } | Stage::Lookup { dst, .. } => vec![*dst],
        Stage::Map { code, .. } => code.iter().filter_map(|instr| instr.store).collect(),
        Stage::Row { dsts, .. } => dsts.clone(),
        Stage::SegGrad { query_dst, dsts, .. } => {
            let edges = dsts.iter().flatten().map(|&reg| View { reg, start: 0, width: u32::MAX });
            query_dst.iter().copied().chain(edges).collect()
        }
    }
}

/// The views that a stage reads. Lists that arrive through ports count as empty views of their registers.
pub(crate) fn stage_reads(stage: &Stage) -> Vec<View> {
    let mut views = Vec::new();
    match stage {
        Stage::Prod { init, parts, .. } => {
            views.extend(parts.iter().map(|part| part.source));
            if let ProdInit::View(view) = init {
                views.push(*view);
            }
        }
        Stage::Map { code, .. } => {
            let mut reads = Vec::new();
            code.iter().for_each(|instr| instr_reads(instr, &mut reads));
            views.extend(reads.into_iter().map(|(view, _)| view));
        }
        Stage::Row { sources, .. } => views.extend(sources.iter().map(|(view, _)| *view)),
        Stage::Seg { query, lists, .. } => {
            views.extend(*query);
            for list in lists {
                match list {
                    ListSource::Port(reg) => views.push(View { reg: *reg, start: 0, width: 0 }),
                    ListSource::Views(items) => views.extend(items),
                }
            }
        }
        Stage::SegGrad { query, lists, dy, .. } => {
            views.extend(*query);
            views.push(*dy);
            views.extend(lists.iter().map(|&reg| View { reg, start: 0, width: 0 }));
        }
        Stage::Lookup { index, .. } => views.push(*index),
    }
    views
}

/// Drops the registers of results that no other stage and no caller reads.
fn drop_private_results(kernel: &mut Kernel) {
    let mut reads: Vec<Vec<View>> = vec![Vec::new(); kernel.regs.len()];
    for &read in &kernel.results {
        reads[read.reg as usize].push(read);
    }
    for read in kernel.stages.iter().flat_map(stage_reads) {
        reads[read.reg as usize].push(read);
    }
    let is_read = |made: &View| reads[made.reg as usize].iter().any(|read| overlaps(made, &(*read, false)));
    for stage in &mut kernel.stages {
        if let Stage::Map { code, .. } = stage {
            for instr in code {
                instr.store = instr.store.filter(is_read);
            }
        }
    }
}

/// Drops copies of results without a register: the result takes the register of the copy.
fn drop_copies(kernel: &mut Kernel) {
    for stage in &mut kernel.stages {
        let Stage::Map { code, .. } = stage else { continue };
        let mut kept: Vec<Instr> = Vec::with_capacity(code.len());
        let mut renumbered: Vec<u32> = Vec::with_capacity(code.len());
        for mut instr in code.drain(..) {
            for source in &mut instr.sources {
                if let Source::Local(local) = source {
                    *local = renumbered[*local as usize];
                }
            }
            if let (Code::Copy, &[Source::Local(local)], Some(_)) =
                (instr.code, &instr.sources[..], instr.store)
                && kept[local as usize].store.is_none()
            {
                kept[local as usize].store = instr.store;
                renumbered.push(local);
                continue;
            }
            renumbered.push(kept.len() as u32);
            kept.push(instr);
        }
        *code = kept;
    }
}

/// Renumbers the used registers. Ports stay first.
fn drop_unused_registers(kernel: &mut Kernel) {
    let mut used = vec![false; kernel.regs.len()];
    used[..kernel.ports as usize].fill(true);
    let mut mark = |view: &View| used[view.reg as usize] = true;
    kernel.results.iter().for_each(&mut mark);
    for stage in &kernel.stages {
        stage_reads(stage).iter().for_each(&mut mark);
        stage_writes(stage).iter().for_each(&mut mark);
    }
    let mut renumbered = vec![0; used.len()];
    let mut kept = 0;
    for (old, used) in used.iter().enumerate() {
        renumbered[old] = kept;
        kept += u32::from(*used);
    }
    let mut number = 0;
    kernel.regs.retain(|reg| {
        number += 1;
        used[number - 1] || matches!(reg.kind, RegKind::Port)
    });
    let renumber = |view: &mut View| view.reg = renumbered[view.reg as usize];
    kernel.results.iter_mut().for_each(renumber);
    kernel.stages.iter_mut().for_each(|stage| rename(stage, &renumber));
}

/// Renumbers the registers of a stage.
pub(crate) fn rename(stage: &mut Stage, renumber: &impl Fn(&mut View)) {
    match stage {
        Stage::Prod { dst, init, parts, .. } => {
            renumber(dst);
            parts.iter_mut().for_each(|part| renumber(&mut part.source));
            if let ProdInit::View(view) = init {
                renumber(view);
            }
        }
        Stage::Map { code, .. } => {
            for instr in code {
                instr.store.iter_mut().for_each(renumber);
                for source in &mut instr.sources {
                    if let Source::View(view) | Source::Scalar(view) = source {
                        renumber(view);
                    }
                }
            }
        }
        Stage::Row { sources, dsts, .. } => {
            sources.iter_mut().for_each(|(view, _)| renumber(view));
            dsts.iter_mut().for_each(renumber);
        }
        Stage::Seg { query, lists, dst, .. } => {
            query.iter_mut().for_each(renumber);
            renumber(dst);
            for list in lists {
                match list {
                    ListSource::Port(reg) => {
                        let mut view = View { reg: *reg, start: 0, width: 0 };
                        renumber(&mut view);
                        *reg = view.reg;
                    }
                    ListSource::Views(items) => items.iter_mut().for_each(renumber),
                }
            }
        }
        Stage::SegGrad { query, lists, dy, query_dst, dsts, .. } => {
            query.iter_mut().for_each(renumber);
            query_dst.iter_mut().for_each(renumber);
            renumber(dy);
            for reg in lists.iter_mut().chain(dsts.iter_mut().flatten()) {
                let mut view = View { reg: *reg, start: 0, width: 0 };
                renumber(&mut view);
                *reg = view.reg;
            }
        }
        Stage::Lookup { index, dst, .. } => {
            renumber(index);
            renumber(dst);
        }
    }
}
