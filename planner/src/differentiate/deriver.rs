//! The kernel of a derivative while it is built.

use crate::ids::ContributionId;
use crate::kernels::compile::{Builder, Value};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::plan::{
    Code, Instr, ListSource, ParamPort, ReductionSum, RegId, RegKind, Source, Stage, View,
};
use autobatch_ir::types::{DType, Shape, Type};
use std::collections::HashMap;

/// An op without a derivative rule for its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) op: &'static str,
}

/// The contribution of a node to the gradient of one operand.
#[derive(Clone, Debug)]
pub(super) enum Partial {
    /// Nothing.
    None,
    /// To a value.
    One(Value),
    /// To the values of a list made inside the kernel: to each its contributions, ascending.
    Many(Vec<Vec<Value>>),
    /// To the values of a list that came through a port: the uses of the list, ascending.
    Port(Vec<PortUse>),
}

/// The contribution of one use of a list from a port.
#[derive(Clone, Debug)]
pub(super) enum PortUse {
    /// The same to every value.
    Shared(Value),
    /// To each its own: a register of edges.
    Edges(View),
    /// To each a chain over all nodes that attend to it: for the keys (0) or the values (1) of the pull of this number.
    Pulled(usize, usize),
}

/// A vector of floats.
pub(super) fn floats(width: u32) -> Type {
    Type::new(DType::F32, shape(&[width]))
}

/// A matrix of floats.
pub(super) fn matrix(rows: u32, columns: u32) -> Type {
    Type::new(DType::F32, shape(&[rows, columns]))
}

pub(super) fn shape(dims: &[u32]) -> Shape {
    Shape::new(dims).expect("a part of a value is no larger than the value")
}

pub(super) fn number(x: f32) -> Source {
    Source::Const(x.to_bits())
}

pub(super) const SCALAR: Type = Type::scalar(DType::F32);

pub(super) fn sub(view: View, start: u32, width: u32) -> View {
    View { reg: view.reg, start: view.start + start, width }
}

/// A reduction before its rows have places.
pub(super) struct PendingReduction {
    pub(super) param: ParamPort,
    pub(super) sum: ReductionSum,
    pub(super) each: u32,
    pub(super) x: Option<View>,
    /// The number of a view among the views for reductions.
    pub(super) dy: usize,
    /// Whether `x` and `dy` are exchanged, as for a transposed weight.
    pub(super) swapped: bool,
}

/// An attention whose keys and values pull their gradients.
pub(super) struct PendingPull {
    /// The attention.
    pub(super) op: Op,
    /// The ports of keys and values, and the types of their items.
    pub(super) lists: [(RegId, Type); 2],
    /// The row of a reader.
    pub(super) reader: View,
}

/// A derivative under construction: the forward stages, then those of the reverse.
pub(super) struct Deriver<'a> {
    pub(super) b: Builder<'a>,
    /// Which parameter arguments require gradients.
    pub(super) params: Vec<bool>,
    pub(super) reductions: Vec<PendingReduction>,
    /// Views that reductions take.
    pub(super) kept: Vec<View>,
    /// The place of each of these views.
    pub(super) kept_at: HashMap<View, usize>,
    /// The port register of each result's gradient, and the place of the result.
    pub(super) incoming: Vec<(RegId, u32)>,
    pub(super) pulls: Vec<PendingPull>,
}

impl<'a> Deriver<'a> {
    /// Adds a port for the contributions to a gradient; gives their sum.
    pub(super) fn incoming(&mut self, place: u32, ty: Type) -> Value {
        let list = self.b.reg(RegKind::Port, Type { is_list: true, ..ty });
        self.incoming.push((list.reg, place));
        let dst = self.b.temp(ty);
        let lists = vec![ListSource::Port(list.reg)];
        self.b.stages.push(Stage::Seg {
            op: Op::ListFold(ListFold::Sum),
            query: None,
            lists,
            elements: vec![ty],
            dst,
        });
        Value::Pieces(vec![dst], ty)
    }

    /// One elementwise instruction.
    pub(super) fn instr(&mut self, code: Code, sources: Vec<Source>, ty: Type) -> View {
        let dst = self.b.temp(ty);
        self.instr_to(dst, code, ty.dtype, sources);
        dst
    }

    /// One elementwise instruction that writes a given view.
    pub(super) fn instr_to(&mut self, dst: View, code: Code, dtype: DType, sources: Vec<Source>) {
        let instr = Instr { code, dtype, sources, store: Some(dst) };
        self.b.stages.push(Stage::Map { width: dst.width, code: vec![instr] });
    }

    /// Drops the rows of readers whose keys and values get no gradients, because no node requires them.
    pub(super) fn drop_unread(&mut self, pulled: &[[Option<ContributionId>; 2]]) {
        for (pull, _) in self.pulls.iter().zip(pulled).filter(|(_, sides)| **sides == [None; 2]) {
            for stage in &mut self.b.stages {
                if let Stage::AttendGrad { reader, .. } = stage {
                    *reader = reader.filter(|view| *view != pull.reader);
                }
            }
        }
    }

    /// Notes a view that reductions take.
    pub(super) fn keep(&mut self, view: View) -> usize {
        let next = self.kept.len();
        let place = *self.kept_at.entry(view).or_insert(next);
        if place == next {
            self.kept.push(view);
        }
        place
    }
}
