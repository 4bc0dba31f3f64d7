//! Derivatives of ops that read a value row by row, with a few stages for each row.

use super::value;
use crate::differentiate::deriver::{Deriver, SCALAR, floats, number, shape, sub};
use crate::differentiate::tape::Applied;
use crate::kernels::compile::{Value, type_of};
use autobatch_ir::graph::{Binary, Compare, Fold, Op, Over, Unary};
use autobatch_ir::plan::{Code, Source, View};
use autobatch_ir::types::{DType, INDEX, Type};

impl Deriver<'_> {
    /// Makes a value row by row: `rule(self, number of the row, row of x, view for the row)`.
    pub(super) fn by_rows(
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

    pub(super) fn reduce(&mut self, at: &Applied, dy: Value, fold: Fold, over: Over) -> Value {
        let ty = type_of(&at.operands[0]);
        let width = if over == Over::Last { ty.shape.width() } else { ty.shape.elements() } as u32;
        let mut dy = self.b.one_view(dy);
        if fold == Fold::Mean {
            let all = self.b.view_source(dy, dy.width);
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
                    let x = this.b.view_source(x, width);
                    this.one_operand(Unary::Neg, x, floats(width))
                }
                _ => x,
            };
            let best = this.row_stage(Op::ArgMax, vec![(x, floats(width))], INDEX);
            let chosen = this.one_hot(best, width);
            let taken = this.truth(chosen);
            let dy = this.b.view_source(sub(dy, row, 1), width);
            this.instr_to(out, Code::Select, DType::F32, vec![Source::View(taken), dy, number(0.0)]);
        })
    }

    pub(super) fn top_k(&mut self, at: &Applied, dy: Value) -> Value {
        let Op::TopK { k } = at.op else { unreachable!("asked for top_k only") };
        let width = type_of(&at.operands[0]).shape.width() as u32;
        let dy = self.b.one_view(dy);
        let indices = self.b.one_view(at.results[1].clone());
        self.by_rows(at, width, |this, row, _, out| {
            let mut rest = number(0.0);
            for place in (0..k).rev() {
                let chosen = this.one_hot(sub(indices, row * k + place, 1), width);
                let taken = Source::View(this.truth(chosen));
                let dy = this.b.view_source(sub(dy, row * k + place, 1), width);
                if place == 0 {
                    this.instr_to(out, Code::Select, DType::F32, vec![taken, dy, rest]);
                } else {
                    rest = Source::View(this.choose(taken, dy, rest, floats(width)));
                }
            }
        })
    }

    /// Rules of functions of a row.
    pub(super) fn row_function(&mut self, at: &Applied, dy: Value) -> Value {
        use Binary::{Add, Div, Mul, Sub};
        let width = type_of(&at.operands[0]).shape.width() as u32;
        let (ty, count) = (floats(width), number(width as f32));
        let dy = self.b.one_view(dy);
        let y = self.b.one_view(at.results[0].clone());
        let op = at.op;
        self.by_rows(at, width, |this, row, x, out| {
            let wide = |this: &Self, view: View| {
                let own = sub(view, row * width, width);
                (own, this.b.view_source(own, width))
            };
            let single = |this: &Self, view: View| this.b.view_source(sub(view, row, 1), width);
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
                    let (y, dy) = (single(this, y), single(this, dy));
                    let share = this.binary(Mul, dy, Source::View(likely), ty);
                    let empty = this.comparison(Compare::Eq, y, number(f32::NEG_INFINITY), ty.shape);
                    let sources = vec![Source::View(empty), number(0.0), Source::View(share)];
                    this.instr_to(out, Code::Select, DType::F32, sources);
                }
                Op::Norm => {
                    let (y, dy) = (single(this, y), single(this, dy));
                    let x = this.b.view_source(x, width);
                    let along = this.binary(Div, x, y, ty);
                    let share = this.binary(Mul, dy, Source::View(along), ty);
                    let still = this.comparison(Compare::Eq, y, number(0.0), ty.shape);
                    let sources = vec![Source::View(still), number(0.0), Source::View(share)];
                    this.instr_to(out, Code::Select, DType::F32, sources);
                }
                Op::LayerNorm { eps } => {
                    let ((y, ys), (dy, dys)) = (wide(this, y), wide(this, dy));
                    let xs = this.b.view_source(x, width);
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
}
