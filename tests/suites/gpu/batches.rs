//! On one device the bits of a row do not depend on its batch, whatever kernel executes the batch.

use crate::common::{executor, inferring, inputs_of, skipped, training, weights};
use crate::models;
use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::plan::StoreId;
use autobatch_ir::types::f32;
use autobatch_models::catalogue::ENTRIES;
use autobatch_runtime_wgpu::compile::compile;
use autobatch_runtime_wgpu::{Executor, Options};
use autobatch_shaders::{Joins, Numbers};

/// This many equal cells with different inputs. The inputs of the first cells are always the same.
pub(crate) fn cells(instances: u32, width: usize) -> (GraphData, Vec<ValueId>) {
    let mut m = ModuleBuilder::new("cells");
    let w = m.param("w", [2 * width, width], Init::Glorot(1.0));
    let b = m.param("b", [width], Init::Uniform(0.1));
    let cell = m.cell("cell", [f32([width]); 2], |g, [x, y]| {
        let h = g.affine([x, y], w, Some(b)).tanh();
        [h.softmax() + x.sigmoid() * h]
    });
    let g = Graph::new(&m.build().expect("sound"));
    let input = |seed: u32| -> Vec<f32> {
        (0..width as u32).map(|i| ((seed * 31 + i) as f32 * 0.37).sin()).collect()
    };
    let mut values = Vec::new();
    for key in 0..instances {
        g.instance(u64::from(key));
        let [y] = g.call(cell, [g.input(&input(2 * key)), g.input(&input(2 * key + 1))]);
        let [z] = g.call(cell, [y, g.input(&input(7))]);
        values.extend(z.id());
    }
    (g.finish().expect("sound"), values)
}

/// The bits of every value.
pub(crate) fn bits(executor: &mut Executor, graph: &GraphData, wanted: &[ValueId]) -> Vec<Vec<u32>> {
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(graph, wanted);
    executor.execute(&plan, &weights, inputs_of(graph, false)).expect("executes");
    let first = plan.outputs.len() - wanted.len();
    (0..wanted.len()).map(|at| executor.output(first + at).iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn a_row_has_the_same_bits_in_a_batch_of_any_size() {
    let Some(mut executor) = executor(Options::default()) else { return };
    for width in [5, 70] {
        let (graph, values) = cells(1, width);
        let alone = bits(&mut executor, &graph, &values)[0].clone();
        // Fifteen rows take one thread per element, the others tiles of 16, 64 and 128 rows.
        for instances in [2, 15, 17, 70, 1030] {
            let (graph, values) = cells(instances, width);
            let together = bits(&mut executor, &graph, &values);
            assert_eq!(together[0], alone, "width {width}, {instances} instances");
        }
    }
}

#[test]
fn rows_beyond_one_dimension_of_groups_have_the_bits_of_a_single_row() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let mut m = ModuleBuilder::new("many");
    let w = m.param("w", [2, 3], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([2])], |g, [x]| [g.affine([x], w, None).softmax()]);
    let module = m.build().expect("sound");
    let rows = |count: u32, executor: &mut Executor| {
        let g = Graph::new(&module);
        let mut values = Vec::new();
        for key in 0..count {
            g.instance(u64::from(key));
            let [y] = g.call(cell, [g.input(&[(key % 7) as f32, 0.5])]);
            values.extend(y.id());
        }
        let graph = g.finish().expect("sound");
        let compiled = compile(&inferring(&graph, &values), executor.target().expect("open")).expect("fits");
        let down = compiled.dispatches.iter().map(|dispatch| dispatch.groups[1]).max();
        (down, bits(executor, &graph, &values))
    };
    let (few, alone) = rows(7, &mut executor);
    // A softmax takes sixteen threads per row, so a group of 64 has four.
    let (many, together) = rows(263_000, &mut executor);
    assert!(few == Some(1) && many > Some(1), "{few:?} {many:?}");
    assert!(together.iter().zip(alone.iter().cycle()).all(|(found, expected)| found == expected));
}

