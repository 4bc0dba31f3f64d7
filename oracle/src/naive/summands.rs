//! The summands of a parameter's gradient, which bound the rounding error of their sum in any order.

use super::Executed;
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

impl Executed {
    /// Collects the summands of every element of a parameter's gradient. `words` are the bindings of the run. The result is
    /// empty if the plan makes no gradient of the parameter.
    #[must_use]
    pub fn summands(&self, plan: &Plan, words: &[u32], param: ParamId) -> Vec<Summands> {
        let Some(store) = plan.gradient_of(param) else { return Vec::new() };
        let shape = plan.stores[store.index()].ty.shape;
        let mut elements = vec![Summands::default(); shape.elements()];
        for sum in plan.reductions.iter().filter(|sum| sum.store == store) {
            for part in &sum.parts {
                for lane in 0..part.lanes {
                    self.add_lane(plan, words, (sum.sum, shape.width()), (part, lane), &mut elements);
                }
            }
        }
        elements
    }

    fn add_lane(
        &self,
        plan: &Plan,
        words: &[u32],
        (sum, width): (ReductionSum, usize),
        (part, lane): (&ReductionPart, u32),
        elements: &mut [Summands],
    ) {
        let dy = self.operand(plan, part.dy, lane);
        match (sum, part.x) {
            (ReductionSum::Wgrad { row, col, k, n }, Some(x)) => {
                let x = self.operand(plan, x, lane);
                let start = row as usize * width + col as usize;
                for (x, dy) in x.chunks_exact(k as usize).zip(dy.chunks_exact(n as usize)) {
                    for (i, x) in x.iter().enumerate() {
                        let row = &mut elements[start + i * width..][..dy.len()];
                        row.iter_mut().zip(dy).for_each(|(element, dy)| element.add(x * dy));
                    }
                }
            }
            (ReductionSum::Tgrad, Some(index)) => {
                let index = match index {
                    Operand::Words { start, stride } => words[(start + lane * stride) as usize],
                    Operand::WordTable { at } => words[plan.tables[(at + lane) as usize] as usize],
                    rows => self.operand(plan, rows, lane)[0].to_bits(),
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
    fn operand(&self, plan: &Plan, operand: Operand, lane: u32) -> Vec<f32> {
        let (field, row): (FieldId, u32) = match operand {
            Operand::Rows { field, start, stride } => (field, start + lane * stride),
            Operand::Table { field, at } => (field, plan.tables[(at + lane) as usize]),
            _ => return Vec::new(),
        };
        let words = self.row(field, row).unwrap_or_default();
        words.iter().map(|&word| f32::from_bits(word)).collect()
    }
}
