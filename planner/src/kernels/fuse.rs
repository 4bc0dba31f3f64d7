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

use autobatch_ir::plan::{Code, Instr, Kernel, ListSource, ProdInit, RegId, RegKind, Source, Stage, View};
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
            self.writes[view.reg.index()].push(Write { view, stage: number, local: None });
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
                self.writes[view.reg.index()].push(write);
            }
            line.push(instr);
        }
    }

    /// The writes that overlap a read.
    fn writers<'f>(&'f self, read: &'f (View, bool)) -> impl Iterator<Item = &'f Write> {
        self.writes[read.0.reg.index()].iter().filter(|write| overlaps(&write.view, read))
    }

    /// The instruction of a map stage that writes a view.
    fn local(&self, stage: usize, view: View) -> Option<u32> {
        let made = |write: &&Write| write.stage == stage && write.view == view;
        self.writes[view.reg.index()].iter().find(made)?.local
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

/// The views that a stage writes. Edges count as whole registers.
pub(crate) fn stage_writes(stage: &Stage) -> Vec<View> {
    let mut views = stage.writes();
    if let Stage::SegGrad { dsts, .. } = stage {
        views.extend(dsts.iter().flatten().map(|&reg| View { reg, start: 0, width: u32::MAX }));
    }
    views
}

/// The views that a stage reads. Lists that arrive through ports count as empty views of their registers.
pub(crate) fn stage_reads(stage: &Stage) -> Vec<View> {
    let port = |reg: RegId| View { reg, start: 0, width: 0 };
    let mut views = stage.reads();
    match stage {
        Stage::Seg { lists, .. } => views.extend(lists.iter().filter_map(|list| match list {
            ListSource::Port(reg) => Some(port(*reg)),
            ListSource::Views(_) => None,
        })),
        Stage::SegGrad { lists, .. } => views.extend(lists.iter().copied().map(port)),
        Stage::MeanGrad { list, .. } => views.push(port(*list)),
        Stage::AttendGrad { keys, values, .. } => views.extend([*keys, *values].map(port)),
        Stage::AttendPull { readers, .. } => views.push(port(*readers)),
        _ => {}
    }
    views
}

/// Drops the registers of results that no other stage and no caller reads.
fn drop_private_results(kernel: &mut Kernel) {
    let mut reads: Vec<Vec<View>> = vec![Vec::new(); kernel.regs.len()];
    for &read in &kernel.results {
        reads[read.reg.index()].push(read);
    }
    for read in kernel.stages.iter().flat_map(stage_reads) {
        reads[read.reg.index()].push(read);
    }
    let is_read = |made: &View| reads[made.reg.index()].iter().any(|read| overlaps(made, &(*read, false)));
    for stage in &mut kernel.stages {
        match stage {
            Stage::Map { code, .. } => {
                code.iter_mut().for_each(|instr| instr.store = instr.store.filter(is_read));
            }
            Stage::LabelLoss { log_sum, slope, .. } => {
                [log_sum, slope].into_iter().for_each(|dst| *dst = dst.filter(is_read));
            }
            _ => {}
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
    let mut mark = |view: &View| used[view.reg.index()] = true;
    kernel.results.iter().for_each(&mut mark);
    for stage in &kernel.stages {
        stage_reads(stage).iter().for_each(&mut mark);
        stage_writes(stage).iter().for_each(&mut mark);
    }
    let mut kept = 0;
    let number_of = |used: &bool| {
        let own = RegId(kept);
        kept += u32::from(*used);
        own
    };
    let renumbered: Vec<RegId> = used.iter().map(number_of).collect();
    let mut number = 0;
    kernel.regs.retain(|reg| {
        number += 1;
        used[number - 1] || matches!(reg.kind, RegKind::Port)
    });
    kernel.results.iter_mut().for_each(|view| view.reg = renumbered[view.reg.index()]);
    kernel.stages.iter_mut().for_each(|stage| renumber(stage, &renumbered));
}

/// Gives the registers of a stage new numbers, each by its old one.
pub(crate) fn renumber(stage: &mut Stage, numbers: &[RegId]) {
    registers(stage).into_iter().for_each(|reg| *reg = numbers[reg.index()]);
}

fn register(view: &mut View) -> &mut RegId {
    &mut view.reg
}

/// All names of registers in a stage.
fn registers(stage: &mut Stage) -> Vec<&mut RegId> {
    match stage {
        Stage::Prod { dst, init, parts, .. } => {
            let init = if let ProdInit::View(view) = init { Some(view) } else { None };
            let views = parts.iter_mut().map(|part| &mut part.source).chain(init);
            views.chain([dst]).map(register).collect()
        }
        Stage::Map { code, .. } => code.iter_mut().flat_map(instr_views).map(register).collect(),
        Stage::Row { sources, dsts, .. } => {
            sources.iter_mut().map(|(view, _)| view).chain(dsts).map(register).collect()
        }
        Stage::Seg { query, lists, dst, .. } => {
            let mut regs: Vec<&mut RegId> = query.iter_mut().chain([dst]).map(register).collect();
            for list in lists {
                match list {
                    ListSource::Port(reg) => regs.push(reg),
                    ListSource::Views(views) => regs.extend(views.iter_mut().map(register)),
                }
            }
            regs
        }
        Stage::SegGrad { query, lists, dy, dsts, .. } => {
            let views = query.iter_mut().chain([dy]).map(register);
            views.chain(lists).chain(dsts.iter_mut().flatten()).collect()
        }
        Stage::MeanGrad { list, dy, dst } => vec![list, &mut dy.reg, &mut dst.reg],
        Stage::AttendGrad { query, keys, values, dy, dst, reader, .. } => {
            let views = [query, dy].into_iter().chain(dst).chain(reader).map(register);
            views.chain([keys, values]).collect()
        }
        Stage::AttendPull { key, value, readers, key_dst, value_dst, .. } => {
            let views = [key, value].into_iter().chain(key_dst).chain(value_dst).map(register);
            views.chain([readers]).collect()
        }
        Stage::Lookup { index, dst, .. } => vec![&mut index.reg, &mut dst.reg],
        Stage::LabelLoss { x, label, dst, log_sum, slope, .. } => {
            [x, label, dst].into_iter().chain(log_sum).chain(slope).map(register).collect()
        }
    }
}

/// The views that an instruction reads and writes.
fn instr_views(instr: &mut Instr) -> impl Iterator<Item = &mut View> {
    let sources = instr.sources.iter_mut().filter_map(|source| match source {
        Source::View(view) | Source::Scalar(view) => Some(view),
        Source::Local(_) | Source::Const(_) => None,
    });
    sources.chain(&mut instr.store)
}
