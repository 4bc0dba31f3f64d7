//! Compiles a kernel for tiles: assigns each register a location in the tile, and lowers its stages to tasks.
//!
//! *Needs* a kernel of a verified plan. *Ensures* that stages read and write strided rows. Ports are read from the
//! operand's field. Temporaries are matrices of `rows x width` in the memory of the tile. A temporary that is a whole
//! result of the kernel is written directly to the result's rows. Intermediate results of an elementwise stage share
//! memory when their lifetimes are disjoint, and hold one block of rows instead of a tile.

use super::cost::Cost;
use super::factors::{Factor, Turned, turned};
use super::register_uses::{read_by_rows, result_uses};
use autobatch_ir::graph::Op;
use autobatch_ir::plan::{
    Code, Instr, Kernel, ParamPort, ProdInit, ProductPart, RegId, RegKind, Source, Stage, View, WordLimit,
};
use autobatch_ir::types::DType;
use std::collections::HashMap;

/// The least bytes that the temporaries of a tile may take: they fit every L2 cache.
const TILE_BYTES: usize = 192 << 10;
/// Weights pass through the cache once per tile, so large weights deserve larger tiles: the temporaries may take the bytes
/// of the weights divided by this.
const WEIGHT_PART: usize = 4;
/// The most bytes that the temporaries of a tile may take.
const MAX_TILE_BYTES: usize = 1 << 20;
/// Block size of elementwise stages, in elements (at least one row). A stage runs all its instructions on one block
/// before the next block. Intermediate results then stay in the L1 cache and do not count towards the tile height.
const BLOCK_ELEMENTS: usize = 2048;
/// Rows of a tile are a multiple of this, the tallest register tile of the products.
pub(super) const TILE_STEP: usize = 14;
/// The maximum number of parts per product call. A longer chain continues from its result.
pub(super) const MAX_PARTS: usize = 4;
/// Floats of a cache line.
const LINE_FLOATS: usize = 16;
/// The maximum number of rows in a tile.
const MAX_TILE_ROWS: usize = 112;
/// The same with the loss of a label, whose rows are by far the largest of all weights.
const MAX_LABEL_TILE_ROWS: usize = 896;
/// The maximum number of operands of an elementwise instruction.
pub(super) const MAX_INPUTS: usize = 3;
/// The location of a register's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterLocation {
    /// The rows of the operand of this port.
    Port(u32),
    /// The whole of a parameter port.
    Param(ParamPort),
    /// The program's constants, from this float on.
    Const(usize),
    /// The tile, `rows * at` floats in.
    Tile(usize),
    /// The memory before the tile, `min(rows, lanes) * at` floats in; `rows` is the height of a block.
    Block { at: usize, rows: usize },
    /// The rows of this result.
    Result(u32),
    /// The rows of this result, one per list value of a lane.
    Edges(u32),
}

/// A register of a program: those of the kernel first, then one per constant and per unstored elementwise result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    pub(super) location: RegisterLocation,
    /// Elements of a row.
    pub(super) width: usize,
}

/// An operand or result of an elementwise instruction: the elements of a register from `start` on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) reg: RegId,
    pub(super) start: u32,
    /// True if a single element is used for all elements of the result.
    pub(super) single: bool,
    /// True if the register holds a block of rows.
    pub(super) in_block: bool,
}

#[derive(Clone, Debug)]
pub(super) struct MapInstr {
    pub(super) code: Code,
    pub(super) dtype: DType,
    pub(super) inputs: [Slot; MAX_INPUTS],
    pub(super) count: usize,
    pub(super) output: Slot,
}

#[derive(Clone, Debug)]
pub(super) struct MapStage {
    pub(super) width: usize,
    pub(super) block_rows: usize,
    pub(super) instrs: Vec<MapInstr>,
}

/// A weight of a product: some columns of a parameter, possibly transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Weight {
    pub(super) param: ParamPort,
    pub(super) transposed: bool,
    pub(super) col: u32,
    pub(super) width: u32,
}

