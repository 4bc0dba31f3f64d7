//! The derivative rule of every op, as stages.
//!
//! Each rule composes forward stages so that every rounding of `reference::derivative` happens here too, in the same order:
//! see the table there. The rule of an op that reads a value row by row has a few stages for each row.

mod elementwise;
mod losses;
mod moves;
mod products;
mod rows;

use super::deriver::{Deriver, Partial, Refused, SCALAR, floats, number, shape};
use super::lists;
use super::tape::Applied;
use crate::kernels::compile::{Value, type_of};
use autobatch_ir::graph::{Binary, Compare, Fold, Op, Over, Unary};
use autobatch_ir::plan::{Code, RegKind, Source, Stage, View};
use autobatch_ir::types::{DType, INDEX, Shape, Type};

fn value(view: View, ty: Type) -> Value {
    Value::Pieces(vec![view], ty)
}

impl Deriver<'_> {
    /// The contributions of an op to its operands. At least one of its results has a gradient, or none has a contribution.
    pub(super) fn rule(&mut self, at: &Applied, grads: &[Option<Value>]) -> Result<Vec<Partial>, Refused> {
        let none = || at.operands.iter().map(|_| Partial::None).collect::<Vec<_>>();
        let first = |dx: Value| {
            let others = at.operands.iter().skip(1).map(|_| Partial::None);
            std::iter::once(Partial::One(dx)).chain(others).collect::<Vec<_>>()
        };
        let Some(dy) = self.first_gradient(at, grads) else { return Ok(none()) };
        Ok(match at.op {
            Op::Port(_)
            | Op::List
            | Op::Append
            | Op::Input(_)
            | Op::Fill { .. }
            | Op::ArgMax
            | Op::OneHot { .. }
            | Op::ForkNoise { .. }
            | Op::Compare(_)
            | Op::StopGradient
            | Op::Unary(Unary::Sign) => none(),
            Op::Param => {
                self.sum_rows(at.args[0], dy, 1);
                none()
            }
            Op::Lookup => {
                self.lookup(at, dy);
                none()
            }
            Op::Unary(unary) => first(self.unary(unary, at, dy)),
            Op::LeakyRelu { slope } => first(self.leaky_relu(at, dy, slope)),
            Op::Elu { alpha } => first(self.elu(at, dy, alpha)),
            Op::Clamp { low, high } => first(self.clamp(at, dy, low, high)),
            Op::ScaleGradient { by } => first(self.scale(dy, by)),
            Op::Cast(DType::F32) if type_of(&at.operands[0]).dtype == DType::F32 => first(dy),
            Op::Cast(_) => none(),
            Op::Dropout { .. } if self.b.options.training => first(self.dropout(at, dy)),
            Op::Dropout { .. } => first(dy),
            Op::Binary(binary) => self.two_operands(binary, at, dy),
            Op::Select => self.select(at, dy),
            Op::Reshape(_) => first(value_as(dy, type_of(&at.operands[0]))),
            Op::Concat { axis: 0 } | Op::Stack => self.cut(at, &dy),
            Op::Concat { axis } => self.cut_inside(at, dy, axis),
            Op::Split { axis, .. } => first(self.join(at, grads, axis)),
            Op::Slice { axis, start, .. } => first(self.padded(at, dy, axis, start)),
            Op::Transpose(permutation) => first(self.transpose(at, dy, permutation)),
            Op::Broadcast(to) => first(self.sum_copies(at, dy, to)),
            Op::Pick => first(self.pick(at, dy)),
            Op::Affine { bias, transposed } => self.affine(at, dy, bias, transposed, 0, 0),
            Op::AffineRows { row, bias, onto } => self.affine(at, dy, bias, false, row, usize::from(onto)),
            Op::Matmul | Op::Outer => self.products(at, dy),
            Op::Dot => self.dot_product(at, dy),
            Op::Reduce { fold, over } => first(self.reduce(at, dy, fold, over)),
            Op::TopK { .. } => first(self.top_k(at, dy)),
            Op::Softmax | Op::LogSoftmax | Op::LogSumExp | Op::Norm | Op::LayerNorm { .. } => {
                first(self.row_function(at, dy))
            }
            Op::LabelLoss => first(self.label_loss(at, dy)),
            Op::PickNegLogSoftmax | Op::Hinge { .. } => first(self.labelled(at, dy)),
            Op::CrossEntropy | Op::KlDiv | Op::Mse | Op::Bce => self.pair_loss(at, dy),
            Op::ListFold(_)
            | Op::ListPick
            | Op::WeightedSum { .. }
            | Op::Attend { .. }
            | Op::GraphAttend { .. } => lists::rule(self, at, dy)?,
        })
    }

    /// The gradient of the first result; zeros if only other results have one.
    fn first_gradient(&mut self, at: &Applied, grads: &[Option<Value>]) -> Option<Value> {
        let there = grads.iter().flatten().next()?;
        match (&grads[0], at.op) {
            (Some(dy), _) => Some(dy.clone()),
            (None, Op::Split { .. }) => Some(there.clone()),
            (None, _) => Some(self.zeros(type_of(&at.results[0]))),
        }
    }

    pub(super) fn zeros(&mut self, ty: Type) -> Value {
        value(self.b.reg(RegKind::Const(0), ty), ty)
    }

    /// One contribution for each operand that needs one.
    fn for_operands(
        &mut self,
        at: &Applied,
        mut make: impl FnMut(&mut Self, usize) -> Value,
    ) -> Vec<Partial> {
        let partial = |(place, &needs): (usize, &bool)| match needs {
            true => Partial::One(make(self, place)),
            false => Partial::None,
        };
        at.needs.iter().enumerate().map(partial).collect()
    }

    pub(super) fn source(&mut self, value: Value) -> Source {
        let width = type_of(&value).shape.elements() as u32;
        self.b.source(value, width)
    }

    fn operand(&mut self, at: &Applied, place: usize) -> (Type, Source) {
        let value = at.operands[place].clone();
        (type_of(&value), self.source(value))
    }

    /// An operand of a function of two, broadcast if it is one element.
    fn broadcast(&mut self, at: &Applied, place: usize) -> Source {
        let width = type_of(&at.results[0]).shape.elements() as u32;
        self.b.source(at.operands[place].clone(), width)
    }

    pub(super) fn binary(&mut self, binary: Binary, a: Source, b: Source, ty: Type) -> View {
        self.instr(Code::Binary(binary), vec![a, b], ty)
    }

    pub(super) fn one_operand(&mut self, unary: Unary, x: Source, ty: Type) -> View {
        self.instr(Code::Unary(unary), vec![x], ty)
    }

    pub(super) fn choose(&mut self, condition: Source, yes: Source, no: Source, ty: Type) -> View {
        self.instr(Code::Select, vec![condition, yes, no], ty)
    }

    pub(super) fn comparison(&mut self, compare: Compare, a: Source, b: Source, shape: Shape) -> View {
        let dst = self.b.temp(Type::new(DType::Bool, shape));
        self.instr_to(dst, Code::Compare(compare), DType::F32, vec![a, b]);
        dst
    }

    fn compare(&mut self, at: &Applied, place: usize, compare: Compare, with: f32) -> View {
        let (ty, x) = self.operand(at, place);
        self.comparison(compare, x, number(with), ty.shape)
    }

    /// `dy * (if condition { yes } else { no })`
    fn times_choice(&mut self, at: &Applied, dy: Value, condition: View, yes: Source, no: Source) -> Value {
        let ty = type_of(&at.results[0]);
        let slope = self.choose(Source::View(condition), yes, no, ty);
        let dy = self.source(dy);
        value(self.binary(Binary::Mul, dy, Source::View(slope), ty), ty)
    }

    /// A row stage with one result.
    pub(super) fn row_stage(&mut self, op: Op, sources: Vec<(View, Type)>, ty: Type) -> View {
        let dst = self.b.temp(ty);
        self.b.stages.push(Stage::Row { op, sources, dsts: vec![dst] });
        dst
    }

    /// A fold of a view as one row.
    pub(super) fn total(&mut self, fold: Fold, view: View) -> View {
        let op = Op::Reduce { fold, over: Over::All };
        self.row_stage(op, vec![(view, floats(view.width))], SCALAR)
    }

    pub(super) fn dot(&mut self, a: View, b: View) -> View {
        self.row_stage(Op::Dot, vec![(a, floats(a.width)), (b, floats(b.width))], SCALAR)
    }

    /// A vector with 1 at an index and 0 elsewhere.
    fn one_hot(&mut self, index: View, width: u32) -> View {
        self.row_stage(Op::OneHot { width }, vec![(index, INDEX)], floats(width))
    }

    /// Whether numbers are not 0.
    fn truth(&mut self, view: View) -> View {
        let x = self.b.view_source(view, view.width);
        self.comparison(Compare::Ne, x, number(0.0), shape(&[view.width]))
    }
}

/// The same elements under another type.
fn value_as(value: Value, ty: Type) -> Value {
    match value {
        Value::Pieces(views, _) => Value::Pieces(views, ty),
        list => list,
    }
}
