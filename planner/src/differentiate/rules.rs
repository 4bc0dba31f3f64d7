//! The derivative rule of every op, as stages.
//!
//! Each rule composes the stages of the forward vocabulary so that every rounding of
//! `reference::derivative` happens here too, in the same order: see the table there. What looks at a
//! value row by row does so here as well, a few stages for each row.

use super::kernel::{Deriver, PendingFinal, Refused};
use super::lists;
use super::tape::Applied;
use crate::compile::{Value, pieces, range, side_by_side, type_of};
use autobatch_ir::graph::{Binary, Compare, Fold, Op, Over, Permutation, Unary};
use autobatch_ir::plan::{Code, FinalSum, Part, ProdInit, RegKind, Source, Stage, View};
use autobatch_ir::types::{DType, INDEX, Shape, Type};

/// What an application contributes to the gradient of one operand.
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
                let below = self.compare(at, 0, Compare::Lt, 0.0);
                one(self.times_choice(at, dy, below, (number(slope.get()), number(1.0))))
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
            Op::Affine { bias, transposed } => self.affine(at, dy, bias, transposed),
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
            Op::Lookup { .. } => {
                if self.params[at.args[0] as usize] {
                    let index = self.b.one_view(at.operands[0].clone());
                    let dy = self.b.one_view(dy);
                    let dy = self.keep(dy);
                    let (param, sum) = (at.args[0], FinalSum::Tgrad);
                    self.finals.push(PendingFinal {
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

    fn unary(&mut self, unary: Unary, at: &Applied, dy: Value) -> Value {
        use Binary::{Add, Div, Mul};
        let (ty, x) = self.operand(at, 0);
        let y = self.source(at.results[0].clone());
        let dy = self.source(dy);
        let slope = match unary {
            Unary::Neg => return value(self.one_operand(Unary::Neg, dy, ty), ty),
            Unary::Log => return value(self.binary(Div, dy, x, ty), ty),
            Unary::Sqrt => {
                let half = self.binary(Mul, dy, number(0.5), ty);
                return value(self.binary(Div, Source::View(half), y, ty), ty);
            }
            Unary::Abs => self.one_operand(Unary::Sign, x, ty),
            Unary::Exp => return value(self.binary(Mul, dy, y, ty), ty),
            Unary::Rsqrt => {
                let square = self.binary(Mul, y, y, ty);
                let cube = self.binary(Mul, y, Source::View(square), ty);
                self.binary(Mul, number(-0.5), Source::View(cube), ty)
            }
            Unary::Square => self.binary(Add, x, x, ty),
            Unary::Recip => {
                let square = self.binary(Mul, y, y, ty);
                self.one_operand(Unary::Neg, Source::View(square), ty)
            }
            // A result of relu is positive where its operand is, and more often at hand.
            Unary::Tanh | Unary::Sigmoid | Unary::Relu => self.instr(Code::Slope(unary), vec![y], ty),
            Unary::Gelu | Unary::Silu | Unary::Softplus | Unary::Erf => {
                self.instr(Code::Slope(unary), vec![x], ty)
            }
            Unary::Sin => self.one_operand(Unary::Cos, x, ty),
            Unary::Cos => {
                let sin = self.one_operand(Unary::Sin, x, ty);
                self.one_operand(Unary::Neg, Source::View(sin), ty)
            }
            Unary::Sign => unreachable!("no gradient leads through sign"),
        };
        value(self.binary(Mul, dy, Source::View(slope), ty), ty)
    }

    /// What a scalar operand gets from all its meetings, or another from each.
    fn gathered(&mut self, at: &Applied, place: usize, contributions: View) -> Value {
        let ty = type_of(&at.operands[place]);
        if ty.shape.elements() as u32 == contributions.width {
            return value(contributions, ty);
        }
        let total = self.total(Fold::Sum, contributions);
        value(total, ty)
    }

    fn two_operands(&mut self, binary: Binary, at: &Applied, dy: Value) -> Vec<Partial> {
        use Binary::{Add, Div, Max, Min, Mul, Pow, Sub};
        let ty = type_of(&at.results[0]);
        let whole = self.b.one_view(dy);
        let dy = self.view_source(whole, whole.width);
        let y = self.source(at.results[0].clone());
        let (a, b) = (self.met(at, 0), self.met(at, 1));
        self.for_operands(at, |this, place| {
            let share = match (binary, place) {
                (Add, _) | (Sub, 0) => whole,
                (Sub, _) => this.one_operand(Unary::Neg, dy, ty),
                (Mul, 0) => this.binary(Mul, dy, b, ty),
                (Mul, _) => this.binary(Mul, dy, a, ty),
                (Div, 0) => this.binary(Div, dy, b, ty),
                (Div, _) => {
                    let scaled = this.binary(Mul, dy, y, ty);
                    let divided = this.binary(Div, Source::View(scaled), b, ty);
                    this.one_operand(Unary::Neg, Source::View(divided), ty)
                }
                (Pow, 0) => {
                    let less = this.binary(Sub, b, number(1.0), ty);
                    let power = this.binary(Pow, a, Source::View(less), ty);
                    let slope = this.binary(Mul, b, Source::View(power), ty);
                    let share = this.binary(Mul, dy, Source::View(slope), ty);
                    let still = this.comparison(Compare::Eq, b, number(0.0), ty.shape);
                    this.choose(Source::View(still), number(0.0), Source::View(share), ty)
                }
                (Pow, _) => {
                    let log = this.one_operand(Unary::Log, a, ty);
                    let slope = this.binary(Mul, y, Source::View(log), ty);
                    let share = this.binary(Mul, dy, Source::View(slope), ty);
                    let still = this.comparison(Compare::Eq, a, number(0.0), ty.shape);
                    this.choose(Source::View(still), number(0.0), Source::View(share), ty)
                }
                (Min | Max, _) => {
                    let compare = if binary == Max { Compare::Gt } else { Compare::Lt };
                    let better = this.comparison(compare, b, a, ty.shape);
                    let broken = this.comparison(Compare::Ne, b, b, ty.shape);
                    let (second, first) = if place == 1 { (dy, number(0.0)) } else { (number(0.0), dy) };
                    let rest = this.choose(Source::View(broken), second, first, ty);
                    this.choose(Source::View(better), second, Source::View(rest), ty)
                }
            };
            this.gathered(at, place, share)
        })
    }

    fn select(&mut self, at: &Applied, dy: Value) -> Vec<Partial> {
        let ty = type_of(&at.results[0]);
        let dy = self.source(dy);
        let condition = self.met(at, 0);
        self.for_operands(at, |this, place| {
            let (yes, no) = if place == 1 { (dy, number(0.0)) } else { (number(0.0), dy) };
            let share = this.choose(condition, yes, no, ty);
            this.gathered(at, place, share)
        })
    }

    /// Operands side by side get their ranges.
    fn cut(&mut self, at: &Applied, dy: &Value) -> Vec<Partial> {
        let mut start = 0;
        let mut partials = Vec::new();
        for operand in &at.operands {
            let ty = type_of(operand);
            partials.push(Partial::One(Value::Pieces(range(pieces(dy), start, ty), ty)));
            start += ty.shape.elements() as u32;
        }
        partials
    }

    fn cut_inside(&mut self, at: &Applied, dy: Value, axis: u8) -> Vec<Partial> {
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
    fn padded(&mut self, at: &Applied, dy: Value, axis: u8, start: u32) -> Value {
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
    fn gather_copies(&mut self, at: &Applied, dy: Value, to: Shape) -> Value {
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

    /// A parameter that was added gets the rows of `dy`.
    fn sum_rows(&mut self, param: u32, dy: Value, each: u32) {
        if self.params[param as usize] {
            let dy = self.b.one_view(dy);
            let dy = self.keep(dy);
            self.finals.push(PendingFinal {
                param,
                sum: FinalSum::Colsum,
                each,
                x: None,
                dy,
                swapped: false,
            });
        }
    }

    fn affine(&mut self, at: &Applied, dy: Value, bias: bool, transposed: bool) -> Vec<Partial> {
        let ty = type_of(&dy);
        let (rows, n) = (ty.shape.rows() as u32, ty.shape.width() as u32);
        let dy_view = self.b.one_view(dy.clone());
        if self.params[at.args[0] as usize] {
            let kept = self.keep(dy_view);
            for part in &at.parts {
                let k = part.source.width / rows;
                let sum = match transposed {
                    true => FinalSum::Wgrad { row: 0, col: part.row, k: n, n: k },
                    false => FinalSum::Wgrad { row: part.row, col: 0, k, n },
                };
                let (param, x) = (at.args[0], Some(part.source));
                self.finals.push(PendingFinal { param, sum, each: rows, x, dy: kept, swapped: transposed });
            }
        }
        if bias {
            self.sum_rows(at.args[1], dy, rows);
        }
        let mut col = 0;
        let mut partials = Vec::new();
        for (operand, &needs) in at.operands.iter().zip(&at.needs) {
            let ty = type_of(operand);
            let width = ty.shape.width() as u32;
            partials.push(match needs {
                true => {
                    let dst = self.b.temp(ty);
                    let part =
                        Part { source: dy_view, param: at.args[0], row: 0, col, transposed: !transposed };
                    self.b.stages.push(Stage::Prod { dst, rows, init: ProdInit::Zero, parts: vec![part] });
                    Partial::One(value(dst, ty))
                }
                false => Partial::None,
            });
            col += width;
        }
        partials
    }

    /// The rules of `[m, k] · [k, n]`.
    fn products(&mut self, at: &Applied, dy: Value, (m, k, n): (u32, u32, u32)) -> Vec<Partial> {
        let matrix = |a: u32, b: u32| Type::new(DType::F32, shape(&[a, b]));
        let dy = self.b.one_view(dy);
        self.for_operands(at, |this, place| {
            let ty = type_of(&at.operands[place]);
            let other = this.b.one_view(at.operands[1 - place].clone());
            let (rows, columns) = if place == 0 { (k, n) } else { (m, k) };
            let swapped = Op::Transpose(Permutation::SWAP);
            let turned = match rows == 1 || columns == 1 {
                true => other,
                false => this.row_stage(swapped, vec![(other, matrix(rows, columns))], matrix(columns, rows)),
            };
            let turned = (turned, matrix(columns, rows));
            let sources = match place {
                0 => vec![(dy, matrix(m, n)), turned],
                _ => vec![turned, (dy, matrix(m, n))],
            };
            let result = if place == 0 { matrix(m, k) } else { matrix(k, n) };
            value(this.row_stage(Op::Matmul, sources, result), ty)
        })
    }

    /// Makes a value row by row: `rule(self, number of the row, row of x, place for the row)`.
    fn by_rows(
        &mut self,
        at: &Applied,
        width: u32,
        mut rule: impl FnMut(&mut Self, u32, View, View),
    ) -> Value {
        let ty = type_of(&at.operands[0]);
        let x = self.b.one_view(at.operands[0].clone());
        let dx = self.b.temp(ty);
        for row in 0..ty.shape.elements() as u32 / width {
            rule(self, row, sub(x, row * width, width), sub(dx, row * width, width));
        }
        value(dx, ty)
    }

    fn reduce(&mut self, at: &Applied, dy: Value, fold: Fold, over: Over) -> Value {
        let ty = type_of(&at.operands[0]);
        let width = if over == Over::Last { ty.shape.width() } else { ty.shape.elements() } as u32;
        let mut dy = self.b.one_view(dy);
        if fold == Fold::Mean {
            let all = self.view_source(dy, dy.width);
            dy = self.binary(Binary::Div, all, number(width as f32), floats(dy.width));
        }
        if matches!(fold, Fold::Sum | Fold::Mean) {
            let rows = Type::new(DType::F32, shape(&[dy.width, 1]));
            let spread = Type::new(DType::F32, shape(&[dy.width, width]));
            return value(self.row_stage(Op::Broadcast(spread.shape), vec![(dy, rows)], spread), ty);
        }
        self.by_rows(at, width, |this, row, x, out| {
            let x = match fold {
                Fold::Min => {
                    let x = this.view_source(x, width);
                    this.one_operand(Unary::Neg, x, floats(width))
                }
                _ => x,
            };
            let best = this.row_stage(Op::ArgMax, vec![(x, floats(width))], INDEX);
            let chosen = this.one_hot(best, width);
            let taken = this.truth(chosen);
            let dy = this.view_source(sub(dy, row, 1), width);
            this.instr_to(out, Code::Select, DType::F32, vec![Source::View(taken), dy, number(0.0)]);
        })
    }

    fn top_k(&mut self, at: &Applied, dy: Value) -> Value {
        let Op::TopK { k } = at.op else { unreachable!("asked for top_k only") };
        let width = type_of(&at.operands[0]).shape.width() as u32;
        let dy = self.b.one_view(dy);
        let indices = self.b.one_view(at.results[1].clone());
        self.by_rows(at, width, |this, row, _, out| {
            let mut rest = number(0.0);
            for place in (0..k).rev() {
                let chosen = this.one_hot(sub(indices, row * k + place, 1), width);
                let taken = Source::View(this.truth(chosen));
                let dy = this.view_source(sub(dy, row * k + place, 1), width);
                if place == 0 {
                    this.instr_to(out, Code::Select, DType::F32, vec![taken, dy, rest]);
                } else {
                    rest = Source::View(this.choose(taken, dy, rest, floats(width)));
                }
            }
        })
    }

    /// Rules of functions of a row.
    fn row_function(&mut self, at: &Applied, dy: Value) -> Value {
        use Binary::{Add, Div, Mul, Sub};
        let width = type_of(&at.operands[0]).shape.width() as u32;
        let (ty, count) = (floats(width), number(width as f32));
        let dy = self.b.one_view(dy);
        let y = self.b.one_view(at.results[0].clone());
        let op = at.op;
        self.by_rows(at, width, |this, row, x, out| {
            let wide = |this: &Self, view: View| {
                let own = sub(view, row * width, width);
                (own, this.view_source(own, width))
            };
            let single = |this: &Self, view: View| this.view_source(sub(view, row, 1), width);
            let to = |this: &mut Self, binary: Binary, a: Source, b: Source| {
                this.instr_to(out, Code::Binary(binary), DType::F32, vec![a, b]);
            };
            match op {
                Op::Softmax => {
                    let ((y, ys), (dy, dys)) = (wide(this, y), wide(this, dy));
                    let common = this.dot(dy, y);
                    let rest = this.binary(Sub, dys, Source::Scalar(common), ty);
                    to(this, Mul, ys, Source::View(rest));
                }
                Op::LogSoftmax => {
                    let ((_, ys), (dy, dys)) = (wide(this, y), wide(this, dy));
                    let total = this.total(Fold::Sum, dy);
                    let exp = this.one_operand(Unary::Exp, ys, ty);
                    let share = this.binary(Mul, Source::View(exp), Source::Scalar(total), ty);
                    to(this, Sub, dys, Source::View(share));
                }
                Op::LogSumExp => {
                    let likely = this.row_stage(Op::Softmax, vec![(x, ty)], ty);
                    let dy = single(this, dy);
                    to(this, Mul, dy, Source::View(likely));
                }
                Op::Norm => {
                    let (y, dy) = (single(this, y), single(this, dy));
                    let x = this.view_source(x, width);
                    let along = this.binary(Div, x, y, ty);
                    let share = this.binary(Mul, dy, Source::View(along), ty);
                    let still = this.comparison(Compare::Eq, y, number(0.0), ty.shape);
                    let sources = vec![Source::View(still), number(0.0), Source::View(share)];
                    this.instr_to(out, Code::Select, DType::F32, sources);
                }
                Op::LayerNorm { eps } => {
                    let ((y, ys), (dy, dys)) = (wide(this, y), wide(this, dy));
                    let xs = this.view_source(x, width);
                    let mean = this.total(Fold::Mean, x);
                    let off = this.binary(Sub, xs, Source::Scalar(mean), ty);
                    let squares = this.dot(off, off);
                    let variance = this.binary(Div, Source::View(squares), count, SCALAR);
                    let safe = this.binary(Add, Source::View(variance), number(eps.get()), SCALAR);
                    let factor = this.one_operand(Unary::Rsqrt, Source::View(safe), SCALAR);
                    let centre = this.total(Fold::Mean, dy);
                    let along = this.dot(dy, y);
                    let slant = this.binary(Div, Source::View(along), count, SCALAR);
                    let moved = this.binary(Sub, dys, Source::Scalar(centre), ty);
                    let tilt = this.binary(Mul, ys, Source::Scalar(slant), ty);
                    let rest = this.binary(Sub, Source::View(moved), Source::View(tilt), ty);
                    to(this, Mul, Source::Scalar(factor), Source::View(rest));
                }
                _ => unreachable!("{} is no function of a row", op.spelling()),
            }
        })
    }

    /// Rules of losses with labels.
    fn labelled(&mut self, at: &Applied, dy: Value) -> Value {
        use Binary::{Add, Mul, Sub};
        let width = type_of(&at.operands[0]).shape.width() as u32;
        let ty = floats(width);
        let dy = self.b.one_view(dy);
        let labels = self.b.one_view(at.operands[1].clone());
        let op = at.op;
        self.by_rows(at, width, |this, row, x, out| {
            let label = sub(labels, row, 1);
            let hot = this.one_hot(label, width);
            let dy = this.view_source(sub(dy, row, 1), width);
            match op {
                Op::Hinge { margin } => {
                    let picked = this.row_stage(Op::Pick, vec![(x, ty), (label, INDEX)], SCALAR);
                    let offset = this.binary(Sub, number(margin.get()), Source::View(picked), SCALAR);
                    let x = this.view_source(x, width);
                    let violation = this.binary(Add, Source::Scalar(offset), x, ty);
                    let above = this.comparison(Compare::Gt, Source::View(violation), number(0.0), ty.shape);
                    let at_label = Source::View(this.truth(hot));
                    let counted = this.choose(Source::View(above), number(1.0), number(0.0), ty);
                    let others = this.choose(at_label, number(0.0), Source::View(counted), ty);
                    let count = this.total(Fold::Sum, others);
                    let all = this.binary(Mul, dy, Source::Scalar(count), ty);
                    let back = this.one_operand(Unary::Neg, Source::View(all), ty);
                    let share = this.choose(Source::View(above), dy, number(0.0), ty);
                    let sources = vec![at_label, Source::View(back), Source::View(share)];
                    this.instr_to(out, Code::Select, DType::F32, sources);
                }
                _ => {
                    let likely = this.row_stage(Op::Softmax, vec![(x, ty)], ty);
                    let off = this.binary(Sub, Source::View(likely), Source::View(hot), ty);
                    this.instr_to(out, Code::Binary(Mul), DType::F32, vec![dy, Source::View(off)]);
                }
            }
        })
    }

    /// Rules of losses of two values, element by element.
    fn pair_loss(&mut self, at: &Applied, dy: Value) -> Vec<Partial> {
        use Binary::{Add, Div, Mul, Sub};
        let ty = type_of(&at.operands[0]);
        let width = ty.shape.elements() as u32;
        let flat = floats(width);
        let (x, t) = (self.b.one_view(at.operands[0].clone()), self.b.one_view(at.operands[1].clone()));
        let (xs, ts) = (self.view_source(x, width), self.view_source(t, width));
        let dy = self.b.one_view(dy);
        let each = self.view_source(dy, width);
        let count = number(width as f32);
        let op = at.op;
        self.for_operands(at, |this, place| {
            let view = match (op, place) {
                (Op::CrossEntropy, 0) => {
                    let likely = this.row_stage(Op::Softmax, vec![(x, flat)], flat);
                    let total = this.total(Fold::Sum, t);
                    let scaled = this.binary(Mul, Source::View(likely), Source::Scalar(total), ty);
                    let off = this.binary(Sub, Source::View(scaled), ts, ty);
                    this.binary(Mul, each, Source::View(off), ty)
                }
                (Op::CrossEntropy, _) => {
                    let log = this.row_stage(Op::LogSoftmax, vec![(x, flat)], flat);
                    let back = this.one_operand(Unary::Neg, Source::View(log), ty);
                    this.binary(Mul, each, Source::View(back), ty)
                }
                (Op::KlDiv, 0) => {
                    let share = this.binary(Mul, each, ts, ty);
                    this.one_operand(Unary::Neg, Source::View(share), ty)
                }
                (Op::KlDiv, _) => {
                    let log = this.one_operand(Unary::Log, ts, ty);
                    let more = this.binary(Add, Source::View(log), number(1.0), ty);
                    let off = this.binary(Sub, Source::View(more), xs, ty);
                    let share = this.binary(Mul, each, Source::View(off), ty);
                    let still = this.comparison(Compare::Eq, ts, number(0.0), ty.shape);
                    this.choose(Source::View(still), number(0.0), Source::View(share), ty)
                }
                (Op::Mse, place) => {
                    let twice = this.binary(Add, Source::View(dy), Source::View(dy), SCALAR);
                    let factor = this.binary(Div, Source::View(twice), count, SCALAR);
                    let off = this.binary(Sub, xs, ts, ty);
                    let share = this.binary(Mul, Source::Scalar(factor), Source::View(off), ty);
                    if place == 0 { share } else { this.one_operand(Unary::Neg, Source::View(share), ty) }
                }
                (_, place) => {
                    let factor = this.binary(Div, Source::View(dy), count, SCALAR);
                    let off = if place == 0 {
                        let likely = this.one_operand(Unary::Sigmoid, xs, ty);
                        this.binary(Sub, Source::View(likely), ts, ty)
                    } else {
                        this.one_operand(Unary::Neg, xs, ty)
                    };
                    this.binary(Mul, Source::Scalar(factor), Source::View(off), ty)
                }
            };
            value(view, ty)
        })
    }
}

/// The same elements under another type.
fn value_as(value: Value, ty: Type) -> Value {
    match value {
        Value::Pieces(views, _) => Value::Pieces(views, ty),
        list => list,
    }
}
