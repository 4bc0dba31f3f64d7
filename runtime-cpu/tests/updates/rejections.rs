//! Mismatched arguments are rejected, and nothing changes.

use crate::lab::{Given, Lab, Random, module};
use autobatch_ir::{ParamId, States};
use autobatch_nn::optim::{Adam, Optimize, Sgd};
use autobatch_oracle::naive;
use autobatch_planner::{PlanError, update_plan};
use autobatch_runtime_cpu::{BindError, Executor, RunError};

fn executor() -> Executor {
    Executor::new(1).expect("the machine has an instruction set")
}

#[test]
fn mismatched_arguments_change_nothing() {
    let mut lab = Lab::new(&module(), Adam::new(0.1).sparse_rows());
    let given = lab.gradients(&mut Random(1));
    let floats = lab.next_floats(1.0);
    let before = (lab.weights.clone(), lab.states.clone());
    let mut rejected = |given: &Given, states: Option<States>, floats: &[f32]| {
        let mut states = states.unwrap_or_else(|| lab.states.clone());
        let result = executor().update_with(&lab.plan, given, &mut lab.weights, &mut states, floats);
        result.unwrap_err().to_string()
    };
    let found = rejected(&given, None, &floats[1..]);
    assert!(found.starts_with("the plan reads 3 bound floats, found 2"), "{found}");
    let found = rejected(&given, Some(States::default()), &floats);
    assert!(found.starts_with("the plan updates 9 parameters and states, found 3"), "{found}");
    let mut short = given.clone();
    short.gradients[1].pop();
    assert_eq!(
        rejected(&short, None, &floats),
        "store @b.grad must hold 5 elements, found 4; give the arrays of the plan's module"
    );
    let mut beyond = given.clone();
    beyond.sparse_rows = vec![None, None, Some(vec![3, 11])];
    let found = rejected(&beyond, None, &floats);
    assert_eq!(found, "store @t.grad has 11 rows, but sparse row 11 is listed; list rows that exist");
    // An executor has no gradients before its first run.
    let mut states = lab.states.clone();
    let missing = executor().update(&lab.plan, &mut lab.weights, &mut states, &floats).unwrap_err();
    assert!(
        matches!(missing, RunError::Input(BindError::Store { expected: 1073, found: 0, .. })),
        "{missing}"
    );
    assert_eq!((lab.weights, lab.states), before);
}

#[test]
fn the_naive_executor_rejects_the_same_arguments() {
    let lab = Lab::new(&module(), Sgd::new(0.1));
    let given = lab.gradients(&mut Random(1));
    let floats = lab.next_floats(1.0);
    let (mut stores, _) = lab.stores(&given);
    let reject = |stores: &mut [Vec<f32>], floats: &[f32], sparse_rows: &[Option<Vec<u32>>]| {
        naive::update(&lab.plan, stores, floats, sparse_rows).unwrap_err().to_string()
    };
    let count = stores.len();
    assert!(reject(&mut stores[1..], &floats, &[]).starts_with(&format!("the plan requires {count} stores")));
    assert!(reject(&mut stores, &[], &[]).starts_with("the plan reads 2 bound floats, found 0"));
    let mut sparse_rows = vec![None; count];
    sparse_rows[count - 1] = Some(vec![11]);
    assert!(reject(&mut stores, &floats, &sparse_rows).starts_with("store @t.grad has 11 rows, "));
}

#[test]
fn a_recipe_accepts_only_parameters_of_its_module() {
    let module = module();
    let wrong = Sgd::new(0.1).clip_norm(1.0).recipe(&module, &[ParamId::new(3)]).unwrap_err().to_string();
    assert!(wrong.contains("the module lab has no parameter") && wrong.contains("rejections.rs"), "{wrong}");
    let nothing = Sgd::new(0.1).clip_norm(1.0).recipe(&module, &[]).expect("an empty recipe is one");
    assert_eq!(update_plan(&module, &nothing), Err(PlanError::NothingWanted));
}
