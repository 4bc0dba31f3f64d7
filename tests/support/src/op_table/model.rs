//! The module that all entries of the table use: parameters with literal values, and cells for the
//! ops that occur in bodies only.

use autobatch_ir::module::ParamKind;
use autobatch_ir::{Cell, DType, Init, Module, ModuleBuilder, Param, Table, f32};
use std::sync::Arc;

/// The handles of the module that examples use.
#[derive(Clone, Copy, Debug)]
pub struct Handles {
    /// `f32[2,3]`: see `WEIGHT`.
    pub weight: Param,
    /// The same matrix stored as its transpose, `f32[3,2]`.
    pub turned: Param,
    /// `f32[3]`: see `BIAS`.
    pub bias: Param,
    /// The weight stored as bf16, which holds its numbers exactly.
    pub half: Param,
    /// `f32[4,2]`: see `TABLE`.
    pub table: Table,
    /// `x -> x + x`, whose body begins with a port.
    pub double: Cell<1, 1>,
    /// A cell that applies dropout at rate 0. A second cell calls it twice, so its body forks the noise key.
    pub forks: Cell<1, 1>,
}

/// The numbers of the weight, row by row.
pub(super) const WEIGHT: [f32; 6] = [0.5, -1.0, 2.0, 1.5, 0.25, -0.5];
/// The numbers of the bias.
pub(super) const BIAS: [f32; 3] = [0.125, 0.25, -0.5];
/// The numbers of the table.
pub(super) const TABLE: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

/// Builds the module and its handles.
///
/// # Panics
/// Panics if the emitter is broken; the module is valid.
#[must_use]
pub fn model() -> (Arc<Module>, Handles) {
    let mut m = ModuleBuilder::new("op_table");
    let values = |numbers: &[f32]| Init::Values(numbers.into());
    let turned: Vec<f32> = (0..6).map(|at| WEIGHT[at % 2 * 3 + at / 2]).collect();
    let weight = m.param("weight", [2, 3], values(&WEIGHT));
    let turned = m.param("turned", [3, 2], values(&turned));
    let bias = m.param("bias", [3], values(&BIAS));
    let half = m.param_stored_as("half", ParamKind::Param, DType::BF16, [2, 3], values(&WEIGHT));
    let table = m.table("table", [4, 2], values(&TABLE));
    let double = m.cell("double", [f32([2])], |_, [x]| [x + x]);
    let quiet = m.cell("quiet", [f32([2])], |_, [x]| [x.dropout(0.0)]);
    let forks = m.cell("forks", [f32([2])], |g, [x]| {
        let [y] = g.call(quiet, x);
        let [z] = g.call(quiet, y);
        [z + x]
    });
    let module = m.build().expect("the module is valid");
    (module, Handles { weight, turned, bias, half, table, double, forks })
}

/// Returns the literal values of a module's parameters.
pub(super) fn parameters(module: &Module) -> Vec<Vec<f64>> {
    let numbers = |init: &Init| match init {
        Init::Values(values) => values.iter().map(|&x| f64::from(x)).collect(),
        other => unreachable!("the table's parameters have literal values, found {other:?}"),
    };
    module.params.iter().map(|decl| numbers(&decl.init)).collect()
}
