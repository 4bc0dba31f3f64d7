//! What does not fit is refused, and nothing is changed.

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
fn what_does_not_fit_the_plan_changes_nothing() {
    let mut lab = Lab::new(&module(), Adam::new(0.1).sparse_rows());
    let given = lab.gradients(&mut Random(1));
    let floats = lab.next_floats(1.0);
    let before = (lab.weights.clone(), lab.states.clone());
    let mut refused = |given: &Given, states: Option<States>, floats: &[f32]| {
        let mut states = states.unwrap_or_else(|| lab.states.clone());
        let result = executor().update_with(&lab.plan, given, &mut lab.weights, &mut states, floats);
        result.unwrap_err().to_string()
    };
    let found = refused(&given, None, &floats[1..]);
    assert!(found.starts_with("the plan reads 3 bound floats, found 2"), "{found}");
    let found = refused(&given, Some(States::default()), &floats);
    assert!(found.starts_with("the plan updates 9 parameters and states, found 3"), "{found}");
    let mut short = given.clone();
    short.gradients[1].pop();
    assert_eq!(
        refused(&short, None, &floats),
        "store @b.grad must hold 5 elements, found 4; give the arrays of the plan's module"
    );
    let mut beyond = given.clone();
    beyond.touched = vec![None, None, Some(vec![3, 11])];
    let found = refused(&beyond, None, &floats);
    assert_eq!(found, "store @t.grad has 11 rows, row 11 was touched; list rows that exist");
    // An executor that executed nothing has no gradients.
    let mut states = lab.states.clone();
    let missing = executor().update(&lab.plan, &mut lab.weights, &mut states, &floats).unwrap_err();
    assert!(
        matches!(missing, RunError::Bound(BindError::Store { expected: 1073, found: 0, .. })),
        "{missing}"
    );
    assert_eq!((lab.weights, lab.states), before);
}

#[test]
fn the_naive_executor_refuses_the_same() {
    let lab = Lab::new(&module(), Sgd::new(0.1));
    let given = lab.gradients(&mut Random(1));
    let floats = lab.next_floats(1.0);
    let (mut stores, _) = lab.stores(&given);
    let refuse = |stores: &mut [Vec<f32>], floats: &[f32], touched: &[Option<Vec<u32>>]| {
        naive::update(&lab.plan, stores, floats, touched).unwrap_err().to_string()
    };
    let count = stores.len();
    assert!(refuse(&mut stores[1..], &floats, &[]).starts_with(&format!("the plan requires {count} stores")));
    assert!(refuse(&mut stores, &[], &[]).starts_with("the plan requires 2 bound floats, found 0"));
    let mut touched = vec![None; count];
    touched[count - 1] = Some(vec![11]);
    assert!(
        refuse(&mut stores, &floats, &touched).starts_with("store @t.grad has 11 rows, row 11 was touched")
    );
}

#[test]
fn a_recipe_names_parameters_of_its_module() {
    let module = module();
    let wrong = Sgd::new(0.1).clip_norm(1.0).recipe(&module, &[ParamId::new(3)]).unwrap_err().to_string();
    assert!(wrong.contains("the module lab has no parameter") && wrong.contains("refusals.rs"), "{wrong}");
    let nothing = Sgd::new(0.1).clip_norm(1.0).recipe(&module, &[]).expect("an empty recipe is one");
    assert_eq!(update_plan(&module, &nothing), Err(PlanError::NothingWanted));
}
