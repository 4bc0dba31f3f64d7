//! Executes products on a tile: operand rows times packed weights, and products of two values of a lane.
//!
//! Operand rows are read from their fields, and results are written to the location of their register.

use super::factors::Factor;
use super::program::{Chain, MAX_PARTS, RegisterLocation};
use super::tile::{Strip, Tile};
use crate::kernels::{
    Matrix, Product, RowNumbers, Rows, RowsMut, RowsPart, Scratch, Start, multiply_unchecked,
};
use autobatch_ir::plan::{ProdInit, StepOperand, View};

impl Tile<'_> {
    pub(super) fn prod(
        &self,
        dst: View,
        rows: usize,
        init: ProdInit,
        chains: &[Chain],
        scratch: &mut Scratch,
    ) {
        let out = self.strip(dst);
        let width = dst.width as usize / rows;
        // The bias begins at the common first column of the parts (plan rule on products).
        let first_column = chains[0].parts[0].col as usize;
        for (number, Chain { weight, parts }) in chains.iter().enumerate() {
            let weights = &*self.step.weights[*weight];
            for row_of_value in 0..if rows == 1 { 1 } else { self.lanes.len() } {
                // All lanes of vector values form one product; each matrix value is a product of its own.
                let lanes = if rows == 1 { self.lanes.clone() } else { 0..rows };
                let mut slots = [RowsPart { rows: Rows::shared(&[]), k: 0 }; MAX_PARTS];
                for (slot, part) in slots.iter_mut().zip(parts) {
                    slot.k = part.source.width as usize / rows;
                    slot.rows = self.part_rows(part.source, rows, slot.k, row_of_value);
                }
                let start = match (number, init) {
                    (0, ProdInit::Zero) => Start::Zero,
                    (0, ProdInit::Bias(port)) => {
                        Start::Bias(&self.step.params[port.index()][first_column..][..width])
                    }
                    (0, ProdInit::View(view)) => Start::Rows(self.part_rows(view, rows, width, row_of_value)),
                    _ => Start::Output,
                };
                let first_k = parts[0].row as usize;
                let product = Product { weights, first_k, parts: &slots[..parts.len()], start };
                let (base, stride) = if rows == 1 {
                    (out.base, out.stride)
                } else {
                    (out.base.wrapping_add(row_of_value * out.stride), width)
                };
                // SAFETY: the contract of the tile: operand rows exist, and the result rows belong to this tile and are no
                // operand of the stage (a register is written once, before it is read).
                unsafe { product.run_unchecked(lanes, RowsMut::from_raw(base, usize::MAX, stride), scratch) };
            }
        }
    }

    /// The rows of one part of a product, indexed by the lanes of the product.
    fn part_rows(&self, view: View, rows: usize, k: usize, lane: usize) -> Rows<'_> {
        if rows == 1
            && let RegisterLocation::Port(port) = self.step.program.registers[view.reg.index()].location
            && let StepOperand { origin, address } = self.step.operands[port as usize]
            && let Some(at) = address.table()
        {
            let (base, stride) = self.step.memory(origin);
            let base = base.wrapping_add(view.start as usize);
            let table = &self.step.tables[at as usize..];
            // SAFETY: the contract of the tile.
            return unsafe { Rows::from_raw(base, usize::MAX, stride, RowNumbers::Table(table)) };
        }
        let strip = self.strip(view);
        let (base, stride, first) = if rows == 1 {
            (strip.base, strip.stride, 0usize.wrapping_sub(self.lanes.start))
        } else {
            (strip.base.wrapping_add(lane * strip.stride), k, 0)
        };
        // SAFETY: the contract of the tile; lane `l` of the step is row `l - lanes.start` of the strip.
        unsafe { Rows::from_raw(base, usize::MAX, stride, RowNumbers::Stepped { first, step: 1 }) }
    }

    /// Multiplies two values of each lane. One product computes all rows if lanes share the right value and are
    /// contiguous.
    pub(super) fn multiply(&self, left: Factor, right: Factor, dst: View, scratch: &mut Scratch) {
        let k = left.columns();
        let rows = left.view.width as usize / k;
        let columns = dst.width as usize / rows;
        let (from, other, to) = (self.strip(left.view), self.strip(right.view), self.strip(dst));
        let dense = |strip: Strip, view: View| strip.stride == view.width as usize;
        let is_one = other.stride == 0 && !left.is_turned && dense(from, left.view) && dense(to, dst);
        let (lanes, rows) = if is_one { (1, rows * self.lanes.len()) } else { (self.lanes.len(), rows) };
        // A vector on the right is a column.
        let width = if right.is_turned { right.width() } else { columns };
        for lane in 0..lanes {
            // SAFETY: the contract of the tile: the values of a lane have the size of their types, and the result belongs
            // to the lane and overlaps no operand.
            unsafe {
                let value = |strip: Strip, floats: usize| {
                    std::slice::from_raw_parts(strip.base.wrapping_add(lane * strip.stride), floats)
                };
                let a = value(from, rows * k);
                let a = match left.is_turned {
                    true => Matrix::new(a, left.width(), k, rows).transposed(),
                    false => Matrix::new(a, k, rows, k),
                };
                let b = value(other, k * columns);
                let b = match right.is_turned {
                    true => Matrix::new(b, width, columns, k).transposed(),
                    false => Matrix::new(b, width, k, columns),
                };
                let base = to.base.wrapping_add(lane * to.stride);
                let out = RowsMut::from_raw(base, rows * columns, columns);
                multiply_unchecked(self.step.isa, a, b, out, false, scratch);
            }
        }
    }
}
