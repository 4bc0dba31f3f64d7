//! The derivative rule of every op, as stages.
//!
//! Each rule composes the stages of the forward vocabulary so that every rounding of
//! `reference::derivative` happens here too, in the same order: see the table there. What looks at a
//! value row by row does so here as well, a few stages for each row.

mod elementwise;
mod losses;
mod moves;
mod products;
mod rows;

use super::kernel::{Deriver, PendingReduction, Refused};
use super::lists;
use super::tape::Applied;
use crate::compile::{Value, side_by_side, type_of};
use autobatch_ir::graph::{Binary, Compare, Fold, Op, Over, Unary};
use autobatch_ir::plan::{Code, ReductionSum, RegKind, Source, Stage, View};
use autobatch_ir::types::{DType, INDEX, Shape, Type};

/// What a node contributes to the gradient of one operand.
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

/// What one use of a list that came through a port contributes.
#[derive(Clone, Debug)]
pub(super) enum PortUse {
    /// The same to every value.
    Shared(Value),
    /// To each its own: a register of edges.
    Edges(View),
}

/// A vector of floats.
pub(super) fn floats(width: u32) -> Type {
    Type::new(DType::F32, shape(&[width]))
}

pub(super) fn shape(dims: &[u32]) -> Shape {
    Shape::new(dims).expect("a part of a value is no larger than the value")
}

pub(super) fn number(x: f32) -> Source {
    Source::Const(x.to_bits())
}

pub(super) const SCALAR: Type = Type::scalar(DType::F32);

fn value(view: View, ty: Type) -> Value {
    Value::Pieces(vec![view], ty)
}

pub(super) fn sub(view: View, start: u32, width: u32) -> View {
    View { reg: view.reg, start: view.start + start, width }
}

