//! Derivatives of elementwise functions.

use super::value;
use crate::differentiate::deriver::{Deriver, Partial, number};
use crate::differentiate::tape::Applied;
use crate::kernels::compile::{Value, type_of};
use autobatch_ir::graph::{Binary, Compare, Float, Fold, Unary};
use autobatch_ir::plan::{Code, Source, View};
use autobatch_ir::types::INDEX;

impl Deriver<'_> {
    pub(super) fn leaky_relu(&mut self, at: &Applied, dy: Value, slope: Float) -> Value {
        let above = self.compare(at, 0, Compare::Gt, 0.0);
        self.times_choice(at, dy, above, number(1.0), number(slope.get()))
    }

    pub(super) fn elu(&mut self, at: &Applied, dy: Value, alpha: Float) -> Value {
        let (ty, x) = self.operand(at, 0);
        let above = self.compare(at, 0, Compare::Gt, 0.0);
        let exp = self.instr(Code::Unary(Unary::Exp), vec![x], ty);
        let below = self.binary(Binary::Mul, number(alpha.get()), Source::View(exp), ty);
        self.times_choice(at, dy, above, number(1.0), Source::View(below))
    }

    pub(super) fn clamp(&mut self, at: &Applied, dy: Value, low: Float, high: Float) -> Value {
        let inside = self.compare(at, 0, Compare::Ge, low.get());
        let below = self.compare(at, 0, Compare::Le, high.get());
        let (ty, _) = self.operand(at, 0);
        let upper = self.choose(Source::View(below), number(1.0), number(0.0), ty);
        self.times_choice(at, dy, inside, Source::View(upper), number(0.0))
    }

    pub(super) fn scale(&mut self, dy: Value, by: Float) -> Value {
        let ty = type_of(&dy);
        let dy = self.source(dy);
        value(self.binary(Binary::Mul, dy, number(by.get()), ty), ty)
    }

    /// The same dropout of the gradient, by the same keys.
    pub(super) fn dropout(&mut self, at: &Applied, dy: Value) -> Value {
        let ty = type_of(&dy);
        let mut sources = vec![(self.b.one_view(dy), ty)];
        for key in &at.operands[1..] {
            sources.push((self.b.one_view(key.clone()), INDEX));
        }
        value(self.row_stage(at.op, sources, ty), ty)
    }

    pub(super) fn unary(&mut self, unary: Unary, at: &Applied, dy: Value) -> Value {
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
            // The result of relu is positive where its operand is, and is more often available.
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

    /// The gradient of an operand from a contribution per element: their sum if the operand was broadcast.
    pub(super) fn unbroadcast(&mut self, at: &Applied, place: usize, contributions: View) -> Value {
        let ty = type_of(&at.operands[place]);
        if ty.shape.elements() as u32 == contributions.width {
            return value(contributions, ty);
        }
        let total = self.total(Fold::Sum, contributions);
        value(total, ty)
    }

    pub(super) fn two_operands(&mut self, binary: Binary, at: &Applied, dy: Value) -> Vec<Partial> {
        use Binary::{Add, Div, Max, Min, Mul, Pow, Sub};
        let ty = type_of(&at.results[0]);
        let whole = self.b.one_view(dy);
        let dy = self.b.view_source(whole, whole.width);
        let y = self.source(at.results[0].clone());
        let (a, b) = (self.broadcast(at, 0), self.broadcast(at, 1));
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
            this.unbroadcast(at, place, share)
        })
    }

    pub(super) fn select(&mut self, at: &Applied, dy: Value) -> Vec<Partial> {
        let ty = type_of(&at.results[0]);
        let dy = self.source(dy);
        let condition = self.broadcast(at, 0);
        self.for_operands(at, |this, place| {
            let (yes, no) = if place == 1 { (dy, number(0.0)) } else { (number(0.0), dy) };
            let share = this.choose(condition, yes, no, ty);
            this.unbroadcast(at, place, share)
        })
    }
}
