//! Lowering of kernels: everything that depends on a kernel alone. It is computed once per kernel and cached across
//! plans, because the plans of one model and of one planner share their kernels.

use super::cost::Generated;
use super::map::{Recipe, Variant};
use super::product::recipe;
use super::units::{Fused, Unit, units};
use crate::module::Program;
use autobatch_ir::plan::{Kernel, ParamPort, Reg, RegId, RegKind, Stage, View};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes that the cache holds, about. A larger one is cleared before the next plan.
const MAX_BYTES: usize = 64 << 20;

/// Estimated bytes of a kernel or a program, and of a stage or a register.
const KERNEL_BYTES: usize = 512;
const STAGE_BYTES: usize = 128;

/// The location of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RegisterLocation {
    /// In the rows of the operand.
    Port,
    /// In a run of words with these bits.
    Const(u32),
    /// In a run of words that are a parameter.
    Param(ParamPort),
    /// In the rows of a result.
    Result(u32),
    /// In scratch rows, from this word of a lane on.
    Scratch(u64),
    /// In the edges of a result, or nowhere if no result takes them.
    Edges(Option<u32>),
    /// Not stored: results look the row up in the table themselves.
    LookupOnly,
}

/// A unit of a kernel with everything that steps need of it.
#[derive(Debug)]
pub(super) struct LoweredUnit {
    pub(super) number: u32,
    pub(super) unit: Unit,
    pub(super) products: Vec<Fused>,
    /// The length of the longest chain of units that it depends on.
    pub(super) level: u32,
    /// The words of the record that its code reads; empty for stages without code.
    pub(super) recipe: Recipe,
    /// For a lookup that is not stored: the results that take its row.
    pub(super) results: Option<Vec<u32>>,
}

#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) number: u32,
    pub(super) units: Vec<LoweredUnit>,
    pub(super) locations: Vec<RegisterLocation>,
    /// Scratch words of a lane.
    pub(super) scratch: u64,
    pub(super) widest: u64,
    /// The results whose registers are stored elsewhere.
    pub(super) moved: Vec<u32>,
    /// The level at which all of these can be read.
    pub(super) moved_level: u32,
}

/// Lowered kernels and programs, kept across plans.
#[derive(Debug, Default)]
pub(crate) struct LoweringCache {
    /// The numbers of kernels, by the addresses that `kernels` keeps alive.
    numbers: HashMap<usize, u32>,
    kernels: Vec<(Arc<Kernel>, Arc<Lowered>)>,
    /// Equal programs are shared, so their addresses identify them.
    programs: HashSet<Arc<Program>>,
    /// By the numbers of kernel and unit, and the variant of products.
    generated: HashMap<(u32, u32, Option<Variant>), Arc<Program>>,
    /// Counts over the code of programs, by their addresses.
    counts: HashMap<usize, Generated>,
    /// Bytes of all, about.
    bytes: usize,
}

impl LoweringCache {
    /// Clears the cache if it is large. Numbers are valid while one plan is compiled.
    pub(super) fn trim(&mut self) {
        if self.bytes > MAX_BYTES {
            *self = Self::default();
        }
    }

    pub(super) fn kernel(&mut self, kernel: &Arc<Kernel>) -> Arc<Lowered> {
        let next = self.kernels.len() as u32;
        let number = *self.numbers.entry(Arc::as_ptr(kernel) as usize).or_insert(next);
        if number == next {
            let lowered = Arc::new(Lowered::new(kernel, next));
            self.kernels.push((Arc::clone(kernel), lowered));
            self.bytes += KERNEL_BYTES + STAGE_BYTES * size(kernel);
        }
        Arc::clone(&self.kernels[number as usize].1)
    }

    /// The shared copy of a program.
    pub(super) fn program(&mut self, program: Program) -> Arc<Program> {
        if let Some(known) = self.programs.get(&program) {
            return Arc::clone(known);
        }
        self.bytes += KERNEL_BYTES + program.generated_len();
        let program = Arc::new(program);
        self.programs.insert(Arc::clone(&program));
        program
    }

    /// Counts over the code of a program of this cache. Counting it takes longer than all else of a known program.
    pub(super) fn counts_of(&mut self, program: &Arc<Program>) -> Generated {
        *self.counts.entry(Arc::as_ptr(program) as usize).or_insert_with(|| Generated::of(program))
    }

    /// The program with generated code of a unit of a kernel. `generate` runs if the cache does not have it.
    pub(super) fn generated(
        &mut self,
        key: (u32, u32, Option<Variant>),
        generate: impl FnOnce() -> Program,
    ) -> Arc<Program> {
        if let Some(known) = self.generated.get(&key) {
            return Arc::clone(known);
        }
        let program = self.program(generate());
        self.bytes += STAGE_BYTES;
        self.generated.insert(key, Arc::clone(&program));
        program
    }
}

