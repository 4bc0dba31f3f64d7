//! Kernels: what of their lowering follows from them alone. It is found once for each of them and kept from plan to plan:
//! plans of one model, and all plans of one planner, share their kernels.

use super::map::{Cut, Recipe};
use super::product::recipe;
use super::units::{Fused, Unit, reads, units, writes};
use crate::module::Program;
use autobatch_ir::plan::{Kernel, Reg, RegKind, Stage, View};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// So many bytes are kept, about; who has met more begins anew with the next plan.
const MOST_KEPT: usize = 64 << 20;

/// What a kernel or a program, and what a stage or a register counts for.
const KERNEL: usize = 512;
const STAGE: usize = 128;

/// Where a register lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Home {
    /// Where the operand is.
    Port,
    /// In a run of words with these bits.
    Const(u32),
    /// In a run of words that are a parameter.
    Param(u32),
    /// In the rows of a result.
    Result(u32),
    /// In scratch rows, behind so many words a lane.
    Scratch(u64),
    /// Among the edges of a result; of none, if nobody wants them.
    Edges(Option<u32>),
    /// Nowhere: it is looked up for results alone, which take it from the table.
    Nowhere,
}

/// A unit of a kernel, and what it takes.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its number in the kernel.
    pub(super) number: u32,
    pub(super) unit: Unit,
    /// Its products.
    pub(super) products: Vec<Fused>,
    /// How many others of its step it waits for, one after another.
    pub(super) level: u32,
    /// What its line takes; nothing of other stages.
    pub(super) recipe: Recipe,
    /// Of a lookup the results that it brings rows to, if nothing else reads them.
    pub(super) results: Option<Vec<u32>>,
}

/// What steps of a kernel have in common.
#[derive(Debug)]
pub(super) struct Lowered {
    /// Its number among those that are kept.
    pub(super) number: u32,
    pub(super) pieces: Vec<Piece>,
    /// Per register where it lives.
    pub(super) homes: Vec<Home>,
    /// Scratch words of a lane.
    pub(super) scratch: u64,
    /// Elements of the widest register.
    pub(super) widest: u64,
    /// The results that live elsewhere than where they are wanted.
    pub(super) moved: Vec<u32>,
    /// The level at which all of these can be read.
    pub(super) moved_level: u32,
}

/// What is kept from plan to plan.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By the address of a kernel that `kernels` keeps alive.
    numbers: HashMap<usize, u32>,
    kernels: Vec<(Arc<Kernel>, Arc<Lowered>)>,
    /// Equal programs are one, so that their addresses name them.
    programs: HashSet<Arc<Program>>,
    /// By the numbers of kernel and unit, and how products are cut.
    generated: HashMap<(u32, u32, Cut), Arc<Program>>,
    /// How much that is, about.
    kept: usize,
}

impl Known {
    /// Begins anew if much is kept: what is named by numbers stays while a plan is compiled.
    pub(super) fn make_room(&mut self) {
        if self.kept > MOST_KEPT {
            *self = Self::default();
        }
    }

    /// What steps of a kernel have in common.
    pub(super) fn kernel(&mut self, kernel: &Arc<Kernel>) -> Arc<Lowered> {
        let key = Arc::as_ptr(kernel) as usize;
        let next = self.kernels.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let lowered = Arc::new(Lowered::new(kernel, next));
            self.kernels.push((Arc::clone(kernel), lowered));
            self.kept += KERNEL + STAGE * size(kernel);
        }
        Arc::clone(&self.kernels[number as usize].1)
    }

    /// The one of all programs like this.
    pub(super) fn program(&mut self, program: Program) -> Arc<Program> {
        if let Some(known) = self.programs.get(&program) {
            return Arc::clone(known);
        }
        self.kept += KERNEL + program.letters();
        let program = Arc::new(program);
        self.programs.insert(Arc::clone(&program));
        program
    }

    /// The program with a generated body of a unit of a kernel, which is written unless it is known.
    pub(super) fn generated(&mut self, key: (u32, u32, Cut), made: impl FnOnce() -> Program) -> Arc<Program> {
        if let Some(known) = self.generated.get(&key) {
            return Arc::clone(known);
        }
        let program = self.program(made());
        self.kept += STAGE;
        self.generated.insert(key, Arc::clone(&program));
        program
    }
}

