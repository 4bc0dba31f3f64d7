//! Ranks measure together and load one checkpoint: each reads the results of all, and a fault of one is a fault of all.

use crate::model::{Model, Tree, bits, data, file, trainer};
use crate::shards::on_ranks;
use autobatch::distributed::{Group, Observed, Record, Threads};
use autobatch::ir::module::ParamKind;
use autobatch::prelude::*;
use autobatch::train::CheckpointError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls a function on each rank of a group, with a trainer, and returns the results by rank.
fn with_trainers<T: Send>(ranks: usize, work: impl Fn(usize, &Model, &mut Trainer) -> T + Sync) -> Vec<T> {
    on_ranks(ranks, |rank| {
        let (number, (model, trainer)) = (rank.rank(), trainer(1));
        work(number, &model, &mut trainer.shards(4).group(rank).unwrap())
    })
}

/// The number of an item, and the bits of its values.
type Results = (usize, Vec<Vec<u32>>);

/// The items that a rank read with their results, and what it emitted.
fn measured(
    model: &Model,
    trainer: &mut Trainer,
    items: &[(Tree, u32)],
    part: usize,
) -> (Vec<Results>, usize) {
    let emitted = AtomicUsize::new(0);
    let mut read = Vec::new();
    trainer
        .run_in_parts(
            0..items.len(),
            part,
            |g, number: usize, values| {
                emitted.fetch_add(1, Ordering::Relaxed);
                let (tree, class) = &items[number];
                values.push(model.logits(g, tree));
                if !number.is_multiple_of(3) {
                    values.push(model.logits(g, tree).cross_entropy(*class));
                }
            },
            |number, rows| {
                read.push((
                    number,
                    rows.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect(),
                ));
            },
        )
        .unwrap();
    (read, emitted.into_inner())
}

#[test]
fn every_rank_reads_the_results_of_all_items_and_executes_its_share() {
    let items = data(3, 101);
    let (model, mut alone) = trainer(1);
    let (expected, _) = measured(&model, &mut alone, &items, 8);
    assert_eq!(expected.len(), items.len());
    for ranks in 1..=4 {
        for part in [1, 8, 1000] {
            let found = with_trainers(ranks, |_, model, trainer| measured(model, trainer, &items, part));
            let emitted: usize = found.iter().map(|(_, emitted)| emitted).sum();
            assert_eq!(emitted, items.len(), "{ranks} ranks divide the items");
            assert!(found.iter().all(|(read, _)| *read == expected), "{ranks} ranks, parts of {part}");
        }
    }
}

#[test]
fn an_evaluation_is_the_same_on_all_ranks() {
    let items = data(3, 50);
    let evaluate = |model: &Model, trainer: &mut Trainer| {
        let mut order = Vec::new();
        let numbers = 0..items.len();
        let evaluation = trainer.evaluate(
            numbers,
            |g, number| model.loss(g, &items[number]),
            |number, row| {
                order.push(number);
                row[0]
            },
        );
        (evaluation.unwrap(), order)
    };
    let (model, mut alone) = trainer(1);
    let expected = evaluate(&model, &mut alone);
    for found in with_trainers(3, |_, model, trainer| evaluate(model, trainer)) {
        assert_eq!(found, expected);
    }
}

#[test]
fn a_fault_of_one_rank_is_one_of_all() {
    let items = data(3, 40);
    let errors = with_trainers(3, |rank, model, trainer| {
        let failed = trainer.run_in_parts(
            0..items.len(),
            4,
            |g, number: usize, values| {
                let (tree, class) = &items[number];
                values.push(model.logits(g, tree).cross_entropy(if number == 20 { 9 } else { *class }));
            },
            |_, _| {},
        );
        // The group goes on.
        let after =
            trainer.evaluate(0..items.len(), |g, number| model.loss(g, &items[number]), |_, row| row[0]);
        assert_eq!(after.unwrap().count(), items.len(), "rank {rank}");
        failed.unwrap_err().to_string()
    });
    assert!(errors[1].starts_with("item 20: index 9"), "{}", errors[1]);
    assert!(
        [0, 2].iter().all(|&rank| errors[rank].contains("rank 1") && errors[rank].contains("item 20")),
        "{errors:?}"
    );
}

#[test]
fn ranks_that_read_other_checkpoints_refuse_them_and_stay_as_they_were() {
    let items = data(1, 16);
    let paths = ["ranks-0.safetensors", "ranks-1.safetensors"].map(file);
    for (steps, path) in [1, 2].into_iter().zip(&paths) {
        let (model, mut trainer) = trainer(1);
        for _ in 0..steps {
            trainer.step(&items, |g, item| model.loss(g, item)).unwrap();
        }
        trainer.save(path).unwrap();
    }
    let missing = file("ranks-missing.safetensors");
    for (of_rank_1, words) in [(&paths[1], "a checkpoint of step 2"), (&missing, "none: ")] {
        let errors = with_trainers(3, |rank, _, trainer| {
            let before = trainer.weights().clone();
            let failed = trainer.load(if rank == 1 { of_rank_1 } else { &paths[0] }).unwrap_err();
            assert_eq!((trainer.weights(), trainer.steps()), (&before, 0));
            trainer.load(&paths[0]).unwrap();
            assert_eq!(trainer.steps(), 1);
            failed
        });
        for rank in [0, 2] {
            let CheckpointError::OtherRank { rank: other, found, own } = &errors[rank] else {
                panic!("{}", errors[rank])
            };
            assert!(
                *other == 1 && found.starts_with(words) && own.starts_with("a checkpoint of step 1"),
                "{found}"
            );
        }
    }
}