impl Deriver<'_> {
    /// The rule of an op whose results have gradients, of which at least one is there.
    pub(super) fn rule(&mut self, at: &Applied, grads: &[Option<Value>]) -> Result<Vec<Partial>, Refused> {
        let one = |dx: Value| vec![Partial::One(dx)];
        let none = || at.operands.iter().map(|_| Partial::None).collect::<Vec<_>>();
        let Some(dy) = self.first_gradient(at, grads) else { return Ok(none()) };
        Ok(match at.op {
            Op::Port(_) | Op::List | Op::Input(_) | Op::Fill { .. } | Op::ArgMax | Op::OneHot { .. } => {
                none()
            }
            Op::ForkNoise { .. } | Op::Compare(_) | Op::StopGradient | Op::Unary(Unary::Sign) => none(),
            Op::Param => {
                self.sum_rows(at.args[0], dy, 1);
                none()
            }
            Op::Unary(unary) => one(self.unary(unary, at, dy)),
            Op::LeakyRelu { slope } => {
                let above = self.compare(at, 0, Compare::Gt, 0.0);
                one(self.times_choice(at, dy, above, (number(1.0), number(slope.get()))))
            }
            Op::Elu { alpha } => {
                let (ty, x) = self.operand(at, 0);
                let above = self.compare(at, 0, Compare::Gt, 0.0);
                let exp = self.instr(Code::Unary(Unary::Exp), vec![x], ty);
                let below = self.binary(Binary::Mul, number(alpha.get()), Source::View(exp), ty);
                one(self.times_choice(at, dy, above, (number(1.0), Source::View(below))))
            }
            Op::Clamp { low, high } => {
                let inside = self.compare(at, 0, Compare::Ge, low.get());
                let below = self.compare(at, 0, Compare::Le, high.get());
                let (ty, _) = self.operand(at, 0);
                let upper = self.choose(Source::View(below), number(1.0), number(0.0), ty);
                one(self.times_choice(at, dy, inside, (Source::View(upper), number(0.0))))
            }
            Op::Binary(binary) => self.two_operands(binary, at, dy),
            Op::Select => self.select(at, dy),
            Op::Cast(DType::F32) if type_of(&at.operands[0]).dtype == DType::F32 => one(dy),
            Op::Cast(_) => none(),
            Op::Reshape(_) => one(value_as(dy, type_of(&at.operands[0]))),
            Op::Concat { axis: 0 } | Op::Stack => self.cut(at, &dy),
            Op::Concat { axis } => self.cut_inside(at, dy, axis),
            Op::Split { axis: 0, .. } => {
                let ty = type_of(&at.operands[0]);
                let parts = grads.iter().zip(&at.results).map(|(grad, made)| match grad {
                    Some(grad) => grad.clone(),
                    None => self.zeros(type_of(made)),
                });
                one(side_by_side(parts.collect(), ty))
            }
            Op::Split { axis, .. } => {
                let mut sources = Vec::new();
                for (grad, made) in grads.iter().zip(&at.results) {
                    let ty = type_of(made);
                    let grad = grad.clone().unwrap_or_else(|| self.zeros(ty));
                    sources.push((self.b.one_view(grad), ty));
                }
                let ty = type_of(&at.operands[0]);
                one(value(self.row_stage(Op::Concat { axis }, sources, ty), ty))
            }
            Op::Slice { axis, start, .. } => one(self.padded(at, dy, axis, start)),
            Op::Transpose(permutation) => {
                let (ty, from) = (type_of(&at.operands[0]), type_of(&dy));
                let mut inverse = permutation;
                for (place, &axis) in permutation.0.iter().enumerate() {
                    inverse.0[axis as usize] = place as u8;
                }
                let view = self.b.one_view(dy);
                one(value(self.row_stage(Op::Transpose(inverse), vec![(view, from)], ty), ty))
            }
            Op::Broadcast(to) => one(self.gather_copies(at, dy, to)),
            Op::Pick => {
                let ty = type_of(&at.operands[0]);
                let rows = ty.shape.dims()[0];
                let width = ty.shape.elements() as u32 / rows;
                let index = self.b.one_view(at.operands[1].clone());
                let chosen = self.one_hot(index, rows);
                let dy = self.b.one_view(dy);
                let dx = self.b.temp(ty);
                for row in 0..rows {
                    let taken = self.truth(sub(chosen, row, 1));
                    let dy = self.view_source(dy, width);
                    let sources = vec![Source::Scalar(taken), dy, number(0.0)];
                    self.instr_to(sub(dx, row * width, width), Code::Select, DType::F32, sources);
                }
                vec![Partial::One(value(dx, ty)), Partial::None]
            }
            Op::Affine { bias, transposed } => self.affine(at, dy, (bias, transposed), (0, 0)),
            Op::AffineRows { row, bias, onto } => {
                self.affine(at, dy, (bias, false), (row, usize::from(onto)))
            }
            Op::Matmul => {
                let (a, b) = (type_of(&at.operands[0]).shape, type_of(&at.operands[1]).shape);
                let k = a.width() as u32;
                self.products(at, dy, (a.rows() as u32, k, b.elements() as u32 / k))
            }
            Op::Outer => {
                let (m, n) =
                    (type_of(&at.operands[0]).shape.elements(), type_of(&at.operands[1]).shape.elements());
                self.products(at, dy, (m as u32, 1, n as u32))
            }
            Op::Dot => {
                let dy = self.b.one_view(dy);
                self.for_operands(at, |this, place| {
                    let (ty, other) = this.operand(at, 1 - place);
                    value(this.binary(Binary::Mul, other, Source::Scalar(dy), ty), ty)
                })
            }
            Op::Reduce { fold, over } => one(self.reduce(at, dy, fold, over)),
            Op::TopK { .. } => one(self.top_k(at, dy)),
            Op::Softmax | Op::LogSoftmax | Op::LogSumExp | Op::Norm | Op::LayerNorm { .. } => {
                one(self.row_function(at, dy))
            }
            Op::PickNegLogSoftmax | Op::Hinge { .. } => {
                vec![Partial::One(self.labelled(at, dy)), Partial::None]
            }
            Op::CrossEntropy | Op::KlDiv | Op::Mse | Op::Bce => self.pair_loss(at, dy),
            Op::ListFold(_) | Op::WeightedSum { .. } | Op::Attend { .. } => lists::rule(self, at, dy)?,
            Op::Lookup => {
                if self.params[at.args[0] as usize] {
                    let index = self.b.one_view(at.operands[0].clone());
                    let dy = self.b.one_view(dy);
                    let dy = self.keep(dy);
                    let (param, sum) = (at.args[0], ReductionSum::Tgrad);
                    self.reductions.push(PendingReduction {
                        param,
                        sum,
                        each: 1,
                        x: Some(index),
                        dy,
                        swapped: false,
                    });
                }
                none()
            }
            Op::Dropout { .. } if !self.b.options.training => {
                vec![Partial::One(dy), Partial::None, Partial::None]
            }
            Op::Dropout { .. } => {
                let ty = type_of(&dy);
                let mut sources = vec![(self.b.one_view(dy), ty)];
                for key in &at.operands[1..] {
                    sources.push((self.b.one_view(key.clone()), INDEX));
                }
                let dx = value(self.row_stage(at.op, sources, ty), ty);
                vec![Partial::One(dx), Partial::None, Partial::None]
            }
            Op::ScaleGradient { by } => {
                let ty = type_of(&dy);
                let dy = self.source(dy);
                one(value(self.binary(Binary::Mul, dy, number(by.get()), ty), ty))
            }
        })
    }

    /// The gradient of the first result, zeros where only others have one.
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

    /// One contribution for each operand that wants one.
    fn for_operands(
        &mut self,
        at: &Applied,
        mut make: impl FnMut(&mut Self, usize) -> Value,
    ) -> Vec<Partial> {
        let mut partials = Vec::with_capacity(at.needs.len());
        for (place, &needs) in at.needs.iter().enumerate() {
            partials.push(if needs { Partial::One(make(self, place)) } else { Partial::None });
        }
        partials
    }

    pub(super) fn source(&mut self, value: Value) -> Source {
        let width = type_of(&value).shape.elements() as u32;
        self.b.source(value, width)
    }

    /// A view as an operand of a line of some width.
    pub(super) fn view_source(&self, view: View, width: u32) -> Source {
        match self.b.regs[view.reg as usize].kind {
            RegKind::Const(bits) => Source::Const(bits),
            _ if view.width == width => Source::View(view),
            _ => Source::Scalar(view),
        }
    }

    fn operand(&mut self, at: &Applied, place: usize) -> (Type, Source) {
        let value = at.operands[place].clone();
        (type_of(&value), self.source(value))
    }

    /// An operand of a function of two, which may be one element that meets all.
    fn met(&mut self, at: &Applied, place: usize) -> Source {
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
    fn times_choice(
        &mut self,
        at: &Applied,
        dy: Value,
        condition: View,
        (yes, no): (Source, Source),
    ) -> Value {
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

    /// 1 at an index, 0 elsewhere.
    fn one_hot(&mut self, index: View, width: u32) -> View {
        self.row_stage(Op::OneHot { width }, vec![(index, INDEX)], floats(width))
    }

    /// Whether numbers are not 0.
    fn truth(&mut self, view: View) -> View {
        let x = self.view_source(view, view.width);
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
