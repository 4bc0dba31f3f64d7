//! A kernel made ready for tiles: where each register lies while a tile of lanes is executed.
//!
//! *Needs* a kernel of a verified plan. *Ensures* homes for all registers such that stages read and
//! write plain strided rows: ports are read where the operand is, temporaries lie in the tile's own
//! memory (a matrix of `rows x width` each), and a temporary that is a whole result of the kernel
//! lies in the result's rows themselves, so that nothing is copied at the end. Results of
//! elementwise instructions that only their own stage reads share memory as soon as they are dead, and hold
//! a block of rows, not a tile.

use autobatch_ir::plan::{
    Code, Instr, Kernel, ListSource, Part, ProdInit, RegKind, Source, Stage, View, WordLimit,
};
use autobatch_ir::types::DType;
use std::collections::HashMap;

/// Bytes of temporaries that a tile may fill: a part of every second-level cache.
const TILE_BYTES: usize = 192 << 10;
/// Weights go through the cache once for every tile: temporaries may fill this part of their size, if that is more ...
const WEIGHT_PART: usize = 4;
/// ... up to so many bytes.
const TILE_MOST_BYTES: usize = 1 << 20;
/// Elements that an elementwise instruction computes before the next has its turn, or those of one row: results that
/// only their own stage reads stay in the first-level cache, and the tile is as tall as if there were none.
const BLOCK_ELEMENTS: usize = 2048;
/// Rows of a tile are a multiple of this, the tallest register tile of the products.
pub(super) const TILE_STEP: usize = 14;
/// The most parts of a product that are executed at once; a longer chain goes on from its result.
pub(super) const MOST_PARTS: usize = 4;
/// Floats of a cache line.
const LINE_FLOATS: usize = 16;
/// The most rows in a tile.
const TILE_MOST: usize = 112;

/// Where a register's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Where the operand of this port is.
    Port(u32),
    /// A parameter port, whole.
    Param(u32),
    /// In the program's constants, from this float on.
    Const(usize),
    /// In the tile, `rows * at` floats in.
    Tile(usize),
    /// Before the tile, `rows * at` floats in, where no more than so many rows are a block.
    Block { at: usize, rows: usize },
    /// In the rows of this result.
    Result(u32),
    /// In the rows of this result, as many a lane as its list has values.
    Edges(u32),
}

/// A register of a program: those of its kernel, and behind them one for each constant and each result
/// without a register of elementwise stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    pub(super) home: Home,
    /// Elements of a row.
    pub(super) width: usize,
}

/// What an elementwise instruction reads or writes: the elements of a register from `start` on, or one of
/// them that stands for all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) reg: u32,
    pub(super) start: u32,
    pub(super) single: bool,
    /// Whether the register holds a block of rows.
    pub(super) in_block: bool,
}

/// The most operands of an elementwise instruction.
pub(super) const MOST_INPUTS: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct MapInstr {
    pub(super) code: Code,
    pub(super) dtype: DType,
    pub(super) inputs: [Slot; MOST_INPUTS],
    /// How many of them there are.
    pub(super) count: usize,
    pub(super) output: Slot,
}

#[derive(Clone, Debug)]
pub(super) struct MapStage {
    pub(super) width: usize,
    /// Rows of a block.
    pub(super) block_rows: usize,
    pub(super) instrs: Vec<MapInstr>,
}

/// A weight that a product meets: some columns of a parameter, perhaps transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Weight {
    pub(super) param: u32,
    pub(super) transposed: bool,
    pub(super) col: u32,
    pub(super) width: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Task {
    Prod {
        dst: View,
        rows: u32,
        init: ProdInit,
        chains: Vec<(usize, Vec<Part>)>,
    },
    Map(MapStage),
    /// The stage of the kernel with this number: a row op, a fold or a lookup.
    Other(usize),
}

