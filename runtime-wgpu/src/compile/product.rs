//! Products, alone or with the line that is their tail: one segment, whatever it computes per element.

use super::layout::Stored;
use super::map::Body;
use super::record::Record;
use super::step::Lanes;
use super::units::Fused;
use crate::error::GpuError;
use crate::module::{BLOCK_HEAD, PART, Products, Program, Reach, Tile};
use autobatch_ir::plan::{Instr, Part, ProdInit, Stage, View};

/// A product of the unit, taken apart.
struct Product<'k> {
    dst: View,
    rows: u32,
    init: ProdInit,
    parts: &'k [Part],
    fused: &'k Fused,
}

/// Adds the segment of a product that no line takes: its tail keeps the sum.
pub(super) fn lower(lanes: &mut Lanes<'_, '_>, stage: usize, dst: View) -> Result<(), GpuError> {
    let fused = [Fused { stage, groups: vec![dst], kept: true }];
    lower_fused(lanes, &fused, &[])
}

/// Adds the segment of products and the line that takes their sums.
pub(super) fn lower_fused(
    lanes: &mut Lanes<'_, '_>,
    fused: &[Fused],
    code: &[Instr],
) -> Result<(), GpuError> {
    let kernel = lanes.kernel;
    let mut products: Vec<Product<'_>> = Vec::with_capacity(fused.len());
    for fused in fused {
        if let Stage::Prod { dst, rows, init, parts } = &kernel.stages[fused.stage] {
            products.push(Product { dst: *dst, rows: *rows, init: *init, parts, fused });
        }
    }
    let Some(first) = products.first() else { return Ok(()) };
    let (rows, width) = (first.rows, first.fused.groups[0].width);
    let columns = width / rows;

    let sums: Vec<View> = fused.iter().flat_map(|fused| fused.groups.iter().copied()).collect();
    let mut record = Record::new(&[width, columns, rows]);
    for _ in &products {
        record.push(0);
    }
    let mut body = Body::new(record, sums.clone());
    body.lines(lanes, code);
    let kept = fused.iter().flat_map(|fused| fused.groups.iter().map(|_| fused.kept));
    for (number, (view, _)) in sums.iter().zip(kept).enumerate().filter(|(_, (_, kept))| *kept) {
        body.store(lanes.spot(*view), &format!("bitcast<u32>(s{number})"));
    }

    let Body { text: tail, mut record, .. } = body;
    let mut weights = Weights::default();
    let mut depth = 0;
    for (number, product) in products.iter().enumerate() {
        record.set(3 + number as u32, record.len());
        block(lanes, product, &mut record, &mut weights);
        let widths = product.parts.iter().map(|part| u64::from(part.source.width / rows));
        depth += widths.sum::<u64>() * product.fused.groups.len() as u64;
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
    let groups = fused.iter().map(|fused| fused.groups.len() as u32).collect();
    let program = Program::Products(Products { tile, reach: tile.reach(reach), packed, groups, tail });
    let first = lanes.first;
    lanes.build.segment(program, &record, lanes.level, (first, threads), u64::from(columns))?;
    lanes.build.last_is_work(all_rows * u64::from(columns) * depth);
    Ok(())
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

/// Writes the block of a product, and notes what its weights are like.
fn block(lanes: &Lanes<'_, '_>, product: &Product<'_>, record: &mut Record, weights: &mut Weights) {
    let Product { dst, rows, init, parts, fused } = *product;
    let base = |param: u32| {
        let store = lanes.build.plan.stores(lanes.step)[param as usize];
        lanes.build.layout.store(store)
    };
    let first_column = parts.first().map_or(0, |part| part.col);
    let (kind, place, bias) = match init {
        ProdInit::Zero => (0, [0; 4], 0),
        ProdInit::Bias(param) => (1, [base(param).at + first_column, 0, 0, 0], base(param).kind),
        ProdInit::View(view) => (2, lanes.spot(view), 0),
    };
    let start = record.len();
    record.push(parts.len() as u32).push(kind).all(&place).push(bias);
    debug_assert_eq!(record.len() - start, BLOCK_HEAD, "what the shaders skip");
    for group in &fused.groups {
        record.push(group.start - dst.start);
    }
    for part in parts {
        let stored_width = lanes.kernel.params[part.param as usize].shape.width() as u32;
        let Stored { at, kind } = base(part.param);
        let (from, step, next) = match part.transposed {
            true => (part.col * stored_width + part.row, 1, stored_width),
            false => (part.row * stored_width + part.col, stored_width, 1),
        };
        let groups = fused.groups.iter().map(|group| group.start - dst.start);
        weights.note(kind != 0, Reach::of(at + from, stored_width, part.transposed, groups));
        let before = record.len();
        record.all(&lanes.spot(part.source));
        record.all(&[part.source.width / rows, at + from, step, next, kind]);
        debug_assert_eq!(record.len() - before, PART, "what the shaders skip");
    }
}
