//! Work and cost of a kernel.

use autobatch_ir::{Graph, Init, ModuleBuilder};
use autobatch_planner::{Class, ClassCost, ClassWork, CostTable, Planner, Request, StepCost, Work};

#[test]
fn work_counts_products_maps_and_functions() {
    let mut m = ModuleBuilder::new("m");
    let weight = m.param("w", [8, 16], Init::ZEROS);
    let cell = m.cell("cell", [autobatch_ir::f32([8])], |g, [x]| {
        let y = g.affine([x], weight, None);
        [y.tanh() * y]
    });
    let g = Graph::new(&m.build().unwrap());
    let [y] = g.call(cell, [g.input(&[1.0; 8])]);
    g.output("y", y);
    let plan = Planner::default().plan(&g.data(), &Request::default()).unwrap();
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
    let cost = work.cost(&table);
    assert_eq!(cost, StepCost { fixed: 174.0, row: 50.0 });
    assert_eq!(cost.of_step(3), 324.0);
}
