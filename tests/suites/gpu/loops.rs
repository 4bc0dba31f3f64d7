//! Software adapters silently abort long loops. The longest plans that are accepted give correct results, and longer
//! ones are rejected.

use crate::common::{executor, inferring, inputs_of, skipped, training};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::{Plan, StoreId, Verified};
use autobatch_ir::types::f32;
use autobatch_ir::{Param, Value, Weights};
use autobatch_runtime_wgpu::compile::LoopLimit;
use autobatch_runtime_wgpu::{Budget, Executor, GpuError, Options};

type Planned = (GraphData, Verified<Plan>);

/// An executor on a software adapter, or `None`.
fn software() -> Option<Executor> {
    let executor = executor(Options::default())?;
    let gpu = executor.gpu().expect("open");
    if gpu.iterations().is_none() {
        skipped(&format!("{} is no software adapter", gpu.facts().name));
        return None;
    }
    Some(executor)
}

fn planned(graph: GraphData, wanted: &[ValueId]) -> Planned {
    let plan = inferring(&graph, wanted);
    (graph, plan)
}

/// Rows of ones times a weight of ones.
fn product(rows: usize, depth: usize, columns: usize) -> Planned {
    product_with([rows, depth], [depth, columns], |x, w| x.affine(w, None))
}

/// The same, for a weight that is stored transposed.
fn product_transposed(rows: usize, depth: usize, columns: usize) -> Planned {
    product_with([rows, depth], [columns, depth], |x, w| x.affine_transposed(w, None))
}

fn product_with(
    [rows, depth]: [usize; 2],
    stored: [usize; 2],
    product: impl for<'g> Fn(Value<'g>, Param) -> Value<'g>,
) -> Planned {
    let mut m = ModuleBuilder::new("products");
    let w = m.param("w", stored, Init::Constant(1.0));
    let g = Graph::new(&m.build().expect("sound"));
    g.instance(0);
    let y = product(g.input_shaped([rows, depth], &vec![1.0; rows * depth]), w);
    let wanted: Vec<ValueId> = y.id().into_iter().collect();
    planned(g.finish().expect("sound"), &wanted)
}

/// Sixteen instances with four gates each, which one thread adds.
fn gates(depth: usize) -> Planned {
    let mut m = ModuleBuilder::new("gates");
    let w = m.param("w", [depth, 16], Init::Constant(1.0));
    let cell = m.cell("cell", [f32([depth])], |g, [x]| {
        let all = g.affine([x], w, None);
        let [a, b, c, d] = [0, 4, 8, 12].map(|from| all.slice_axis(0, from..from + 4));
        [a + b + (c + d)]
    });
    let g = Graph::new(&m.build().expect("sound"));
    let mut wanted = Vec::new();
    for key in 0..16 {
        g.instance(key);
        let [y] = g.call(cell, [g.input(&vec![1.0; depth])]);
        wanted.extend(y.id());
    }
    planned(g.finish().expect("sound"), &wanted)
}

/// The result of an op on a row of ones.
fn of_a_row(width: usize, op: impl for<'g> Fn(Value<'g>) -> Value<'g>) -> Planned {
    let g = Graph::new(&ModuleBuilder::new("rows").build().expect("sound"));
    g.instance(0);
    let wanted: Vec<ValueId> = op(g.input(&vec![1.0; width])).id().into_iter().collect();
    planned(g.finish().expect("sound"), &wanted)
}

/// The gradients of a table, a weight and a bias that this many instances use. All are ones.
fn of_instances(instances: u32) -> Planned {
    let mut m = ModuleBuilder::new("instances");
    let table = m.table("embed", [2, 2], Init::Constant(1.0));
    let w = m.param("w", [2, 3], Init::Constant(1.0));
    let b = m.param("b", [3], Init::Constant(1.0));
    let g = Graph::new(&m.build().expect("sound"));
    let mut losses = Vec::new();
    for key in 0..instances {
        g.instance(u64::from(key));
        losses.extend(table.lookup(&g, 1).affine(w, Some(b)).sum().id().map(|id| (id, 1.0)));
    }
    let graph = g.finish().expect("sound");
    let plan = training(&graph, &losses);
    (graph, plan)
}

/// The gradient of a weight over this many rows of ones, in tiles.
fn of_rows(rows: usize) -> Planned {
    let mut m = ModuleBuilder::new("rows");
    let w = m.param("w", [16, 16], Init::Constant(1.0));
    let g = Graph::new(&m.build().expect("sound"));
    g.instance(0);
    let y = g.input_shaped([rows, 16], &vec![1.0; rows * 16]).affine(w, None);
    let losses: Vec<(ValueId, f32)> = y.sum().id().map(|id| (id, 1.0)).into_iter().collect();
    let graph = g.finish().expect("sound");
    let plan = training(&graph, &losses);
    (graph, plan)
}

