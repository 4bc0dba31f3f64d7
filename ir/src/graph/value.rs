//! [`Value`]: a result of an application, as a model holds it, and everything one can do with it.
//!
//! Sixteen bytes and `Copy`. The same type stands for values of graphs and of cell bodies, so the
//! body of a cell and plain model code read alike.

use crate::graph::arena::Operand;
use crate::graph::args::Arg;
use crate::graph::emit::{Caller, Graph, Raw};
use crate::graph::op::{Binary, Compare, Float, Fold, ListFold, Op, Over, Permutation, Unary};
use crate::id::{TypeId, ValueId};
use crate::module::{Module, Param, Table};
use crate::types::{DType, INDEX, IntoShape, Shape, Type};
use std::borrow::Borrow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};
use std::panic::Location;

/// A value of a graph.
#[derive(Clone, Copy)]
pub struct Value<'g> {
    graph: &'g Graph,
    id: Option<ValueId>,
    ty: TypeId,
}

/// A value's name without its graph's lifetime, for programs that store both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueKey {
    pub(crate) graph: u32,
    pub(crate) id: ValueId,
}

impl ValueKey {
    /// The number of the value's graph in this process.
    #[must_use]
    pub const fn graph(self) -> u32 {
        self.graph
    }

    /// The value's id in its graph.
    #[must_use]
    pub const fn id(self) -> ValueId {
        self.id
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "{id}: {}", self.ty()),
            None => f.write_str("poison"),
        }
    }
}

/// Whole-value construction and access.
impl<'g> Value<'g> {
    #[inline]
    pub(crate) const fn new(graph: &'g Graph, id: ValueId, ty: TypeId) -> Self {
        Self { graph, id: Some(id), ty }
    }

    /// The value that stands for a fault.
    pub(crate) const fn poison(graph: &'g Graph) -> Self {
        Self { graph, id: None, ty: Module::index_type() }
    }

    /// The value's id; `None` after a fault.
    #[inline]
    #[must_use]
    pub const fn id(self) -> Option<ValueId> {
        self.id
    }

    /// The name to keep where a `Value` cannot be kept; `None` after a fault.
    #[must_use]
    pub fn key(self) -> Option<ValueKey> {
        self.id.map(|id| ValueKey { graph: self.graph.number(), id })
    }

    /// The graph that the value belongs to.
    #[must_use]
    pub const fn graph(self) -> &'g Graph {
        self.graph
    }

    #[inline]
    pub(crate) const fn type_id(self) -> TypeId {
        self.ty
    }

    #[inline]
    pub(crate) fn is_of(self, graph: &Graph) -> bool {
        std::ptr::eq(self.graph, graph)
    }

    /// The value's type. After a fault it means nothing.
    #[must_use]
    pub fn ty(self) -> Type {
        self.graph.type_of(self.ty)
    }

    /// The value's shape. After a fault it means nothing.
    #[must_use]
    pub fn shape(self) -> Shape {
        self.ty().shape
    }

    /// The value as an operand of an application of `graph`.
    #[inline]
    pub(crate) fn raw(self, graph: &Graph, caller: Caller) -> Option<Raw<'static>> {
        if !self.is_of(graph) {
            graph.refuse_other_graph(self, caller);
            return None;
        }
        self.id.map(|id| Raw::Value(id, self.ty))
    }

    #[inline]
    fn unary(self, op: Op, caller: Caller) -> Self {
        self.graph.apply_one(op, &[self.raw(self.graph, caller)], &[], caller)
    }

    #[inline]
    fn with(self, op: Op, other: Self, caller: Caller) -> Self {
        let operands = [self.raw(self.graph, caller), other.raw(self.graph, caller)];
        self.graph.apply_one(op, &operands, &[], caller)
    }

    /// Two elementwise operands of different shapes are repeated to a common one first.
    fn meet(self, op: Op, other: Self, caller: Caller) -> Self {
        if self.ty == other.ty || !other.is_of(self.graph) {
            return self.with(op, other, caller);
        }
        let (a, b) = (self.shape(), other.shape());
        match common_shape(a, b) {
            Some(shape) if a.rank() > 0 && b.rank() > 0 => {
                self.repeated(shape, caller).with(op, other.repeated(shape, caller), caller)
            }
            _ => self.with(op, other, caller),
        }
    }

    fn repeated(self, shape: Shape, caller: Caller) -> Self {
        if self.shape() == shape { self } else { self.unary(Op::Broadcast(shape), caller) }
    }

    /// A constant of this value's element type, to meet it.
    fn number(self, number: f32, caller: Caller) -> Self {
        let dtype = self.ty().dtype;
        let bits = match dtype {
            DType::I32 => (number as i32) as u32,
            DType::U32 => number as u32,
            _ => number.to_bits(),
        };
        self.graph.apply_one(Op::Fill { ty: Type::scalar(dtype), bits }, &[], &[], caller)
    }
}