/// Parts of a product that use successive rows of one weight.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The number of the weight in the program.
    pub(super) weight: usize,
    pub(super) parts: Vec<ProductPart>,
}

#[derive(Clone, Debug)]
pub(super) enum Task {
    Prod {
        dst: View,
        rows: u32,
        init: ProdInit,
        chains: Vec<Chain>,
    },
    Map(MapStage),
    /// The product of two values.
    Multiply {
        left: Factor,
        right: Factor,
        dst: View,
    },
    /// The stage of the kernel with this number: a row op, a fold or a lookup.
    Stage(usize),
}

/// A kernel compiled for tiles.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) registers: Vec<Register>,
    /// For each port, the tile memory of its gathered rows, if a stage other than a product or a fold reads them.
    pub(super) gathers: Vec<Option<usize>>,
    /// The results that are copied at the end: ports, constants, parameters, and parts of registers.
    pub(super) copies: Vec<(usize, View)>,
    pub(super) constants: Vec<f32>,
    /// The contents of `constants`, which are empty until [`fill_constants`](Self::fill_constants).
    fills: Vec<Fill>,
    pub(super) tasks: Vec<Task>,
    pub(super) weights: Vec<Weight>,
    /// Floats of the tile per row.
    pub(super) row_floats: usize,
    /// Floats before the tile: the size of the largest block.
    pub(super) block_floats: usize,
    pub(super) tile_rows: usize,
    pub(super) cost: Cost,
    /// The limits of bound words at ports.
    pub(super) word_limits: Vec<WordLimit>,
}

impl Program {
    /// Compiles a kernel. Stages write strided results directly if `direct`. Constants may be large, so
    /// [`fill_constants`](Self::fill_constants) makes them later.
    pub(super) fn new(kernel: &Kernel, direct: bool) -> Self {
        let mut builder = Builder::new(kernel, direct);
        let turned = turned(kernel);
        let stages = kernel.stages.iter().enumerate();
        let tasks = stages.filter_map(|(number, stage)| builder.task(number, stage, &turned)).collect();
        let row_floats = builder.row_floats.max(1);
        let bytes = (builder.weight_floats * 4 / WEIGHT_PART).clamp(TILE_BYTES, MAX_TILE_BYTES);
        let fit = bytes / 4 / row_floats / TILE_STEP * TILE_STEP;
        let is_direct = |number: usize, view: &View| {
            let location = builder.registers[view.reg.index()].location;
            [RegisterLocation::Result(number as u32), RegisterLocation::Edges(number as u32)]
                .contains(&location)
        };
        let results = kernel.results.iter().copied().enumerate();
        let has_labels = kernel.stages.iter().any(|stage| matches!(stage, Stage::LabelLoss { .. }));
        Self {
            copies: results.filter(|(number, view)| !is_direct(*number, view)).collect(),
            registers: builder.registers,
            gathers: builder.gathers,
            constants: Vec::new(),
            fills: builder.fills,
            tasks,
            weights: builder.weights,
            row_floats,
            block_floats: builder.block_floats.next_multiple_of(LINE_FLOATS),
            tile_rows: fit.clamp(TILE_STEP, if has_labels { MAX_LABEL_TILE_ROWS } else { MAX_TILE_ROWS }),
            cost: Cost::of(kernel),
            word_limits: kernel.word_limits(),
        }
    }

    /// Makes the constants. Returns `None` if the allocation fails.
    pub(super) fn fill_constants(&mut self) -> Option<()> {
        self.constants.try_reserve_exact(self.constant_floats()).ok()?;
        for &Fill { bits, len } in &self.fills {
            self.constants.resize(self.constants.len() + len, f32::from_bits(bits));
        }
        Some(())
    }

    /// Floats of the constants.
    pub(super) fn constant_floats(&self) -> usize {
        self.fills.iter().map(|fill| fill.len).sum()
    }

