//! Methods with attributes, parameters or several operands.

use super::{Value, axis_number};
use crate::graph::args::{Arg, IntoArg};
use crate::graph::op::{Op, Permutation};
use crate::graph::record::Caller;
use crate::module::Param;
use crate::types::{DType, IntoShape, Shape, Type};
use std::ops::Range;
use std::panic::Location;

/// The largest number of poison values that a failed split returns.
const MAX_POISON: usize = 1 << 16;

/// Ops with attributes, parameters or several operands.
impl<'g> Value<'g> {
    /// `x · W (+ b)`. A matrix `x` gives one product per row.
    #[track_caller]
    #[must_use]
    pub fn affine(self, weight: Param, bias: Option<Param>) -> Self {
        self.product(weight, bias, false, Location::caller())
    }

    /// `x · Wᵀ (+ b)`, for a weight stored as `[outputs, inputs]`, such as a tied embedding.
    #[track_caller]
    #[must_use]
    pub fn affine_transposed(self, weight: Param, bias: Option<Param>) -> Self {
        self.product(weight, bias, true, Location::caller())
    }

    #[inline]
    fn product(self, weight: Param, bias: Option<Param>, transposed: bool, caller: Caller) -> Self {
        let op = Op::Affine { bias: bias.is_some(), transposed };
        let [result] = match bias {
            Some(bias) => self.graph.apply_values(&op, &[self], &[weight, bias], caller),
            None => self.graph.apply_values(&op, &[self], &[weight], caller),
        };
        result
    }

