//! Small graphs from failures of random tests, through single passes.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_oracle::equivalent::prove;
use autobatch_oracle::reference;
use autobatch_planner::Selection;
use autobatch_planner::passes::{Optimized, Verify, all, optimize};

/// The graph after one eager pass, which is proved.
fn after<'g>(pass: &str, graph: &'g GraphData, mode: Mode) -> Optimized<'g> {
    graph.verify().unwrap_or_else(|errors| panic!("{errors}"));
    let mut selection = Selection::none().with(pass, true).expect("a pass");
    (selection.eager, selection.verify) = (true, Verify::Prove(prove));
    optimize(graph, &[], mode, &selection, &mut all).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Three steps of a recurrence with this body.
fn recurrence(body: &str) -> GraphData {
    let text = format!(
        "autobatch graph 2 module \"m\"
         param @w f32[4,4] = glorot(1.0)
         cell @step[@0: f32[4,4]](%0: f32[4], %1: f32[4]) {{ {body} }}
         graph
           %0 = input f32[4] (#[1.0, 2.0, 3.0, 4.0])
           %1 = fill f32[4] {{value=0.5}}
           %2 = call @step[@w](%0, %1)
           %3 = call @step[@w](%0, %2)
           %4 = call @step[@w](%0, %3)
         output \"end\" %4"
    );
    GraphData::from_text(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_list_of_hoisted_values_is_made_in_the_cell_that_reads_it() {
    let graph = recurrence(
        "%2: f32[4] = tanh(%0)  %3: list f32[4] = list(%2, %0)  %4: f32[4] = list_sum(%3)
         %5: f32[4] = affine[@0](%4)  %6: f32[4] = attend{scale=1.0}(%1, %3, %3)
         %7: f32[4] = add(%5, %6)  return %7",
    );
    let optimized = after("hoist", &graph, Mode::Infer);
    assert_eq!(optimized.graph.arena.len(), graph.arena.len() + 3, "{:?}", optimized.log);
}

#[test]
fn training_hoists_nothing_that_reorders_gradient_sums() {
    let bodies = [
        // The hoisted product and the rest read a hoisted value.
        "%2: f32[4] = tanh(%0)  %3: f32[4] = affine[@0](%2)  %4: f32[4] = mul(%3, %1)
         %5: f32[4] = mul(%2, %1)  %6: f32[4] = mul(%2, %4)  %7: f32[4] = add(%4, %5)
         %8: f32[4] = add(%7, %6)  return %8",
        // The rest uses a parameter first.
        "%2: f32[4] = affine[@0](%1)  %3: f32[4] = affine[@0](%0)  %4: f32[4] = add(%2, %3)  return %4",
    ];
    for body in bodies {
        let graph = recurrence(body);
        assert!(!after("hoist", &graph, Mode::Infer).renaming.is_identity());
        assert!(after("hoist", &graph, Mode::Train).renaming.is_identity(), "{body}");
    }
    // Here every gradient sum stays the same.
    let free =
        "%2: f32[4] = affine[@0](%0)  %3: f32[4] = affine[@0](%1)  %4: f32[4] = add(%2, %3)  return %4";
    assert!(!after("hoist", &recurrence(free), Mode::Train).renaming.is_identity());
}

/// The bits of the gradient of the first value.
fn gradient_of_first(graph: &GraphData) -> Vec<u32> {
    let (weights, end) = (Weights::init(&graph.module, 9), graph.outputs[0].value);
    let run = reference::forward::<f32>(graph, &weights, reference::Noise::Off).expect("valid");
    let gradients = reference::reverse(graph, &weights, &run, &[(end, 1.0)]).expect("valid");
    gradients.value(ValueId::new(0)).expect("it is used").iter().map(|x| x.to_bits()).collect()
}

#[test]
fn training_does_not_reorder_gradient_sums_of_repeated_or_joined_operands() {
    let text = |state: &str, body: &str| {
        format!(
            "autobatch graph 2 module \"m\"
             param @w f32[4,4] = glorot(1.0) param @u f32[8,4] = glorot(1.0)
             cell @step[@0: f32[4,4], @1: f32[8,4]](%0: f32[4], %1: f32[4]) {{ {body} }}
             graph
               %0 = input f32[4] (#[0.13, 0.27, 0.31, 0.47])
               %1 = input f32[4] (#[0.71, -0.37, 0.53, 0.11])
               %2: f32[4] = exp(%0)
               %3 = call @step[@w, @u](%1, {state})
               %4 = call @step[@w, @u](%3, {state})
               %5 = call @step[@w, @u](%4, {state})
               %6: f32[4] = mul(%5, %2)
             output \"end\" %6"
        )
    };
    let twice = "%2: f32[4] = affine[@0](%0)  %3: f32[4] = affine[@0](%1)  %4: f32[4] = tanh(%3)
                 %5: f32[8] = concat{axis=0}(%1, %1)  %6: f32[4] = affine[@1](%5)
                 %7: f32[4] = add(%2, %4)  %8: f32[4] = add(%7, %6)  return %8";
    // The state of the first step is also the input of all steps, and its operand comes first.
    let one_value = text("%0", twice).replace("(%1, %0)", "(%0, %0)");
    // The state is read both joined with the input and directly.
    let joined = "%2: f32[8] = concat{axis=0}(%1, %0)  %3: f32[4] = tanh(%0)  %4: f32[4] = sigmoid(%0)
                  %5: f32[4] = affine[@1](%2)  %6: f32[4] = mul(%3, %4)  %7: f32[4] = add(%5, %6)  return %7";
    let state = text("%1", joined).replace("(%1, %1)", "(%0, %1)");
    for text in [one_value, state] {
        let graph = GraphData::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let [moved, kept] = [Mode::Infer, Mode::Train].map(|mode| after("hoist", &graph, mode));
        let mut differs = false;
        for round in 1..20 {
            let floats: Vec<f32> = (0..8).map(|at| ((at + 1) as f32 * round as f32 * 0.737).sin()).collect();
            let gradient = |optimized: &GraphData| {
                let mut bound = optimized.clone();
                bound.bindings.floats.clone_from(&floats);
                gradient_of_first(&bound)
            };
            let own = gradient(&graph);
            assert_eq!(own, gradient(&kept.graph), "{text}");
            differs |= own != gradient(&moved.graph);
        }
        assert!(differs, "no sum changed its order, so the test has no effect: {text}");
    }
    // A join without other readers is split.
    let lonely =
        "%2: f32[8] = concat{axis=0}(%1, %0)  %3: f32[4] = affine[@1](%2)  %4: f32[4] = tanh(%3)  return %4";
    let graph = GraphData::from_text(text("%1", lonely).replace("(%1, %1)", "(%0, %1)"))
        .unwrap_or_else(|error| panic!("{error}"));
    let kept = after("hoist", &graph, Mode::Train);
    assert!(!kept.renaming.is_identity());
    assert_eq!(gradient_of_first(&graph), gradient_of_first(&kept.graph));
}

#[test]
fn an_index_out_of_range_stays_an_error_when_its_arithmetic_is_folded() {
    let computed = ["cast{to=u32}(%0)", "add(%0, %1)", "mul(%2, %0)"];
    for op in computed {
        let text = format!(
            "autobatch graph 2 module \"m\" table @t f32[3,2] = uniform(1.0) graph
             %0 = input u32 (#7) %1 = fill u32 {{value=0}} %2 = fill u32 {{value=1}}
             %3: u32 = {op} %4: f32[2] = lookup[@t](%3) output \"row\" %4"
        );
        let graph = GraphData::from_text(text).unwrap_or_else(|error| panic!("{error}"));
        let optimized = after("fold", &graph, Mode::Infer);
        let weights = Weights::init(&graph.module, 5);
        for graph in [&graph, &*optimized.graph] {
            let error = reference::forward::<f32>(graph, &weights, reference::Noise::Off).expect_err(op);
            assert!(error.to_string().contains("expected an index below 3, found 7"), "{op}: {error}");
        }
    }
}
