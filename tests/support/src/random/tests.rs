//! Tests of the generator: its coverage, its determinism and its shrinking.

use super::*;
use autobatch_ir::graph::{Callee, Op, OutputKind};
use std::collections::BTreeSet;

fn calls_cell(graph: &GraphData, wanted: &str) -> bool {
    graph.arena.ids().any(|id| graph.module.callee_name(graph.signature(id).callee) == wanted)
}

#[test]
fn three_hundred_graphs_cover_every_op_and_fact() {
    let mut coverage = Coverage::default();
    for seed in 0..50 {
        for profile in Profile::ALL {
            let mut options = Options::new(profile);
            if seed % 3 == 2 {
                options = options.differentiable();
            }
            coverage.add(&Recipe::new(seed, options).graph());
        }
    }
    let missing = coverage.missing();
    assert!(missing.is_empty(), "missing: {missing:?}\n{coverage:#?}");
    let acts: BTreeSet<String> = Act::all().iter().map(|act| format!("{act:?}")).collect();
    assert_eq!(acts.len(), Act::all().len(), "the list contains each action once");
}

#[test]
fn graphs_have_the_size_of_their_profile() {
    for profile in Profile::ALL {
        for seed in seeds(40) {
            let graph = Recipe::new(seed, Options::new(profile)).graph();
            let nodes = graph.arena.len();
            assert!(profile.nodes().contains(&nodes), "seed {seed}: {nodes} of {profile:?}");
        }
    }
}

#[test]
fn a_seed_always_gives_the_same_graph() {
    for profile in Profile::ALL {
        for seed in seeds(5) {
            let options = Options::new(profile);
            let (a, b) = (Recipe::new(seed, options).graph(), Recipe::new(seed, options).graph());
            assert_eq!(a, b, "seed {seed}");
            assert_eq!(a.structure(), b.structure(), "seed {seed}");
        }
    }
    let [a, b] = [1, 2].map(|seed| Recipe::new(seed, Options::new(Profile::Medium)));
    assert_ne!(a, b);
}

/// Returns for each value whether it depends on a parameter.
fn depends(graph: &GraphData) -> Vec<bool> {
    let mut depends: Vec<bool> = Vec::new();
    for id in graph.arena.ids() {
        let direct = !graph.signature(id).params.is_empty();
        let mut operands = graph.arena.operands(id).iter().filter_map(|operand| operand.as_value());
        let below = operands.any(|value| depends[value.index()]);
        depends.resize(graph.arena.results(id).end, direct || below);
    }
    depends
}

#[test]
fn every_instance_of_a_differentiable_graph_has_a_loss_that_depends_on_parameters() {
    for profile in Profile::ALL {
        check("losses depend", Options::new(profile).differentiable(), 30, |graph| {
            let depends = depends(graph);
            let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
            let losses: Vec<_> = losses.collect();
            if losses.len() != graph.instances() {
                return Err(format!("{} losses of {} instances", losses.len(), graph.instances()));
            }
            match losses.iter().find(|loss| !depends[loss.value.index()]) {
                Some(loss) => Err(format!("{} depends on no parameter", loss.name)),
                None => Ok(()),
            }
        });
    }
}

#[test]
fn graphs_for_inference_have_no_losses_and_no_noise() {
    check("inference only", Options::new(Profile::Medium).infer_only(), 40, |graph| {
        let noisy = graph.module.cells.iter().any(|cell| cell.body.noise);
        let dropout = graph.arena.ids().any(|id| {
            matches!(graph.signature(id).callee, Callee::Op(Op::Dropout { .. } | Op::StopGradient))
        });
        let loss = graph.outputs.iter().any(|output| output.kind == OutputKind::Loss);
        if noisy || dropout || loss { Err("training".to_owned()) } else { Ok(()) }
    });
}

#[test]
fn only_wild_graphs_bind_non_finite_numbers() {
    let wild = |seed, options: Options| {
        let graph = Recipe::new(seed, options).graph();
        graph.bindings.floats.iter().any(|x| !x.is_finite() || x.abs() > 2.0)
    };
    let options = Options::new(Profile::Medium);
    assert!((0..40).all(|seed| !wild(seed, options)));
    assert!((0..40).any(|seed| wild(seed, options.wild())));
}

#[test]
fn a_planted_fault_shrinks_to_a_few_decisions() {
    let fails = |recipe: &Recipe| calls_cell(&recipe.graph(), "@node");
    let options = Options::new(Profile::Trees);
    let big = (0..).map(|seed| Recipe::new(seed, options)).find(|r| fails(r) && r.len() > 30);
    let big = big.expect("some tree is large");
    let small = shrink(&big, fails);
    assert!(fails(&small));
    assert_eq!(small.steps().count(), 1, "{small:#?}");
    assert_eq!((small.width, small.instances.len() + small.prefix.len()), (1, 1), "{small:#?}");
    assert_eq!(small, shrink(&big, fails), "shrinking is deterministic");
}

#[test]
fn shrinking_keeps_both_nodes_of_a_fault() {
    let spread = |graph: &GraphData| {
        let lists = graph.arena.ids().filter(|&id| graph.signature(id).is_list());
        lists.map(|id| graph.arena.operands(id).len()).filter(|&len| len > 2).count() > 1
    };
    let fails = |recipe: &Recipe| spread(&recipe.graph());
    let options = Options::new(Profile::Lattices);
    let big = (0..).map(|seed| Recipe::new(seed, options)).find(|r| fails(r) && r.len() > 20);
    let small = shrink(&big.expect("some lattice is large"), fails);
    assert!(fails(&small) && (1..=2).contains(&small.steps().count()), "{small:#?}");
}

#[test]
fn a_failing_property_names_its_seed_and_shrinks() {
    let outcome = catch_unwind(|| {
        check("no affine", Options::new(Profile::Medium), 50, |graph| {
            let affine = graph
                .arena
                .ids()
                .any(|id| matches!(graph.signature(id).callee, Callee::Op(Op::Affine { .. })));
            if affine { Err("found one".to_owned()) } else { Ok(()) }
        });
    });
    let message = panic_message(outcome.expect_err("many graphs fail").as_ref());
    assert!(message.contains("replay with AUTOBATCH_SEED="), "{message}");
    assert!(message.contains("to 2 decisions: found one") || message.contains("to 1 decisions"), "{message}");
}

#[test]
fn parameters_depend_on_their_seed() {
    let graph = Recipe::new(1, Options::new(Profile::Small)).graph();
    let numbers = parameters(&graph.module, 3);
    assert_eq!(numbers, parameters(&graph.module, 3));
    assert_ne!(numbers, parameters(&graph.module, 4));
    assert!(numbers.iter().flatten().all(|x| x.abs() < 0.5));
}