    /// This list with one further item at its end. This list itself stays as it is. A list that grows item by item, as the
    /// keys of a decoder do, shares its items with all lists that it grew from.
    ///
    /// ```
    /// # use autobatch_ir::{EmitError, Graph, ModuleBuilder, f32};
    /// # fn main() -> Result<(), EmitError> {
    /// # let g = Graph::new(&ModuleBuilder::new("m").build()?);
    /// let mut so_far = g.empty_list(f32([2]));
    /// for x in [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] {
    ///     so_far = so_far.append(g.input(&x));
    ///     let _mean = so_far.mean(); // over this item and all before it
    /// }
    /// # g.check()
    /// # }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn append(self, item: Self) -> Self {
        let caller = Location::caller();
        self.graph.apply_many([self, item], caller, |recorder, both| recorder.append_item(both, caller))
    }

    /// `N` equal parts along the innermost axis.
    #[track_caller]
    #[must_use]
    pub fn split<const N: usize>(self) -> [Self; N] {
        let op = Op::Split { axis: self.last_axis(), parts: N as u32 };
        self.graph.apply_values(&op, &[self], &[], Location::caller())
    }

    /// `parts` equal parts along an axis.
    #[track_caller]
    #[must_use]
    pub fn chunks(self, axis: usize, parts: usize) -> Vec<Self> {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        let op = Op::Split { axis: axis_number(axis), parts };
        let caller = Location::caller();
        match self.graph.apply(op, &[self.raw(self.graph, caller)], &[], caller) {
            Some(first) => (0..parts as usize).map(|place| self.graph.nth(first, place)).collect(),
            // The caller expects this number of values and may index them before it sees the fault.
            None => vec![Self::poison(self.graph); (parts as usize).min(MAX_POISON)],
        }
    }

    pub(super) fn last_axis(self) -> u8 {
        self.shape().rank().saturating_sub(1) as u8
    }

    /// A range of the innermost axis.
    #[track_caller]
    #[must_use]
    pub fn slice(self, range: Range<usize>) -> Self {
        let axis = self.last_axis() as usize;
        self.slice_axis(axis, range)
    }

    /// A range along an axis.
    #[track_caller]
    #[must_use]
    pub fn slice_axis(self, axis: usize, range: Range<usize>) -> Self {
        if range.start > range.end {
            let message = format!("the range {}..{} ends before it begins", range.start, range.end);
            return self.graph.refuse("slice", &message, "swap the bounds", Location::caller());
        }
        if axis >= usize::from(u8::MAX) {
            let message = format!("{} has no axis {axis}", self.ty());
            return self.graph.refuse("slice", &message, "axes are counted from 0", Location::caller());
        }
        let bound = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (start, len) = (bound(range.start), bound(range.end.saturating_sub(range.start)));
        self.unary(Op::Slice { axis: axis_number(axis), start, len }, Location::caller())
    }

    /// The same elements in another shape.
    #[track_caller]
    #[must_use]
    pub fn reshape(self, shape: impl IntoShape) -> Self {
        self.shaped("reshape", shape, Op::Reshape, Location::caller())
    }

    /// Repetition along axes of extent 1 and new outer axes.
    #[track_caller]
    #[must_use]
    pub fn broadcast(self, shape: impl IntoShape) -> Self {
        self.shaped("broadcast", shape, Op::Broadcast, Location::caller())
    }

    fn shaped(self, name: &str, shape: impl IntoShape, op: fn(Shape) -> Op, caller: Caller) -> Self {
        match shape.into_shape() {
            Ok(shape) => self.unary(op(shape), caller),
            Err(error) => self.graph.refuse(name, &error.to_string(), "give extents from 1 up", caller),
        }
    }

    /// The axes in another order: axis `i` of the result is axis `order[i]`.
    #[track_caller]
    #[must_use]
    pub fn transpose<const RANK: usize>(self, order: [usize; RANK]) -> Self {
        let caller = Location::caller();
        let rank = self.shape().rank();
        if self.id.is_some() && rank != RANK {
            let message = format!("{order:?} is not an order of the {rank} axes of {}", self.ty());
            return self.graph.refuse("transpose", &message, "name each axis once", caller);
        }
        let mut axes = [0, 1, 2, 3];
        for (axis, &from) in axes.iter_mut().zip(&order) {
            *axis = u8::try_from(from).unwrap_or(u8::MAX);
        }
        self.unary(Op::Transpose(Permutation(axes)), caller)
    }

    /// The element, or row of a matrix, at an index. A list gives the value at an index, which may be computed. An index out
    /// of range fails the execution.
    #[track_caller]
    #[must_use]
    pub fn pick(self, index: impl IntoArg<'g>) -> Self {
        let caller = Location::caller();
        if self.ty().is_list {
            let operands = [index.into_arg().raw(self.graph, caller), self.raw(self.graph, caller)];
            return self.graph.apply_one(Op::ListPick, &operands, &[], caller);
        }
        self.indexed(Op::Pick, index.into_arg(), caller)
    }

    #[inline]
    fn indexed(self, op: Op, index: Arg<'g>, caller: Caller) -> Self {
        let operands = [self.raw(self.graph, caller), index.raw(self.graph, caller)];
        self.graph.apply_one(op, &operands, &[], caller)
    }

    /// The `k` largest elements of each row, descending, and their indices.
    #[track_caller]
    #[must_use]
    pub fn top_k(self, k: usize) -> [Self; 2] {
        let op = Op::TopK { k: u32::try_from(k).unwrap_or(u32::MAX) };
        self.graph.apply_values(&op, &[self], &[], Location::caller())
    }

    /// Elementwise choice: `a` where this condition is true, `b` elsewhere.
    #[track_caller]
    #[must_use]
    pub fn select(self, a: Self, b: Self) -> Self {
        let caller = Location::caller();
        let [result] = self.graph.apply_values(&Op::Select, &[self, a, b], &[], caller);
        result
    }

    /// Replaces elements by minus infinity where `legal` is false, to exclude illegal choices.
    #[track_caller]
    #[must_use]
    pub fn mask(self, legal: &[bool]) -> Self {
        let caller = Location::caller();
        let words: Vec<u32> = legal.iter().map(|&legal| u32::from(legal)).collect();
        let ty = self.ty();
        let legal = match [words.len()].into_shape() {
            Ok(shape) => self.graph.bound_words(&words, Type::new(DType::Bool, shape), caller),
            Err(error) => self.graph.refuse("mask", &error.to_string(), "give one flag per element", caller),
        };
        let never = self.number(f32::NEG_INFINITY, caller).repeated(ty.shape, caller);
        let [result] = self.graph.apply_values(&Op::Select, &[legal, self, never], &[], caller);
        result
    }

    /// `-log_softmax(self)[label]` of each row.
    #[track_caller]
    #[must_use]
    pub fn cross_entropy(self, label: impl IntoArg<'g>) -> Self {
        self.indexed(Op::PickNegLogSoftmax, label.into_arg(), Location::caller())
    }

    /// `-log_softmax(W · self)[label]`, where `rows` is `W`: a matrix or a table with one row per label. The loss and gradients of
    /// [`affine_transposed`](Self::affine_transposed) and [`cross_entropy`](Self::cross_entropy) but for rounding, without a
    /// number per label in memory: for 10^4 labels and more, such as the words of a language.
    #[track_caller]
    #[must_use]
    pub fn label_loss(self, rows: Param, label: impl IntoArg<'g>) -> Self {
        let caller = Location::caller();
        let operands = [self.raw(self.graph, caller), label.into_arg().raw(self.graph, caller)];
        self.graph.apply_one(Op::LabelLoss, &operands, &[rows], caller)
    }

    /// The margin loss of each row: `sum over j ≠ label of max(0, margin + x_j - x_label)`.
    #[track_caller]
    #[must_use]
    pub fn hinge(self, label: impl IntoArg<'g>, margin: f32) -> Self {
        self.indexed(Op::Hinge { margin: margin.into() }, label.into_arg(), Location::caller())
    }

    /// In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise.
    #[track_caller]
    #[must_use]
    pub fn dropout(self, rate: f32) -> Self {
        let caller = Location::caller();
        let (ordinal, [low, high]) = self.graph.noise_key(caller);
        let operands = [self.raw(self.graph, caller), Some(low), Some(high)];
        self.graph.apply_one(Op::Dropout { rate: rate.into(), ordinal }, &operands, &[], caller)
    }

    /// Declares that every batch that reads this value reads it in all its rows. Planning fails and
    /// names two values if a batch reads different values.
    #[track_caller]
    #[must_use]
    pub fn shared(self) -> Self {
        if let Some(id) = self.id {
            let caller = Location::caller();
            self.graph.record(caller, |recorder| recorder.mark_shared(id, caller));
        }
        self
    }

    /// Makes the node of this value a batch of its own. It has no effect on inputs, constants and
    /// lists, which need no batch.
    #[track_caller]
    #[must_use]
    pub fn alone(self) -> Self {
        if let Some(id) = self.id {
            let caller = Location::caller();
            self.graph.record(caller, |recorder| recorder.mark_alone(id, caller));
        }
        self
    }
}
