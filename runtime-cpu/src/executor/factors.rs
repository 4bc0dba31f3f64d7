//! The factors of products of two values. A transpose that only such products read is no task: they read its operand as a
//! transposed matrix.

use autobatch_ir::graph::{Op, Permutation};
use autobatch_ir::plan::{Kernel, Stage, View};
use autobatch_ir::types::Type;
use std::collections::HashMap;

/// The operands of the transposes that are no tasks, by their results.
pub(super) type Turned = HashMap<View, (View, Type)>;

/// A factor as it is stored: row by row, or column by column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    pub(super) view: View,
    /// The rows and columns in memory.
    stored: [usize; 2],
    /// Whether the factor is the transpose of what is stored.
    pub(super) is_turned: bool,
}

impl Factor {
    /// The factor with this view. A vector is a row.
    pub(super) fn of(turned: &Turned, read: (View, Type)) -> Self {
        let (is_turned, (view, ty)) = turned.get(&read.0).map_or((false, read), |&from| (true, from));
        Self { view, stored: [ty.shape.rows(), ty.shape.width()], is_turned }
    }

    /// The width of a row in memory.
    pub(super) fn width(&self) -> usize {
        self.stored[1]
    }

    /// The columns of the factor.
    pub(super) fn columns(&self) -> usize {
        self.stored[usize::from(!self.is_turned)]
    }
}

/// Finds the transposes of matrices whose results only products of two values read, whole.
pub(super) fn turned(kernel: &Kernel) -> Turned {
    let mut turned = Turned::new();
    for stage in &kernel.stages {
        if let Stage::Row { op: Op::Transpose(Permutation::SWAP), sources, dsts } = stage
            && sources[0].1.shape.rank() == 2
        {
            turned.insert(dsts[0], sources[0]);
        }
    }
    if turned.is_empty() {
        return turned;
    }
    let is_product = |stage: &Stage| matches!(stage, Stage::Row { op: Op::Matmul, .. });
    let others = kernel.stages.iter().filter(|stage| !is_product(stage)).flat_map(Stage::reads);
    let products = kernel.stages.iter().filter(|stage| is_product(stage)).flat_map(Stage::reads);
    let mut reads: Vec<View> = others.chain(kernel.results.iter().copied()).collect();
    reads.extend(products.filter(|read| !turned.contains_key(read)));
    turned.retain(|dst, _| reads.iter().all(|read| read.reg != dst.reg));
    turned
}