    /// Floats of a tile for `lanes` lanes, including blocks; `None` on overflow.
    pub(super) fn tile_floats(&self, lanes: usize) -> Option<usize> {
        self.row_floats.checked_mul(lanes.min(self.tile_rows))?.checked_add(self.block_floats)
    }
}

/// Constants with equal bits.
#[derive(Clone, Copy, Debug)]
struct Fill {
    bits: u32,
    len: usize,
}

struct Builder {
    /// The elements of each parameter port.
    params: Vec<usize>,
    registers: Vec<Register>,
    gathers: Vec<Option<usize>>,
    fills: Vec<Fill>,
    constant_floats: usize,
    weights: Vec<Weight>,
    /// The number of each weight.
    numbers: HashMap<Weight, usize>,
    row_floats: usize,
    /// Elements of the weights of all products.
    weight_floats: usize,
    block_floats: usize,
}

impl Builder {
    fn new(kernel: &Kernel, direct: bool) -> Self {
        let mut builder = Self {
            params: kernel.params.iter().map(|ty| ty.shape.elements()).collect(),
            registers: Vec::with_capacity(kernel.regs.len()),
            gathers: vec![None; kernel.ports as usize],
            fills: Vec::new(),
            constant_floats: 0,
            weights: Vec::new(),
            numbers: HashMap::new(),
            row_floats: 0,
            weight_floats: 0,
            block_floats: 0,
        };
        let results = result_uses(kernel);
        for (number, reg) in kernel.regs.iter().enumerate() {
            let width = reg.ty.shape.elements();
            let location = match reg.kind {
                RegKind::Port => RegisterLocation::Port(number as u32),
                RegKind::Param(port) => RegisterLocation::Param(port),
                // Edges that are no result are never written (plan rule on gradients of folds).
                RegKind::Edges => RegisterLocation::Edges(results[number].first),
                RegKind::Const(bits) => RegisterLocation::Const(builder.constant(bits, width)),
                RegKind::Temp if direct && results[number].is_whole => {
                    RegisterLocation::Result(results[number].first)
                }
                RegKind::Temp => RegisterLocation::Tile(builder.reserve(width)),
            };
            builder.registers.push(Register { location, width });
        }
        let by_rows = read_by_rows(kernel);
        for port in (0..kernel.ports).map(RegId) {
            if by_rows[port.index()] {
                builder.gathers[port.index()] = Some(builder.reserve(kernel.whole(port).width as usize));
            }
        }
        builder
    }

    fn reserve(&mut self, width: usize) -> usize {
        reserve(&mut self.row_floats, width)
    }

    fn constant(&mut self, bits: u32, width: usize) -> usize {
        let at = self.constant_floats;
        self.fills.push(Fill { bits, len: width });
        self.constant_floats += width;
        at
    }

    /// The task of a stage; none of a transpose that products read as a view.
    fn task(&mut self, number: usize, stage: &Stage, turned: &Turned) -> Option<Task> {
        Some(match stage {
            Stage::Prod { dst, rows, init, parts } => {
                let (rows_of_value, width) = (*rows as usize, dst.width as usize);
                let k = parts.iter().map(|p| p.source.width as usize).sum::<usize>() / rows_of_value;
                self.weight_floats += k * width / rows_of_value;
                Task::Prod { dst: *dst, rows: *rows, init: *init, chains: self.chains(*dst, *rows, parts) }
            }
            Stage::Map { width, code } => Task::Map(self.map(*width as usize, code)),
            Stage::LabelLoss { param, .. } => {
                let elements = self.params[param.index()];
                self.weight_floats += elements;
                Task::Stage(number)
            }
            Stage::Row { op: Op::Transpose(_), dsts, .. } if turned.contains_key(&dsts[0]) => return None,
            Stage::Row { op: Op::Matmul, sources, dsts } => {
                let [left, right] = [0, 1].map(|place| Factor::of(turned, sources[place]));
                Task::Multiply { left, right, dst: dsts[0] }
            }
            _ => Task::Stage(number),
        })
    }

