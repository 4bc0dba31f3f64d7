//! [`Value`]: a result of a node, and the operations of a model on it.
//!
//! A value is `Copy` and takes sixteen bytes. Graphs and cell bodies use the same type, so cell bodies
//! and other model code look the same.

mod build;
mod elementwise;
mod methods;
mod operators;
mod sum;
#[cfg(test)]
mod tests;

use crate::graph::emit::Graph;
use crate::graph::op::Op;
use crate::graph::record::{Caller, Raw};
use crate::id::{TypeId, ValueId};
use crate::module::Module;
use crate::types::{DType, Shape, Type};
pub use build::Values;
use std::fmt;
pub(super) use sum::{NO_TYPE, TYPED_SUM, is_sum_of_none};

/// The first float beyond the range of `i32`.
const TWO_31: f32 = 2_147_483_648.0;

/// A value of a graph.
#[derive(Clone, Copy)]
pub struct Value<'g> {
    graph: &'g Graph,
    id: Option<ValueId>,
    ty: TypeId,
}

/// A key for a value, without the lifetime of its graph. For programs that store both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueKey {
    pub(crate) graph: u32,
    pub(crate) id: ValueId,
}

impl ValueKey {
    /// The number of its graph in this process.
    #[must_use]
    pub const fn graph(self) -> u32 {
        self.graph
    }

    /// The id of the value in its graph.
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

/// Construction and access.
impl<'g> Value<'g> {
    #[inline]
    pub(crate) const fn new(graph: &'g Graph, id: ValueId, ty: TypeId) -> Self {
        Self { graph, id: Some(id), ty }
    }

    /// The poison value, which stands for a fault.
    pub(crate) const fn poison(graph: &'g Graph) -> Self {
        Self { graph, id: None, ty: Module::index_type() }
    }

    /// The id of the value; `None` after a fault.
    #[inline]
    #[must_use]
    pub const fn id(self) -> Option<ValueId> {
        self.id
    }

    /// The key of the value, for programs that cannot hold a `Value`; `None` after a fault.
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

    /// The type of the value; meaningless after a fault.
    #[must_use]
    pub fn ty(self) -> Type {
        self.graph.type_of(self.ty)
    }

    /// The shape of the value; meaningless after a fault.
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

    /// Applies an elementwise op and broadcasts the operands to a common shape first.
    #[inline]
    fn elementwise(self, op: Op, other: Self, caller: Caller) -> Self {
        if self.ty == other.ty || !other.is_of(self.graph) {
            return self.with(op, other, caller);
        }
        self.elementwise_broadcast(op, other, caller)
    }

    fn elementwise_broadcast(self, op: Op, other: Self, caller: Caller) -> Self {
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

    /// A scalar constant of the element type of this value.
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
            let message =
                format!("the number {number:?} is not of type {dtype}, the element type of the value");
            let help = "convert the value to floats first: value.cast(DType::F32)";
            return self.graph.refuse("constant", &message, help, caller);
        };
        self.graph.apply_one(Op::Fill { ty: Type::scalar(dtype), bits }, &[], &[], caller)
    }
}

/// The axis as an attribute. An axis beyond 255 becomes 255, which no value has either.
fn axis_number(axis: usize) -> u8 {
    u8::try_from(axis).unwrap_or(u8::MAX)
}

/// The shape that both shapes broadcast to, aligned at the innermost axis.
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
