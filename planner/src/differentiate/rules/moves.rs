//! Derivatives of ops that move elements: each element gets the sum of the gradients of its copies.

use super::{Partial, floats, shape, value, value_as};
use crate::compile::{Value, pieces, range, side_by_side, type_of};
use crate::differentiate::kernel::Deriver;
use crate::differentiate::tape::Applied;
use autobatch_ir::graph::{Fold, Op, Over, Permutation};
use autobatch_ir::types::{DType, Shape, Type};

impl Deriver<'_> {
    /// Operands side by side get their ranges.
    pub(super) fn cut(&mut self, at: &Applied, dy: &Value) -> Vec<Partial> {
        let mut start = 0;
        let mut partials = Vec::new();
        for operand in &at.operands {
            let ty = type_of(operand);
            partials.push(Partial::One(Value::Pieces(range(pieces(dy), start, ty), ty)));
            start += ty.shape.elements() as u32;
        }
        partials
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
    pub(super) fn gather_copies(&mut self, at: &Applied, dy: Value, to: Shape) -> Value {
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
