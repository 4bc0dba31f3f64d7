//! Each index, bound or computed, is checked against the table that it indexes. Bound truth values must be 0 or 1.

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{DType, Graph, Init, ModuleBuilder, Shape, Type, Weights};
use autobatch_oracle::naive;
use autobatch_oracle::reference;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{BindError, Executor, Inputs, RunError};

#[test]
fn indices_of_one_vector_are_checked_against_their_own_tables() {
    let mut m = ModuleBuilder::new("tables");
    let small = m.table("small", [5, 3], Init::Uniform(1.0));
    let large = m.table("large", [100, 3], Init::Uniform(1.0));
    let pair = Type::new(DType::U32, Shape::new(&[2]).expect("a shape"));
    let both = m.cell("both", [pair], |g, [x]| {
        let [a, b] = [0, 1].map(|at| x.slice(at..at + 1).reshape([]));
        [small.lookup(g, a) + large.lookup(g, b)]
    });
    let graph = Graph::new(&m.build().expect("well typed"));
    for key in 0..3 {
        graph.instance(key);
        let [sum] = graph.call(both, [graph.indices(&[3, 50])]);
        graph.output(&format!("{key}"), sum);
    }
    let data = graph.finish().expect("well typed");
    let weights = Weights::init(&data.module, 1);
    let plan = Planner::default()
        .plan(&data, &Request::default())
        .expect("a plan")
        .verify()
        .expect("the plan is sound");
    let mut executor = Executor::new(1).expect("opens");
    let mut execute = |words: &[u32]| {
        executor.execute(&plan, &weights, Inputs { words, floats: &[], noise: Noise::Off })?;
        Ok::<_, RunError>(executor.output(&plan, 2).to_vec())
    };
    let [small, large] = ["small", "large"].map(|name| weights.by_name(name).expect("declared"));
    let expected: Vec<f32> = small[9..12].iter().zip(&large[150..153]).map(|(a, b)| a + b).collect();
    assert_eq!(execute(&data.bindings.words).expect("both indices are in range"), expected);
    for (words, at, beyond) in [([3, 99, 4, 50, 5, 50], 4, 5), ([3, 99, 4, 100, 4, 50], 3, 100)] {
        let error = execute(&words).expect_err("one is beyond the last");
        let RunError::Input(BindError::Index { word, found, limit, .. }) = error else { panic!("{error}") };
        assert_eq!((word, found, limit), (at, beyond, beyond));
    }
}

#[test]
fn every_executor_rejects_bound_truth_values_other_than_0_and_1() {
    let graph = Graph::new(&ModuleBuilder::new("masks").build().expect("well typed"));
    let masked = graph.input(&[1.0, 2.0, 3.0]).mask(&[true, false, true]);
    graph.output("masked", masked);
    let data = graph.finish().expect("well typed");
    let weights = Weights::init(&data.module, 1);
    let plan = Planner::default()
        .plan(&data, &Request::default())
        .expect("a plan")
        .verify()
        .expect("the plan is sound");
    let mut executor = Executor::new(1).expect("opens");
    let floats = &data.bindings.floats[..];
    for (words, wrong) in
        [([1, 0, 1], None), ([0, 0, 1], None), ([1, 0, 2], Some(2)), ([u32::MAX, 0, 1], Some(0))]
    {
        let naive = naive::execute(&plan, &Vec::<Vec<f32>>::new(), &words, floats, Noise::Off);
        let executed = executor.execute(&plan, &weights, Inputs { words: &words, floats, noise: Noise::Off });
        let Some(wrong) = wrong else {
            executed.expect("truth values");
            let naive: Vec<f32> = naive
                .expect("truth values")
                .output(0)
                .expect("one")
                .iter()
                .map(|&x| f32::from_bits(x))
                .collect();
            assert_eq!(executor.output(&plan, 0), naive);
            continue;
        };
        let error = executed.expect_err("the word is no truth value");
        let RunError::Input(BindError::Truth { word, found, .. }) = error else { panic!("{error}") };
        assert_eq!((word, found), (wrong, words[wrong]));
        let error = naive.expect_err("the word is no truth value");
        let naive::RunError::Input(BindError::Truth { word, found, .. }) = error else { panic!("{error}") };
        assert_eq!((word, found), (wrong, words[wrong]));
    }
}

/// Returns whether the reference, the naive executor and this executor reject an index of a graph.
fn rejections(text: &str) -> [bool; 3] {
    let graph = autobatch_ir::GraphData::from_text(text).expect("sound");
    let weights = Weights::init(&graph.module, 1);
    let plan = Planner::default()
        .plan(&graph, &Request::default())
        .expect("a plan")
        .verify()
        .expect("the plan is sound");
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let (words, floats) = (&graph.bindings.words[..], &graph.bindings.floats[..]);
    let expected = reference::forward::<f32>(&graph, &weights, Noise::Off);
    let naive = naive::execute(&plan, &stores, words, floats, Noise::Off);
    let mut executor = Executor::new(1).expect("opens");
    let executed = executor.execute(&plan, &weights, Inputs { words, floats, noise: Noise::Off });
    if let (Ok(expected), Ok(naive), Ok(())) = (&expected, &naive, &executed) {
        let expected = expected.floats(graph.outputs[0].value).expect("an output");
        assert_eq!(executor.output(&plan, 0), expected, "{text}");
        assert_eq!(naive.output(0), Some(bits(expected).as_slice()), "{text}");
    }
    [expected.is_err(), naive.is_err(), executed.is_err()]
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|float| float.to_bits()).collect()
}