impl Lowered {
    fn new(kernel: &Kernel, number: u32) -> Self {
        let units = units(kernel);
        let (homes, scratch) = homes(kernel, &units);
        let widest = kernel.regs.iter().map(|reg| reg.ty.shape.elements() as u64).max().unwrap_or(1).max(1);
        let results = results(kernel);
        // Per register the level at which all that was written of it can be read.
        let mut ready = vec![0; kernel.regs.len()];
        let mut piece = |(number, unit): (usize, Unit)| {
            let stages = unit.stages(kernel);
            let read = stages.iter().flat_map(|stage| reads(stage));
            let level = read.map(|view| ready[view.reg as usize]).max().unwrap_or(0);
            for view in stages.iter().flat_map(|stage| writes(stage)) {
                let ready = &mut ready[view.reg as usize];
                *ready = (*ready).max(level + 1);
            }
            let recipe = recipe(kernel, &unit, &homes);
            let products = unit.products(kernel);
            let results = match (&unit, stages.as_slice()) {
                (Unit::Stage(_), [Stage::Lookup { dst, .. }]) => {
                    let reg = dst.reg as usize;
                    (homes[reg] == Home::Nowhere).then(|| results[reg].clone())
                }
                _ => None,
            };
            Piece { number: number as u32, unit, products, level, recipe, results }
        };
        let pieces = units.into_iter().enumerate().map(&mut piece).collect();
        let moved = moved(kernel, &homes);
        let level = |&result: &u32| ready[kernel.results[result as usize].reg as usize];
        let moved_level = moved.iter().map(level).max().unwrap_or(0);
        Self { number, pieces, homes, scratch, widest, moved, moved_level }
    }
}

/// Stages, instructions and registers of a kernel.
fn size(kernel: &Kernel) -> usize {
    let of = |stage: &Stage| if let Stage::Map { code, .. } = stage { code.len() } else { 1 };
    kernel.regs.len() + kernel.results.len() + kernel.stages.iter().map(of).sum::<usize>()
}

/// Where registers live, and the scratch words of a lane.
fn homes(kernel: &Kernel, units: &[Unit]) -> (Vec<Home>, u64) {
    let mut scratch = 0u64;
    let (in_memory, nowhere) = (in_memory(kernel, units), looked_up(kernel));
    let results = results(kernel);
    let whole = |reg: usize| {
        let is_whole = |&&result: &&u32| kernel.results[result as usize] == kernel.whole(reg as u32);
        results[reg].iter().find(is_whole).copied()
    };
    let mut home = |(number, reg): (usize, &Reg)| match reg.kind {
        RegKind::Port => Home::Port,
        RegKind::Const(bits) => Home::Const(bits),
        RegKind::Param(param) => Home::Param(param),
        RegKind::Edges => Home::Edges(results[number].first().copied()),
        RegKind::Temp if nowhere[number] => Home::Nowhere,
        RegKind::Temp => match whole(number) {
            Some(result) => Home::Result(result),
            None => {
                let home = Home::Scratch(scratch);
                scratch += if in_memory[number] { reg.ty.shape.elements() as u64 } else { 0 };
                home
            }
        },
    };
    let homes = kernel.regs.iter().enumerate().map(&mut home).collect();
    (homes, scratch)
}

/// Per register whether it is rows of a table that are looked up whole, and that nothing but results reads.
fn looked_up(kernel: &Kernel) -> Vec<bool> {
    let (mut looked_up, mut others) = (vec![false; kernel.regs.len()], vec![0; kernel.regs.len()]);
    for stage in &kernel.stages {
        for view in reads(stage).into_iter().chain(writes(stage)) {
            others[view.reg as usize] += 1;
        }
        if let Stage::Lookup { dst, .. } = stage {
            looked_up[dst.reg as usize] = *dst == kernel.whole(dst.reg);
        }
    }
    // The lookup itself is one of them.
    looked_up.iter().zip(others).map(|(&looked_up, others)| looked_up && others == 1).collect()
}

/// Per register the results that are any of it.
fn results(kernel: &Kernel) -> Vec<Vec<u32>> {
    let mut of = vec![Vec::new(); kernel.regs.len()];
    for (number, view) in (0..).zip(&kernel.results) {
        of[view.reg as usize].push(number);
    }
    of
}

/// The results that live elsewhere than where they are wanted: what is a port, a constant, part of a register, or
/// there already under another number.
fn moved(kernel: &Kernel, homes: &[Home]) -> Vec<u32> {
    let is_moved = |(number, view): (u32, &View)| match homes[view.reg as usize] {
        Home::Result(home) => home != number,
        Home::Edges(_) | Home::Nowhere => false,
        Home::Port | Home::Const(_) | Home::Param(_) | Home::Scratch(_) => true,
    };
    (0..).zip(&kernel.results).filter(|&result| is_moved(result)).map(|(number, _)| number).collect()
}

/// Per register whether a unit writes any of it to memory.
fn in_memory(kernel: &Kernel, units: &[Unit]) -> Vec<bool> {
    let mut written = vec![false; kernel.regs.len()];
    let mut note = |stage: usize| {
        for view in writes(&kernel.stages[stage]) {
            written[view.reg as usize] = true;
        }
    };
    for unit in units {
        match unit {
            Unit::Stage(stage) => note(*stage),
            Unit::Fused { products, tail } => {
                note(*tail);
                products.iter().filter(|product| product.kept).for_each(|product| note(product.stage));
            }
        }
    }
    written
}
