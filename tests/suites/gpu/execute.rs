//! How plans are executed: the number of dispatches, the uploads of a second run, and the reuse of parameters and
//! pipelines.

use crate::batches::{bits, cells};
use crate::common::{executor, inferring, inputs_of, training, weights};
use crate::models::graph;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::module::{Init, ModuleBuilder, ParamKind};
use autobatch_ir::plan::{Plan, Stage, Verified};
use autobatch_ir::types::{DType, INDEX, f32};
use autobatch_ir::{ValueId, Weights};
use autobatch_models::catalogue::{ENTRIES, Entry};
use autobatch_runtime_wgpu::compile::{Compiled, Target, compile};
use autobatch_runtime_wgpu::{Options, PipelineCacheDir};
use std::fs;

fn of_model(entry: &Entry) -> (Verified<Plan>, Compiled) {
    let (graph, losses) = graph(entry);
    let plan = training(&graph, &losses);
    let compiled = compile(&plan, Target::MINIMUM).expect("fits");
    (plan, compiled)
}

#[test]
fn a_step_has_at_most_one_dispatch_more_than_stages() {
    for entry in &ENTRIES {
        let (plan, compiled) = of_model(entry);
        let most = |number: usize| plan.kernel(&plan.steps[number]).stages.len() as u32 + 1;
        for (number, &dispatches) in compiled.of_steps.iter().enumerate() {
            assert!(dispatches <= most(number), "{}: step f{number} takes {dispatches}", entry.name);
        }
        let all: u32 = (0..plan.steps.len()).map(most).sum();
        let reductions = plan.reductions.len() + 1;
        let limit = all as usize + reductions + compiled.prologue as usize;
        assert!(compiled.dispatches.len() <= limit, "{}: {limit}", entry.name);
        // Units of one program share dispatches, so there are never more than if each step had its own.
        let steps: u32 = compiled.of_steps.iter().sum();
        let own = compiled.dispatches.len() - compiled.prologue as usize;
        assert!(own <= steps as usize + reductions, "{}: {own} of {steps}", entry.name);
    }
}

#[test]
fn products_with_an_epilogue_are_one_dispatch_per_wave() {
    let mut m = ModuleBuilder::new("cells");
    let mut lstm = |name: &str| {
        let w = m.param(&format!("{name}_w"), [8, 16], Init::Glorot(1.0));
        let b = m.param(&format!("{name}_b"), [16], Init::ZEROS);
        m.cell(name, [f32([4]), f32([4]), f32([4])], |g, [x, h, c]| {
            let gates = g.affine([x, h], w, Some(b));
            let [i, f, o, u] = [0, 1, 2, 3].map(|k| gates.slice_axis(0, 4 * k..4 * k + 4));
            let c = f.sigmoid() * c + i.sigmoid() * u.tanh();
            [o.sigmoid() * c.tanh(), c]
        })
    };
    let directions = [lstm("forward"), lstm("backward")];
    let g = Graph::new(&m.build().expect("sound"));
    for (number, direction) in directions.into_iter().enumerate() {
        g.instance(number as u64);
        let (mut h, mut c) = (g.input(&[0.5; 4]), g.input(&[0.25; 4]));
        for _ in 0..5 {
            [h, c] = g.call(direction, [g.input(&[1.0; 4]), h, c]);
        }
        g.output(&format!("h{number}"), h);
    }
    let graph = g.finish().expect("sound");
    let plan = inferring(&graph, &[]);
    let compiled = compile(&plan, Target::MINIMUM).expect("fits");
    let product = |stage: &Stage| matches!(stage, Stage::Prod { .. });
    let mut steps = 0;
    for (step, &dispatches) in plan.steps.iter().zip(&compiled.of_steps) {
        if plan.kernel(step).stages.iter().any(product) {
            assert_eq!(dispatches, 1, "gates and cell state are an epilogue");
            steps += 1;
        }
    }
    assert_eq!(steps, 10, "five steps of two directions");
    // One per wave for both directions, one for inputs, one for outputs.
    assert!(compiled.dispatches.len() <= 5 + 2, "{}", compiled.dispatches.len());
}

#[test]
fn results_look_up_parts_of_table_rows_directly() {
    let mut m = ModuleBuilder::new("parts");
    let table = m.table("table", [5, 8], Init::Uniform(1.0));
    let leaf = m.cell("leaf", [INDEX], |_, [word]| {
        let row = table.row(word);
        [row.slice_axis(0, 4..8), row.slice_axis(0, 0..3)]
    });
    let module = m.build().expect("sound");
    let g = Graph::new(&module);
    for key in 0..9 {
        g.instance(key);
        let [upper, lower] = g.call(leaf, [g.index(key as u32 % 5)]);
        g.output(&format!("upper{key}"), upper);
        g.output(&format!("lower{key}"), lower);
    }
    let (graph, weights) = (g.finish().expect("sound"), Weights::init(&module, 3));
    let plan = inferring(&graph, &[]);
    let compiled = compile(&plan, Target::MINIMUM).expect("fits");
    assert_eq!(compiled.of_steps, [1, 1], "no move follows the lookup of parts of rows");
    let Some(mut executor) = executor(Options::default()) else { return };
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
    let rows = weights.by_name("table").expect("there");
    for key in 0..9 {
        let row = &rows[key % 5 * 8..][..8];
        assert_eq!(executor.output(2 * key), &row[4..8], "{key}");
        assert_eq!(executor.output(2 * key + 1), &row[0..3], "{key}");
    }
}

