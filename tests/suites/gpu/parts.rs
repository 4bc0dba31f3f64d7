//! Items in parts on a GPU, which prepares the next part while it executes one.

use crate::common::executor;
use autobatch::ir::plan::Footprint;
use autobatch::prelude::*;
use autobatch_runtime_wgpu::{GpuError, Options};
use autobatch_tests::work_of_an_item;
use std::sync::Arc;
use std::thread;

/// Rows of the table.
const WORDS: u32 = 9;

#[derive(Clone, Copy)]
struct Model {
    words: Table,
    cell: Cell<2, 1>,
}

impl Model {
    fn new() -> (Self, Arc<Module>) {
        let mut m = ModuleBuilder::new("sums");
        let words = m.table("words", [WORDS as usize, 8], Init::Uniform(0.5));
        let w = m.param("w", [8, 8], Init::Glorot(1.0));
        let cell = m.cell("cell", [f32([8]); 2], |g, [x, h]| [(g.affine([x], w, None) + h).tanh()]);
        (Self { words, cell }, m.build().expect("sound"))
    }

    /// A chain whose length grows with the number of the item. Item 999 looks up a word that the table lacks.
    fn emit<'g>(&self, g: &'g Graph, number: u32) -> Value<'g> {
        work_of_an_item();
        (0..1 + number / 8).fold(g.zeros([8]), |h, at| {
            let word = if number == 999 { WORDS } else { (number + at) % WORDS };
            let [h] = g.call(self.cell, [self.words.lookup(g, word), h]);
            h
        })
    }
}

fn session(module: &Arc<Module>, memory: Option<u64>) -> Session {
    let weights = Arc::new(Weights::init(module, 5));
    let device = "gpu".parse().expect("a device");
    let options = SessionOptions {
        device,
        limits: Limits { memory, work: None },
        threads: 1,
        ..SessionOptions::default()
    };
    Session::with_options(module, weights, options).expect("opens")
}

/// The bits of items in parts until the first error, and the error.
fn in_parts(
    session: &mut Session,
    model: &Model,
    items: impl IntoIterator<Item = u32>,
    part: usize,
) -> (Vec<Vec<u32>>, Option<autobatch::Error>) {
    let mut found = Vec::new();
    let executed = session.run_in_parts(
        items,
        part,
        |g, number, values| values.push(model.emit(g, number)),
        |_, rows| found.push(rows[0].iter().map(|x| x.to_bits()).collect()),
    );
    (found, executed.err())
}

fn together(session: &mut Session, model: &Model, items: std::ops::Range<u32>) -> Vec<Vec<u32>> {
    let rows = session.predict(items, |g, number| model.emit(g, number)).expect("executes");
    rows.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn parts_have_the_bits_of_one_batch_in_sessions_with_threads() {
    if executor(Options::default()).is_none() {
        return;
    }
    let (model, module) = Model::new();
    let expected = together(&mut session(&module, None), &model, 0..60);
    let check = |part: usize| {
        let mut session = session(&module, None);
        for _ in 0..2 {
            let (found, error) = in_parts(&mut session, &model, 0..60, part);
            assert!(error.is_none() && found == expected, "parts of {part}: {error:?}");
        }
    };
    // Sessions end at different times, each while another one executes.
    thread::scope(|scope| {
        for part in [7, 20, 60] {
            let check = &check;
            scope.spawn(move || check(part));
        }
    });
}

#[test]
fn an_error_of_a_part_follows_the_results_of_earlier_parts() {
    if executor(Options::default()).is_none() {
        return;
    }
    let (model, module) = Model::new();
    let mut open = session(&module, None);
    let expected = together(&mut open, &model, 0..40);
    // Item 45 belongs to the sixth part.
    let items = (0..60).map(|number| if number == 45 { 999 } else { number });
    let (found, error) = in_parts(&mut open, &model, items, 8);
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(found == expected && said.starts_with("item 45: index 9"), "{} items, {said}", found.len());

    // Chains become longer, so each part needs more rows than the one before.
    together(&mut open, &model, 32..40);
    let limit = Footprint::of(open.last_plan().expect("it was executed")).memory() - 1;
    let mut limited = session(&module, Some(limit));
    let (found, error) = in_parts(&mut limited, &model, 0..60, 8);
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains(&format!("the memory limit is {limit}; plan a smaller minibatch")), "{said}");
    assert_eq!(found, expected[..32]);
    let (found, error) = in_parts(&mut limited, &model, 0..40, 2);
    assert!(error.is_none() && found == expected, "{error:?}");
}

#[test]
fn a_device_loss_between_parts_is_reported_once() {
    if executor(Options::default()).is_none() {
        return;
    }
    let (model, module) = Model::new();
    let mut open = session(&module, None);
    let expected = together(&mut open, &model, 0..40);
    let gpu = open.gpu().expect("it executed").clone();
    let mut found: Vec<u32> = Vec::new();
    let executed = open.run_in_parts(
        0..40,
        8,
        |g, number, values| values.push(model.emit(g, number)),
        |number, _| {
            found.push(number);
            if number == 15 {
                gpu.destroy();
            }
        },
    );
    let error = executed.expect_err("the device is gone");
    assert!(matches!(error, autobatch::Error::Gpu(GpuError::Lost { .. })), "{error}");
    assert!(found.iter().copied().eq(0..16), "{found:?}");
    let (found, error) = in_parts(&mut open, &model, 0..40, 8);
    assert!(error.is_none() && found == expected, "{error:?}");
}