impl Lowered {
    fn new(kernel: &Kernel, number: u32) -> Self {
        let units = units(kernel);
        let (locations, scratch) = locations(kernel, &units);
        let widest = kernel.regs.iter().map(|reg| reg.ty.shape.elements() as u64).max().unwrap_or(1).max(1);
        let results = results(kernel);
        // For each register the level at which everything that was written of it can be read.
        let mut ready = vec![0; kernel.regs.len()];
        let mut lower = |(number, unit): (usize, Unit)| {
            let stages = unit.stages(kernel);
            let read = stages.iter().flat_map(|stage| stage.reads());
            let level = read.map(|view| ready[view.reg.index()]).max().unwrap_or(0);
            for view in stages.iter().flat_map(|stage| stage.writes()) {
                let ready = &mut ready[view.reg.index()];
                *ready = (*ready).max(level + 1);
            }
            let recipe = recipe(kernel, &unit, &locations);
            let products = unit.products(kernel);
            let results = match (&unit, stages.as_slice()) {
                (Unit::Stage(_), [Stage::Lookup { dst, .. }]) => {
                    let reg = dst.reg.index();
                    (locations[reg] == RegisterLocation::LookupOnly).then(|| results[reg].clone())
                }
                _ => None,
            };
            LoweredUnit { number: number as u32, unit, products, level, recipe, results }
        };
        let units = units.into_iter().enumerate().map(&mut lower).collect();
        let moved = moved(kernel, &locations);
        let level = |&result: &u32| ready[kernel.results[result as usize].reg.index()];
        let moved_level = moved.iter().map(level).max().unwrap_or(0);
        Self { number, units, locations, scratch, widest, moved, moved_level }
    }
}

/// The number of stages, instructions, registers and results of a kernel.
fn size(kernel: &Kernel) -> usize {
    let of = |stage: &Stage| if let Stage::Map { code, .. } = stage { code.len() } else { 1 };
    kernel.regs.len() + kernel.results.len() + kernel.stages.iter().map(of).sum::<usize>()
}

/// The locations of registers, and the scratch words of a lane.
fn locations(kernel: &Kernel, units: &[Unit]) -> (Vec<RegisterLocation>, u64) {
    let mut scratch = 0u64;
    let (in_memory, lookup_only) = (in_memory(kernel, units), lookup_only(kernel));
    let results = results(kernel);
    let whole = |reg: usize| {
        let is_whole = |&&result: &&u32| kernel.results[result as usize] == kernel.whole(RegId(reg as u32));
        results[reg].iter().find(is_whole).copied()
    };
    let mut location = |(number, reg): (usize, &Reg)| match reg.kind {
        RegKind::Port => RegisterLocation::Port,
        RegKind::Const(bits) => RegisterLocation::Const(bits),
        RegKind::Param(param) => RegisterLocation::Param(param),
        RegKind::Edges => RegisterLocation::Edges(results[number].first().copied()),
        RegKind::Temp if lookup_only[number] => RegisterLocation::LookupOnly,
        RegKind::Temp => match whole(number) {
            Some(result) => RegisterLocation::Result(result),
            None => {
                let location = RegisterLocation::Scratch(scratch);
                scratch += if in_memory[number] { reg.ty.shape.elements() as u64 } else { 0 };
                location
            }
        },
    };
    let locations = kernel.regs.iter().enumerate().map(&mut location).collect();
    (locations, scratch)
}

/// For each register whether it is a row of a table, looked up whole, that only results read.
fn lookup_only(kernel: &Kernel) -> Vec<bool> {
    let (mut looked_up, mut uses) = (vec![false; kernel.regs.len()], vec![0; kernel.regs.len()]);
    for stage in &kernel.stages {
        for view in stage.reads().into_iter().chain(stage.writes()) {
            uses[view.reg.index()] += 1;
        }
        if let Stage::Lookup { dst, .. } = stage {
            looked_up[dst.reg.index()] = *dst == kernel.whole(dst.reg);
        }
    }
    // The lookup itself is the one use.
    looked_up.iter().zip(uses).map(|(&looked_up, uses)| looked_up && uses == 1).collect()
}

/// For each register the results that are any of it.
fn results(kernel: &Kernel) -> Vec<Vec<u32>> {
    let mut of = vec![Vec::new(); kernel.regs.len()];
    for (number, view) in (0..).zip(&kernel.results) {
        of[view.reg.index()].push(number);
    }
    of
}

/// The results whose registers are stored elsewhere: ports, constants, parts of registers, and repeated results.
fn moved(kernel: &Kernel, locations: &[RegisterLocation]) -> Vec<u32> {
    let is_moved = |(number, view): (u32, &View)| match locations[view.reg.index()] {
        RegisterLocation::Result(own) => own != number,
        RegisterLocation::Edges(_) | RegisterLocation::LookupOnly => false,
        RegisterLocation::Port
        | RegisterLocation::Const(_)
        | RegisterLocation::Param(_)
        | RegisterLocation::Scratch(_) => true,
    };
    (0..).zip(&kernel.results).filter(|&result| is_moved(result)).map(|(number, _)| number).collect()
}

/// For each register whether a unit writes any of it to memory.
fn in_memory(kernel: &Kernel, units: &[Unit]) -> Vec<bool> {
    let mut written = vec![false; kernel.regs.len()];
    let mut note = |stage: usize| {
        for view in kernel.stages[stage].writes() {
            written[view.reg.index()] = true;
        }
    };
    for unit in units {
        match unit {
            Unit::Stage(stage) => note(*stage),
            Unit::Fused { products, epilogue } => {
                note(*epilogue);
                products.iter().filter(|product| product.stored).for_each(|product| note(product.stage));
            }
        }
    }
    written
}
