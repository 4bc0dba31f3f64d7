//! Derivatives of losses.

use super::value;
use crate::differentiate::deriver::{Deriver, Partial, PendingReduction, SCALAR, floats, number, sub};
use crate::differentiate::tape::Applied;
use crate::kernels::compile::{Value, type_of};
use autobatch_ir::graph::{Binary, Compare, Fold, Op, Unary};
use autobatch_ir::numeric::label_loss::FACTORS;
use autobatch_ir::plan::{Code, ReductionSum, Source, Stage};
use autobatch_ir::types::{DType, INDEX};

impl Deriver<'_> {
    /// Rules of losses with labels.
    pub(super) fn labelled(&mut self, at: &Applied, dy: Value) -> Value {
        use Binary::{Add, Mul, Sub};
        let width = type_of(&at.operands[0]).shape.width() as u32;
        let ty = floats(width);
        let dy = self.b.one_view(dy);
        let labels = self.b.one_view(at.operands[1].clone());
        let op = at.op;
        self.by_rows(at, width, |this, row, x, out| {
            let label = sub(labels, row, 1);
            let hot = this.one_hot(label, width);
            let dy = this.b.view_source(sub(dy, row, 1), width);
            match op {
                Op::Hinge { margin } => {
                    let picked = this.row_stage(Op::Pick, vec![(x, ty), (label, INDEX)], SCALAR);
                    let offset = this.binary(Sub, number(margin.get()), Source::View(picked), SCALAR);
                    let x = this.b.view_source(x, width);
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

    /// The forward stage made the slope of the loss. The rows of the labels get what a reduction computes from `x`, the gradient
    /// of the loss, its logarithm, and the label.
    pub(super) fn label_loss(&mut self, at: &Applied, dy: Value) -> Value {
        let Some(Stage::LabelLoss { x, label, log_sum: Some(log_sum), slope: Some(slope), .. }) = at.stage
        else {
            unreachable!("the stage of a loss of labels has all results before fusion")
        };
        let dy = self.b.one_view(dy);
        let param = at.args[0];
        if self.params[param.index()] {
            let factors = self.b.temp(floats(FACTORS as u32));
            let sources = [
                (Code::Copy, DType::F32, dy),
                (Code::Copy, DType::F32, log_sum),
                (Code::Cast(DType::F32), DType::U32, label),
            ];
            for (place, (code, dtype, source)) in (0..).zip(sources) {
                self.instr_to(sub(factors, place, 1), code, dtype, vec![self.b.view_source(source, 1)]);
            }
            let dy = self.keep(factors);
            let (sum, x) = (ReductionSum::Lgrad, Some(x));
            self.reductions.push(PendingReduction { param, sum, each: 1, x, dy, swapped: false });
        }
        let ty = type_of(&at.operands[0]);
        value(self.binary(Binary::Mul, Source::Scalar(dy), Source::View(slope), ty), ty)
    }

    /// Rules of losses of two values, element by element.
    pub(super) fn pair_loss(&mut self, at: &Applied, dy: Value) -> Vec<Partial> {
        use Binary::{Add, Div, Mul, Sub};
        let ty = type_of(&at.operands[0]);
        let width = ty.shape.elements() as u32;
        let flat = floats(width);
        let (x, t) = (self.b.one_view(at.operands[0].clone()), self.b.one_view(at.operands[1].clone()));
        let (xs, ts) = (self.b.view_source(x, width), self.b.view_source(t, width));
        let dy = self.b.one_view(dy);
        let each = self.b.view_source(dy, width);
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