#[test]
fn all_executors_reject_an_index_out_of_range_however_it_comes_to_its_table() {
    let cases = [
        ("u32", "#9", "", "%i", true),
        ("u32[1]", "#[9]", "%j = reshape{shape=[]}(%i)", "%j", true),
        ("u32[2]", "#[1, 9]", "%s = slice{axis=0 start=1 len=1}(%i) %j = reshape{shape=[]}(%s)", "%j", true),
        ("u32[2]", "#[9, 1]", "%s = slice{axis=0 start=1 len=1}(%i) %j = reshape{shape=[]}(%s)", "%j", false),
        ("u32[2]", "#[1, 9]", "%a, %s = split{axis=0 parts=2}(%i) %j = reshape{shape=[]}(%s)", "%j", true),
        ("u32", "#9", "%s = stack(%i) %j = reshape{shape=[]}(%s)", "%j", true),
        (
            "u32[1]",
            "#[9]",
            "%s = concat{axis=0}(%i, %i) %j0 = slice{axis=0 start=1 len=1}(%s) %j = reshape{shape=[]}(%j0)",
            "%j",
            true,
        ),
        ("u32[2]", "#[1, 9]", "%c = fill u32 {value=1} %j = pick(%i, %c)", "%j", true),
        ("u32", "#9", "%b = broadcast{shape=[1]}(%i) %j = reshape{shape=[]}(%b)", "%j", true),
        ("u32", "#9", "%j = cast{to=u32}(%i)", "%j", true),
    ];
    for (ty, bound, ops, index, is_rejected) in cases {
        let head = "autobatch graph 2\ntable @t f32[4,2] = normal(1.0)\n";
        let cell = format!(
            "{head}cell @c[@0: f32[4,2]](%i: {ty}) {{ {ops} %r = lookup[@0]({index}) return %r }}\ngraph\ninstance 0:\n\
             %i = input {ty} ({bound}) %x = call @c[@t](%i)\noutput \"x\" %x\n"
        );
        assert_eq!(rejections(&cell), [is_rejected; 3], "{cell}");
        let plain = format!(
            "{head}graph\ninstance 0:\n%i = input {ty} ({bound}) {ops} %x = lookup[@t]({index})\noutput \"x\" %x\n"
        );
        assert_eq!(rejections(&plain), [is_rejected; 3], "{plain}");
    }
    let passed_through = "autobatch graph 2\ntable @t f32[4,2] = normal(1.0)\ncell @c(%i: u32) { return %i }\ngraph\n\
                     instance 0:\n%i = input u32 (#9) %j = call @c(%i) %x = lookup[@t](%j)\noutput \"x\" %x\n";
    assert_eq!(rejections(passed_through), [true; 3]);
}

#[test]
fn all_executors_reject_a_place_beyond_the_end_of_the_list_of_its_lane() {
    let head = "autobatch graph 2\ncell @c(%l: list f32[2], %i: u32) { %r = list_pick(%i, %l) return %r }\n\
                cell @v(%x: f32[2], %i: u32) { %l = list(%x, %x) %r = list_pick(%i, %l) return %r }\n\
                graph\n%z = input u32 (#0)\n%b: list f32[2] = list f32[2] ()\n";
    // The lists of the lanes have 1, 3 and 0 values, or always 2.
    for (values, place, is_rejected) in
        [(1, 0, false), (1, 1, true), (3, 2, false), (3, 3, true), (0, 0, true), (3, u32::MAX, true)]
    {
        let list = match values {
            0 => "%l = list f32[2] ()".to_owned(),
            _ => format!("%l = list({})", vec!["%x"; values].join(", ")),
        };
        for (how, index) in [("", format!("#{place}")), ("%j = add(%i, %z) ", "%j".to_owned())] {
            for callee in ["list_pick({}, %l)", "call @c(%l, {})"] {
                let pick = callee.replace("{}", &index);
                let text = format!(
                    "{head}instance 0:\n%x0 = input f32[2] (#[1.0, 2.0]) %l0 = list(%x0, %x0, %x0, %x0) %o = list_pick(#3, %l0)\n\
                     instance 1:\n%x = input f32[2] (#[3.0, 4.0]) %i = input u32 (#{place}) {list} {how}%r = {pick}\n\
                     output \"r\" %r\noutput \"s\" %o\n"
                );
                assert_eq!(rejections(&text), [is_rejected; 3], "{text}");
            }
            let text = format!(
                "{head}instance 0:\n%x = input f32[2] (#[1.0, 2.0]) %i = input u32 (#{place}) {how}%r = call @v(%x, {index})\n\
                 output \"r\" %r\n"
            );
            assert_eq!(rejections(&text), [place > 1; 3], "{text}");
        }
    }
}
