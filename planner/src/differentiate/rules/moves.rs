//! Derivatives of ops that move elements: each element gets the sum of the gradients of its copies.

use super::{value, value_as};
use crate::differentiate::deriver::{Deriver, Partial, PendingReduction, floats, number, shape, sub};
use crate::differentiate::tape::Applied;
use crate::kernels::compile::{Value, side_by_side, split, type_of};
use autobatch_ir::graph::{Fold, Op, Over, Permutation};
use autobatch_ir::plan::{Code, ReductionSum, Source, View};
use autobatch_ir::types::{DType, Shape, Type};

impl Deriver<'_> {
    /// Each operand of a concatenation gets its range.
    pub(super) fn cut(&mut self, at: &Applied, dy: &Value) -> Vec<Partial> {
        let types: Vec<Type> = at.operands.iter().map(type_of).collect();
        split(dy, &types).into_iter().map(Partial::One).collect()
    }

    pub(super) fn cut_inside(&mut self, at: &Applied, dy: Value, axis: u8) -> Vec<Partial> {
        let from = type_of(&dy);
        let dy = self.b.one_view(dy);
        let mut start = 0;
        let mut partials = Vec::new();
        for operand in &at.operands {
            let ty = type_of(operand);
            let len = ty.shape.dims()[axis as usize];
            let slice = self.row_stage(Op::Slice { axis, start, len }, vec![(dy, from)], ty);
            partials.push(Partial::One(value(slice, ty)));
            start += len;
        }
        partials
    }

    /// The gradients of the parts of a split, joined; zeros for parts without a gradient.
    pub(super) fn join(&mut self, at: &Applied, grads: &[Option<Value>], axis: u8) -> Value {
        let ty = type_of(&at.operands[0]);
        let (mut parts, mut sources) = (Vec::new(), Vec::new());
        for (grad, made) in grads.iter().zip(&at.results) {
            let ty = type_of(made);
            let part = grad.clone().unwrap_or_else(|| self.zeros(ty));
            match axis {
                0 => parts.push(part),
                _ => sources.push((self.b.one_view(part), ty)),
            }
        }
        match axis {
            0 => side_by_side(parts, ty),
            _ => value(self.row_stage(Op::Concat { axis }, sources, ty), ty),
        }
    }

    pub(super) fn transpose(&mut self, at: &Applied, dy: Value, permutation: Permutation) -> Value {
        let (ty, from) = (type_of(&at.operands[0]), type_of(&dy));
        let mut inverse = permutation;
        for (place, &axis) in permutation.0.iter().enumerate() {
            inverse.0[axis as usize] = place as u8;
        }
        let view = self.b.one_view(dy);
        value(self.row_stage(Op::Transpose(inverse), vec![(view, from)], ty), ty)
    }

    /// The gradient of a value from that of one picked row: zeros in the other rows.
    pub(super) fn pick(&mut self, at: &Applied, dy: Value) -> Value {
        let ty = type_of(&at.operands[0]);
        let rows = ty.shape.dims()[0];
        let width = ty.shape.elements() as u32 / rows;
        let dy = self.b.one_view(dy);
        let dx = self.b.temp(ty);
        let rows = (0..rows).map(|row| sub(dx, row * width, width)).collect();
        self.choose_row(at.operands[1].clone(), dy, rows);
        value(dx, ty)
    }

    /// Gives `dy` to the row of an index, zeros to the others.
    pub(in crate::differentiate) fn choose_row(&mut self, index: Value, dy: View, rows: Vec<View>) {
        let index = self.b.one_view(index);
        let chosen = self.one_hot(index, rows.len() as u32);
        for (number_of_row, row) in (0..).zip(rows) {
            let taken = self.truth(sub(chosen, number_of_row, 1));
            let dy = self.b.view_source(dy, row.width);
            let sources = vec![Source::Scalar(taken), dy, number(0.0)];
            self.instr_to(row, Code::Select, DType::F32, sources);
        }
    }

    /// A trained table gets `dy` in the row of the index.
    pub(super) fn lookup(&mut self, at: &Applied, dy: Value) {
        if self.params[at.args[0].index()] {
            let index = self.b.one_view(at.operands[0].clone());
            let dy = self.b.one_view(dy);
            let dy = self.keep(dy);
            let (param, sum, x) = (at.args[0], ReductionSum::Tgrad, Some(index));
            self.reductions.push(PendingReduction { param, sum, each: 1, x, dy, swapped: false });
        }
    }

    /// The gradient of a slice, with zeros around it.
    pub(super) fn padded(&mut self, at: &Applied, dy: Value, axis: u8, start: u32) -> Value {
        let (ty, own) = (type_of(&at.operands[0]), type_of(&dy));
        let (extent, len) = (ty.shape.dims()[axis as usize], own.shape.dims()[axis as usize]);
        let mut parts = Vec::new();
        for extent in [start, len, extent - start - len] {
            let mut dims = ty.shape.dims().to_vec();
            dims[axis as usize] = extent;
            match (parts.len(), extent) {
                (0 | 2, 0) => parts.push(None),
                (1, _) => parts.push(Some(dy.clone())),
                _ => parts.push(Some(self.zeros(ty.with_shape(shape(&dims))))),
            }
        }
        let parts: Vec<Value> = parts.into_iter().flatten().collect();
        if axis == 0 {
            return side_by_side(parts, ty);
        }
        let mut sources = Vec::new();
        for part in parts {
            let ty = type_of(&part);
            sources.push((self.b.one_view(part), ty));
        }
        value(self.row_stage(Op::Concat { axis }, sources, ty), ty)
    }

    /// Each element gets the sum of its copies, ascending.
    pub(super) fn sum_copies(&mut self, at: &Applied, dy: Value, to: Shape) -> Value {
        let ty = type_of(&at.operands[0]);
        let new = to.rank() - ty.shape.rank();
        let repeated =
            |axis: &usize| *axis < new || (ty.shape.dims()[*axis - new] == 1 && to.dims()[*axis] > 1);
        let kept = (0..to.rank()).filter(|axis| !repeated(axis));
        let order: Vec<usize> = kept.chain((0..to.rank()).filter(repeated)).collect();
        let copies = to.elements() as u32 / ty.shape.elements() as u32;
        if copies == 1 {
            return value_as(dy, ty);
        }
        let mut view = self.b.one_view(dy);
        if !order.is_sorted() {
            let mut permutation = Permutation([0, 1, 2, 3]);
            let mut dims = Vec::new();
            for (place, &axis) in order.iter().enumerate() {
                permutation.0[place] = axis as u8;
                dims.push(to.dims()[axis]);
            }
            let sources = vec![(view, Type::new(DType::F32, to))];
            view = self.row_stage(Op::Transpose(permutation), sources, Type::new(DType::F32, shape(&dims)));
        }
        let rows = Type::new(DType::F32, shape(&[ty.shape.elements() as u32, copies]));
        let op = Op::Reduce { fold: Fold::Sum, over: Over::Last };
        let sums = self.row_stage(op, vec![(view, rows)], floats(ty.shape.elements() as u32));
        value(sums, ty)
    }
}
