//! Methods that make values from numbers, parameters, tables and several values.

use super::{Value, axis_number};
use crate::graph::args::{Arg, IntoArg};
use crate::graph::emit::Graph;
use crate::graph::op::{Float, Op};
use crate::graph::record::{Caller, Raw};
use crate::module::{Param, Table};
use crate::types::{DType, INDEX, IntoShape, Shape, Type};
use std::borrow::Borrow;
use std::panic::Location;

impl<'g> Arg<'g> {
    #[inline]
    pub(crate) fn raw(self, graph: &Graph, caller: Caller) -> Option<Raw<'static>> {
        match self {
            Self::Value(value) => value.raw(graph, caller),
            Self::Index(index) => Some(Raw::Index(index)),
        }
    }
}

impl Table {
    /// The row at a computed index, for example inside cells or after an argmax.
    #[track_caller]
    #[must_use]
    pub fn row<'g>(self, index: Value<'g>) -> Value<'g> {
        index.graph().lookup_at(self, index.into_arg(), Location::caller())
    }

    /// The row at a bound or computed index.
    #[track_caller]
    #[must_use]
    pub fn lookup<'g>(self, graph: &'g Graph, index: impl IntoArg<'g>) -> Value<'g> {
        graph.lookup_at(self, index.into_arg(), Location::caller())
    }
}

/// Any number of values, owned or borrowed.
pub trait Values<'g>: IntoIterator<Item: Borrow<Value<'g>>> {}

impl<'g, I: IntoIterator<Item: Borrow<Value<'g>>>> Values<'g> for I {}

/// Declares methods that emit: `name(self, arguments; the caller's line) = value`.
macro_rules! emitting {
    ($(
        $(#[$doc:meta])*
        $name:ident($this:ident $(, $argument:ident: $type:ty)*; $caller:ident) = $value:expr;
    )*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<'g>(&'g $this $(, $argument: $type)*) -> Value<'g> {
            let $caller = Location::caller();
            $value
        }
    )*};
}

/// Methods that make values from numbers, parameters and several values.
impl Graph {
    fn lookup_at<'g>(&'g self, table: Table, index: Arg<'g>, caller: Caller) -> Value<'g> {
        self.apply_one(Op::Lookup, &[index.raw(self, caller)], &[table.as_param()], caller)
    }