#[track_caller]
fn executes(executor: &mut Executor, (graph, plan): &Planned) -> Vec<f32> {
    let weights = Weights::init(&graph.module, 1);
    executor.execute(plan, &weights, inputs_of(graph, false)).expect("executes");
    executor.output(0).to_vec()
}

/// All gradients, in the order of the stores.
fn gradients(executor: &mut Executor, plan: &Plan) -> Vec<Vec<f32>> {
    let stores = (0..plan.stores.len() as u32).map(StoreId);
    stores.filter_map(|store| executor.gradient(store).expect("reads")).collect()
}

/// Asserts that the plan is rejected. Returns its step and template.
#[track_caller]
fn refused(executor: &mut Executor, (graph, plan): &Planned) -> (Option<u32>, &'static str) {
    let weights = Weights::init(&graph.module, 1);
    let error = executor.execute(plan, &weights, inputs_of(graph, false)).expect_err("is refused");
    let said = error.to_string();
    assert!(said.contains("execute on the cpu"), "{said}");
    match error {
        GpuError::Loops { step, what, limit, .. } => {
            let of_device = matches!(limit, LoopLimit::Device(_));
            assert_eq!(said.contains("software adapter"), of_device, "{said}");
            assert_eq!(said.contains("raise Budget::iterations"), !of_device, "{said}");
            (step, what)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_longest_accepted_products_are_correct_on_a_software_adapter() {
    let Some(mut executor) = software() else { return };
    for (rows, depth, columns, what) in [(1, 523_720, 8, "prod_few"), (16, 58_180, 16, "prod_tile")] {
        let found = executes(&mut executor, &product(rows, depth, columns));
        assert!(found.iter().all(|&x| x == depth as f32), "{what}: {:?}", &found[..4]);
        assert_eq!(refused(&mut executor, &product(rows, depth + 1, columns)), (Some(1), what));
        let found = executes(&mut executor, &product_transposed(rows, depth, columns));
        assert!(found.iter().all(|&x| x == depth as f32), "{what}: {:?}", &found[..4]);
        assert_eq!(refused(&mut executor, &product_transposed(rows, depth + 4, columns)), (Some(1), what));
    }
    // One read gathers four words of group memory.
    let depth = 58_183;
    let found = executes(&mut executor, &gates(depth));
    assert!(found.iter().all(|&x| x == 4.0 * depth as f32), "{:?}", &found[..4]);
    assert_eq!(refused(&mut executor, &gates(depth + 1)), (Some(1), "prod_tile"));
}

#[test]
fn the_longest_accepted_rows_are_correct_on_a_software_adapter() {
    let Some(mut executor) = software() else { return };
    let width = 16 * 65_465;
    assert_eq!(executes(&mut executor, &of_a_row(width, |x| x.sum())), [width as f32]);
    assert_eq!(refused(&mut executor, &of_a_row(width + 1, |x| x.sum())), (Some(1), "row"));
    let width = 16 * 21_817;
    let found = executes(&mut executor, &of_a_row(width, |x| x.softmax()));
    let each = 1.0 / width as f32;
    assert!(found.iter().all(|x| (x - each).abs() < 1e-5 * each), "{:?}", &found[..4]);
    assert_eq!(refused(&mut executor, &of_a_row(width + 1, |x| x.softmax())), (Some(1), "row"));
}

#[test]
fn the_longest_accepted_gradient_sums_are_correct_on_a_software_adapter() {
    let Some(mut executor) = software() else { return };
    let instances = 55_864;
    let plan = of_instances(instances);
    executes(&mut executor, &plan);
    let n = instances as f32;
    let found = gradients(&mut executor, &plan.1);
    assert_eq!(found, [vec![0.0, 0.0, 3.0 * n, 3.0 * n], vec![n; 6], vec![n; 3]]);
    assert_eq!(refused(&mut executor, &of_instances(instances + 1)).0, None);
    let rows = 59_808;
    let plan = of_rows(rows);
    executes(&mut executor, &plan);
    assert_eq!(gradients(&mut executor, &plan.1), [vec![rows as f32; 256]]);
    assert_eq!(refused(&mut executor, &of_rows(rows + 1)), (None, "wgrad_tile"));
}

#[test]
fn an_iteration_budget_holds_on_any_device() {
    let budget = Budget { iterations: Some(100), ..Budget::default() };
    let Some(mut executor) = executor(Options { budget, ..Options::default() }) else { return };
    assert_eq!(executes(&mut executor, &product(1, 240, 1)), [240.0]);
    assert_eq!(refused(&mut executor, &product(1, 241, 1)), (Some(1), "prod_few"));
    // A rejected plan does not affect later ones.
    assert_eq!(executes(&mut executor, &product(1, 232, 1)), [232.0]);
}
