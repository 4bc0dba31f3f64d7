//! [`Value`]: a result of a node, as a model holds it, and everything one can do with it.
//!
//! Sixteen bytes and `Copy`. The same type stands for values of graphs and of cell bodies, so the
//! body of a cell and plain model code read alike.

mod build;
mod elementwise;
mod methods;
mod operators;

use crate::graph::emit::Graph;
use crate::graph::op::Op;
use crate::graph::record::{Caller, Raw};
use crate::id::{TypeId, ValueId};
use crate::module::Module;
use crate::types::{DType, Shape, Type};
use std::fmt;

/// From here on numbers are no `i32`.
const TWO_31: f32 = 2_147_483_648.0;

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

    /// The value as an operand of a node of `graph`.
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
        let [result] = self.graph.apply_values(&op, &[self], &[], caller);
        result
    }

    #[inline]
    fn with(self, op: Op, other: Self, caller: Caller) -> Self {
        let [result] = self.graph.apply_values(&op, &[self, other], &[], caller);
        result
    }

    /// Two elementwise operands of different shapes are repeated to a common one first.
    #[inline]
    fn meet(self, op: Op, other: Self, caller: Caller) -> Self {
        if self.ty == other.ty || !other.is_of(self.graph) {
            return self.with(op, other, caller);
        }
        self.meet_halfway(op, other, caller)
    }

    fn meet_halfway(self, op: Op, other: Self, caller: Caller) -> Self {
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
        let whole = number.trunc() == number;
        let bits = match dtype {
            DType::I32 => (whole && (-TWO_31..TWO_31).contains(&number)).then_some((number as i32) as u32),
            DType::U32 => (whole && (0.0..2.0 * TWO_31).contains(&number)).then_some(number as u32),
            DType::Bool => (number == 0.0 || number == 1.0).then_some(number as u32),
            _ => Some(number.to_bits()),
        };
        let Some(bits) = bits else {
            let message = format!("the number {number:?} is no {dtype}, which the value's elements are");
            let help = "make floats of them first: value.cast(DType::F32)";
            return self.graph.refuse("constant", &message, help, caller);
        };
        self.graph.apply_one(Op::Fill { ty: Type::scalar(dtype), bits }, &[], &[], caller)
    }
}

/// An axis as ops hold it; one that no value has stays one that no value has.
fn axis_number(axis: usize) -> u8 {
    u8::try_from(axis).unwrap_or(u8::MAX)
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