    emitting! {
        /// `x · W (+ b)`, where `x` is the concatenation of the parts. Nothing copies them.
        affine(self, parts: impl Values<'g>, weight: Param, bias: Option<Param>; caller) =
            self.product(Op::Affine { bias: bias.is_some(), transposed: false }, parts, weight, bias, caller);
        /// `x · Wᵀ (+ b)`, where `x` is the concatenation of the parts, for a weight stored as `[outputs, inputs]`, as in
        /// PyTorch.
        affine_transposed(self, parts: impl Values<'g>, weight: Param, bias: Option<Param>; caller) =
            self.product(Op::Affine { bias: bias.is_some(), transposed: true }, parts, weight, bias, caller);
        /// A part of the product `x · W (+ b)`: it multiplies the concatenated parts with the rows of the weight from `row` on.
        /// [`affine`](Self::affine) needs all of `x` at once; [`affine_onto`](Self::affine_onto) adds further parts later. The
        /// last part has the bits of the whole product.
        ///
        /// ```
        /// use autobatch_ir::{Graph, Init, ModuleBuilder};
        /// let mut m = ModuleBuilder::new("m");
        /// let w = m.param("w", [5, 2], Init::Glorot(1.0));
        /// let g = Graph::new(&m.build().unwrap());
        /// let (x, h) = (g.input(&[1.0, 2.0, 3.0]), g.input(&[4.0, 5.0]));
        /// let begun = g.affine_rows([x], w, None, 0);
        /// assert_eq!(g.affine_onto(begun, [h], w, 3).shape().dims(), [2]);
        /// ```
        affine_rows(self, parts: impl Values<'g>, weight: Param, bias: Option<Param>, row: u32; caller) =
            self.product(Op::AffineRows { row, bias: bias.is_some(), onto: false }, parts, weight, bias, caller);
        /// The next part of a product: `chains + x · W[row..]`, with as many rows as the parts are wide.
        /// Each sum continues from its value in `chains`.
        affine_onto(self, chains: Value<'g>, parts: impl Values<'g>, weight: Param, row: u32; caller) = {
            let parts = std::iter::once(chains).chain(parts.into_iter().map(|part| *part.borrow()));
            self.product(Op::AffineRows { row, bias: false, onto: true }, parts, weight, None, caller)
        };
        /// A bound index as a value, for arithmetic or for several readers.
        index(self, index: u32; caller) = self.apply_one(Op::Input(INDEX), &[Some(Raw::Index(index))], &[], caller);
        /// Zeros of any shape.
        zeros(self, shape: impl IntoShape; caller) = self.filled(shape, 0.0, caller);
        /// A single number.
        constant(self, number: f32; caller) = self.filled([], number, caller);
        /// A float constant of any shape.
        fill(self, shape: impl IntoShape, number: f32; caller) = self.filled(shape, number, caller);
        /// The value of a parameter.
        param(self, param: Param; caller) = self.apply_one(Op::Param, &[], &[param], caller);
        /// 1 at an index, 0 elsewhere.
        one_hot(self, index: impl IntoArg<'g>, width: usize; caller) = {
            let op = Op::OneHot { width: u32::try_from(width).unwrap_or(u32::MAX) };
            self.apply_one(op, &[index.into_arg().raw(self, caller)], &[], caller)
        };
        /// The concatenation of values along the innermost axis.
        concat(self, values: impl Values<'g>; caller) = {
            let values: Vec<Value<'g>> = values.into_iter().map(|value| *value.borrow()).collect();
            let axis = values.first().map_or(0, |first| first.last_axis());
            self.many(Op::Concat { axis }, &values, caller)
        };
        /// The concatenation of values along an axis.
        concat_axis(self, axis: usize, values: impl Values<'g>; caller) =
            self.many(Op::Concat { axis: axis_number(axis) }, values, caller);
        /// Stacks values of one type along a new outermost axis.
        stack(self, values: impl Values<'g>; caller) = self.many(Op::Stack, values, caller);
        /// `sum of score_i * value_i` over two lists of equal length.
        weighted_sum(self, scores: Value<'g>, values: Value<'g>; caller) =
            self.lists(Op::WeightedSum { softmax: false }, &[scores, values], caller);
        /// [`weighted_sum`](Self::weighted_sum) with the softmax of the scores over the list as weights.
        softmax_sum(self, scores: Value<'g>, values: Value<'g>; caller) =
            self.lists(Op::WeightedSum { softmax: true }, &[scores, values], caller);
        /// Dot-product attention of a query over lists of keys and values.
        attend(self, query: Value<'g>, keys: Value<'g>, values: Value<'g>, scale: f32; caller) =
            self.lists(Op::Attend { scale: Float::new(scale) }, &[query, keys, values], caller);
        /// Attention of a node over its neighbours: `sum of softmax_i(leaky_relu(query + key_i, slope)) * value_i`. The query and
        /// the keys have one number for each head. A value has one group of elements for each head, side by side, and a head
        /// weighs its group.
        graph_attend(self, query: Value<'g>, keys: Value<'g>, values: Value<'g>, slope: f32; caller) =
            self.lists(Op::GraphAttend { slope: Float::new(slope) }, &[query, keys, values], caller);
    }

    fn product<'g>(
        &'g self,
        op: Op,
        parts: impl Values<'g>,
        weight: Param,
        bias: Option<Param>,
        caller: Caller,
    ) -> Value<'g> {
        let params = [weight, bias.unwrap_or(weight)];
        let params = &params[..1 + usize::from(bias.is_some())];
        self.apply_many(parts, caller, |recorder, parts| recorder.apply(op, parts, params, caller))
    }

    /// The logarithm of the softmax over values of one type, element by element: each minus the
    /// [`logsumexp`](Value::logsumexp) of all.
    #[track_caller]
    pub fn log_softmax_of<'g>(&'g self, values: impl Values<'g>) -> Vec<Value<'g>> {
        let values: Vec<Value<'g>> = values.into_iter().map(|value| *value.borrow()).collect();
        if values.is_empty() {
            return values;
        }
        let total = self.list(&values).logsumexp();
        values.into_iter().map(|value| value - total).collect()
    }

    /// A vector of bound floats.
    #[track_caller]
    pub fn input(&self, numbers: &[f32]) -> Value<'_> {
        let caller = Location::caller();
        match [numbers.len()].into_shape() {
            Ok(shape) => self.bound_floats(numbers, shape, caller),
            Err(error) => {
                self.refuse("input", &error.to_string(), "an input has at least one number", caller)
            }
        }
    }

    /// Bound floats of any shape, row by row.
    #[track_caller]
    pub fn input_shaped(&self, shape: impl IntoShape, numbers: &[f32]) -> Value<'_> {
        let caller = Location::caller();
        match shape.into_shape() {
            Ok(shape) if shape.elements() == numbers.len() => self.bound_floats(numbers, shape, caller),
            Ok(shape) => {
                let message = format!("the shape {shape} needs {} numbers", shape.elements());
                self.refuse("input", &message, &format!("{} were given", numbers.len()), caller)
            }
            Err(error) => self.refuse("input", &error.to_string(), "give extents from 1 up", caller),
        }
    }

    fn bound_floats(&self, numbers: &[f32], shape: Shape, caller: Caller) -> Value<'_> {
        let ty = Type::new(DType::F32, shape);
        self.apply_one(Op::Input(ty), &[Some(Raw::Floats(numbers, ty))], &[], caller)
    }

    pub(crate) fn bound_words(&self, words: &[u32], ty: Type, caller: Caller) -> Value<'_> {
        self.apply_one(Op::Input(ty), &[Some(Raw::Words(words, ty))], &[], caller)
    }

    /// A vector of bound indices, for example the labels of the rows of a matrix.
    #[track_caller]
    pub fn indices(&self, indices: &[u32]) -> Value<'_> {
        let caller = Location::caller();
        match [indices.len()].into_shape() {
            Ok(shape) => self.bound_words(indices, Type::new(DType::U32, shape), caller),
            Err(error) => self.refuse("input", &error.to_string(), "give at least one index", caller),
        }
    }

