//! Products, alone or with the line that is their tail: one segment, whatever it computes per element.

use super::Build;
use super::kernels::{Home, Piece};
use super::layout::Stored;
use super::map::{self, Body, Recipe};
use super::record::Record;
use super::step::Lanes;
use super::units::{Fused, Unit};
use crate::error::GpuError;
use crate::module::{BLOCK_HEAD, MOST_GROUPS, PART, Products, Program, Reach, Tile};
use autobatch_ir::plan::{Kernel, Part, ProdInit, Stage, Step, View};

/// A product of the unit, taken apart.
pub(super) struct Product<'k> {
    dst: View,
    pub(super) rows: u32,
    init: ProdInit,
    pub(super) parts: &'k [Part],
    pub(super) fused: &'k Fused,
}

impl<'k> Product<'k> {
    /// Products of a kernel.
    pub(super) fn all(kernel: &'k Kernel, fused: &'k [Fused]) -> Vec<Self> {
        let product = |fused: &'k Fused| match &kernel.stages[fused.stage] {
            Stage::Prod { dst, rows, init, parts } => {
                Some(Self { dst: *dst, rows: *rows, init: *init, parts, fused })
            }
            _ => None,
        };
        fused.iter().filter_map(product).collect()
    }

    /// Where in the product each group begins.
    pub(super) fn groups(&self) -> impl Iterator<Item = u32> {
        self.fused.groups.iter().map(|group| group.start - self.dst.start)
    }

    /// Columns of a group.
    pub(super) fn columns(&self) -> u32 {
        self.fused.groups[0].width / self.rows
    }

    /// Terms of a sum.
    pub(super) fn depth(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.source.width / self.rows)).sum()
    }
}

/// Adds the segment of products and the line that takes their sums.
pub(super) fn lower(lanes: &mut Lanes<'_, '_>, piece: &Piece) -> Result<(), GpuError> {
    let fused = piece.products.as_slice();
    let products = Product::all(lanes.kernel, fused);
    let Some(first) = products.first() else { return Ok(()) };
    let (rows, columns) = (first.rows, first.columns());
    let mut record = head(fused, [rows * columns, columns, rows]);
    lanes.fill(&piece.recipe, &mut record);
    let mut weights = Weights::default();
    let mut depth = 0;
    for (number, product) in products.iter().enumerate() {
        record.set(3 + number as u32, record.len());
        block(lanes, product, &mut record, &mut weights);
        depth += product.depth() * product.fused.groups.len() as u64;
    }
    let all_rows = u64::from(lanes.count) * u64::from(rows);
    let Weights { packed, reach } = weights;
    let reach = reach.unwrap_or(Reach::One);
    let tile = match lanes.build.strict {
        true => Tile::Rows64,
        false => Tile::of(all_rows, u64::from(columns), reach),
    };
    let threads = match tile {
        Tile::Few => all_rows * u64::from(columns),
        Tile::Four => all_rows * u64::from(columns / 4),
        _ => all_rows,
    };
    let (kernel, reach) = (lanes.kernel, tile.reach(reach));
    let homes = lanes.lowered.homes.as_slice();
    let number = lanes.generated(piece, Some((tile, reach, packed)), || {
        let (tail, groups) = (text(kernel, &piece.unit, homes), groups(fused));
        Program::Products(Products { tile, reach, packed, groups, tail })
    });
    let first = lanes.first;
    lanes.build.segment_of(number, &record, lanes.level, (first, threads), u64::from(columns))?;
    lanes.build.last_is_work(all_rows * u64::from(columns) * depth);
    Ok(())
}

/// How many groups each product has.
pub(super) fn groups(fused: &[Fused]) -> Vec<u32> {
    fused.iter().map(|fused| fused.groups.len() as u32).collect()
}

/// What a record begins with, and a word for where the block of each product begins.
pub(super) fn head(fused: &[Fused], head: [u32; 3]) -> Record {
    let mut record = Record::new(&head);
    record.all(&[0; MOST_GROUPS][..fused.len()]);
    record
}

/// The text of a tail.
pub(super) fn text(kernel: &Kernel, unit: &Unit, homes: &[Home]) -> String {
    tail(kernel, unit, homes).text
}