#[test]
fn a_wave_starts_with_the_last_program_of_the_wave_before() {
    let mut m = ModuleBuilder::new("two");
    let w = m.param("w", [4, 4], Init::Glorot(1.0));
    let rounds = 6;
    let tanh = m.cell("tanh", [f32([4])], |g, [h]| [g.affine([h], w, None).tanh()]);
    let square = m.cell("square", [f32([4])], |g, [h]| [g.affine([h], w, None).square()]);
    let g = Graph::new(&m.build().expect("sound"));
    for (number, cell) in [tanh, square].into_iter().enumerate() {
        g.instance(number as u64);
        let mut h = g.input(&[0.5; 4]);
        for _ in 0..rounds {
            [h] = g.call(cell, [h]);
        }
        g.output(&format!("h{number}"), h);
    }
    let graph = g.finish().expect("sound");
    let compiled = compile(&inferring(&graph, &[]), Target::MINIMUM).expect("fits");
    let programs: Vec<u32> = compiled.dispatches.iter().map(|dispatch| dispatch.program).collect();
    let set = 1 + programs.windows(2).filter(|two| two[0] != two[1]).count();
    // Each wave is two dispatches of two programs. The others copy inputs and collect outputs.
    let others = programs.len() - 2 * rounds;
    assert!(set <= 1 + rounds + others, "{programs:?}: {set} pipelines are set");
}

#[test]
fn contiguous_outputs_are_copied_in_place() {
    let mut m = ModuleBuilder::new("rows");
    let w = m.param("w", [4, 4], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([4])], |g, [x]| [g.affine([x], w, None).tanh()]);
    let g = Graph::new(&m.build().expect("sound"));
    let rows: Vec<ValueId> = (0..9u16)
        .map(|number| {
            g.instance(number.into());
            let [row] = g.call(cell, [g.input(&[f32::from(number); 4])]);
            row.id().expect("sound")
        })
        .collect();
    let graph = g.finish().expect("sound");
    let weights = Weights::init(&graph.module, 3);
    let whole = inferring(&graph, &rows);
    let mut executor = executor(Options::default());
    let mut expected = Vec::new();
    for (wanted, together) in [
        ((0..9).collect(), true),
        (vec![6, 2, 3, 4, 5], true),
        (vec![8, 0, 1, 7, 8, 1], true),
        (vec![0, 2, 4], false),
        (vec![7, 0, 5, 3], false),
    ] {
        let rows: Vec<usize> = wanted;
        // The plan of all rows, so that layouts are equal.
        let mut plan = whole.clone().into_inner();
        plan.outputs = rows.iter().map(|&row| whole.outputs[row].clone()).collect();
        let plan = plan.verify().expect("sound");
        let compiled = compile(&plan, Target::MINIMUM).expect("fits");
        let collects = compiled.programs.iter().any(|program| program.template().name == "collect");
        assert_eq!(collects, !together, "{rows:?}: {:?}", compiled.readback);
        let Some(executor) = &mut executor else { continue };
        executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
        let found: Vec<Vec<f32>> = (0..rows.len()).map(|at| executor.output(at).to_vec()).collect();
        if expected.is_empty() {
            expected.clone_from(&found);
        }
        assert!(found.iter().zip(&rows).all(|(found, &row)| *found == expected[row]), "{rows:?}");
    }
}

#[test]
fn a_second_run_uploads_only_its_inputs() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let (graph, losses) = graph(&ENTRIES[0]);
    let (plan, weights) = (training(&graph, &losses), weights(&graph));
    // The noise is the same.
    let inputs = (u64::from(plan.words) + u64::from(plan.floats)) * 4;
    executor.execute(&plan, &weights, inputs_of(&graph, true)).expect("executes");
    assert!(executor.counters().uploaded > inputs, "tables are uploaded once");
    let first = executor.output(0).to_vec();
    for turn in 0..3 {
        executor.execute(&plan, &weights, inputs_of(&graph, true)).expect("executes");
        let counters = executor.counters();
        assert_eq!((counters.uploaded, counters.parameters, counters.pipelines), (inputs, 0, 0), "{turn}");
        assert_eq!(executor.output(0), first);
    }
    // A clone is the same plan. A plan that is verified again is not.
    executor.execute(&plan.clone(), &weights, inputs_of(&graph, true)).expect("executes");
    assert_eq!(executor.counters().uploaded, inputs);
    let anew = plan.clone().into_inner().verify().expect("verifies");
    executor.execute(&anew, &weights, inputs_of(&graph, true)).expect("executes");
    assert!(executor.counters().uploaded > inputs);
    assert_eq!(executor.output(0), first);
}

