//! The norm of gradients. It also tells whether all of them are finite, because one NaN or infinity makes the sum of
//! squares one.

use super::Executor;
use super::gradients::Gradients;
use super::updates::GradientSource;
use crate::kernels::prefetch;
use autobatch_ir::ParamId;
use autobatch_ir::numeric::store;
use std::ops::Range;

/// Rows of a table that are fetched before they are read.
const AHEAD: usize = 8;
/// Floats of a cache line.
const LINE_FLOATS: usize = 16;

/// The parts of a gradient that may differ from zero: its sparse rows, or all of it.
fn parts(gradients: &dyn GradientSource, param: ParamId, width: usize) -> impl Iterator<Item = &[f32]> {
    let values = gradients.gradient(param).unwrap_or(&[]);
    let rows = gradients.sparse_rows(param);
    let whole = rows.is_none().then_some(values);
    let rows = rows.unwrap_or(&[]);
    let row = move |row: u32| values.get(row as usize * width..)?.get(..width);
    // Rows are far apart, so each would wait for memory.
    let ahead = move |at: usize| {
        let row = rows.get(at + AHEAD).and_then(|&next| row(next)).unwrap_or(&[]);
        row.chunks(LINE_FLOATS).for_each(|line| prefetch(line.as_ptr()));
    };
    whole.into_iter().chain(rows.iter().enumerate().filter_map(move |(at, &number)| {
        ahead(at);
        row(number)
    }))
}

/// Independent sums, which hide the latency of additions.
const SUMS: usize = 32;
/// Elements that `f32` sums take before they are added in `f64`.
const BLOCK: usize = 4096;
/// Sums of squares that `f32` holds well. Squares below the range of `f32` vanish in smaller sums, and squares above it
/// make infinities.
pub const ORDINARY_SQUARES: Range<f64> = 1e-20..f64::INFINITY;

/// The sum of the squares. Its order of additions is free, because only reports and the test for finite numbers use it.
fn sum_of_squares(elements: &[f32]) -> f64 {
    let of_block = |block: &[f32]| {
        let mut sums = [0.0_f32; SUMS];
        let groups = block.chunks_exact(SUMS);
        let rest = groups.remainder().iter().map(|x| x * x).sum::<f32>();
        for group in groups {
            sums.iter_mut().zip(group).for_each(|(sum, x)| *sum += x * x);
        }
        f64::from(sums.iter().sum::<f32>()) + f64::from(rest)
    };
    elements.chunks(BLOCK).map(of_block).sum()
}

impl Executor {
    /// The Euclidean norm of the gradients of some parameters together. Each comes with the width of its rows. `None` are
    /// the gradients of the plan executed last.
    ///
    /// # Errors
    /// The first parameter whose gradient has a NaN or an infinity.
    pub fn gradient_norm(
        &self,
        gradients: Option<&dyn GradientSource>,
        params: impl Iterator<Item = (ParamId, usize)> + Clone,
    ) -> Result<f64, ParamId> {
        let own: &Gradients = &self.gradients;
        let gradients = gradients.unwrap_or(own);
        let fast: f64 = params
            .clone()
            .flat_map(|(param, width)| parts(gradients, param, width))
            .map(sum_of_squares)
            .sum();
        if ORDINARY_SQUARES.contains(&fast) {
            return Ok(fast.sqrt());
        }
        let is_finite = |&(param, width): &(ParamId, usize)| {
            parts(gradients, param, width).flatten().all(|element| element.is_finite())
        };
        if let Some((param, _)) = params.clone().find(|param| !is_finite(param)) {
            return Err(param);
        }
        let elements = params.flat_map(|(param, width)| parts(gradients, param, width)).flatten();
        Ok(elements.map(|&element| f64::from(element) * f64::from(element)).sum::<f64>().sqrt())
    }

    /// The sum of the squares of the gradients of some parameters, with the bits of the operation `Sumsq` of an update plan. A
    /// parameter without a gradient adds nothing.
    pub fn sum_of_squares(&mut self, gradients: &dyn GradientSource, params: &[ParamId]) -> f32 {
        let (isa, updates) = (self.isa, &mut self.updates);
        let squares =
            |&param: &ParamId| updates.sum_of_squares(isa, gradients.gradient(param).unwrap_or(&[]));
        store::sum_over_stores(params.iter().map(squares))
    }
}