/// A kernel with homes.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) registers: Vec<Register>,
    /// Per port: where in the tile its rows are gathered if they come through a table and a stage
    /// other than a product or a fold reads them.
    pub(super) gathers: Vec<Option<usize>>,
    /// The results that are copied at the end, because they are no homes: ports, constants, parameters, parts
    /// of registers.
    pub(super) copies: Vec<(usize, View)>,
    pub(super) constants: Vec<f32>,
    pub(super) tasks: Vec<Task>,
    pub(super) weights: Vec<Weight>,
    /// Floats of the tile per row.
    pub(super) row_floats: usize,
    /// Floats before the tile: the most that a block takes.
    pub(super) block_floats: usize,
    pub(super) tile_rows: usize,
    /// A rough count of floating-point operations per row, for splitting work.
    pub(super) row_work: usize,
    /// What bound words at ports must be below.
    pub(super) word_limits: Vec<WordLimit>,
}

impl Program {
    /// `in_place` says whether results may be homes: rows through a table are not side by side. `None` if there is no
    /// memory for its constants.
    pub(super) fn new(kernel: &Kernel, in_place: bool) -> Option<Self> {
        let mut builder = Builder::new(kernel, in_place)?;
        let tasks =
            kernel.stages.iter().enumerate().map(|(number, stage)| builder.task(number, stage)).collect();
        let row_floats = builder.row_floats.max(1);
        let bytes = (builder.weight_floats * 4 / WEIGHT_PART).clamp(TILE_BYTES, TILE_MOST_BYTES);
        let fit = bytes / 4 / row_floats / TILE_STEP * TILE_STEP;
        let is_home = |number: usize, view: &View| {
            let home = builder.registers[view.reg as usize].home;
            home == Home::Result(number as u32) || home == Home::Edges(number as u32)
        };
        let results = kernel.results.iter().copied().enumerate();
        Some(Self {
            copies: results.filter(|(number, view)| !is_home(*number, view)).collect(),
            registers: builder.registers,
            gathers: builder.gathers,
            constants: builder.constants,
            tasks,
            weights: builder.weights,
            row_floats,
            block_floats: builder.block_floats.next_multiple_of(LINE_FLOATS),
            tile_rows: fit.clamp(TILE_STEP, TILE_MOST),
            row_work: builder.work,
            word_limits: kernel.word_limits(),
        })
    }

    /// Floats of the tile in which so many lanes are executed, those of blocks included; `None` are more than can be counted.
    pub(super) fn tile_floats(&self, lanes: usize) -> Option<usize> {
        self.row_floats.checked_mul(lanes.min(self.tile_rows))?.checked_add(self.block_floats)
    }
}

struct Builder {
    registers: Vec<Register>,
    gathers: Vec<Option<usize>>,
    constants: Vec<f32>,
    weights: Vec<Weight>,
    /// The places of weights among them.
    numbers: HashMap<Weight, usize>,
    row_floats: usize,
    /// Elements of the weights that products meet, those of each product.
    weight_floats: usize,
    block_floats: usize,
    work: usize,
}

impl Builder {
    fn new(kernel: &Kernel, in_place: bool) -> Option<Self> {
        let mut builder = Self {
            registers: Vec::with_capacity(kernel.regs.len()),
            gathers: vec![None; kernel.ports as usize],
            constants: Vec::new(),
            weights: Vec::new(),
            numbers: HashMap::new(),
            row_floats: 0,
            weight_floats: 0,
            block_floats: 0,
            work: 1,
        };
        builder.constants.try_reserve_exact(constant_floats(kernel)).ok()?;
        let results = results_of(kernel);
        for (number, reg) in kernel.regs.iter().enumerate() {
            let width = reg.ty.shape.elements();
            let home = match reg.kind {
                RegKind::Port => Home::Port(number as u32),
                RegKind::Param(port) => Home::Param(port),
                // Edges that are no result are not written (plan rule on gradients of folds).
                RegKind::Edges => Home::Edges(results[number].first),
                RegKind::Const(bits) => Home::Const(builder.constant(bits, width)),
                RegKind::Temp if in_place && results[number].is_whole => Home::Result(results[number].first),
                RegKind::Temp => Home::Tile(builder.reserve(width)),
            };
            builder.registers.push(Register { home, width });
        }
        let by_rows = read_by_rows(kernel);
        for number in 0..kernel.ports {
            if by_rows[number as usize] {
                builder.gathers[number as usize] = Some(builder.reserve(kernel.whole(number).width as usize));
            }
        }
        Some(builder)
    }