    /// Groups parts that use successive rows of one weight, up to [`MAX_PARTS`] each.
    fn chains(&mut self, dst: View, rows: u32, parts: &[ProductPart]) -> Vec<Chain> {
        let width = dst.width / rows;
        let mut chains: Vec<Chain> = Vec::new();
        for part in parts {
            let weight = Weight { param: part.param, transposed: part.transposed, col: part.col, width };
            let next = self.weights.len();
            let number = *self.numbers.entry(weight).or_insert(next);
            if number == next {
                self.weights.push(weight);
            }
            let continues = |chain: &&mut Chain| {
                let follows = chain.parts.last().is_some_and(|p| p.row + p.source.width / rows == part.row);
                chain.weight == number && chain.parts.len() < MAX_PARTS && follows
            };
            match chains.last_mut().filter(continues) {
                Some(chain) => chain.parts.push(*part),
                None => chains.push(Chain { weight: number, parts: vec![*part] }),
            }
        }
        chains
    }

    /// Lowers an elementwise stage. Registers of unstored results are reused after the last instruction that reads them.
    fn map(&mut self, width: usize, code: &[Instr]) -> MapStage {
        let mut last_use = vec![0; code.len()];
        for (number, instr) in code.iter().enumerate() {
            for source in &instr.sources {
                if let Source::Local(local) = source {
                    last_use[*local as usize] = number;
                }
            }
        }
        let block_rows = (BLOCK_ELEMENTS / width.max(1)).clamp(1, MAX_TILE_ROWS);
        let mut floats = 0;
        let mut free: Vec<RegId> = Vec::new();
        let mut ended: Vec<usize> = Vec::new();
        let mut outputs: Vec<Slot> = Vec::with_capacity(code.len());
        let mut instrs = Vec::with_capacity(code.len());
        for (number, instr) in code.iter().enumerate() {
            let mut inputs = [Slot::default(); MAX_INPUTS];
            for (slot, source) in inputs.iter_mut().zip(&instr.sources) {
                *slot = self.input(source, &outputs);
            }
            let output = match instr.store {
                Some(view) => slot(view, false),
                None => {
                    let reg = free.pop().unwrap_or_else(|| {
                        let at = reserve(&mut floats, width);
                        self.register(RegisterLocation::Block { at, rows: block_rows }, width)
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
            // Results that are read here for the last time, and this result if no instruction reads it.
            ended.clear();
            ended.extend(instr.sources.iter().filter_map(|source| match source {
                Source::Local(local) if last_use[*local as usize] == number => Some(*local as usize),
                _ => None,
            }));
            ended.sort_unstable();
            ended.dedup();
            ended.extend((last_use[number] <= number).then_some(number));
            let unstored = ended.iter().filter(|&&local| code[local].store.is_none());
            free.extend(unstored.map(|&local| outputs[local].reg));
        }
        self.block_floats = self.block_floats.max(floats * block_rows);
        MapStage { width, block_rows, instrs }
    }

    fn register(&mut self, location: RegisterLocation, width: usize) -> RegId {
        self.registers.push(Register { location, width });
        RegId(self.registers.len() as u32 - 1)
    }

    fn input(&mut self, source: &Source, outputs: &[Slot]) -> Slot {
        match source {
            Source::View(view) => slot(*view, false),
            Source::Scalar(view) => slot(*view, true),
            Source::Const(bits) => {
                let location = RegisterLocation::Const(self.constant(*bits, 1));
                Slot { reg: self.register(location, 1), single: true, ..Slot::default() }
            }
            Source::Local(local) => outputs[*local as usize],
        }
    }
}

fn slot(view: View, single: bool) -> Slot {
    Slot { reg: view.reg, start: view.start, single, in_block: false }
}

/// Reserves floats for a row after others. A row at least as wide as a cache line is aligned to lines, for tiles of one row.
fn reserve(floats: &mut usize, width: usize) -> usize {
    let line = if width < LINE_FLOATS { 1 } else { LINE_FLOATS };
    let at = floats.next_multiple_of(line);
    *floats = at + width;
    at
}