#[test]
fn alternating_plans_are_independent() {
    let Some(mut executor) = executor(Options::default()) else { return };
    // More plans than stay on a device, with constants and whole parameters of their own.
    let made: Vec<(GraphData, Verified<Plan>, Weights)> = (0..20)
        .map(|number| {
            let mut m = ModuleBuilder::new("turns");
            let scale = m.param("scale", [6], Init::Uniform(1.0));
            let cell = m.cell("cell", [f32([6])], |g, [x]| [x * g.param(scale) + g.fill([6], number as f32)]);
            let g = Graph::new(&m.build().expect("sound"));
            g.instance(0);
            let [y] = g.call(cell, [g.input(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
            g.output("y", y);
            let graph = g.finish().expect("sound");
            let (plan, weights) = (inferring(&graph, &[]), Weights::init(&graph.module, number));
            (graph, plan, weights)
        })
        .collect();
    let mut first: Vec<Vec<f32>> = Vec::new();
    for turn in 0..3 {
        for (number, (graph, plan, weights)) in made.iter().enumerate() {
            executor.execute(plan, weights, inputs_of(graph, false)).expect("executes");
            let found = executor.output(0).to_vec();
            if turn == 0 {
                let scale = weights.by_name("scale").expect("there");
                let expected = |at: usize| (at + 1) as f32 * scale[at] + number as f32;
                assert!((0..6).all(|at| (found[at] - expected(at)).abs() < 1e-5), "{number}: {found:?}");
                first.push(found);
            } else {
                assert_eq!(found, first[number], "turn {turn}, plan {number}");
            }
        }
    }
}

#[test]
fn sixteen_bit_parameters_stay_packed_and_keep_their_values() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let mut made = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let mut m = ModuleBuilder::new("halves");
        let mut param = |name: &str, kind, shape: &[usize]| {
            m.param_stored_as(name, kind, dtype, shape, Init::Uniform(1.0))
        };
        // Odd sizes: each parameter starts at a word of its own.
        let w = param("w", ParamKind::Param, &[7, 9]);
        let b = param("b", ParamKind::Param, &[9]);
        let scale = param("scale", ParamKind::Param, &[9]);
        param("table", ParamKind::Table, &[5, 7]);
        let module = m.build().expect("sound");
        let table = module.table("table").expect("declared");
        let g = Graph::new(&module);
        for key in 0..40 {
            g.instance(key);
            let x = table.lookup(&g, key as u32 % 5);
            let y = (g.affine([x], w, Some(b)) * g.param(scale)).tanh();
            g.output(&format!("y{key}"), y);
        }
        made.push(g.finish().expect("sound"));
    }
    let mut bytes = Vec::new();
    for graph in &made {
        let weights = Weights::init(&graph.module, 5);
        let plan = inferring(graph, &[]);
        executor.execute(&plan, &weights, inputs_of(graph, false)).expect("executes");
        bytes.push(executor.counters().parameters);
        let run = autobatch_oracle::reference::forward::<f32>(
            graph,
            &weights,
            autobatch_oracle::reference::Noise::Off,
        )
        .expect("evaluates");
        for (number, output) in graph.outputs.iter().enumerate() {
            let expected = run.floats(output.value).expect("floats");
            let found = executor.output(number);
            let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(close, "output {number}: {found:?}, expected {expected:?}");
        }
    }
    assert_eq!(bytes, [116 * 4, (32 + 5 + 5 + 18) * 4, (32 + 5 + 5 + 18) * 4]);
}

#[test]
fn the_pipeline_cache_ignores_a_damaged_file() {
    let folder = std::env::temp_dir().join(format!("autobatch-kept-{}", std::process::id()));
    let options = Options { pipelines: PipelineCacheDir::Folder(folder.clone()), ..Options::default() };
    let (graph, values) = cells(3, 5);
    let mut seen = Vec::new();
    for turn in 0..3 {
        let Some(mut executor) = executor(options.clone()) else { return };
        seen.push(bits(&mut executor, &graph, &values));
        drop(executor);
        // Adapters without such a cache leave no file.
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let mut bytes = fs::read(&path).expect("a file");
            assert!(bytes.starts_with(b"abpipes1"), "{}", path.display());
            if turn == 0 {
                let last = bytes.len() - 1;
                bytes[last] ^= 0xff;
                fs::write(&path, bytes).expect("writes");
            }
        }
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
    let _ = fs::remove_dir_all(&folder);
}
