//! Execution in parts: the session emits the next part while it executes one, with unchanged results.

use crate::model::{Model, Tree, bits, data, trainer};
use autobatch::prelude::*;
use autobatch_tests::work_of_an_item;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Takes as long as an item of a real model, so that emitting the next part on another thread is worthwhile.
fn slowly<T>(value: T) -> T {
    work_of_an_item();
    value
}

#[test]
fn items_in_parts_have_the_bits_and_the_order_of_items_in_one_graph() {
    let items = data(1, 100);
    for (threads, part) in [(1, 16), (2, 16), (2, 100), (2, 1), (1, 0), (2, usize::MAX)] {
        let (model, mut trainer) = trainer(threads);
        let together = trainer
            .session()
            .predict(&items, |g, (tree, _)| model.logits(g, tree))
            .expect("the step is valid");
        let (emitting, mut found) = (Mutex::new(HashSet::new()), Vec::new());
        let executed = trainer.session().run_in_parts(
            items.iter().enumerate(),
            part,
            |g, (number, (tree, class)), values| {
                emitting.lock().unwrap().insert(std::thread::current().id());
                // Some items request no value, others several.
                let logits = slowly(model.logits(g, tree));
                match number % 5 {
                    0 => {}
                    1 => values.extend([logits, logits.cross_entropy(*class), logits]),
                    _ => values.push(logits),
                }
            },
            |(number, _), rows| {
                assert_eq!(rows.len(), [0, 3, 1, 1, 1][number % 5], "{number}");
                assert!(rows.iter().step_by(2).all(|row| row[..] == together[number][..]), "{number}");
                found.push(number);
            },
        );
        executed.expect("the step is valid");
        assert!(found.into_iter().eq(0..100), "{threads} threads, parts of {part}");
        let own = std::thread::current().id();
        let others = emitting.into_inner().unwrap().into_iter().filter(|&id| id != own).count();
        assert!(threads > 1 || others == 0, "{others} additional threads emitted");
        assert!((threads, part) != (2, 16) || others > 0, "no other thread emitted");
    }
    let (_, mut trainer) = trainer(2);
    let none = std::iter::empty::<u32>();
    trainer
        .session()
        .run_in_parts(none, 8, |_, _, _| {}, |_, _| unreachable!())
        .expect("an empty list is valid");
}

/// Returns the rows of 100 items, 10 per part, where `bad` emits item 57, and the message.
fn read_before(
    threads: usize,
    bad: impl for<'g> Fn(&'g Graph, &Model) -> Value<'g> + Sync,
) -> (usize, Option<String>) {
    let items = data(1, 100);
    let (model, mut trainer) = trainer(threads);
    let mut read = 0;
    let found = catch_unwind(AssertUnwindSafe(|| {
        trainer.session().run_in_parts(
            items.iter().enumerate(),
            10,
            |g, (number, (tree, _)), values| {
                values.push(if number == 57 { bad(g, &model) } else { slowly(model.logits(g, tree)) });
            },
            |_, _| read += 1,
        )
    }));
    let found = found.map(|result| result.expect_err("item 57 is bad").to_string()).ok();
    // The session remains usable.
    let again = trainer.session().predict(&items[..3], |g, (tree, _)| model.logits(g, tree));
    assert_eq!(again.expect("the step is valid").len(), 3);
    (read, found)
}

#[test]
fn an_item_error_is_reported_after_all_earlier_parts() {
    for threads in [1, 2] {
        let (read, message) = read_before(threads, |g, _| g.input(&[1.0; 3]) + g.input(&[1.0; 2]));
        assert!(message.as_deref().is_some_and(|message| message.contains("parts.rs")), "{message:?}");
        assert_eq!(read, 50);
        let (read, message) = read_before(threads, |g, model| model.logits(g, &Tree::Leaf(999)));
        assert!(
            message.as_deref().is_some_and(|message| message.starts_with("item 57: index 999")),
            "{message:?}"
        );
        assert_eq!(read, 50);
        let (read, message) = read_before(threads, |_, _| panic!("the user's own"));
        assert_eq!((read, message), (50, None));
    }
}

#[test]
fn an_evaluation_measures_all_parts_before_the_failing_one() {
    let items = data(1, 600);
    for threads in [1, 2] {
        let (model, mut trainer) = trainer(threads);
        let mut measured = 0;
        let found = catch_unwind(AssertUnwindSafe(|| {
            drop(trainer.evaluate(
                items.iter().enumerate(),
                |g, (number, (tree, _))| {
                    assert!(number != 512, "the user's own");
                    slowly(model.logits(g, tree))
                },
                |_, row| {
                    measured += 1;
                    row[0]
                },
            ));
        }));
        assert!(found.is_err());
        assert_eq!(measured, 512, "{threads} threads");
    }
}

#[test]
fn a_panic_in_the_next_minibatch_keeps_the_previous_step_of_a_pass() {
    let items = data(1, 60);
    let (model, mut stepwise) = trainer(1);
    for batch in items[..40].chunks(20) {
        stepwise.step(batch, |g, item| model.loss(g, item)).expect("the step is valid");
    }
    for threads in [1, 2] {
        let (model, mut trainer) = trainer(threads);
        let numbered: Vec<(usize, &(Tree, u32))> = items.iter().enumerate().collect();
        let mut steps = 0;
        let found = catch_unwind(AssertUnwindSafe(|| {
            let batches = numbered.chunks(20).map(|batch| batch.iter().copied());
            let pass = trainer.pass(batches, |g, (number, item)| {
                assert!(number != 45, "the user's own");
                slowly(model.loss(g, item))
            });
            pass.for_each(|step| steps += u64::from(step.is_ok()));
        }));
        assert!(found.is_err());
        assert_eq!((steps, trainer.steps()), (2, 2), "{threads} threads");
        assert_eq!(bits(&trainer), bits(&stepwise), "{threads} threads");
    }
}

#[test]
fn a_step_in_parts_prepares_the_next_part_early_with_equal_bits() {
    let items = data(1, 100);
    let step = |threads| {
        let (model, trainer) = trainer(threads);
        let (mut trainer, emitting) = (trainer.emit_threads(1), Mutex::new(HashSet::new()));
        for part in [30, 100] {
            let step = trainer.step(Minibatch::new(&items).in_parts(part), |g, item| {
                emitting.lock().unwrap().insert(std::thread::current().id());
                slowly(model.loss(g, item))
            });
            step.expect("the step is valid");
        }
        (bits(&trainer), emitting.into_inner().unwrap().len())
    };
    let ((one, alone), (two, beside)) = (step(1), step(2));
    assert_eq!(one, two);
    assert!(alone == 1 && beside > 1, "{alone} and {beside} threads emitted");
}
