//! Policies of the caller: the planner accepts valid orders and rejects others with the policy and the broken rule.

use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::types::f32;
use autobatch_planner::schedule::{Batches, Depth, Problem, Schedule, Scratch};
use autobatch_planner::{JobId, Planner, Request};

/// The order by depth, with a change.
struct Own(fn(&mut Batches));

impl Schedule for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn options(&self) -> String {
        String::new()
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let mut batches = Depth.schedule(problem, scratch);
        (self.0)(&mut batches);
        batches
    }
}

/// Two chains of two alternating cells.
fn graph() -> GraphData {
    let mut m = ModuleBuilder::new("chains");
    let w = m.param("w", [4, 4], Init::Glorot(1.0));
    let one = m.cell("one", [f32(4)], |g, [x]| [g.affine([x], w, None)]);
    let two = m.cell("two", [f32(4)], |_, [x]| [x.tanh()]);
    let g = Graph::new(&m.build().expect("valid"));
    for name in ["a", "b"] {
        let mut x = g.input(&[0.5; 4]);
        for cell in [one, two, one, two] {
            [x] = g.call(cell, x);
        }
        g.output(name, x);
    }
    g.finish().expect("valid")
}

fn planned(change: fn(&mut Batches)) -> Result<u32, String> {
    let plan = Planner::new(Box::new(Own(change))).plan(&graph(), &Request::default());
    plan.map(|plan| plan.certificate.batches).map_err(|error| error.to_string())
}

#[test]
fn a_valid_order_is_planned() {
    assert_eq!(planned(|_| ()), Ok(4));
}

#[test]
fn an_invalid_order_is_rejected() {
    let changes: [fn(&mut Batches); 8] = [
        |batches| batches.start.clear(),
        |batches| batches.start.push(batches.items.len() as u32),
        |batches| batches.start[1] = u32::MAX,
        |batches| batches.items[0] = JobId(u32::MAX),
        |batches| batches.items[0] = batches.items[1],
        |batches| batches.items.swap(0, 1),
        |batches| batches.items.reverse(),
        |batches| {
            batches.start.remove(1);
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let message = planned(change).expect_err("an invalid order");
        assert!(
            message.starts_with("policy own returned an invalid schedule: "),
            "change {number}: {message}"
        );
    }
}