#[test]
fn divided_updates_of_sparse_rows_send_those_rows() {
    // The elements of a rank take two messages.
    const ROWS: usize = 300_000;
    let mut m = ModuleBuilder::new("words");
    let words = m.table("words", [ROWS, 8], Init::Uniform(0.5));
    let module = m.build().unwrap();
    let train = |optimizer: Optimizer, rank: Option<Threads>| {
        let weights = Arc::new(Weights::init(&module, 3));
        let options = SessionOptions { threads: 1, ..SessionOptions::default() };
        let trainer = Trainer::with_options(&module, optimizer, weights, options).unwrap().shards(4);
        let (mut trainer, record) = match rank {
            Some(rank) => {
                let (group, record) = Observed::new(rank);
                (trainer.group(group).unwrap().divide_states().unwrap(), record)
            }
            None => (trainer, Record::default()),
        };
        for step in 0..5_u32 {
            let items: Vec<u32> = (0..16).map(|item| (step * 977 + item * 31) % ROWS as u32).collect();
            trainer.step(&items, |g, &word| words.lookup(g, word).square().sum()).unwrap();
        }
        (bits(&trainer), record.take().iter().map(|operation| operation.sent).sum::<usize>())
    };
    for (optimizer, is_sparse) in [(Adam::new(0.1).sparse_rows(), true), (Adam::new(0.1).into(), false)] {
        let (expected, _) = train(optimizer.clone(), None);
        let found = on_ranks(2, |rank| train(optimizer.clone(), Some(rank)));
        assert!(found.iter().all(|(bits, _)| *bits == expected));
        // Each rank has the rows of a half of the table.
        let most = found.iter().map(|(_, bytes)| *bytes).max().unwrap();
        assert_eq!(most < 40_000, is_sparse, "{most} bytes; the table has {}", ROWS * 32);
    }
}

#[test]
fn a_step_is_one_report_one_exchange_and_one_message_of_tables() {
    let counts = on_ranks(2, |rank| {
        let (group, record) = Observed::new(rank);
        let (model, trainer) = trainer(1);
        let mut trainer = trainer.shards(4).group(group).unwrap();
        drop(record.take());
        trainer.step(&data(5, 8), |g, item| model.loss(g, item)).unwrap();
        record.take().iter().map(|operation| operation.buckets.len()).collect::<Vec<_>>()
    });
    assert_eq!(counts, [[0, 1, 0], [0, 1, 0]]);
}

#[test]
fn ranks_keep_equal_shares_of_the_states_and_save_them_one_by_one() {
    let mut m = ModuleBuilder::new("shares");
    let words = m.table("words", [1000, 8], Init::Uniform(0.5));
    let half = m.param_stored_as("half", ParamKind::Param, DType::BF16, [8, 9], Init::Uniform(0.5));
    let scale = m.param("scale", [], Init::Constant(1.0));
    let module = m.build().unwrap();
    let make = || {
        let optimizer = AdamW::new(0.1).clip_norm(0.5).average(0.9);
        let weights = Arc::new(Weights::init(&module, 3));
        let options = SessionOptions { threads: 1, ..SessionOptions::default() };
        Trainer::with_options(&module, optimizer, weights, options).unwrap().shards(4)
    };
    let train = |trainer: &mut Trainer| {
        for step in 0..4_u32 {
            let items: Vec<u32> = (0..8).map(|item| (step * 97 + item * 31) % 1000).collect();
            let step = trainer.step(&items, |g, &word| {
                (words.lookup(g, word).matmul(g.param(half)).tanh() * g.param(scale)).square().sum()
            });
            step.unwrap();
        }
    };
    let elements =
        |states: &autobatch::ir::States| states.iter().map(|state| state.values().len()).sum::<usize>();
    let mut alone = make();
    train(&mut alone);
    let path = file("shares-alone.safetensors");
    alone.save(&path).unwrap();
    let (expected, saved) = (bits(&alone), std::fs::read(&path).unwrap());
    let (averages, all) = (alone.averages().unwrap(), elements(alone.states()));
    let (shared, nowhere) = (file("shares-3.safetensors"), file("no-folder/shares.safetensors"));
    let received = on_ranks(3, |rank| {
        let (group, record) = Observed::new(rank);
        let mut trainer = make().group(group).unwrap().divide_states().unwrap();
        train(&mut trainer);
        assert_eq!(bits(&trainer), expected);
        assert_eq!(trainer.averages().unwrap(), averages);
        let share = elements(trainer.states());
        assert!(share.abs_diff(all / 3) <= 3 * 8 * 3, "{share} of {all} elements");
        trainer.save(&nowhere).unwrap_err();
        drop(record.take());
        trainer.save(&shared).unwrap();
        record.take().iter().map(|operation| operation.received).max().unwrap()
    });
    assert!(std::fs::read(&shared).unwrap() == saved, "the checkpoint of three ranks");
    assert_eq!(
        received[0],
        4 * 337 * 8,
        "the largest message has the part of one rank: 337 rows of the table"
    );
}
