//! Boundary sizes: arrays that end at the end of a binding, plans without steps or outputs, steps of one row and of
//! many.

use crate::batches::{bits, cells};
use crate::common::{executor, inferring, is_swift_shader, skipped, training, weights};
use crate::gradients::same_as_naive;
use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::{Init, ModuleBuilder, ParamKind};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{FieldId, Plan};
use autobatch_ir::types::{DType, f32};
use autobatch_runtime_wgpu::compile::compile;
use autobatch_runtime_wgpu::{Budget, Executor, GpuError, Inputs, Options};

/// Bytes of the smallest binding in these tests, and its words.
const BINDING: u64 = 16 << 10;
const WORDS: u64 = BINDING / 4;

fn narrow() -> Option<Executor> {
    executor(Options { budget: Budget { binding: Some(BINDING), ..Budget::default() }, ..Options::default() })
}

/// A row and single numbers, each computed from an input.
fn rows(width: usize, singles: usize) -> (GraphData, Vec<ValueId>) {
    let g = Graph::new(&ModuleBuilder::new("rows").build().expect("sound"));
    g.instance(0);
    let input = |len: usize, seed: usize| -> Vec<f32> {
        (0..len).map(|at| (at * 7 + seed) as f32 * 0.5 - 9.0).collect()
    };
    let mut wanted = vec![g.input(&input(width, 1)).relu()];
    wanted.extend((0..singles).map(|single| g.input(&input(2, single)).sum()));
    let wanted = wanted.into_iter().filter_map(|value| value.id()).collect();
    (g.finish().expect("sound"), wanted)
}

#[test]
fn rows_at_the_end_of_a_binding_are_correct() {
    let (Some(mut roomy), Some(mut narrow)) = (executor(Options::default()), narrow()) else { return };
    let target = narrow.target().expect("open");
    let total = |width: usize, singles: usize| {
        let (graph, wanted) = rows(width, singles);
        compile(&inferring(&graph, &wanted), target).expect("fits").layout.total()
    };
    let mut met = 0;
    for bindings in [1, 2] {
        for words in [bindings * WORDS - 1, bindings * WORDS, bindings * WORDS + 1] {
            // Each element takes the same number of words, whatever its field.
            let slope = total(101, 0) - total(100, 0);
            let found = (0..8).find_map(|singles| {
                let left = words.checked_sub(total(100, singles))?;
                let width = 100 + (left / slope) as usize;
                (total(width, singles) == words).then_some((width, singles))
            });
            let Some((width, singles)) = found else { continue };
            let (graph, wanted) = rows(width, singles);
            assert_eq!(
                bits(&mut narrow, &graph, &wanted),
                bits(&mut roomy, &graph, &wanted),
                "{words} words"
            );
            met += 1;
        }
    }
    assert_eq!(met, 6, "one word less, as many, and one word more than one and two bindings");
}

#[test]
fn parameters_at_the_end_of_a_binding_are_correct() {
    let (Some(mut roomy), Some(mut narrow)) = (executor(Options::default()), narrow()) else { return };
    if is_swift_shader(&roomy) {
        return skipped("SwiftShader takes gigabytes and minutes to compile products over several bindings");
    }
    for elements in [WORDS - 4, WORDS - 1, WORDS, WORDS + 1, 2 * WORDS - 1, 2 * WORDS, 2 * WORDS + 1] {
        let elements = elements as usize;
        // A row of weights that a product reads to its end, and one that is looked up at its end.
        for is_table in [false, true] {
            let mut m = ModuleBuilder::new("weights");
            let kind = if is_table { ParamKind::Table } else { ParamKind::Param };
            let w = m.param_stored_as("w", kind, DType::F32, [elements, 1], Init::Uniform(1.0));
            let module = m.build().expect("sound");
            let g = Graph::new(&module);
            g.instance(0);
            let input: Vec<f32> = (0..elements).map(|at| (at % 13) as f32 * 0.125 - 0.75).collect();
            let loss = match module.table("w") {
                Some(table) => table.lookup(&g, elements as u32 - 1).square().sum(),
                None => g.affine([g.input(&input)], w, None).sum(),
            };
            let loss = loss.id().expect("sound");
            let graph = g.finish().expect("sound");
            assert_eq!(
                bits(&mut narrow, &graph, &[loss]),
                bits(&mut roomy, &graph, &[loss]),
                "{elements} elements"
            );
            let plan = training(&graph, &[(loss, 1.0)]);
            if let Err(error) = same_as_naive(&mut narrow, &plan, &graph, &weights(&graph)) {
                panic!("{elements} elements: {error}");
            }
        }
    }
}

