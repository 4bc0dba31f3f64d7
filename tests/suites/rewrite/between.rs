//! The pass that looks between cells, on models: recurrences are hoisted, and the CPU computes the same
//! bits afterwards, forward and in reverse.

use crate::agrees;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ValueId;
use autobatch_ir::module::ModuleBuilder;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::{ParamId, Value, Weights};
use autobatch_nn::{BiLstm, Embedding, Gru, GruOptions, Linear, Lstm};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_planner::passes::{Verify, all, optimize};
use autobatch_planner::{Gradients, Planner, Request, Selection};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Bound, Executor};

const H: usize = 6;

/// A tagger that spells some words by their letters: a concatenation meets a lookup.
fn tagger(sentences: usize) -> GraphData {
    let mut m = ModuleBuilder::new("tagger");
    let words = Embedding::new(&mut m, "words", 20, 2 * H);
    let letters = Embedding::new(&mut m, "letters", 9, 5);
    let spelling = BiLstm::new(&mut m, "spelling", 5, H);
    let context = Lstm::new(&mut m, "context", 2 * H, H);
    let gru = Gru::with(&mut m, "gru", H, H, &GruOptions::default());
    let score = Linear::new(&mut m, "score", H, 4);
    let g = Graph::new(&m.build().expect("the model is well typed"));
    for key in 0..sentences {
        g.instance(key as u64);
        let vectors: Vec<Value<'_>> = (0..2 + key % 5)
            .map(|at| match (key + at) % 3 {
                0 => {
                    spelling.last(&g, (0..1 + at).map(|letter| letters.look(&g, ((letter + key) % 9) as u32)))
                }
                _ => words.look(&g, ((7 * key + at) % 20) as u32),
            })
            .collect();
        let states = gru.run(&g, context.run(&g, &vectors));
        for (at, state) in states.iter().enumerate() {
            let score = score.on(*state);
            g.output(&format!("score {key} {at}"), score);
            g.loss(&format!("loss {key} {at}"), score.cross_entropy(((key + at) % 4) as u32));
        }
    }
    g.finish().expect("the model is well typed")
}

fn selection(passes: &[&str], eager: bool) -> Selection {
    let with = |selection: Selection, pass: &&str| selection.with(pass, true).expect("a pass");
    let mut selection = passes.iter().fold(Selection::none(), with);
    (selection.eager, selection.verify) = (eager, Verify::Prove);
    selection
}

fn bound(graph: &GraphData) -> Bound<'_> {
    Bound { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off }
}

fn sound(plan: Plan) -> Verified<Plan> {
    plan.verify().unwrap_or_else(|errors| panic!("{errors}"))
}

/// All outputs, executed batched on one thread and on two by each instruction set.
fn outputs(plan: &Verified<Plan>, graph: &GraphData) -> Vec<Vec<f32>> {
    let weights = Weights::init(&graph.module, 11);
    let mut found: Vec<Vec<Vec<f32>>> = Vec::new();
    for isa in Isa::available() {
        for threads in [1, 2] {
            let mut executor = Executor::with_isa(isa, threads);
            executor.set_shared_work(1);
            executor.execute(plan, &weights, bound(graph)).expect("sound");
            found
                .push((0..plan.outputs.len()).map(|output| executor.output(plan, output).to_vec()).collect());
        }
    }
    assert!(found.iter().all(|outputs| *outputs == found[0]), "executors agree");
    found.swap_remove(0)
}

#[test]
fn hoisted_models_execute_to_the_same_bits() {
    let graph = tagger(9);
    let request = Request::default();
    let mut planner = Planner::default();
    let plain = sound(planner.plan(&graph, &request).expect("a plan"));
    assert!(plain.certificate.copied > 0, "spelled words are put together");
    for passes in [&["hoist"][..], &["hoist", "dead"]] {
        let selection = selection(passes, true);
        let planned = planner.optimize_and_plan(&graph, &request, &selection).expect("a plan");
        let optimized = &planned.optimized;
        assert!(optimized.log[0].contains(" -> "), "{:?}", optimized.log);
        agrees(&graph, &optimized.graph, &optimized.renaming).unwrap_or_else(|error| panic!("{error}"));
        let plan = sound(planned.plan);
        assert_eq!(plan.certificate.copied, plain.certificate.copied, "{passes:?}");
        let (before, after) = (outputs(&plain, &graph), outputs(&plan, &optimized.graph));
        for (a, b) in before.iter().flatten().zip(after.iter().flatten()) {
            assert!(same_bits(*a, *b), "{passes:?}: {a} and {b}");
        }
        // A lookup, a spelling in two directions, and the head: no batch more than the longest paths ask for.
        assert_eq!(plan.certificate.batches, plan.certificate.bound, "{passes:?}");
    }
}

/// The gradients of all parameters, and those of the values, of a plan that is proved.
fn gradients(graph: &GraphData) -> Vec<Vec<f32>> {
    let losses: Vec<(ValueId, f32)> = graph
        .outputs
        .iter()
        .filter(|output| output.kind == autobatch_ir::graph::OutputKind::Loss)
        .map(|output| (output.value, 1.0))
        .collect();
    let wanted = Gradients { losses: &losses, params: None, values: &[] };
    let request = Request { mode: Mode::Train, gradients: Some(wanted), ..Request::default() };
    let plan = sound(Planner::default().plan(graph, &request).expect("differentiable"));
    check_losses(&plan, graph, Wanted { values: &[], training: false }, &losses)
        .unwrap_or_else(|report| panic!("{report}"));
    let mut executor = Executor::with_isa(Isa::best(), 1);
    executor.execute(&plan, &Weights::init(&graph.module, 11), bound(graph)).expect("sound");
    let of = |number: usize| executor.gradient_of(ParamId::new(number)).expect("all are wanted").to_vec();
    (0..graph.module.params.len()).map(of).collect()
}

#[test]
fn hoisted_models_are_differentiated() {
    let graph = tagger(9);
    let optimized = optimize(&graph, &[], Mode::Train, &selection(&["hoist"], true), &mut all);
    let optimized = optimized.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(optimized.log[0].contains("before 4 recurrences"), "{:?}", optimized.log);
    let (before, after) = (gradients(&graph), gradients(&optimized.graph));
    for (a, b) in before.iter().flatten().zip(after.iter().flatten()) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{a} and {b}");
    }
    assert!(before.iter().flatten().any(|x| *x != 0.0));
}

#[test]
fn a_hoist_has_a_price() {
    let mut m = ModuleBuilder::new("priced");
    let lstm = Lstm::new(&mut m, "lstm", 256, 256);
    let module = m.build().expect("the model is well typed");
    let hoisted = |instances: u64, length: usize| {
        let g = Graph::new(&module);
        for key in 0..instances {
            g.instance(key);
            let last = lstm.last(&g, (0..length).map(|_| g.input(&[0.5; 256])));
            g.output(&format!("last {key}"), last);
        }
        let graph = g.finish().expect("the model is well typed");
        let selection = selection(&["hoist"], false);
        let done = optimize(&graph, &[], Mode::Infer, &selection, &mut all).map(|done| done.log[0].clone());
        !done.unwrap_or_else(|failure| panic!("{failure}")).ends_with("nothing to do")
    };
    assert!(hoisted(1, 20), "a step of one row reads all weights for it");
    assert!(!hoisted(200, 3), "a step of two hundred rows does not need it");
}
