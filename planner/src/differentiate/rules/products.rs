//! Derivatives of products: with parameters, and of two values.

use super::value;
use crate::differentiate::deriver::{Deriver, Partial, PendingReduction, floats, matrix, sub};
use crate::differentiate::tape::Applied;
use crate::kernels::compile::{Value, type_of};
use autobatch_ir::graph::{Binary, Op, Permutation};
use autobatch_ir::plan::{ParamPort, ProdInit, ProductPart, ReductionSum, Source, Stage};

/// Columns that the widest register tiles compute together.
const PANEL: u32 = 32;

impl Deriver<'_> {
    /// A parameter that was added gets the sum of the rows of `dy`.
    pub(super) fn sum_rows(&mut self, param: ParamPort, dy: Value, each: u32) {
        if self.params[param.index()] {
            let dy = self.b.one_view(dy);
            let dy = self.keep(dy);
            let (sum, x) = (ReductionSum::Colsum, None);
            self.reductions.push(PendingReduction { param, sum, each, x, dy, swapped: false });
        }
    }

    /// The operands from `place` on are multiplied with the rows of the weight from `first_row` on. An operand before them is
    /// the start of the product.
    pub(super) fn affine(
        &mut self,
        at: &Applied,
        dy: Value,
        bias: bool,
        transposed: bool,
        first_row: u32,
        place: usize,
    ) -> Vec<Partial> {
        let ty = type_of(&dy);
        let (rows, n) = (ty.shape.rows() as u32, ty.shape.width() as u32);
        let dy_view = self.b.one_view(dy.clone());
        if let (true, Some(Stage::Prod { parts, .. })) = (self.params[at.args[0].index()], &at.stage) {
            let kept = self.keep(dy_view);
            for part in parts {
                let k = part.source.width / rows;
                let sum = match transposed {
                    true => ReductionSum::Wgrad { row: 0, col: part.row, k: n, n: k },
                    false => ReductionSum::Wgrad { row: part.row, col: 0, k, n },
                };
                let (param, each, x, dy) = (at.args[0], rows, Some(part.source), kept);
                self.reductions.push(PendingReduction { param, sum, each, x, dy, swapped: transposed });
            }
        }
        let mut partials = Vec::new();
        if place > 0 {
            partials.push(if at.needs[0] { Partial::One(dy.clone()) } else { Partial::None });
        }
        if bias {
            self.sum_rows(at.args[1], dy, rows);
        }
        let (factors, needs) = (&at.operands[place..], &at.needs[place..]);
        let whole = ProductPart {
            source: dy_view,
            param: at.args[0],
            row: 0,
            col: first_row,
            transposed: !transposed,
        };
        if let Some(ranges) = self.one_product(factors, needs, rows, whole) {
            partials.extend(ranges);
            return partials;
        }
        let mut col = first_row;
        for (operand, &needs) in factors.iter().zip(needs) {
            let ty = type_of(operand);
            let width = ty.shape.width() as u32;
            partials.push(match needs {
                true => {
                    let dst = self.b.temp(ty);
                    let parts = vec![ProductPart { col, ..whole }];
                    self.b.stages.push(Stage::Prod { dst, rows, init: ProdInit::Zero, parts });
                    Partial::One(value(dst, ty))
                }
                false => Partial::None,
            });
            col += width;
        }
        partials
    }

    /// The gradients of several factors of one weight, as ranges of one product with the same chains. Kernels compute products
    /// in panels of columns. One product is worthwhile if separate products have more panels; otherwise it only adds copies.
    fn one_product(
        &mut self,
        operands: &[Value],
        needs: &[bool],
        rows: u32,
        part: ProductPart,
    ) -> Option<Vec<Partial>> {
        let panels = |width: u32| width.div_ceil(PANEL);
        let widths = operands.iter().map(|operand| type_of(operand).shape.elements() as u32);
        let (total, apart): (u32, u32) =
            widths.fold((0, 0), |(sum, count), width| (sum + width, count + panels(width)));
        let is_worthwhile = rows == 1 && needs.iter().all(|&needs| needs) && panels(total) < apart;
        if !is_worthwhile {
            return None;
        }
        let whole = self.b.temp(floats(total));
        self.b.stages.push(Stage::Prod { dst: whole, rows, init: ProdInit::Zero, parts: vec![part] });
        let mut start = 0;
        let ranges = operands.iter().map(|operand| {
            let ty = type_of(operand);
            let width = ty.shape.elements() as u32;
            start += width;
            Partial::One(value(sub(whole, start - width, width), ty))
        });
        Some(ranges.collect())
    }

    pub(super) fn dot_product(&mut self, at: &Applied, dy: Value) -> Vec<Partial> {
        let dy = self.b.one_view(dy);
        self.for_operands(at, |this, place| {
            let (ty, other) = this.operand(at, 1 - place);
            value(this.binary(Binary::Mul, other, Source::Scalar(dy), ty), ty)
        })
    }

    /// The gradients of the operands of a product `[m, k] · [k, n]`; of an outer product, `k` is 1.
    pub(super) fn products(&mut self, at: &Applied, dy: Value) -> Vec<Partial> {
        let [a, b] = [0, 1].map(|place| type_of(&at.operands[place]).shape);
        let k = if at.op == Op::Outer { 1 } else { a.width() as u32 };
        let (m, n) = (a.elements() as u32 / k, b.elements() as u32 / k);
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
}
