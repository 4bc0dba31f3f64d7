//! Products, alone or with an epilogue: one segment, whatever the epilogue computes.

use super::kernels::{LoweredUnit, RegisterLocation};
use super::layout::Stored;
use super::map::{self, Body, Recipe, Variant};
use super::record::Record;
use super::step::Lanes;
use super::units::{Fused, Unit};
use super::wave::Threads;
use crate::error::GpuError;
use crate::module::{BLOCK_HEAD, LoadWidth, MAX_GROUPS, PART, Products, Program, Tile};
use autobatch_ir::plan::{Kernel, ParamPort, ProdInit, ProductPart, Stage, View};

/// A product of the unit.
struct Product<'k> {
    dst: View,
    rows: u32,
    init: ProdInit,
    parts: &'k [ProductPart],
    fused: &'k Fused,
}

impl<'k> Product<'k> {
    fn all(kernel: &'k Kernel, fused: &'k [Fused]) -> Vec<Self> {
        let product = |fused: &'k Fused| match &kernel.stages[fused.stage] {
            Stage::Prod { dst, rows, init, parts } => {
                Some(Self { dst: *dst, rows: *rows, init: *init, parts, fused })
            }
            _ => None,
        };
        fused.iter().filter_map(product).collect()
    }

    /// The first column of each group.
    fn groups(&self) -> impl Iterator<Item = u32> {
        self.fused.groups.iter().map(|group| group.start - self.dst.start)
    }

    /// Columns of a group.
    fn columns(&self) -> u32 {
        self.fused.groups[0].width / self.rows
    }
}

/// Adds the segment of products and their epilogue.
pub(super) fn lower(lanes: &mut Lanes<'_, '_>, unit: &LoweredUnit) -> Result<(), GpuError> {
    let fused = unit.products.as_slice();
    let products = Product::all(lanes.kernel, fused);
    let Some(first) = products.first() else { return Ok(()) };
    let (rows, columns) = (first.rows, first.columns());
    let mut record = head(fused, [rows * columns, columns, rows]);
    lanes.fill(&unit.recipe, &mut record);
    let mut weights = Weights::default();
    for (number, product) in (0..).zip(&products) {
        record.set(3 + number, record.len());
        write_block(lanes, product, &mut record, &mut weights);
    }
    let all_rows = u64::from(lanes.count) * u64::from(rows);
    let load = weights.load.unwrap_or(LoadWidth::One);
    let tile = match lanes.build.strict {
        true => Tile::Rows64,
        false => Tile::of(all_rows, u64::from(columns), load).min(lanes.build.tallest),
    };
    let count = match tile {
        Tile::Few => all_rows * u64::from(columns),
        Tile::Four => all_rows * u64::from(columns / 4),
        _ => all_rows,
    };
    let variant = Variant { tile, load: tile.load(load), packed: weights.packed };
    let (kernel, locations) = (lanes.kernel, lanes.lowered.locations.as_slice());
    let number = lanes.generated(unit, Some(variant), || {
        let Variant { tile, load, packed } = variant;
        let groups = fused.iter().map(|fused| fused.groups.len() as u32).collect();
        let epilogue = epilogue(kernel, &unit.unit, locations).text;
        Program::Products(Products { tile, load, packed, groups, epilogue })
    });
    let threads = Threads { first_lane: lanes.first, count, columns: u64::from(columns), lanes: lanes.count };
    lanes.build.segment_of(number, &record, lanes.level, threads)
}

/// The head of a record, with a word for the position of each product's block.
fn head(fused: &[Fused], head: [u32; 3]) -> Record {
    let mut record = Record::new(&head);
    record.all(&[0; MAX_GROUPS][..fused.len()]);
    record
}

/// The recipe of a unit; empty for units without generated code.
pub(super) fn recipe(kernel: &Kernel, unit: &Unit, locations: &[RegisterLocation]) -> Recipe {
    match unit {
        Unit::Stage(stage) => match &kernel.stages[*stage] {
            Stage::Map { code, .. } => map::recipe(locations, code),
            Stage::Prod { .. } => epilogue(kernel, unit, locations).into_recipe(),
            _ => Recipe::default(),
        },
        Unit::Fused { .. } => epilogue(kernel, unit, locations).into_recipe(),
    }
}

/// The code of an epilogue: its lines, then the stores of sums with other readers.
fn epilogue<'h>(kernel: &Kernel, unit: &Unit, locations: &'h [RegisterLocation]) -> Body<'h> {
    let fused = unit.products(kernel);
    let code = match unit.epilogue().map(|stage| &kernel.stages[stage]) {
        Some(Stage::Map { code, .. }) => code.as_slice(),
        // Epilogues are maps.
        _ => &[],
    };
    let all: Vec<(View, bool)> =
        fused.iter().flat_map(|fused| fused.groups.iter().map(|&view| (view, fused.stored))).collect();
    let sums = all.iter().map(|(view, _)| *view).collect();
    let mut body = Body::new(head(&fused, [0; 3]).len(), sums, locations);
    body.lines(code);
    for (number, (view, _)) in all.iter().enumerate().filter(|(_, (_, stored))| *stored) {
        body.store(*view, format_args!("bitcast<u32>(s{number})"));
    }
    body
}

/// Properties of all weights of a dispatch.
#[derive(Default)]
struct Weights {
    /// True if one is stored in 16 bits.
    packed: bool,
    /// The load width that all of them allow.
    load: Option<LoadWidth>,
}

impl Weights {
    fn add(&mut self, packed: bool, load: LoadWidth) {
        self.packed |= packed;
        let same = self.load.is_none_or(|of_others| of_others == load);
        self.load = Some(if same { load } else { LoadWidth::One });
    }
}

/// Writes the block of a product: its initial value, its groups, and its parts with their weights.
fn write_block(lanes: &Lanes<'_, '_>, product: &Product<'_>, record: &mut Record, weights: &mut Weights) {
    let stored = |param: ParamPort| lanes.build.stored(lanes.step, param);
    let first_column = product.parts.first().map_or(0, |part| part.col);
    let (kind, place, bias) = match product.init {
        ProdInit::Zero => (0, [0; 4], 0),
        ProdInit::Bias(param) => (1, [stored(param).at + first_column, 0, 0, 0], stored(param).kind),
        ProdInit::View(view) => (2, lanes.address(view), 0),
    };
    let start = record.len();
    record.push(product.parts.len() as u32).push(kind).all(&place).push(bias);
    debug_assert_eq!(record.len() - start, BLOCK_HEAD, "the shaders skip this many words");
    for group in product.groups() {
        record.push(group);
    }
    for part in product.parts {
        let width = lanes.kernel.params[part.param.index()].shape.width() as u32;
        let Stored { at, kind } = stored(part.param);
        // The first element, the steps to the next `k` and to the next column, and the storage.
        let weight = match part.transposed {
            true => [at + part.col * width + part.row, 1, width, kind],
            false => [at + part.row * width + part.col, width, 1, kind],
        };
        weights.add(kind != 0, LoadWidth::of(weight[0], width, part.transposed, product.groups()));
        let start = record.len();
        record.all(&lanes.address(part.source)).push(part.source.width / product.rows).all(&weight);
        debug_assert_eq!(record.len() - start, PART, "the shaders skip this many words");
    }
}
