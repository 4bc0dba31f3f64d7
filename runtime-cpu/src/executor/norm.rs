//! The norm of gradients. It also tells whether all of them are finite, because one NaN or infinity makes the sum of
//! squares one.

use super::Executor;
use super::gradients::Gradients;
use super::updates::{GradientSource, sum_of_squares};
use autobatch_ir::ParamId;

/// The parts of a gradient that may differ from zero: its sparse rows, or all of it.
fn parts(gradients: &dyn GradientSource, param: ParamId, width: usize) -> impl Iterator<Item = &[f32]> {
    let values = gradients.gradient(param).unwrap_or(&[]);
    let rows = gradients.sparse_rows(param);
    let whole = rows.is_none().then_some(values);
    let row = move |&row: &u32| values.get(row as usize * width..)?.get(..width);
    whole.into_iter().chain(rows.unwrap_or(&[]).iter().filter_map(row))
}

impl Executor {
    /// The Euclidean norm of the gradients of some parameters together. Each comes with the width of its rows. `None` are
    /// the gradients of the plan executed last.
    ///
    /// # Errors
    /// The first parameter whose gradient has a NaN or an infinity.
    pub fn gradient_norm(
        &mut self,
        gradients: Option<&dyn GradientSource>,
        params: impl Iterator<Item = (ParamId, usize)> + Clone,
    ) -> Result<f64, ParamId> {
        let own: &Gradients = &self.gradients;
        let gradients = gradients.unwrap_or(own);
        let sums = &mut self.updates.sums;
        let fast: f64 = params
            .clone()
            .flat_map(|(param, width)| parts(gradients, param, width))
            .map(|part| f64::from(sum_of_squares(self.isa, sums, part)))
            .sum();
        if fast.is_finite() {
            return Ok(fast.sqrt());
        }
        // Either an element is not finite, or the square of a large one is too large for an `f32`.
        let is_finite = |&(param, width): &(ParamId, usize)| {
            parts(gradients, param, width).flatten().all(|element| element.is_finite())
        };
        if let Some((param, _)) = params.clone().find(|param| !is_finite(param)) {
            return Err(param);
        }
        let elements = params.flat_map(|(param, width)| parts(gradients, param, width)).flatten();
        Ok(elements.map(|&element| f64::from(element) * f64::from(element)).sum::<f64>().sqrt())
    }
}