/// The shape that both repeat to, counted from the innermost axis.
fn common_shape(a: Shape, b: Shape) -> Option<Shape> {
    let rank = a.rank().max(b.rank());
    let extent = |shape: Shape, axis: usize| {
        let missing = rank - shape.rank();
        if axis < missing { 1 } else { shape.dims()[axis - missing] }
    };
    let mut dims = [1; Shape::MAX_RANK];
    for (axis, dim) in dims[..rank].iter_mut().enumerate() {
        *dim = match (extent(a, axis), extent(b, axis)) {
            (x, y) if x == y => x,
            (x, 1) => x,
            (1, y) => y,
            _ => return None,
        };
    }
    Shape::new(&dims[..rank]).ok()
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident => $op:expr;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[inline] #[must_use]
            pub fn $name(self) -> Self { self.unary($op, Location::caller()) })*
        }
    };
}

methods! {
    /// `|x|`
    abs => Op::Unary(Unary::Abs);
    /// `e^x`
    exp => Op::Unary(Unary::Exp);
    /// Natural logarithm.
    log => Op::Unary(Unary::Log);
    /// Square root.
    sqrt => Op::Unary(Unary::Sqrt);
    /// `1 / sqrt(x)`
    rsqrt => Op::Unary(Unary::Rsqrt);
    /// `x * x`
    square => Op::Unary(Unary::Square);
    /// `1 / x`
    recip => Op::Unary(Unary::Recip);
    /// Hyperbolic tangent.
    tanh => Op::Unary(Unary::Tanh);
    /// `1 / (1 + e^-x)`
    sigmoid => Op::Unary(Unary::Sigmoid);
    /// `max(x, 0)`
    relu => Op::Unary(Unary::Relu);
    /// Gaussian error linear unit.
    gelu => Op::Unary(Unary::Gelu);
    /// `x * sigmoid(x)`
    silu => Op::Unary(Unary::Silu);
    /// `log(1 + e^x)`
    softplus => Op::Unary(Unary::Softplus);
    /// Sine.
    sin => Op::Unary(Unary::Sin);
    /// Cosine.
    cos => Op::Unary(Unary::Cos);
    /// The error function.
    erf => Op::Unary(Unary::Erf);
    /// -1, 0 or 1.
    sign => Op::Unary(Unary::Sign);
    /// `e^x / sum e^x` of each row.
    softmax => Op::Softmax;
    /// `log(softmax(x))` of each row.
    log_softmax => Op::LogSoftmax;
    /// `log(sum e^x)` of each row.
    logsumexp => Op::LogSumExp;
    /// The Euclidean length of each row.
    norm => Op::Norm;
    /// The index of the largest element of each row.
    argmax => Op::ArgMax;
    /// The identity, whose derivative is taken as zero.
    stop_gradient => Op::StopGradient;
    /// The sum of each row.
    sum_rows => Op::Reduce { fold: Fold::Sum, over: Over::Last };
    /// The mean of each row.
    mean_rows => Op::Reduce { fold: Fold::Mean, over: Over::Last };
    /// The largest element of each row.
    max_rows => Op::Reduce { fold: Fold::Max, over: Over::Last };
    /// The smallest element of each row.
    min_rows => Op::Reduce { fold: Fold::Min, over: Over::Last };
    /// The smallest element.
    min => Op::Reduce { fold: Fold::Min, over: Over::All };
    /// The matrix with its axes swapped.
    t => Op::Transpose(Permutation::SWAP);
}

macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident => $fold:ident;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[must_use]
            pub fn $name(self) -> Self {
                let op = if self.ty().is_list {
                    Op::ListFold(ListFold::$fold)
                } else {
                    Op::Reduce { fold: Fold::$fold, over: Over::All }
                };
                self.unary(op, Location::caller())
            })*
        }
    };
}

folds! {
    /// The sum of all elements; of a list, the elementwise sum of its values.
    sum => Sum;
    /// The mean of all elements; of a list, the elementwise mean of its values.
    mean => Mean;
    /// The largest element; of a list, the elementwise maximum of its values.
    max => Max;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident => $op:expr;)*) => {
        impl<'g> Value<'g> {
            $($(#[$doc])* #[track_caller] #[must_use]
            pub fn $name(self, other: impl Into<Term<'g>>) -> Self {
                let caller = Location::caller();
                let other = other.into().value(self, caller);
                self.meet($op, other, caller)
            })*
        }
    };
}

/// The second operand of an elementwise method: a value or a number.
#[derive(Clone, Copy, Debug)]
pub enum Term<'g> {
    /// A value of the same graph.
    Value(Value<'g>),
    /// A constant.
    Number(f32),
}

impl<'g> Term<'g> {
    fn value(self, first: Value<'g>, caller: Caller) -> Value<'g> {
        match self {
            Self::Value(value) => value,
            Self::Number(number) => first.number(number, caller),
        }
    }
}

impl<'g> From<Value<'g>> for Term<'g> {
    fn from(value: Value<'g>) -> Self {
        Self::Value(value)
    }
}

impl<'g> From<&Value<'g>> for Term<'g> {
    fn from(value: &Value<'g>) -> Self {
        Self::Value(*value)
    }
}

impl From<f32> for Term<'_> {
    fn from(number: f32) -> Self {
        Self::Number(number)
    }
}

binary_methods! {
    /// `self ^ other`
    pow => Op::Binary(Binary::Pow);
    /// The smaller of the two, element by element.
    minimum => Op::Binary(Binary::Min);
    /// The larger of the two, element by element.
    maximum => Op::Binary(Binary::Max);
    /// Whether equal, element by element.
    equal => Op::Compare(Compare::Eq);
    /// Whether different, element by element.
    not_equal => Op::Compare(Compare::Ne);
    /// Whether less, element by element.
    less => Op::Compare(Compare::Lt);
    /// Whether less or equal, element by element.
    less_equal => Op::Compare(Compare::Le);
    /// Whether greater, element by element.
    greater => Op::Compare(Compare::Gt);
    /// Whether greater or equal, element by element.
    greater_equal => Op::Compare(Compare::Ge);
}

/// Ops with attributes, parameters or several operands.
impl<'g> Value<'g> {
    /// `x` where positive, `slope * x` elsewhere.
    #[track_caller]
    #[must_use]
    pub fn leaky_relu(self, slope: f32) -> Self {
        self.unary(Op::LeakyRelu { slope: slope.into() }, Location::caller())
    }

    /// `x` where positive, `alpha * (e^x - 1)` elsewhere.
    #[track_caller]
    #[must_use]
    pub fn elu(self, alpha: f32) -> Self {
        self.unary(Op::Elu { alpha: alpha.into() }, Location::caller())
    }

    /// `x` cut to `low..=high`.
    #[track_caller]
    #[must_use]
    pub fn clamp(self, low: f32, high: f32) -> Self {
        self.unary(Op::Clamp { low: low.into(), high: high.into() }, Location::caller())
    }

    /// `x · W (+ b)`. A matrix is so many rows.
    #[track_caller]
    #[must_use]
    pub fn affine(self, weight: Param, bias: Option<Param>) -> Self {
        self.graph.affine_at(&[self], weight, bias, false, Location::caller())
    }

    /// `x · Wᵀ (+ b)`, for a weight stored as `[outputs, inputs]`: a tied embedding, say.
    #[track_caller]
    #[must_use]
    pub fn affine_transposed(self, weight: Param, bias: Option<Param>) -> Self {
        self.graph.affine_at(&[self], weight, bias, true, Location::caller())
    }