    fn reserve(&mut self, width: usize) -> usize {
        place(&mut self.row_floats, width)
    }

    fn constant(&mut self, bits: u32, width: usize) -> usize {
        let at = self.constants.len();
        self.constants.resize(at + width, f32::from_bits(bits));
        at
    }

    fn task(&mut self, number: usize, stage: &Stage) -> Task {
        match stage {
            Stage::Prod { dst, rows, init, parts } => {
                let (rows_of_value, width) = (*rows as usize, dst.width as usize);
                let k = parts.iter().map(|p| p.source.width as usize).sum::<usize>() / rows_of_value;
                self.weight_floats += k * width / rows_of_value;
                self.work += 2 * k * width;
                Task::Prod { dst: *dst, rows: *rows, init: *init, chains: self.chains(*dst, *rows, parts) }
            }
            Stage::Map { width, code } => Task::Map(self.map(*width as usize, code)),
            Stage::Row { sources, .. } => {
                self.work += sources.iter().map(|(view, _)| 20 * view.width as usize).sum::<usize>();
                Task::Other(number)
            }
            Stage::Seg { dst, .. } => {
                self.work += 10 * dst.width as usize;
                Task::Other(number)
            }
            Stage::SegGrad { dy, lists, .. } => {
                self.work += 40 * lists.len() * dy.width as usize;
                Task::Other(number)
            }
            Stage::Lookup { dst, .. } => {
                self.work += dst.width as usize;
                Task::Other(number)
            }
        }
    }

    /// Parts that meet successive rows of one weight are one chain, up to so many.
    fn chains(&mut self, dst: View, rows: u32, parts: &[Part]) -> Vec<(usize, Vec<Part>)> {
        let mut chains: Vec<(usize, Vec<Part>)> = Vec::new();
        for part in parts {
            let width = dst.width / rows;
            let weight = Weight { param: part.param, transposed: part.transposed, col: part.col, width };
            let next = self.weights.len();
            let number = *self.numbers.entry(weight).or_insert(next);
            if number == next {
                self.weights.push(weight);
            }
            match chains.last_mut() {
                Some((last, chain))
                    if *last == number
                        && chain.len() < MOST_PARTS
                        && chain.last().is_some_and(|p| p.row + p.source.width / rows == part.row) =>
                {
                    chain.push(*part);
                }
                _ => chains.push((number, vec![*part])),
            }
        }
        chains
    }

    fn map(&mut self, width: usize, code: &[Instr]) -> MapStage {
        let mut last_use = vec![0; code.len()];
        for (number, instr) in code.iter().enumerate() {
            for source in &instr.sources {
                if let Source::Local(local) = source {
                    last_use[*local as usize] = number;
                }
            }
            self.work += 8 * width;
        }
        // Registers of results without one: free again after the last instruction that reads them.
        let block_rows = (BLOCK_ELEMENTS / width.max(1)).max(1);
        let mut floats = 0;
        let mut free: Vec<u32> = Vec::new();
        let mut ended: Vec<usize> = Vec::new();
        let mut outputs: Vec<Slot> = Vec::with_capacity(code.len());
        let mut instrs = Vec::with_capacity(code.len());
        for (number, instr) in code.iter().enumerate() {
            let mut inputs = [Slot::default(); MOST_INPUTS];
            for (slot, source) in inputs.iter_mut().zip(&instr.sources) {
                *slot = self.input(source, &outputs);
            }
            let output = match instr.store {
                Some(view) => slot(view, false),
                None => {
                    let reg = free.pop().unwrap_or_else(|| {
                        let at = place(&mut floats, width);
                        self.register(Home::Block { at, rows: block_rows }, width)
                    });
                    Slot { reg, in_block: true, ..Slot::default() }
                }
            };
            outputs.push(output);
            instrs.push(MapInstr {
                code: instr.code,
                dtype: instr.dtype,
                inputs,
                count: instr.sources.len(),
                output,
            });
            // What is read here for the last time, and this result itself if nobody reads it.
            ended.clear();
            ended.extend(instr.sources.iter().filter_map(|source| match source {
                Source::Local(local) if last_use[*local as usize] == number => Some(*local as usize),
                _ => None,
            }));
            ended.sort_unstable();
            ended.dedup();
            ended.extend((last_use[number] <= number).then_some(number));
            let homeless = ended.iter().filter(|&&local| code[local].store.is_none());
            free.extend(homeless.map(|&local| outputs[local].reg));
        }
        self.block_floats = self.block_floats.max(floats * block_rows.min(TILE_MOST));
        MapStage { width, block_rows, instrs }
    }

