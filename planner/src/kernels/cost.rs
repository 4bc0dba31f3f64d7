//! Counts the work of a kernel and computes its cost from a table.
//!
//! *Needs* a compiled kernel. *Ensures* counts that depend on the kernel alone: for each class of stages the number of stages, the
//! parameter elements that a step reads for any number of rows, and the units of work of a row. A calibration measures kernels and
//! fits the costs of a [`CostTable`] to these counts; policies multiply them back. A list counts as one value, because a kernel
//! does not know its length.

use crate::schedule::{Class, CostTable, StepCost};
use autobatch_ir::graph::{Binary, Unary};
use autobatch_ir::plan::{Code, Instr, Kernel, Stage};

/// The work of a kernel in one class of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassWork {
    /// The number of stages.
    pub stages: u64,
    /// Parameter elements that a step reads, for any number of rows.
    pub weights: u64,
    /// Units of work of a row; see [`Class`].
    pub units: u64,
}

/// The work of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Per class, in the order of [`Class::ALL`].
    pub classes: [ClassWork; Class::ALL.len()],
}

impl Work {
    /// Counts the work of a kernel.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Self {
        let mut work = Self::default();
        for stage in &kernel.stages {
            match stage {
                Stage::Prod { dst, rows, parts, .. } => {
                    let columns = u64::from(dst.width / (*rows).max(1));
                    let inner: u64 =
                        parts.iter().map(|part| u64::from(part.source.width / (*rows).max(1))).sum();
                    work.add(Class::Product, inner * columns, inner * columns * u64::from(*rows));
                }
                Stage::Map { width, code } => work.add_map(u64::from(*width), code),
                Stage::Row { sources, .. } => {
                    work.add(Class::Row, 0, sources.iter().map(|(view, _)| u64::from(view.width)).sum());
                }
                Stage::Seg { elements, .. } | Stage::SegGrad { elements, .. } => {
                    work.add(Class::Fold, 0, elements.iter().map(|ty| ty.shape.elements() as u64).sum());
                }
                Stage::MeanGrad { dst, .. } => work.add(Class::Fold, 0, u64::from(dst.width)),
                Stage::AttendGrad { query: one, dy: other, .. }
                | Stage::AttendPull { key: one, value: other, .. } => {
                    work.add(Class::Fold, 0, u64::from(one.width) + u64::from(other.width));
                }
                Stage::LabelLoss { param, slope, .. } => {
                    let elements = kernel.params[param.index()].shape.elements() as u64;
                    work.add(Class::Product, 0, elements * if slope.is_some() { 4 } else { 2 });
                }
                Stage::Lookup { dst, .. } => work.add(Class::Lookup, 0, u64::from(dst.width)),
            }
        }
        work
    }

    /// The work in one class.
    #[must_use]
    pub fn class(&self, class: Class) -> ClassWork {
        self.classes[class as usize]
    }

    fn add(&mut self, class: Class, weights: u64, units: u64) {
        let own = &mut self.classes[class as usize];
        own.stages += 1;
        own.weights += weights;
        own.units += units;
    }

    /// Adds a map: a stage of plain instructions, and a stage of functions if it has any.
    fn add_map(&mut self, width: u64, code: &[Instr]) {
        let functions = code.iter().filter(|instr| is_function(instr.code)).count() as u64;
        self.add(Class::Map, 0, width * (code.len() as u64 - functions));
        if functions > 0 {
            self.add(Class::Function, 0, width * functions);
        }
    }

    /// The cost of a step with this work.
    #[must_use]
    pub fn cost(&self, table: &CostTable) -> StepCost {
        let mut cost = StepCost { fixed: table.step_ns, row: 0.0 };
        for class in Class::ALL {
            let (work, of) = (self.class(class), table.classes.of(class));
            cost.fixed += work.stages as f64 * of.fixed_ns + work.weights as f64 * of.weight_ns;
            cost.row += work.stages as f64 * of.row_ns + work.units as f64 * of.unit_ns;
        }
        cost
    }
}

/// Whether an instruction evaluates a polynomial instead of one operation of the processor.
pub(crate) fn is_function(code: Code) -> bool {
    match code {
        Code::Unary(op) | Code::Slope(op) => match op {
            Unary::Exp | Unary::Log | Unary::Tanh | Unary::Sigmoid | Unary::Gelu | Unary::Silu => true,
            Unary::Softplus | Unary::Sin | Unary::Cos | Unary::Erf => true,
            Unary::Neg | Unary::Abs | Unary::Sqrt | Unary::Rsqrt | Unary::Square => false,
            Unary::Recip | Unary::Relu | Unary::Sign => false,
        },
        Code::Elu(_) | Code::Binary(Binary::Pow) => true,
        Code::Copy | Code::LeakyRelu(_) | Code::Clamp(..) | Code::Binary(_) => false,
        Code::Compare(_) | Code::Select | Code::Cast(_) => false,
    }
}