#[test]
fn tables_longer_than_a_binding_are_rejected() {
    let (Some(mut roomy), Some(mut narrow)) = (executor(Options::default()), narrow()) else { return };
    let target = narrow.target().expect("open");
    let mut m = ModuleBuilder::new("tables");
    let module = m.cell("sum", [f32([1]), f32([1])], |_, [x, y]| [x + y]);
    let (cell, module) = (module, m.build().expect("sound"));
    // Sums of numbers in no order, so tables name both operands.
    let made = |lanes: usize, others: usize| {
        let g = Graph::new(&module);
        g.instance(0);
        let xs: Vec<_> = (0..lanes).map(|at| g.input(&[at as f32]).square()).collect();
        let mut wanted = Vec::new();
        for at in 0..lanes {
            let [sum] = g.call(cell, [xs[at * 7 % lanes], xs[at * at % lanes]]);
            wanted.extend(sum.id());
        }
        wanted.extend(xs[..others].iter().filter_map(|x| x.tanh().id()));
        (g.finish().expect("sound"), wanted)
    };
    let (mut fits, mut refused) = (0, 0);
    for lanes in (1000..2100).step_by(50) {
        for others in 0..2 {
            let (graph, wanted) = made(lanes, others);
            let plan = inferring(&graph, &wanted);
            match compile(&plan, target) {
                Ok(compiled) => {
                    assert!(compiled.tables.len() as u64 <= WORDS);
                    fits = fits.max(compiled.tables.len() as u64);
                    if compiled.tables.len() as u64 + 256 > WORDS {
                        assert_eq!(bits(&mut narrow, &graph, &wanted), bits(&mut roomy, &graph, &wanted));
                    }
                }
                Err(GpuError::TooLarge { what: "the tables", needed, limit: BINDING }) => {
                    assert!(needed > BINDING);
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(fits + 256 > WORDS && refused > 0, "the longest has {fits} words, {refused} are rejected");
}

#[test]
fn plans_without_steps_or_outputs_are_executed() {
    let Some(mut executor) = executor(Options::default()) else { return };
    let mut m = ModuleBuilder::new("nothing");
    m.param("w", [4, 4], Init::Glorot(1.0));
    let module = m.build().expect("sound");
    // The planner never creates these.
    let text = |rest: &str| {
        let head = "autobatch plan 5 module \"m\" structure 0x00000000000000000000000000000001 mode infer";
        let plan = format!("{head}\n    bind words 0 floats 0\n    {rest}\n");
        Plan::from_text(&plan).expect("parses").verify()
    };
    let certificate = "certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes";
    let slab = "slab s0 value {v: f32[2]} x0\n";
    let weights = Weights::init(&module, 1);
    let bound = |floats| Inputs { words: &[], floats, noise: Noise::Off };
    for rest in [certificate.to_owned(), format!("{slab}{certificate}")] {
        let plan = text(&rest).unwrap_or_else(|errors| panic!("{rest}: {errors}"));
        for _ in 0..3 {
            executor.execute(&plan, &weights, bound(&[])).expect("executes");
            assert_eq!((executor.counters().dispatches, plan.outputs.len()), (0, 0));
            assert_eq!(executor.row(&plan, FieldId(0), 0).expect("reads"), None);
        }
    }
    let source = Graph::new(&module);
    source.instance(0);
    let wanted = [source.input(&[3.0, 4.0]).id().expect("sound")];
    let graph = source.finish().expect("sound");
    let plan = inferring(&graph, &wanted);
    for turn in 0..3 {
        executor.execute(&plan, &weights, bound(&graph.bindings.floats)).expect("executes");
        assert_eq!(executor.output(0), [3.0, 4.0], "{turn}");
    }
    // The executor still works.
    let (graph, values) = cells(2, 4);
    assert_eq!(bits(&mut executor, &graph, &values)[0].len(), 4);
}

#[test]
fn rows_of_odd_width_have_the_bits_of_a_single_row_in_steps_of_any_size() {
    let Some(mut executor) = executor(Options::default()) else { return };
    for width in [1, 3, 5] {
        let mut m = ModuleBuilder::new("odd");
        let w = m.param("w", [width, width], Init::Glorot(1.0));
        let b = m.param("b", [width], Init::Uniform(0.5));
        let cell = m.cell("cell", [f32([width])], |g, [x]| {
            let y = g.affine([x], w, Some(b)).tanh();
            [y, y.softmax() * x.sum()]
        });
        let module = m.build().expect("sound");
        let mut of = |count: usize| {
            let g = Graph::new(&module);
            let mut wanted = Vec::new();
            for key in 0..count {
                g.instance(key as u64);
                let input: Vec<f32> =
                    (0..width).map(|at| ((key % 5 * 11 + at) as f32 * 0.37).sin()).collect();
                let results = g.call(cell, g.input(&input));
                wanted.extend(results.iter().filter_map(|value| value.id()));
            }
            bits(&mut executor, &g.finish().expect("sound"), &wanted)
        };
        let (alone, few, many) = (of(1), of(5), of(65_537));
        assert_eq!(alone, few[..2], "width {width}");
        let repeated = few.iter().cycle().take(many.len());
        assert!(many.iter().zip(repeated).all(|(found, expected)| found == expected), "width {width}");
    }
}

#[test]
fn extreme_budgets_are_obeyed_or_rejected_with_a_remedy() {
    let Some(mut roomy) = executor(Options::default()) else { return };
    let (graph, values) = cells(3, 6);
    let expected = bits(&mut roomy, &graph, &values);
    let plan = inferring(&graph, &values);
    let weights = Weights::init(&graph.module, 3);
    let bound = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off };
    let mut refused = 0;
    for binding in [None, Some(0), Some(257), Some(u64::MAX)] {
        for bindings in [None, Some(0), Some(3), Some(u32::MAX)] {
            for scratch in [None, Some(0), Some(5), Some(u64::MAX)] {
                for memory in [None, Some(0), Some(u64::MAX)] {
                    let budget = Budget { binding, bindings, scratch, memory, ..Budget::default() };
                    let mut executor =
                        Executor::new(Options { budget, ..Options::default() }).expect("opens");
                    match executor.execute(&plan, &weights, bound) {
                        Ok(()) => assert_eq!(bits(&mut executor, &graph, &values), expected, "{budget:?}"),
                        Err(error @ (GpuError::TooLarge { .. } | GpuError::Memory { .. })) => {
                            assert!(error.to_string().contains(';'), "{budget:?}: {error}");
                            refused += 1;
                        }
                        Err(error) => panic!("{budget:?}: {error}"),
                    }
                }
            }
        }
    }
    assert!(refused > 0);
}