    fn register(&mut self, home: Home, width: usize) -> u32 {
        self.registers.push(Register { home, width });
        self.registers.len() as u32 - 1
    }

    fn input(&mut self, source: &Source, outputs: &[Slot]) -> Slot {
        match source {
            Source::View(view) => slot(*view, false),
            Source::Scalar(view) => slot(*view, true),
            Source::Const(bits) => {
                let home = Home::Const(self.constant(*bits, 1));
                Slot { reg: self.register(home, 1), single: true, ..Slot::default() }
            }
            Source::Local(local) => outputs[*local as usize],
        }
    }
}

fn slot(view: View, single: bool) -> Slot {
    Slot { reg: view.reg, start: view.start, single, in_block: false }
}

/// Room for a row behind others. One as wide as a cache line begins with a line where there is a single row of each.
fn place(floats: &mut usize, width: usize) -> usize {
    let line = if width < LINE_FLOATS { 1 } else { LINE_FLOATS };
    let at = floats.next_multiple_of(line);
    *floats = at + width;
    at
}

/// Which results a register is.
#[derive(Clone, Copy)]
struct ResultsOf {
    /// The first; `u32::MAX` if it is none.
    first: u32,
    /// Whether it is exactly one whole result.
    is_whole: bool,
}

/// Per register of a kernel, which results it is.
fn results_of(kernel: &Kernel) -> Vec<ResultsOf> {
    let mut found = vec![ResultsOf { first: u32::MAX, is_whole: false }; kernel.regs.len()];
    for (number, view) in (0..).zip(&kernel.results) {
        let own = &mut found[view.reg as usize];
        *own = match own.first {
            u32::MAX => ResultsOf { first: number, is_whole: *view == kernel.whole(view.reg) },
            first => ResultsOf { first, is_whole: false },
        };
    }
    found
}

/// Floats of the registers of a kernel whose elements are constant.
pub(super) fn constant_floats(kernel: &Kernel) -> usize {
    let constants = kernel.regs.iter().filter(|reg| matches!(reg.kind, RegKind::Const(_)));
    constants.map(|reg| reg.ty.shape.elements()).sum()
}

/// Per register whether it is a port that takes a value, and a stage that reads rows side by side (not a product, not a fold of a list
/// port) or a result reads it.
fn read_by_rows(kernel: &Kernel) -> Vec<bool> {
    let mut read = vec![false; kernel.regs.len()];
    let mut see = |view: &View| read[view.reg as usize] = true;
    for stage in &kernel.stages {
        match stage {
            Stage::Prod { rows: 1, .. } => {}
            Stage::Prod { parts, init, .. } => {
                if let ProdInit::View(view) = init {
                    see(view);
                }
                parts.iter().for_each(|part| see(&part.source));
            }
            Stage::Map { code, .. } => {
                for source in code.iter().flat_map(|instr| &instr.sources) {
                    match source {
                        Source::View(view) | Source::Scalar(view) => see(view),
                        Source::Local(_) | Source::Const(_) => {}
                    }
                }
            }
            Stage::Row { sources, .. } => sources.iter().for_each(|(view, _)| see(view)),
            Stage::Seg { query, lists, .. } => {
                query.iter().for_each(&mut see);
                for list in lists {
                    if let ListSource::Views(items) = list {
                        items.iter().for_each(&mut see);
                    }
                }
            }
            Stage::SegGrad { query, dy, .. } => query.iter().chain([dy]).for_each(&mut see),
            Stage::Lookup { index, .. } => see(index),
        }
    }
    kernel.results.iter().for_each(&mut see);
    read.iter_mut().zip(&kernel.regs).for_each(|(read, reg)| *read &= !reg.ty.is_list);
    read
}
