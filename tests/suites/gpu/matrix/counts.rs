//! How many dispatches steps of every kind take with matrix units and without, and which products are made there.

use super::forms::Random;
use crate::common::{inferring, training};
use crate::models::sized;
use autobatch_ir::Param;
use autobatch_ir::graph::{Graph, Value};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{Plan, Stage, Step, Verified};
use autobatch_ir::types::f32;
use autobatch_models::catalogue::ENTRIES;
use autobatch_runtime_wgpu::compile::{Target, compile};
use autobatch_runtime_wgpu::module::{Program, Squares};
use autobatch_testing::random::{Options, Profile, check};
use autobatch_testing::trials::trials;

/// A device without matrix units, and those with the units that there are.
fn targets() -> Vec<Target> {
    let of = |size: u32, pairs: bool| Target { matrix: Some(Squares { size, pairs }), ..Target::LEAST };
    vec![Target::LEAST, of(8, false), of(16, true)]
}

/// How many dispatches each step takes part in, and how many of all dispatches are made of squares.
fn counted(plan: &Verified<Plan>, target: Target) -> (Vec<u32>, usize) {
    let compiled = compile(plan, target).expect("fits");
    let is_matrix = |program: u32| matches!(*compiled.programs[program as usize], Program::Matrix(_));
    let squares = compiled.dispatches.iter().filter(|dispatch| is_matrix(dispatch.program)).count();
    (compiled.of_steps, squares)
}

/// Says which step takes more dispatches than it has stages and one.
fn within(plan: &Verified<Plan>) -> Result<(), String> {
    for target in targets() {
        for (number, (step, dispatches)) in plan.steps.iter().zip(counted(plan, target).0).enumerate() {
            let stages = plan.kernel(step).stages.len() as u32;
            if dispatches > stages + 1 {
                let units = target.matrix;
                return Err(format!("{units:?}: f{number} has {stages} stages and {dispatches} dispatches"));
            }
        }
    }
    Ok(())
}

#[test]
fn no_step_takes_more_dispatches_than_it_has_stages_and_one_with_matrix_units_or_without() {
    for entry in &ENTRIES {
        let (graph, losses) = sized(entry, 20);
        let wanted: Vec<ValueId> = losses.iter().map(|loss| loss.0).collect();
        for plan in [inferring(&graph, &wanted), training(&graph, &losses)] {
            within(&plan).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        }
    }
    for seed in 0..trials(40, 400) {
        let model = Random::new(seed);
        for plan in [&model.plan, &model.learns] {
            within(plan).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
    check("steps take few dispatches", Options::new(Profile::Medium), 60, |graph| {
        let values = (0..graph.arena.values()).map(ValueId::new);
        let wanted: Vec<ValueId> = values.filter(|&value| !graph.type_of(value).is_list).collect();
        within(&inferring(graph, &wanted))
    });
}

/// How many dispatches a step takes, and how many of all are squares.
type Counted = (u32, usize);

/// What a cell makes of a row of 32 numbers, with a weight of 32 by 32 and another of 32 by 96.
type Body = for<'g> fn(&'g Graph, Value<'g>, [Param; 2]) -> Vec<Value<'g>>;

/// The step of a cell, without matrix units and with them.
fn of_cell(body: Body) -> [Counted; 2] {
    let mut m = ModuleBuilder::new("kinds");
    let params = [m.param("w", [32, 32], Init::Glorot(1.0)), m.param("v", [32, 96], Init::Glorot(1.0))];
    let cell = m.cell_of_any("kind", &[f32([32])], |g, x| body(g, x[0], params));
    let g = Graph::new(&m.build().expect("sound"));
    for key in 0..3 {
        g.instance(key);
        for (number, value) in g.call_of_any(cell, [g.input(&[0.5; 32])]).into_iter().enumerate() {
            g.output(&format!("y{key}_{number}"), value);
        }
    }
    let plan = inferring(&g.finish().expect("sound"), &[]);
    let is_product = |stage: &Stage| matches!(stage, Stage::Prod { .. });
    let of_products = |step: &Step| plan.kernel(step).stages.iter().any(is_product);
    let step = plan.steps.iter().position(of_products).expect("a step for all instances");
    [targets()[0], targets()[1]].map(|target| {
        let (of_steps, squares) = counted(&plan, target);
        (of_steps[step], squares)
    })
}

#[test]
fn products_are_made_on_matrix_units_where_their_steps_can_afford_it() {
    let kinds: [(&str, Body, [Counted; 2]); 6] = [
        // Three dispatches would be one too many.
        ("a product alone", |g, x, [w, _]| vec![g.affine([x], w, None)], [(1, 0), (1, 0)]),
        ("with a line", |g, x, [w, _]| vec![g.affine([x], w, None).tanh()], [(1, 0), (3, 1)]),
        ("with a softmax", |g, x, [w, _]| vec![g.affine([x], w, None).softmax()], [(2, 0), (2, 0)]),
        // Three that share their dispatches; without units, two that run one program.
        (
            "side by side",
            |g, x, [w, v]| vec![g.affine([x], w, None), g.affine([x], v, None), x.affine_transposed(w, None)],
            [(2, 0), (3, 1)],
        ),
        // Of two that wait for one another, the one that is more work.
        (
            "one behind the other",
            |g, x, [w, v]| vec![g.affine([g.affine([x], w, None).tanh()], v, None).tanh()],
            [(2, 0), (4, 1)],
        ),
        // The line reads the sums of both.
        (
            "two with one line",
            |g, x, [w, _]| vec![(g.affine([x], w, None) + x.affine_transposed(w, None)).tanh()],
            [(1, 0), (3, 1)],
        ),
    ];
    for (name, body, expected) in kinds {
        assert_eq!(of_cell(body), expected, "{name}");
    }
}