    /// The matrix product of two values.
    #[track_caller]
    #[must_use]
    pub fn matmul(self, other: Self) -> Self {
        self.with(Op::Matmul, other, Location::caller())
    }

    /// The inner product of two vectors.
    #[track_caller]
    #[must_use]
    pub fn dot(self, other: Self) -> Self {
        self.with(Op::Dot, other, Location::caller())
    }

    /// The outer product of two vectors.
    #[track_caller]
    #[must_use]
    pub fn outer(self, other: Self) -> Self {
        self.with(Op::Outer, other, Location::caller())
    }

    /// `N` equal parts along the innermost axis.
    #[track_caller]
    #[must_use]
    pub fn split<const N: usize>(self) -> [Self; N] {
        let axis = self.last_axis();
        let first = self.split_at(axis, N as u32, Location::caller());
        std::array::from_fn(|place| first.map_or(Self::poison(self.graph), |f| self.graph.nth(f, place)))
    }

    /// `parts` equal parts along an axis.
    #[track_caller]
    #[must_use]
    pub fn chunks(self, axis: usize, parts: usize) -> Vec<Self> {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        match self.split_at(axis as u8, parts, Location::caller()) {
            Some(first) => (0..parts as usize).map(|place| self.graph.nth(first, place)).collect(),
            None => vec![Self::poison(self.graph)],
        }
    }

    fn split_at(self, axis: u8, parts: u32, caller: Caller) -> Option<u32> {
        self.graph.apply(Op::Split { axis, parts }, &[self.raw(self.graph, caller)], &[], caller)
    }

    fn last_axis(self) -> u8 {
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
        let bound = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (start, len) = (bound(range.start), bound(range.end.saturating_sub(range.start)));
        self.unary(Op::Slice { axis: axis as u8, start, len }, Location::caller())
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
        let mut axes = [0, 1, 2, 3];
        for (axis, &from) in axes.iter_mut().zip(&order) {
            *axis = u8::try_from(from).unwrap_or(u8::MAX);
        }
        self.unary(Op::Transpose(Permutation(axes)), Location::caller())
    }

    /// The element, or row of a matrix, at an index.
    #[track_caller]
    #[must_use]
    pub fn pick(self, index: impl Into<Arg<'g>>) -> Self {
        self.indexed(Op::Pick, index.into(), Location::caller())
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
        let caller = Location::caller();
        let op = Op::TopK { k: u32::try_from(k).unwrap_or(u32::MAX) };
        let first = self.graph.apply(op, &[self.raw(self.graph, caller)], &[], caller);
        std::array::from_fn(|place| first.map_or(Self::poison(self.graph), |f| self.graph.nth(f, place)))
    }

    /// Each row less its mean, divided by its deviation.
    #[track_caller]
    #[must_use]
    pub fn layer_norm(self, eps: f32) -> Self {
        self.unary(Op::LayerNorm { eps: eps.into() }, Location::caller())
    }

    /// Where this condition holds, `a`, elsewhere `b`.
    #[track_caller]
    #[must_use]
    pub fn select(self, a: Self, b: Self) -> Self {
        let caller = Location::caller();
        let operands = [self, a, b].map(|value| value.raw(self.graph, caller));
        self.graph.apply_one(Op::Select, &operands, &[], caller)
    }

    /// Minus infinity where `legal` is false: choices that must not be taken.
    #[track_caller]
    #[must_use]
    pub fn mask(self, legal: &[bool]) -> Self {
        let caller = Location::caller();
        let words: Vec<u32> = legal.iter().map(|&legal| u32::from(legal)).collect();
        let ty = self.ty();
        let legal = match [words.len()].into_shape() {
            Ok(shape) => self.graph.bound_words(&words, Type::new(DType::Bool, shape), caller),
            Err(error) => self.graph.refuse("mask", &error.to_string(), "give one flag an element", caller),
        };
        let never = self.number(f32::NEG_INFINITY, caller).repeated(ty.shape, caller);
        let operands = [legal, self, never].map(|value| value.raw(self.graph, caller));
        self.graph.apply_one(Op::Select, &operands, &[], caller)
    }

