//! The summands of a parameter's gradient, which bound the rounding error of their sum in any order.

use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{FieldId, Operand, Plan, ReductionPart, ReductionSum};

/// The summands of one element of a gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summands {
    /// The number of summands.
    pub count: f64,
    /// The sum of their absolute values.
    pub magnitude: f64,
}

impl Summands {
    /// A bound on the difference of two sums of these summands in single precision, in different orders. It is infinite if
    /// a partial sum may overflow.
    #[must_use]
    pub fn rounding(&self) -> f64 {
        if self.magnitude >= f64::from(f32::MAX) {
            return f64::INFINITY;
        }
        8.0 * f64::from(f32::EPSILON) * self.count.sqrt() * self.magnitude
    }

    fn add(&mut self, summand: f32) {
        self.count += 1.0;
        self.magnitude += f64::from(summand.abs());
    }
}

/// The run of a plan whose gradients are compared.
pub struct Run<'a, R> {
    /// The plan.
    pub plan: &'a Plan,
    /// The words that were bound.
    pub words: &'a [u32],
    /// Reads a row of a field.
    pub row: R,
}

impl<'a, R: Fn(FieldId, u32) -> Option<&'a [u32]>> Run<'a, R> {
    /// Collects the summands of every element of a parameter's gradient. The result is empty if the plan makes no
    /// gradient of the parameter.
    pub fn summands(&self, param: ParamId) -> Vec<Summands> {
        let Some(store) = self.plan.gradient_of(param) else { return Vec::new() };
        let shape = self.plan.stores[store.index()].ty.shape;
        let mut elements = vec![Summands::default(); shape.elements()];
        for sum in self.plan.reductions.iter().filter(|sum| sum.store == store) {
            for part in &sum.parts {
                (0..part.lanes)
                    .for_each(|lane| self.add_lane(sum.sum, shape.width(), part, lane, &mut elements));
            }
        }
        elements
    }

    fn add_lane(
        &self,
        sum: ReductionSum,
        width: usize,
        part: &ReductionPart,
        lane: u32,
        elements: &mut [Summands],
    ) {
        let dy = self.operand(part.dy, lane);
        match (sum, part.x) {
            (ReductionSum::Wgrad { row, col, k, n }, Some(x)) => {
                let x = self.operand(x, lane);
                let start = row as usize * width + col as usize;
                for (x, dy) in x.chunks_exact(k as usize).zip(dy.chunks_exact(n as usize)) {
                    for (i, x) in x.iter().enumerate() {
                        let row = &mut elements[start + i * width..][..dy.len()];
                        row.iter_mut().zip(dy).for_each(|(element, dy)| element.add(x * dy));
                    }
                }
            }
            (ReductionSum::Tgrad, Some(index)) => {
                let index = match self.plan.bound_word(index, lane) {
                    Some(word) => self.words[word as usize],
                    None => self.operand(index, lane)[0].to_bits(),
                };
                let row = elements.iter_mut().skip(index as usize * width);
                row.zip(&dy).for_each(|(element, &dy)| element.add(dy));
            }
            _ => {
                let count = elements.len();
                dy.iter().enumerate().for_each(|(j, &dy)| elements[j % count].add(dy));
            }
        }
    }

    /// Reads the floats of a lane's operand.
    fn operand(&self, operand: Operand, lane: u32) -> Vec<f32> {
        let row = self.plan.operand_row(operand, lane).and_then(|(field, row)| (self.row)(field, row));
        row.unwrap_or_default().iter().map(|&word| f32::from_bits(word)).collect()
    }
}
