//! Values of another graph, another module or an earlier state are errors that name the value.

use autobatch::nn::Linear;
use autobatch::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn line(name: &str) -> (Arc<Module>, Linear) {
    let mut m = ModuleBuilder::new("line");
    let line = Linear::new(&mut m, name, 2, 1);
    (m.build().expect("the model is well typed"), line)
}

fn session() -> Session {
    Session::new(line("out").0, Device::Cpu).expect("the CPU device always exists")
}

/// Makes a value of a leaked graph, so that lifetimes permit its use. Its number is as high as any in the tests.
fn foreign(module: &Arc<Module>) -> Value<'static> {
    let other: &'static Graph = Box::leak(Box::new(Graph::new(module)));
    other.constant(5.0)
}

const FOREIGN_LINE: u32 = line!() - 3;

#[test]
fn the_error_for_a_foreign_value_names_both_graphs_and_its_line() {
    let (module, _) = line("out");
    let (mut session, mut trainer) = (session(), Trainer::new(&module, Sgd::new(0.1)).unwrap());
    // These graphs have a value with the number and type of the foreign one.
    let own = |g: &Graph| _ = g.constant(1.0);
    let strange = |g: &Graph| {
        own(g);
        foreign(&module)
    };
    let g = session.graph();
    own(&g);
    let refused = [
        session.run(&g, [foreign(&module)]).err(),
        session.growing(&g).run([foreign(&module)]).err(),
        session.predict([()], |g, ()| strange(g)).err(),
        session.run_in_parts([()], 1, |g, (), values| values.push(strange(g)), |(), _| {}).err(),
        trainer.step([()], |g, ()| strange(g)).err(),
        trainer.step(Minibatch::new([(), ()]).in_parts(1), |g, ()| strange(g)).err(),
        trainer.step_tasks([()], async |g, ()| Ok(strange(g))).err(),
        trainer.evaluate([()], |g, ()| strange(g), |(), row| row[0]).err(),
    ];
    for (place, error) in refused.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("call {place} accepts the foreign value"));
        assert!(matches!(error, Error::OtherGraph { value, graph, .. } if value != graph), "{error}");
        let told = error.to_string();
        assert!(told.contains(&format!("foreign.rs:{FOREIGN_LINE}:")), "{told}");
        assert!(told.contains("belongs to graph"), "{told}");
    }
    assert_eq!(trainer.steps(), 0);
}

#[test]
fn an_error_in_a_foreign_graph_is_reported_first() {
    let mut session = session();
    let (g, other) = (session.graph(), session.graph());
    let faulty = other.input(&[]);
    let error = session.run(&g, [faulty]).unwrap_err().to_string();
    assert!(error.contains("extents start at 1"), "{error}");
}

#[test]
fn a_session_rejects_graphs_over_other_parameters_and_executes_graphs_over_equal_ones() {
    let mut session = session();
    let (same, out) = line("out");
    let same = Graph::new(&same);
    let y = out.on(same.input(&[1.0, 2.0]));
    let own = session.value(y).unwrap();
    assert_eq!(session.eager(&same).unwrap().value(y).unwrap().to_vec(), own);

    // The shapes alone match.
    let (other, out) = line("in");
    let other = Graph::new(&other);
    let y = out.on(other.input(&[1.0, 2.0]));
    let refused =
        [session.value(y).err(), session.growing(&other).value(y).err(), session.eager(&other).err()];
    for error in refused {
        let error = error.expect("the parameters differ").to_string();
        assert!(
            error.contains("their parameters differ: @in.w: f32[2,1] there, @out.w: f32[2,1] here"),
            "{error}"
        );
    }
}

#[test]
fn keys_and_results_are_invalid_after_their_graph_is_cleared() {
    let mut session = session();
    let mut g = session.graph();
    let x = g.input(&[1.0]);
    let key = x.key().unwrap();
    let run = session.run(&g, [x]).unwrap();
    g.clear();
    let y = g.input(&[7.0]);
    assert_eq!(y.id(), Some(key.id()), "both have the same number");
    assert!(g.value(key).is_none() && run.get(y).is_none());
    assert_eq!(run.by_key(key).map(|row| row.to_vec()), Some(vec![1.0]));
}

#[test]
fn the_error_for_reading_a_value_that_was_not_run_names_the_value_or_the_graphs() {
    let mut session = session();
    let (g, other) = (session.graph(), session.graph());
    let (x, y, z) = (g.input(&[1.0]), g.input(&[2.0]), other.input(&[3.0]));
    let run = session.run(&g, [x]).unwrap();
    let told = |value: Value<'_>| {
        let panic = catch_unwind(AssertUnwindSafe(|| run[value].len())).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    assert_eq!(told(y), "%1: f32[1] is not among the values of this run; ask for it too");
    let graphs =
        format!("%0: f32[1] belongs to graph {}, and this run executed graph {}", other.number(), g.number());
    assert_eq!(told(z), graphs);
}
