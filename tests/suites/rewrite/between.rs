//! The pass between cells, on models. It hoists recurrences, and the CPU computes the same bits forward and in
//! reverse.

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
use autobatch_oracle::equivalent::prove;
use autobatch_planner::passes::{Verify, all, optimize};
use autobatch_planner::{Gradients, Planner, Request, Selection};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};

const H: usize = 6;

/// A tagger that spells some words by letters: a concatenation and a lookup have the same readers.
fn tagger(sentences: usize) -> GraphData {
    let mut m = ModuleBuilder::new("tagger");
    let words = Embedding::new(&mut m, "words", 20, 2 * H);
    let letters = Embedding::new(&mut m, "letters", 9, 5);
    let spelling = BiLstm::new(&mut m, "spelling", 5, H);
    let context = Lstm::new(&mut m, "context", 2 * H, H);
    let gru = Gru::with_options(&mut m, "gru", H, H, &GruOptions::default());
    let score = Linear::new(&mut m, "score", H, 4);
    let g = Graph::new(&m.build().expect("the model is well typed"));
    for key in 0..sentences {
        g.instance(key as u64);
        let vectors: Vec<Value<'_>> = (0..2 + key % 5)
            .map(|at| match (key + at) % 3 {
                0 => spelling
                    .last(&g, (0..1 + at).map(|letter| letters.lookup(&g, ((letter + key) % 9) as u32))),
                _ => words.lookup(&g, ((7 * key + at) % 20) as u32),
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
    (selection.eager, selection.verify) = (eager, Verify::Prove(prove));
    selection
}

fn inputs(graph: &GraphData) -> Inputs<'_> {
    Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off }
}

fn sound(plan: Plan) -> Verified<Plan> {
    plan.verify().unwrap_or_else(|errors| panic!("{errors}"))
}

/// All outputs, by each instruction set on one thread and on two.
fn outputs(plan: &Verified<Plan>, graph: &GraphData) -> Vec<Vec<f32>> {
    let weights = Weights::init(&graph.module, 11);
    let mut found: Vec<Vec<Vec<f32>>> = Vec::new();
    for isa in Isa::available() {
        for threads in [1, 2] {
            let mut executor = Executor::with_isa(isa, threads);
            executor.set_shared_work(1);
            executor.execute(plan, &weights, inputs(graph)).expect("valid");
            found
                .push((0..plan.outputs.len()).map(|output| executor.output(plan, output).to_vec()).collect());
        }
    }
    assert!(found.iter().all(|outputs| *outputs == found[0]), "all executors agree");
    found.swap_remove(0)
}

#[test]
fn hoisted_models_have_the_same_bits() {
    let graph = tagger(9);
    let request = Request::default();
    let mut planner = Planner::default();
    let plain = sound(planner.plan(&graph, &request).expect("a plan"));
    assert!(plain.certificate.copied > 0, "spelled words need copies");
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
        // Lookups, spelling in two directions, and the head: as few batches as the longest paths allow.
        assert_eq!(plan.certificate.batches, plan.certificate.bound, "{passes:?}");
    }
}

/// The gradients of all parameters and values of a proved plan.
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
    executor.execute(&plan, &Weights::init(&graph.module, 11), inputs(graph)).expect("valid");
    let of = |number: usize| {
        executor.gradient_of(ParamId::new(number)).expect("all gradients are requested").to_vec()
    };
    (0..graph.module.params.len()).map(of).collect()
}

#[test]
fn hoisted_models_have_nearly_the_same_gradients() {
    let graph = tagger(9);
    let optimized = optimize(&graph, &[], Mode::Train, &selection(&["hoist"], true), &mut all);
    let optimized = optimized.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(optimized.log[0].contains("out of 4 recurrences"), "{:?}", optimized.log);
    let (before, after) = (gradients(&graph), gradients(&optimized.graph));
    for (a, b) in before.iter().flatten().zip(after.iter().flatten()) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{a} and {b}");
    }
    assert!(before.iter().flatten().any(|x| *x != 0.0));
}

#[test]
fn hoisting_depends_on_its_cost() {
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
    assert!(hoisted(1, 20), "a step of one row reads all weights");
    assert!(!hoisted(200, 3), "hoisting costs more for steps of two hundred rows");
}