    fn filled(&self, shape: impl IntoShape, number: f32, caller: Caller) -> Value<'_> {
        match shape.into_shape() {
            Ok(shape) => {
                let op = Op::Fill { ty: Type::new(DType::F32, shape), bits: number.to_bits() };
                self.apply_one(op, &[], &[], caller)
            }
            Err(error) => self.refuse("fill", &error.to_string(), "give extents from 1 up", caller),
        }
    }

    fn many<'g>(&'g self, op: Op, values: impl Values<'g>, caller: Caller) -> Value<'g> {
        self.apply_many(values, caller, |recorder, values| recorder.apply(op, values, &[], caller))
    }

    /// Applies an op over two lists of equal length. Signatures do not contain lengths, so it checks them.
    fn lists<'g>(&'g self, op: Op, operands: &[Value<'g>], caller: Caller) -> Value<'g> {
        let [.., a, b] = operands else { return Value::poison(self) };
        if let (Some(a), Some(b)) = (self.list_len(*a, caller), self.list_len(*b, caller))
            && a != b
        {
            let message = format!("the lists must have equal lengths, found {a} and {b} values");
            return self.refuse(op.spelling(), &message, "give each value a score", caller);
        }
        self.many(op, operands, caller)
    }

    fn list_len(&self, list: Value<'_>, caller: Caller) -> Option<u32> {
        let id = list.id().filter(|_| list.is_of(self))?;
        self.recorder(caller)?.list_len(id)
    }
}
