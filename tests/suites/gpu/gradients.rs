//! Gradients of values and parameters agree with the naive executor of the same plan.

use crate::common::{Within, exact, executor, inputs_of, largest, training, weights};
use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, GraphData, OutputKind};
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{Mode, Plan, StoreId, Verified};
use autobatch_ir::types::DType;
use autobatch_oracle::naive;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_wgpu::Executor;
use autobatch_runtime_wgpu::module::WgradTile;
use autobatch_testing::random::{Options, Profile, check};
use std::cell::RefCell;

/// The plan of a graph's losses and of the gradients of all values, or `None` without a loss.
pub(crate) fn plan(graph: &GraphData) -> Result<Option<Verified<Plan>>, String> {
    let losses: Vec<(ValueId, f32)> = graph
        .outputs
        .iter()
        .filter(|output| output.kind == OutputKind::Loss)
        .enumerate()
        .map(|(number, output)| (output.value, [1.0, 0.5, -2.0][number % 3]))
        .collect();
    if losses.is_empty() {
        return Ok(None);
    }
    let all = (0..graph.arena.values()).map(ValueId::new);
    let values: Vec<ValueId> = all
        .filter(|&value| graph.type_of(value).dtype == DType::F32 && !graph.type_of(value).is_list)
        .collect();
    let gradients = Gradients { losses: &losses, params: None, values: &values };
    let request =
        Request { mode: Mode::Train, training: true, gradients: Some(gradients), ..Request::default() };
    let plan = Planner::default().plan(graph, &request).map_err(|error| error.to_string())?;
    plan.verify().map(Some).map_err(|errors| errors.to_string())
}

/// Executes a plan on the host and on the device, and compares all outputs and gradients.
pub(crate) fn same_as_naive(
    executor: &mut Executor,
    plan: &Verified<Plan>,
    graph: &GraphData,
    weights: &Weights,
) -> Result<(), String> {
    let inputs = inputs_of(graph, true);
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let executed = naive::execute(plan, &stores, inputs.words, inputs.floats, inputs.noise)
        .map_err(|error| error.to_string())?;
    executor.execute(plan, weights, inputs).map_err(|error| error.to_string())?;
    let gradients = || (0..plan.stores.len()).filter_map(|store| executed.gradient(StoreId(store as u32)));
    // Small gradients are differences of large ones, so the tolerance follows the largest.
    let all = gradients().map(largest).fold(0f32, f32::max);
    let within = Within { row: 2e-5, least: 2e-6 * all.max(1e-3) };
    for (number, output) in plan.outputs.iter().enumerate() {
        let expected: Vec<f32> =
            executed.output(number).expect("an output").iter().map(|&word| f32::from_bits(word)).collect();
        let found = executor.output(number);
        if !within.holds(found, &expected) {
            return Err(format!(
                "output {number} ({}) is {found:?}, the naive executor says {expected:?}",
                output.key
            ));
        }
    }
    for number in 0..graph.module.params.len() {
        let Some(store) = plan.gradient_of(ParamId::new(number)) else { continue };
        let expected = executed.gradient(store).expect("the plan makes it");
        let found = executor.gradient(store).map_err(|error| error.to_string())?.expect("the plan makes it");
        if !within.holds(&found, expected) {
            return Err(format!(
                "gradient of @{} is {found:?}, the naive executor says {expected:?}",
                graph.module.params[number].name
            ));
        }
    }
    Ok(())
}

fn sweep(property: &str, profile: Profile) {
    let Some(executor) = executor(exact()) else { return };
    let executor = RefCell::new(executor);
    for options in [Options::new(profile).differentiable(), Options::new(profile).with_losses()] {
        check(property, options, 6, |graph| {
            let Some(plan) = plan(graph)? else { return Ok(()) };
            same_as_naive(&mut executor.borrow_mut(), &plan, graph, &weights(graph))
        });
    }
}

#[test]
fn small_graphs_have_the_gradients_of_the_naive_executor() {
    sweep("gradients of small graphs on the gpu", Profile::Small);
}

#[test]
fn medium_graphs_have_the_gradients_of_the_naive_executor() {
    sweep("gradients of medium graphs on the gpu", Profile::Medium);
}

#[test]
fn trees_have_the_gradients_of_the_naive_executor() {
    sweep("gradients of trees on the gpu", Profile::Trees);
}

#[test]
fn chains_have_the_gradients_of_the_naive_executor() {
    sweep("gradients of chains on the gpu", Profile::Chains);
}

#[test]
fn lattices_have_the_gradients_of_the_naive_executor() {
    sweep("gradients of lattices on the gpu", Profile::Lattices);
}

#[test]
fn blocks_have_the_gradients_of_the_naive_executor() {
    sweep("gradients of blocks on the gpu", Profile::Blocks);
}

/// Products of rows with a weight of this shape, read as they are and squared, so that there are two steps. The
/// gradients of the results are given.
fn products(k: usize, n: usize, rows: usize) -> (GraphData, Verified<Plan>) {
    let mut m = ModuleBuilder::new("products");
    let w = m.param("w", [k, n], Init::Uniform(1.0));
    let module = m.build().expect("sound");
    let g = Graph::new(&module);
    let mut losses = Vec::new();
    let floats = |len: usize, seed: usize| -> Vec<f32> {
        (0..len).map(|at| ((at * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    };
    for row in 0..rows {
        g.instance(row as u64);
        let x = g.input(&floats(k, row));
        let x = if row % 3 == 0 { x.square() } else { x };
        let loss = g.affine([x], w, None).dot(g.input(&floats(n, rows + row)));
        losses.extend(loss.id().map(|id| (id, 1.0)));
    }
    let graph = g.finish().expect("sound");
    let plan = training(&graph, &losses);
    (graph, plan)
}

#[test]
fn weight_gradients_have_the_bits_of_one_chain_in_every_tile() {
    let Some(mut executor) = executor(exact()) else { return };
    for (k, n, patch) in [
        (5, 12, WgradTile::Element),
        (15, 15, WgradTile::Element),
        (5, 40, WgradTile::Two),
        (40, 1, WgradTile::Two),
        (16, 16, WgradTile::Two),
        (33, 70, WgradTile::Two),
        (520, 517, WgradTile::Four),
    ] {
        assert_eq!(WgradTile::of(k as u64, n as u64), patch);
        for rows in [1, 24, 53, 96] {
            let (graph, plan) = products(k, n, rows);
            let weights = weights(&graph);
            let inputs = inputs_of(&graph, false);
            let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
            let executed =
                naive::execute(&plan, &stores, inputs.words, inputs.floats, inputs.noise).expect("executes");
            executor.execute(&plan, &weights, inputs).expect("executes");
            let store = plan.gradient_of(ParamId::new(0)).expect("it is trained");
            let found = executor.gradient(store).expect("executes").expect("it is made");
            let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let expected = executed.gradient(store).expect("it is made");
            assert!(bits(&found) == bits(expected), "{k} x {n}, {rows} rows");
        }
    }
}
