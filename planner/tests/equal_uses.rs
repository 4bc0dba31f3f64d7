//! The proof accepts plans of nodes whose uses of a parameter contribute the same: operands that are always zero, and gradients
//! that are always zero or never a number. The numbers alone do not say which use a reduction takes.

use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_oracle::check::{Wanted, check_losses};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder};

/// A cell that calls another twice, first with zeros: the zero reaches a product, and a power whose gradient there is zero.
const ZERO_OPERANDS: &str = r#"autobatch graph 2
module "zeros"
param @inner bf16[5,5] = uniform(0.6)
param @outer f32[5,5] = uniform(0.6)
param @bias f32[5] = uniform(0.5)
cell @step[@0: f32[5,5], @1: f32[5], @2: bf16[5,5]](%0: f32[2,5], %1: f32[5]) {
  %2: f32[5] = add(%1, %1)
  %3: f32[5] = tanh(%2)
  %4: f32[5] = affine[@0](%2)
  %5: f32[5] = pow(%4, %3)
  %6: f32[5] = affine[@2, @1](%5)
  return %6, %0
}
cell @twice[@0: f32[5,5], @1: f32[5], @2: bf16[5,5]](%0: f32[2,5]) {
  %1 = fill f32[5] {value=0.0}
  %2, %3 = call @step[@0, @1, @2](%0, %1)
  %4, %5 = call @step[@0, @1, @2](%0, %2)
  %6: f32[5] = tanh(%4)
  return %6
}
graph
  %0 = fill f32[2,5] {value=0.0}
  %1 = call @twice[@outer, @bias, @inner](%0)
  %2: f32 = reduce{fold=sum over=all}(%1)
loss "l" %2
"#;

/// A cell one of whose results no loss reads, so that some of its contributions are always zero.
const ZERO_GRADIENTS: &str = r#"autobatch graph 2
module "unread"
param @tied f16[7,5] = uniform(0.6)
param @out f32[4,5] = uniform(0.6)
cell @back[@0: f16[7,5], @1: f32[4,5]](%0: f32[4], %1: f32[4], %2: f32[5]) {
  %3: f32[7] = affine{transposed}[@0](%2)
  %4: f32[5] = affine[@0](%3)
  %5: f32[5] = mul(%2, %4)
  %6: f32[4] = affine{transposed}[@1](%5)
  return %6
}
cell @both[@0: f16[7,5], @1: f32[4,5]](%0: f32[4], %1: u32) {
  %2 = fill f32[5] {value=0.0}
  %3 = call @back[@0, @1](%0, %0, %2)
  %4: f32[5] = affine[@1](%0)
  %5: f32 = pick(%3, %1)
  %6: f32 = tanh(%5)
  return %6, %4, %3
}
graph
  %0 = input f32[5] (#[-0.4, -0.1, 0.7, 1.9, -1.0])
  %1 = input f32[4] (#[0.1, 0.7, -0.4, 1.8])
  %2 = call @back[@tied, @out](%1, %1, %0)
  %3 = input u32 (#1)
  %4, %5, %6 = call @both[@tied, @out](%2, %3)
  %7: f32 = reduce{fold=sum over=all}(%5)
loss "l" %7
"#;

/// A cell whose constants make all its values and gradients infinite or no numbers.
const NO_NUMBERS: &str = r#"autobatch graph 2
module "wild"
param @w f32[3,3] = uniform(0.6)
param @bias f32[3] = uniform(0.5)
cell @free[@0: f32[3,3], @1: f32[3]]() {
  %0 = fill f32[3] {value=0x7fc00000}
  %1: f32[3] = affine[@0, @1](%0)
  %2: f32[3] = tanh(%1)
  %3: f32[3] = affine[@0](%2)
  return %2, %3
}
cell @undefined[@0: f32[3,3]](%0: f32[3]) {
  %1 = fill f32[3] {value=-1.96875}
  %2: f32[3] = log(%1)
  %3: f32[3] = affine[@0](%0)
  %4: f32[3] = mul(%2, %3)
  return %4
}
graph
  %0, %1 = call @free[@w, @bias]()
  %2 = call @undefined[@w](%1)
  %3: f32[3] = add(%0, %2)
  %4: f32 = reduce{fold=sum over=all}(%3)
loss "l" %4
"#;

fn graph(text: &str) -> (GraphData, Vec<(ValueId, f32)>) {
    let graph = GraphData::from_text(text).unwrap_or_else(|error| panic!("{error}"));
    graph.verify().expect("the graph keeps the rules");
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    let losses = losses.map(|output| (output.value, 1.0)).collect();
    (graph, losses)
}

fn planned(graph: &GraphData, losses: &[(ValueId, f32)], policy: &str, rows: RowOrder) -> Plan {
    let policy: Policy = policy.parse().expect("a policy");
    let gradients = Some(Gradients { losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, rows, gradients, ..Request::default() };
    Planner::new(policy.load().expect("no file")).plan(graph, &request).expect("a plan")
}

const WANTED: Wanted<'_> = Wanted { values: &[], training: false };

#[test]
fn correct_plans_of_equal_uses_are_proven() {
    for text in [ZERO_OPERANDS, ZERO_GRADIENTS, NO_NUMBERS] {
        let (graph, losses) = graph(text);
        for policy in ["none", "depth", "agenda", "auto"] {
            for rows in [RowOrder::Batch, RowOrder::Propagated] {
                let plan = planned(&graph, &losses, policy, rows).verify().expect("sound");
                let proof = check_losses(&plan, &graph, WANTED, &losses);
                proof.unwrap_or_else(|errors| panic!("{policy}, {rows:?}: {errors}\n{text}"));
            }
        }
    }
}

#[test]
fn a_missing_or_repeated_part_of_equal_uses_is_rejected() {
    for text in [ZERO_OPERANDS, ZERO_GRADIENTS, NO_NUMBERS] {
        let (graph, losses) = graph(text);
        let plan = planned(&graph, &losses, "depth", RowOrder::Batch);
        for number in 0..plan.reductions.len() {
            for repeated in [false, true] {
                let mut wrong = plan.clone();
                let parts = &mut wrong.reductions[number].parts;
                match repeated {
                    true => parts.push(parts[0].clone()),
                    false => drop(parts.remove(0)),
                }
                // Some broken plans already break a rule of plans.
                let Ok(wrong) = wrong.verify() else { continue };
                let proof = check_losses(&wrong, &graph, WANTED, &losses);
                assert!(proof.is_err(), "reduction {number}, repeated {repeated}\n{text}");
            }
        }
    }
}