/// What the line of a unit takes: nothing, if it has none.
pub(super) fn recipe(kernel: &Kernel, unit: &Unit, homes: &[Home]) -> Recipe {
    match unit {
        Unit::Stage(stage) => match &kernel.stages[*stage] {
            Stage::Map { code, .. } => map::recipe(homes, code),
            Stage::Prod { .. } => tail(kernel, unit, homes).into_recipe(),
            _ => Recipe::default(),
        },
        Unit::Fused { .. } => tail(kernel, unit, homes).into_recipe(),
    }
}

/// The tail: its lines, then the sums that others read.
fn tail<'h>(kernel: &Kernel, unit: &Unit, homes: &'h [Home]) -> Body<'h> {
    let fused = unit.products(kernel);
    let code = match unit.tail().map(|tail| &kernel.stages[tail]) {
        Some(Stage::Map { code, .. }) => code.as_slice(),
        // Tails are maps.
        _ => &[],
    };
    let all: Vec<(View, bool)> =
        fused.iter().flat_map(|fused| fused.groups.iter().map(|&view| (view, fused.kept))).collect();
    let sums = all.iter().map(|(view, _)| *view).collect();
    let mut body = Body::new(head(&fused, [0; 3]).len(), sums, homes);
    body.lines(code);
    for (number, (view, _)) in all.iter().enumerate().filter(|(_, (_, kept))| *kept) {
        body.store(*view, format_args!("bitcast<u32>(s{number})"));
    }
    body
}

/// What is known of all weights of a dispatch.
#[derive(Default)]
struct Weights {
    /// Whether one is stored in halves.
    packed: bool,
    /// What may be read of all of them at once.
    reach: Option<Reach>,
}

impl Weights {
    fn note(&mut self, packed: bool, reach: Reach) {
        self.packed |= packed;
        let alike = self.reach.is_none_or(|of_others| of_others == reach);
        self.reach = Some(if alike { reach } else { Reach::One });
    }
}

/// Writes what a block of a product begins with: how many parts follow, what sums start from, its groups.
pub(super) fn start(lanes: &Lanes<'_, '_>, product: &Product<'_>, parts: usize, record: &mut Record) {
    let base = |param: u32| lanes.build.stored(lanes.step, param);
    let first_column = product.parts.first().map_or(0, |part| part.col);
    let (kind, place, bias) = match product.init {
        ProdInit::Zero => (0, [0; 4], 0),
        ProdInit::Bias(param) => (1, [base(param).at + first_column, 0, 0, 0], base(param).kind),
        ProdInit::View(view) => (2, lanes.spot(view), 0),
    };
    let start = record.len();
    record.push(parts as u32).push(kind).all(&place).push(bias);
    debug_assert_eq!(record.len() - start, BLOCK_HEAD, "what the shaders skip");
    for group in product.groups() {
        record.push(group);
    }
}

/// Where a part of a weight is: its first element, the step to the next `k` and to the next column, how it is stored;
/// and how long a row of it is as it is stored.
pub(super) fn weight(build: &Build<'_>, step: &Step, part: &Part) -> ([u32; 4], u32) {
    let width = build.plan.kernel(step).params[part.param as usize].shape.width() as u32;
    let Stored { at, kind } = build.stored(step, part.param);
    let place = match part.transposed {
        true => [at + part.col * width + part.row, 1, width, kind],
        false => [at + part.row * width + part.col, width, 1, kind],
    };
    (place, width)
}

/// Writes the block of a product, and notes what its weights are like.
fn block(lanes: &Lanes<'_, '_>, product: &Product<'_>, record: &mut Record, weights: &mut Weights) {
    start(lanes, product, product.parts.len(), record);
    for part in product.parts {
        let (place, stored_width) = weight(lanes.build, lanes.step, part);
        let [first, .., kind] = place;
        weights.note(kind != 0, Reach::of(first, stored_width, part.transposed, product.groups()));
        let before = record.len();
        record.all(&lanes.spot(part.source)).push(part.source.width / product.rows).all(&place);
        debug_assert_eq!(record.len() - before, PART, "what the shaders skip");
    }
}
