//! Which products of a kernel are made on matrix units: those that are large, as far as its steps can afford it.
//!
//! There a product and the line that takes its sums are three dispatches, elsewhere one, and every dispatch waits for the
//! one before. So the two more are only spent where a step takes one dispatch more than it has stages at most: on
//! a product with a line behind it, or on products side by side, which share theirs. One by itself is made
//! like those of small kernels: no dispatch of its three can be spared, because squares are stored whole, over rows of others.

use super::kernels::has_moves;
use super::product::Product;
use super::units::{Unit, reads, writes};
use autobatch_ir::plan::Kernel;
use std::collections::HashSet;

/// Terms of a sum, and columns, from which a product is worth it.
const LEAST: u64 = 16;
/// Terms of a sum, and columns, up to which words count those of three pieces.
const MOST: u64 = 1 << 24;

/// So often it is tried which products go, and so often which come back: a kernel may have any number of them.
const MOST_TRIES: usize = 64;

/// The units of a kernel, those on matrix units that save most there. Without rows nothing of it depends on a batch.
pub(super) fn chosen(kernel: &Kernel, mut units: Vec<Unit>) -> Vec<Unit> {
    let saved: Vec<u64> = units.iter().map(|unit| saved(kernel, unit).unwrap_or(0)).collect();
    let mut on_matrix: Vec<bool> = saved.iter().map(|&saved| saved > 0).collect();
    let mut by_worth: Vec<usize> = (0..units.len()).filter(|&number| on_matrix[number]).collect();
    by_worth.sort_by_key(|&number| saved[number]);
    let most = kernel.stages.len() + usize::from(!has_moves(kernel));
    let affords = |on_matrix: &[bool]| dispatches(kernel, &units, on_matrix) <= most;
    // Those that save least go first, until there are few enough; then what can be had beside the others comes back.
    for those in by_worth.chunks(by_worth.len().div_ceil(MOST_TRIES).max(1)) {
        if affords(&on_matrix) {
            break;
        }
        those.iter().for_each(|&number| on_matrix[number] = false);
    }
    for &number in by_worth.iter().rev().take(MOST_TRIES) {
        if !on_matrix[number] {
            on_matrix[number] = true;
            on_matrix[number] = affords(&on_matrix);
        }
    }
    for (unit, _) in units.iter_mut().zip(on_matrix).filter(|(_, on_matrix)| *on_matrix) {
        let (products, tail) = (unit.products(kernel), unit.tail());
        *unit = Unit::OnMatrix { products, tail };
    }
    units
}

/// Columns of all groups.
fn wide(product: &Product<'_>) -> u64 {
    u64::from(product.columns()) * product.fused.groups.len() as u64
}

/// Multiply-adds that a lane saves with a unit on matrix units; nothing if it cannot be there, or its products are small.
fn saved(kernel: &Kernel, unit: &Unit) -> Option<u64> {
    let fused = unit.products(kernel);
    let products = Product::all(kernel, &fused);
    let is_large = |product: &Product<'_>| {
        (LEAST..=MOST).contains(&product.depth()) && (LEAST..=MOST).contains(&wide(product))
    };
    let work = |product: &Product<'_>| wide(product) * product.depth() * u64::from(product.rows);
    (!products.is_empty() && products.iter().all(is_large)).then(|| products.iter().map(work).sum())
}

/// What dispatches of a step run, as far as it decides which units share one.
#[derive(PartialEq, Eq, Hash)]
enum Shared {
    Terms,
    /// Squares, of so many rows a lane.
    Squares(u32),
    /// What moves the sums of products that no line takes.
    Sums,
    /// Of this unit alone.
    Own(usize),
}

/// How many dispatches a step takes at most, with these units on matrix units and without what moves results.
fn dispatches(kernel: &Kernel, units: &[Unit], on_matrix: &[bool]) -> usize {
    let mut ready = vec![0u32; kernel.regs.len()];
    let mut taken = HashSet::new();
    for (number, unit) in units.iter().enumerate() {
        let stages = unit.stages(kernel);
        let read = stages.iter().flat_map(|stage| reads(stage));
        let mut level = read.map(|view| ready[view.reg as usize]).max().unwrap_or(0);
        if on_matrix[number] {
            let fused = unit.products(kernel);
            let rows = Product::all(kernel, &fused).iter().map(|product| product.rows).max().unwrap_or(1);
            taken.extend([(level, Shared::Terms), (level + 1, Shared::Squares(rows))]);
            level += 2;
        }
        let alone = on_matrix[number] && unit.tail().is_none();
        taken.insert((level, if alone { Shared::Sums } else { Shared::Own(number) }));
        for view in stages.iter().flat_map(|stage| writes(stage)) {
            let ready = &mut ready[view.reg as usize];
            *ready = (*ready).max(level + 1);
        }
    }
    taken.len()
}