#[test]
fn subgroups_and_group_memory_give_the_same_bits() {
    let Some(mut near) = executor(Options::default()) else { return };
    let Some(mut far) = executor(Options { subgroups: false, ..Options::default() }) else { return };
    assert_eq!(far.gpu().expect("open").joins(), Joins::Memory);
    let gpu = near.gpu().expect("open");
    if gpu.joins() == Joins::Memory {
        skipped(&format!("{} has no subgroups", gpu.facts().name));
    }
    let module = ModuleBuilder::new("rows").build().expect("sound");
    for width in [1, 3, 8, 16, 17, 70] {
        let g = Graph::new(&module);
        let mut values = Vec::new();
        for key in 0..13u32 {
            g.instance(u64::from(key));
            let floats = |seed: u32| -> Vec<f32> {
                (0..width).map(|i| ((seed * 31 + i * i) as f32 * 0.37).sin()).collect()
            };
            // Zeros of both signs. A maximum keeps one of them.
            let zeros: Vec<f32> =
                (0..width).map(|i| if (i * 7 + key) % 3 == 0 { 0.0 } else { -0.0 }).collect();
            let (x, y, zeros) = (g.input(&floats(key)), g.input(&floats(key + 50)), g.input(&zeros));
            let folded = [
                x.sum(),
                x.mean(),
                x.max(),
                x.min(),
                zeros.max(),
                zeros.min(),
                x.logsumexp(),
                x.norm(),
                x.dot(y),
                x.mse(y),
                x.cross_entropy(key % width),
            ];
            let rows = [x.softmax(), x.log_softmax(), x.layer_norm(1e-5), zeros.softmax()];
            values.extend(folded.iter().chain(&rows).filter_map(|value| value.id()));
        }
        let graph = g.finish().expect("sound");
        assert_eq!(bits(&mut near, &graph, &values), bits(&mut far, &graph, &values), "width {width}");
    }
}

#[test]
fn immediates_and_uniform_buffers_give_the_same_bits() {
    let Some(mut among) = executor(Options::default()) else { return };
    let Some(mut bound_anew) = executor(Options { immediates: false, ..Options::default() }) else { return };
    assert_eq!(bound_anew.gpu().expect("open").numbers(), Numbers::Uniform);
    let gpu = among.gpu().expect("open");
    if gpu.numbers() == Numbers::Uniform {
        skipped(&format!("{} has no immediates", gpu.facts().name));
    }
    give_the_same_bits(&mut among, &mut bound_anew);
}

#[test]
fn counted_loops_give_the_same_bits() {
    let Some(mut counted) = executor(Options { counted_loops: true, ..Options::default() }) else { return };
    let Some(mut plain) = executor(Options::default()) else { return };
    give_the_same_bits(&mut counted, &mut plain);
}

/// Compares the values of cells, and the gradients of models, bit by bit.
fn give_the_same_bits(one: &mut Executor, other: &mut Executor) {
    for instances in [1, 20, 70] {
        let (graph, values) = cells(instances, 21);
        assert_eq!(bits(one, &graph, &values), bits(other, &graph, &values), "{instances}");
    }
    for entry in ENTRIES.iter().filter(|entry| ["tagger", "sentiment"].contains(&entry.name)) {
        let (graph, losses) = models::graph(entry);
        let (plan, weights) = (training(&graph, &losses), weights(&graph));
        let gradients = |executor: &mut Executor| -> Vec<Option<Vec<f32>>> {
            // The second run finds everything on the device and must give the same.
            for _ in 0..2 {
                executor.execute(&plan, &weights, inputs_of(&graph, true)).expect("executes");
            }
            (0..plan.stores.len() as u32).map(|at| executor.gradient(StoreId(at)).expect("reads")).collect()
        };
        let (expected, found) = (gradients(one), gradients(other));
        assert!(expected.iter().flatten().count() > 2, "{}", entry.name);
        assert_eq!(found, expected, "{}", entry.name);
    }
}

#[test]
fn strict_tiles_give_the_same_bits() {
    let Some(mut one) = executor(Options { strict: true, ..Options::default() }) else { return };
    let Some(mut many) = executor(Options::default()) else { return };
    for instances in [1, 20, 70] {
        let (graph, values) = cells(instances, 21);
        assert_eq!(bits(&mut one, &graph, &values), bits(&mut many, &graph, &values), "{instances}");
    }
}

#[test]
fn executing_twice_gives_the_same_bits_and_uploads_no_parameters() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let (graph, values) = cells(9, 6);
    let weights = Weights::init(&graph.module, 3);
    let plan = inferring(&graph, &values);
    let mut seen: Vec<Vec<u32>> = Vec::new();
    for turn in 0..2 {
        executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
        let counters = executor.counters().clone();
        assert_eq!(counters.submissions, 1, "a plan is one submission");
        assert_eq!(counters.parameters > 0, turn == 0, "parameters are uploaded once");
        assert_eq!(counters.pipelines > 0, turn == 0, "pipelines are made once");
        assert_eq!(counters.read, values.len() as u64 * 6 * 4, "only outputs are read back");
        seen.push(executor.output(0).iter().map(|x| x.to_bits()).collect());
    }
    assert_eq!(seen[0], seen[1]);
}
