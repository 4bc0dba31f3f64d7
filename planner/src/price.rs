//! What a kernel has to do, counted, and what that costs by a table.
//!
//! *Needs* a compiled kernel. *Ensures* counts that depend on the kernel alone: per class of stage how
//! many stages there are, how many parameter elements they read whatever the rows, and how many units
//! of work a row is. A calibration measures kernels and fits the prices of a [`CostTable`] to these
//! counts; policies multiply them back. A list counts as one value, because its length is in no kernel.

use crate::schedule::{Class, CostTable, Price};
use autobatch_ir::graph::{Binary, Unary};
use autobatch_ir::plan::{Code, Instr, Kernel, Stage};

/// The work of a kernel in one class of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassWork {
    /// Stages.
    pub stages: u64,
    /// Parameter elements read by a step, however many rows it has.
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
    /// What a kernel does.
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

    /// A map is a stage of plain instructions, and one more of functions if it has any.
    fn add_map(&mut self, width: u64, code: &[Instr]) {
        let functions = code.iter().filter(|instr| is_function(instr.code)).count() as u64;
        self.add(Class::Map, 0, width * (code.len() as u64 - functions));
        if functions > 0 {
            self.add(Class::Function, 0, width * functions);
        }
    }

    /// What a step of this work costs.
    #[must_use]
    pub fn price(&self, table: &CostTable) -> Price {
        let mut price = Price { fixed: table.step_ns, row: 0.0 };
        for class in Class::ALL {
            let (work, cost) = (self.class(class), table.classes.of(class));
            price.fixed += work.stages as f64 * cost.fixed_ns + work.weights as f64 * cost.weight_ns;
            price.row += work.stages as f64 * cost.row_ns + work.units as f64 * cost.unit_ns;
        }
        price
    }
}

/// Whether an instruction is a polynomial of many steps rather than an operation of the processor.
fn is_function(code: Code) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Planner;
    use crate::schedule::ClassCost;
    use autobatch_ir::{Graph, Init, ModuleBuilder};

    #[test]
    fn a_product_a_bias_and_a_function_are_counted_and_priced() {
        let mut m = ModuleBuilder::new("m");
        let weight = m.param("w", [8, 16], Init::ZEROS);
        let cell = m.cell("cell", [autobatch_ir::f32([8])], |g, [x]| {
            let y = g.affine([x], weight, None);
            [y.tanh() * y]
        });
        let g = Graph::new(&m.build().unwrap());
        let [y] = g.call(cell, [g.input(&[1.0; 8])]);
        g.output("y", y);
        let plan = Planner::default().plan(&g.data(), &crate::Request::default()).unwrap();
        let work = Work::of(plan.kernels.iter().find(|kernel| kernel.name.contains("cell")).unwrap());
        assert_eq!(work.class(Class::Product), ClassWork { stages: 1, weights: 128, units: 128 });
        assert_eq!(work.class(Class::Map), ClassWork { stages: 1, weights: 0, units: 16 });
        assert_eq!(work.class(Class::Function), ClassWork { stages: 1, weights: 0, units: 16 });
        assert_eq!(work.class(Class::Fold), ClassWork::default());

        let mut table = CostTable { step_ns: 100.0, ..CostTable::default() };
        for class in Class::ALL {
            *table.classes.of_mut(class) = ClassCost::default();
        }
        table.classes.product = ClassCost { fixed_ns: 10.0, weight_ns: 0.5, row_ns: 2.0, unit_ns: 0.25 };
        table.classes.function = ClassCost { fixed_ns: 0.0, weight_ns: 0.0, row_ns: 0.0, unit_ns: 1.0 };
        let price = work.price(&table);
        assert_eq!(price, Price { fixed: 174.0, row: 50.0 });
        assert_eq!(price.of_step(3), 324.0);
    }
}