    /// Conversion to another element type.
    #[track_caller]
    #[must_use]
    pub fn cast(self, dtype: DType) -> Self {
        self.unary(Op::Cast(dtype), Location::caller())
    }

    /// `-log_softmax(self)[label]` of each row.
    #[track_caller]
    #[must_use]
    pub fn cross_entropy(self, label: impl Into<Arg<'g>>) -> Self {
        self.indexed(Op::PickNegLogSoftmax, label.into(), Location::caller())
    }

    /// `-sum target * log_softmax(self)`.
    #[track_caller]
    #[must_use]
    pub fn cross_entropy_with(self, target: Self) -> Self {
        self.with(Op::CrossEntropy, target, Location::caller())
    }

    /// `sum target * (log target - self)`, where `self` holds log-probabilities.
    #[track_caller]
    #[must_use]
    pub fn kl_div(self, target: Self) -> Self {
        self.with(Op::KlDiv, target, Location::caller())
    }

    /// The mean of the squared differences.
    #[track_caller]
    #[must_use]
    pub fn mse(self, target: Self) -> Self {
        self.with(Op::Mse, target, Location::caller())
    }

    /// The mean binary cross-entropy of these logits against targets in `0..=1`.
    #[track_caller]
    #[must_use]
    pub fn bce(self, target: Self) -> Self {
        self.with(Op::Bce, target, Location::caller())
    }

    /// The margin loss of each row: `sum over j ≠ label of max(0, margin + x_j - x_label)`.
    #[track_caller]
    #[must_use]
    pub fn hinge(self, label: impl Into<Arg<'g>>, margin: f32) -> Self {
        self.indexed(Op::Hinge { margin: margin.into() }, label.into(), Location::caller())
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

    /// The identity, whose derivative is multiplied by `by`.
    #[track_caller]
    #[must_use]
    pub fn scale_gradient(self, by: f32) -> Self {
        self.unary(Op::ScaleGradient { by: by.into() }, Location::caller())
    }

    /// Promises that every batch that takes this value takes it in all its rows; planning fails
    /// with the names of two values where that does not hold.
    #[must_use]
    pub fn shared(self) -> Self {
        if let Some(id) = self.id {
            self.graph.mark_shared(id);
        }
        self
    }

    /// Makes the application of this value a batch of its own.
    #[must_use]
    pub fn alone(self) -> Self {
        if let Some(id) = self.id {
            self.graph.mark_alone(id);
        }
        self
    }
}

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
    /// The row at an index that is a value: inside cells, after an argmax.
    #[track_caller]
    #[must_use]
    pub fn row<'g>(self, index: Value<'g>) -> Value<'g> {
        index.graph().lookup_at(self, index.into(), Location::caller())
    }

    /// The row at an index, bound or computed.
    #[track_caller]
    #[must_use]
    pub fn look<'g>(self, graph: &'g Graph, index: impl Into<Arg<'g>>) -> Value<'g> {
        graph.lookup_at(self, index.into(), Location::caller())
    }
}

/// Values made from numbers, parameters and several values.
impl Graph {
    fn lookup_at<'g>(&'g self, table: Table, index: Arg<'g>, caller: Caller) -> Value<'g> {
        self.apply_one(Op::Lookup { sparse: true }, &[index.raw(self, caller)], &[table.as_param()], caller)
    }

