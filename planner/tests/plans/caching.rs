//! A planner that plans many modules never uses the kernels of one for another.

use crate::agreement::{planner, proved, verified};
use autobatch_ir::graph::Graph;
use autobatch_ir::module::ModuleBuilder;
use autobatch_ir::types::{INDEX, Type, f32};
use autobatch_planner::Request;

#[test]
fn a_dropped_module_is_not_confused_with_a_new_one() {
    let mut planner = planner("depth");
    for round in 0..20 {
        // Each module is dropped, so the next one may have the same address.
        let mut m = ModuleBuilder::new("module");
        let cell = m.cell("cell", [f32(4)], |_, [x]| [if round % 2 == 0 { x.tanh() } else { x.sigmoid() }]);
        let g = Graph::new(&m.build().expect("valid"));
        g.output("y", g.call(cell, g.input(&[0.5; 4]))[0]);
        let graph = g.finish().expect("valid");
        let what = format!("round {round}");
        let plan = planner.plan(&graph, &Request::default()).expect("the graph has an output");
        proved(&verified(plan, &what), &graph, false, &what);
    }
}

#[test]
fn bound_and_computed_indices_are_distinguished_at_any_operand() {
    const PORTS: usize = 70;
    let mut m = ModuleBuilder::new("wide");
    let ports: [Type; PORTS] = [INDEX; PORTS];
    let cell = m.cell("cell", ports, |_, ports| [ports.into_iter().reduce(|a, b| a + b).expect("ports")]);
    let g = Graph::new(&m.build().expect("valid"));
    for computed in [65, 66, 69] {
        let mut args = [autobatch_ir::Arg::Index(3); PORTS];
        args[computed] = g.index(5).into();
        g.output(&format!("sum{computed}"), g.call(cell, args)[0]);
    }
    let graph = g.finish().expect("valid");
    let plan = planner("depth").plan(&graph, &Request::default()).expect("the graph has outputs");
    proved(&verified(plan, "wide"), &graph, false, "wide");
}