    pub(crate) fn affine_at<'g>(
        &'g self,
        parts: &[Value<'g>],
        weight: Param,
        bias: Option<Param>,
        transposed: bool,
        caller: Caller,
    ) -> Value<'g> {
        let raw: Vec<Option<Raw<'_>>> = parts.iter().map(|part| part.raw(self, caller)).collect();
        let params = [weight, bias.unwrap_or(weight)];
        let used = if bias.is_some() { 2 } else { 1 };
        self.apply_one(Op::Affine { bias: bias.is_some(), transposed }, &raw, &params[..used], caller)
    }

    /// `x · W (+ b)`, where the parts side by side make up `x`; nothing is copied.
    #[track_caller]
    pub fn affine<'g>(
        &'g self,
        parts: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
        weight: Param,
        bias: Option<Param>,
    ) -> Value<'g> {
        let caller = Location::caller();
        let parts: Vec<Value<'g>> = parts.into_iter().map(|part| *part.borrow()).collect();
        self.affine_at(&parts, weight, bias, false, caller)
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
                let message = format!("the shape {shape} wants {} numbers", shape.elements());
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

    /// A bound index as a value: one that several applications take, or that arithmetic is done on.
    #[track_caller]
    pub fn index(&self, index: u32) -> Value<'_> {
        self.apply_one(Op::Input(INDEX), &[Some(Raw::Index(index))], &[], Location::caller())
    }

    /// A vector of bound indices: the labels of a matrix' rows, say.
    #[track_caller]
    pub fn indices(&self, indices: &[u32]) -> Value<'_> {
        let caller = Location::caller();
        match [indices.len()].into_shape() {
            Ok(shape) => self.bound_words(indices, Type::new(DType::U32, shape), caller),
            Err(error) => self.refuse("input", &error.to_string(), "give at least one index", caller),
        }
    }

    /// A float constant of any shape.
    #[track_caller]
    pub fn fill(&self, shape: impl IntoShape, number: f32) -> Value<'_> {
        let caller = Location::caller();
        match shape.into_shape() {
            Ok(shape) => {
                let op = Op::Fill { ty: Type::new(DType::F32, shape), bits: number.to_bits() };
                self.apply_one(op, &[], &[], caller)
            }
            Err(error) => self.refuse("fill", &error.to_string(), "give extents from 1 up", caller),
        }
    }

    /// Zeros of any shape.
    #[track_caller]
    pub fn zeros(&self, shape: impl IntoShape) -> Value<'_> {
        self.fill(shape, 0.0)
    }

    /// A single number.
    #[track_caller]
    pub fn constant(&self, number: f32) -> Value<'_> {
        self.fill([], number)
    }

    /// The value of a parameter.
    #[track_caller]
    pub fn param(&self, param: Param) -> Value<'_> {
        self.apply_one(Op::Param, &[], &[param], Location::caller())
    }

    /// 1 at an index, 0 elsewhere.
    #[track_caller]
    pub fn one_hot<'g>(&'g self, index: impl Into<Arg<'g>>, width: usize) -> Value<'g> {
        let caller = Location::caller();
        let op = Op::OneHot { width: u32::try_from(width).unwrap_or(u32::MAX) };
        self.apply_one(op, &[index.into().raw(self, caller)], &[], caller)
    }

    /// Values side by side along the innermost axis.
    #[track_caller]
    pub fn concat<'g>(&'g self, values: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let caller = Location::caller();
        let values: Vec<Value<'g>> = values.into_iter().map(|value| *value.borrow()).collect();
        let axis = values.first().map_or(0, |first| first.last_axis());
        self.many(Op::Concat { axis }, &values, caller)
    }

    /// Values side by side along an axis.
    #[track_caller]
    pub fn concat_axis<'g>(
        &'g self,
        axis: usize,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Value<'g> {
        let caller = Location::caller();
        let values: Vec<Value<'g>> = values.into_iter().map(|value| *value.borrow()).collect();
        self.many(Op::Concat { axis: axis as u8 }, &values, caller)
    }

    /// Values of one type along a new outermost axis.
    #[track_caller]
    pub fn stack<'g>(&'g self, values: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let caller = Location::caller();
        let values: Vec<Value<'g>> = values.into_iter().map(|value| *value.borrow()).collect();
        self.many(Op::Stack, &values, caller)
    }

    fn many<'g>(&'g self, op: Op, values: &[Value<'g>], caller: Caller) -> Value<'g> {
        let raw: Vec<Option<Raw<'_>>> = values.iter().map(|value| value.raw(self, caller)).collect();
        self.apply_one(op, &raw, &[], caller)
    }

    /// `sum of score_i * value_i` over two lists of equal length.
    #[track_caller]
    pub fn weighted_sum<'g>(&'g self, scores: Value<'g>, values: Value<'g>) -> Value<'g> {
        self.lists(Op::WeightedSum { softmax: false }, &[scores, values], Location::caller())
    }

    /// The same with the scores made a softmax over the list first, element by element.
    #[track_caller]
    pub fn softmax_sum<'g>(&'g self, scores: Value<'g>, values: Value<'g>) -> Value<'g> {
        self.lists(Op::WeightedSum { softmax: true }, &[scores, values], Location::caller())
    }

    /// Dot-product attention of a query over lists of keys and values.
    #[track_caller]
    pub fn attend<'g>(
        &'g self,
        query: Value<'g>,
        keys: Value<'g>,
        values: Value<'g>,
        scale: f32,
    ) -> Value<'g> {
        let op = Op::Attend { scale: Float::new(scale) };
        self.lists(op, &[query, keys, values], Location::caller())
    }

    /// Ops over two lists need lists of one length, which no signature knows.
    fn lists<'g>(&'g self, op: Op, operands: &[Value<'g>], caller: Caller) -> Value<'g> {
        let [.., a, b] = operands else { return Value::poison(self) };
        if let (Some(a), Some(b)) = (self.list_len(*a), self.list_len(*b))
            && a != b
        {
            let message = format!("the lists must be equally long, found {a} and {b} values");
            return self.refuse(op.spelling(), &message, "give each value its score", caller);
        }
        self.many(op, operands, caller)
    }

    /// The length of a list of this graph; a list port's is unknown while tracing.
    fn list_len(&self, list: Value<'_>) -> Option<usize> {
        let id = list.id().filter(|_| list.is_of(self))?;
        let data = self.data();
        let app = data.arena.producer(id);
        data.signature(app).is_list().then(|| data.arena.operands(app).len())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'g> $trait for Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), other, Location::caller())
            }
        }

        impl<'g> $trait<&Value<'g>> for Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: &Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), *other, Location::caller())
            }
        }

        impl<'g> $trait<Value<'g>> for &Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), other, Location::caller())
            }
        }

        impl<'g> $trait for &Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            #[inline]
            fn $method(self, other: &Value<'g>) -> Value<'g> {
                self.meet(Op::Binary(Binary::$op), *other, Location::caller())
            }
        }

        impl<'g> $trait<f32> for Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            fn $method(self, number: f32) -> Value<'g> {
                let caller = Location::caller();
                self.meet(Op::Binary(Binary::$op), self.number(number, caller), caller)
            }
        }

        impl<'g> $trait<f32> for &Value<'g> {
            type Output = Value<'g>;
            #[track_caller]
            fn $method(self, number: f32) -> Value<'g> {
                let caller = Location::caller();
                self.meet(Op::Binary(Binary::$op), self.number(number, caller), caller)
            }
        }

        impl<'g> $trait<Value<'g>> for f32 {
            type Output = Value<'g>;
            #[track_caller]
            fn $method(self, value: Value<'g>) -> Value<'g> {
                let caller = Location::caller();
                value.number(self, caller).meet(Op::Binary(Binary::$op), value, caller)
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl<'g> Neg for Value<'g> {
    type Output = Value<'g>;
    #[track_caller]
    fn neg(self) -> Value<'g> {
        self.unary(Op::Unary(Unary::Neg), Location::caller())
    }
}

impl<'g> Neg for &Value<'g> {
    type Output = Value<'g>;
    #[track_caller]
    fn neg(self) -> Value<'g> {
        self.unary(Op::Unary(Unary::Neg), Location::caller())
    }
}

impl<'g> Sum for Value<'g> {
    /// The sum of the values, as one application over their list.
    ///
    /// # Panics
    /// If there are none: a sum of nothing has no type. Use `g.empty_list(type).sum()`.
    #[track_caller]
    fn sum<I: Iterator<Item = Value<'g>>>(values: I) -> Value<'g> {
        let values: Vec<Value<'g>> = values.collect();
        let Some(first) = values.first() else {
            panic!("a sum of no values has no type; use g.empty_list(type).sum()")
        };
        first.graph.list(&values).sum()
    }
}

impl<'a, 'g: 'a> Sum<&'a Value<'g>> for Value<'g> {
    #[track_caller]
    fn sum<I: Iterator<Item = &'a Value<'g>>>(values: I) -> Value<'g> {
        values.copied().sum()
    }
}

impl From<ValueId> for Operand {
    fn from(id: ValueId) -> Self {
        Self::value(id)
    }
}
