//! Training over shards: the weights depend on the number of shards, and not on the ranks that share them.

use crate::model::{Model, Tree, bits, data, file};
use autobatch::distributed::{Group, Threads};
use autobatch::prelude::*;
use autobatch::train::{Minibatch, Step, TrainError};
use std::path::Path;
use std::sync::Arc;

type Item = (Tree, u32);

fn optimizers() -> [(&'static str, Optimizer); 3] {
    [
        ("SGD", Sgd::new(0.1).into()),
        ("Adam", Adam::new(0.02).clip_norm(0.5)),
        ("AdamW", AdamW::new(0.02).clip_norm(0.5).average(0.9).sparse_rows()),
    ]
}

fn trainer(optimizer: &Optimizer) -> (Model, Trainer) {
    let (model, module) = Model::new();
    let options = SessionOptions { threads: 1, seed: 7, ..SessionOptions::default() };
    let weights = Arc::new(Weights::init(&module, 7));
    (model, Trainer::with_options(module, optimizer.clone(), weights, options).unwrap())
}

/// Trains one epoch in minibatches of 16 items, of which the last has 5. Returns the bits of the reports.
fn epoch(model: &Model, trainer: &mut Trainer, items: &[Item], epoch: u64) -> Vec<u32> {
    let mut reports = Vec::new();
    for step in trainer.pass(items.batches(16).shuffled(epoch), |g, item| model.loss(g, item)) {
        let step = step.unwrap();
        reports.extend(step.losses.iter().chain([&step.loss]).map(|x| x.to_bits()));
    }
    reports
}

/// A trainer over 8 shards alone.
fn sharded(optimizer: &Optimizer) -> (Model, Trainer) {
    let (model, trainer) = trainer(optimizer);
    (model, trainer.shards(8))
}

/// A trainer of one rank of a group.
fn joined(optimizer: &Optimizer, rank: Threads) -> (Model, Trainer) {
    let (model, trainer) = trainer(optimizer);
    (model, trainer.group(rank).unwrap())
}

/// Runs a function on each rank of a group and returns the results.
pub(crate) fn on_ranks<T: Send>(ranks: usize, work: impl Fn(Threads) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let spawned: Vec<_> =
            Threads::group(ranks).into_iter().map(|rank| scope.spawn(move || work(rank))).collect();
        spawned.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

#[test]
fn weights_have_equal_bits_on_every_number_of_ranks() {
    let items = data(3, 37);
    let epochs = if std::env::var_os("AUTOBATCH_TEST").is_some_and(|tier| tier == "long") { 17 } else { 2 };
    for (name, optimizer) in optimizers() {
        let (model, plain) = trainer(&optimizer);
        let mut plain = plain.shards(8);
        let reports: Vec<u32> =
            (0..epochs).flat_map(|number| epoch(&model, &mut plain, &items, number)).collect();
        let path = file(&format!("shards-{name}.safetensors"));
        plain.save(&path).unwrap();
        let (weights, saved) = (bits(&plain), std::fs::read(&path).unwrap());
        let averages = plain.averages().unwrap();
        for (ranks, divided) in
            [(1, false), (2, false), (3, false), (4, false), (9, false), (2, true), (3, true), (9, true)]
        {
            let path = file(&format!("shards-{name}-{ranks}-{divided}.safetensors"));
            let results = on_ranks(ranks, |rank| {
                let number = rank.rank();
                let (model, trainer) = trainer(&optimizer);
                let mut trainer = trainer.group(rank).unwrap();
                if divided {
                    trainer = trainer.divide_states().unwrap();
                }
                assert_eq!(trainer.rank(), number);
                let reports = (0..epochs).flat_map(|number| epoch(&model, &mut trainer, &items, number));
                let reports: Vec<u32> = reports.collect();
                trainer.save(&path).unwrap();
                assert_eq!(trainer.averages().unwrap(), averages, "{name}: {ranks} ranks, divided {divided}");
                (bits(&trainer), reports)
            });
            for (rank, (found, report)) in results.into_iter().enumerate() {
                assert!(found == weights, "{name}: weights of rank {rank} of {ranks}, divided {divided}");
                assert!(report == reports, "{name}: reports of rank {rank} of {ranks}, divided {divided}");
            }
            assert!(std::fs::read(&path).unwrap() == saved, "{name}: checkpoint of {ranks} ranks");
        }
        let (model, other) = trainer(&optimizer);
        let mut other = other.shards(5);
        (0..epochs).for_each(|number| drop(epoch(&model, &mut other, &items, number)));
        assert!(bits(&other) != weights, "{name}: another number of shards adds in another order");
    }
}

#[test]
fn shards_train_like_whole_minibatches() {
    let items = data(3, 37);
    for (name, optimizer) in optimizers() {
        let (model, mut whole) = trainer(&optimizer);
        let (other, sharded) = trainer(&optimizer);
        let mut sharded = sharded.shards(8);
        let (one, other) = (epoch(&model, &mut whole, &items, 0), epoch(&other, &mut sharded, &items, 0));
        assert_eq!(
            one[..16],
            other[..16],
            "{name}: the first losses do not depend on shards, noise included"
        );
        let pairs = whole.weights().iter().zip(sharded.weights().iter());
        let distance = pairs
            .flat_map(|(a, b)| a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()))
            .fold(0.0, f32::max);
        assert!(distance < 1e-4, "{name}: {distance}");
    }
}

#[test]
fn a_run_on_four_ranks_resumes_on_two_and_alone() {
    let items = data(3, 37);
    let (_, optimizer) = optimizers()[2].clone();
    let (model, whole) = trainer(&optimizer);
    let mut whole = whole.shards(8);
    (0..4).for_each(|number| drop(epoch(&model, &mut whole, &items, number)));
    let train = |(model, mut trainer): (Model, Trainer), path: &Path, resume: bool| -> Vec<u32> {
        if resume {
            trainer.load(path).unwrap();
        }
        let first = trainer.progress().epoch;
        (first..first + 2).for_each(|number| drop(epoch(&model, &mut trainer, &items, number)));
        trainer.set_progress(Progress { epoch: first + 2, batches: 0 });
        trainer.save(path).unwrap();
        bits(&trainer)
    };
    for (ranks, divided) in [(2, false), (2, true), (1, true)] {
        let path = file(&format!("resumed-{ranks}-{divided}.safetensors"));
        let prepare = |rank: Threads, divided: bool| {
            let (model, trainer) = joined(&optimizer, rank);
            (model, if divided { trainer.divide_states().unwrap() } else { trainer })
        };
        on_ranks(4, |rank| train(prepare(rank, true), &path, false));
        let ended = on_ranks(ranks, |rank| train(prepare(rank, divided), &path, true));
        assert!(ended.iter().all(|ended| *ended == bits(&whole)), "{ranks} ranks, divided {divided}");
    }
}

#[test]
fn weighted_steps_and_steps_in_parts_work_in_shards() {
    let items = data(5, 21);
    let (_, optimizer) = optimizers()[1].clone();
    let work = |(model, mut trainer): (Model, Trainer)| {
        let weighted = trainer
            .step(Minibatch::new(&items).weighted(|_| 2.0), |g, item| model.loss(g, item) * 2.0)
            .unwrap();
        assert_eq!((weighted.weight, weighted.instances()), (42.0, 21));
        let parts = trainer.step(Minibatch::new(&items).in_parts(2), |g, item| model.loss(g, item)).unwrap();
        assert_eq!(parts.losses.len(), 21);
        (bits(&trainer), weighted.loss.to_bits(), parts.loss.to_bits())
    };
    let alone = work(sharded(&optimizer));
    for ranks in [2, 3] {
        let all = on_ranks(ranks, |rank| work(joined(&optimizer, rank)));
        assert!(all.iter().all(|one| *one == alone), "{ranks} ranks");
    }
    let (model, mut whole) = trainer(&optimizer);
    let step =
        whole.step(Minibatch::new(&items).weighted(|_| 2.0), |g, item| model.loss(g, item) * 2.0).unwrap();
    assert_eq!(step.loss.to_bits(), alone.1);
}

#[test]
fn a_failure_on_one_rank_fails_the_step_on_all_ranks_and_changes_nothing() {
    let mut items = data(5, 16);
    items[13].0 = Tree::Leaf(999);
    let (_, optimizer) = optimizers()[1].clone();
    let results = on_ranks(3, |rank| {
        let (model, trainer) = trainer(&optimizer);
        let mut trainer = trainer.group(rank).unwrap();
        let before = bits(&trainer);
        let error = trainer.step(&items, |g, item| model.loss(g, item)).unwrap_err().to_string();
        assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
        trainer.step(&items[..8], |g, item| model.loss(g, item)).unwrap();
        error
    });
    assert!(results[2].starts_with("item 13 of the minibatch: index 999"), "{}", results[2]);
    for other in &results[..2] {
        assert_eq!(*other, format!("rank 2: {}", results[2]));
    }
}

#[test]
fn ranks_with_other_programs_are_refused() {
    let (_, optimizer) = optimizers()[0].clone();
    let seeds = on_ranks(3, |rank| {
        let (_, module) = Model::new();
        let seed = if rank.rank() == 1 { 8 } else { 7 };
        let options = SessionOptions { threads: 1, seed, ..SessionOptions::default() };
        let weights = Arc::new(Weights::init(&module, 7));
        let trainer = Trainer::with_options(module, optimizer.clone(), weights, options).unwrap();
        trainer.group(rank).unwrap_err().to_string()
    });
    for error in seeds {
        assert!(
            error.starts_with("rank 1 disagrees with rank 0 on the seed: rank 0 has 7, rank 1 has 8"),
            "{error}"
        );
    }
    let corpora = on_ranks(2, |rank| {
        let corpus = format!("the hash {}", rank.rank());
        let mut trainer = trainer(&optimizer).1.group(rank).unwrap();
        trainer.agree("the corpus", corpus).unwrap_err().to_string()
    });
    assert!(
        corpora.iter().all(|error| error.contains("on the corpus: rank 0 has the hash 0")),
        "{corpora:?}"
    );
}

#[test]
fn frozen_parameters_and_signals_are_shared_by_all_ranks() {
    let items = data(5, 16);
    let (_, optimizer) = optimizers()[1].clone();
    let work = |(model, mut trainer): (Model, Trainer)| {
        trainer.step(&items, |g, item| model.loss(g, item)).unwrap();
        trainer.freeze("words").unwrap();
        trainer.step(&items, |g, item| model.loss(g, item)).unwrap();
        trainer.set_signal(trainer.rank() as u8);
        let step = trainer.step(&items, |g, item| model.loss(g, item)).unwrap();
        (bits(&trainer), step.signal)
    };
    let alone = work(sharded(&optimizer));
    let all = on_ranks(3, |rank| {
        let (model, trainer) = joined(&optimizer, rank);
        work((model, trainer.divide_states().unwrap()))
    });
    assert!(all.iter().all(|one| one.0 == alone.0), "divided states follow the trained parameters");
    assert!(all.iter().all(|one| one.1 == 2), "all ranks get the largest signal");
    assert_eq!(alone.1, 0);
}

#[test]
fn steps_without_items_are_refused_in_shards() {
    let (_, optimizer) = optimizers()[0].clone();
    let (model, trainer) = trainer(&optimizer);
    let mut trainer = trainer.shards(4);
    let tree = data(1, 1).remove(0);
    let graph = trainer.session().graph();
    let loss = model.loss(&graph, &tree);
    let error = trainer.step_graph(&graph, [loss]).unwrap_err();
    let expected = TrainError::NoShards { method: "step_graph" };
    assert!(matches!(&error, Error::Train(found) if *found == expected), "{error}");
    for error in [
        trainer.backward(&graph, loss, &[]).unwrap_err(),
        trainer.step_tasks([&tree], async |g, item| Ok(model.loss(g, item))).unwrap_err(),
    ] {
        assert!(error.to_string().contains("has no items to cut into shards; use step"), "{error}");
    }
    let none: [&Item; 0] = [];
    assert!(matches!(
        trainer.step(none, |g, item| model.loss(g, item)),
        Err(Error::Train(TrainError::Empty))
    ));
}

/// Makes a step whose graphs the caller emits.
fn emitted_step(
    model: &Model,
    trainer: &mut Trainer,
    items: &[Item],
    most: usize,
) -> autobatch::Result<Step> {
    let weights: Vec<f32> = (1..).map(|weight| weight as f32).take(items.len()).collect();
    let mut step = trainer.begin_shards(&weights, most)?;
    while let Some(own) = step.items() {
        let g = step.graph();
        let losses: Vec<_> = own
            .map(|item| {
                g.instance(item as u64);
                model.loss(&g, &items[item])
            })
            .collect();
        step.part(&g, losses)?;
    }
    step.finish()
}

#[test]
fn emitted_graphs_have_the_bits_of_steps_with_closures() {
    let (_, optimizer) = optimizers()[1].clone();
    let items = data(5, 21);
    for most in [100, 4] {
        let (model, mut alone) = sharded(&optimizer);
        let mut next = 0.0;
        let numbered = items.iter().map(|item| {
            next += 1.0;
            (item, next)
        });
        let minibatch = Minibatch::new(numbered).weighted(|(_, weight)| *weight).in_parts(most);
        let expected = alone.step(minibatch, |g, (item, _)| model.loss(g, item)).unwrap();
        for ranks in [1, 2, 3] {
            let all = on_ranks(ranks, |rank| {
                let (model, mut trainer) = joined(&optimizer, rank);
                let step = emitted_step(&model, &mut trainer, &items, most).unwrap();
                assert_eq!((step.loss, &step.losses, step.weight), (expected.loss, &expected.losses, 231.0));
                bits(&trainer)
            });
            assert!(all.iter().all(|own| *own == bits(&alone)), "{ranks} ranks, parts of {most}");
        }
    }
}

#[test]
fn a_step_that_one_rank_leaves_fails_on_all_and_changes_nothing() {
    let (_, optimizer) = optimizers()[1].clone();
    let items = data(5, 8);
    on_ranks(2, |rank| {
        let number = rank.rank();
        let (model, mut trainer) = joined(&optimizer, rank);
        let before = bits(&trainer);
        let failed = match number {
            1 => {
                let mut step = trainer.begin_shards(&[1.0; 8], 8).unwrap();
                let g = step.graph();
                step.part(&g, [model.loss(&g, &items[4])]).unwrap_err()
            }
            _ => emitted_step(&model, &mut trainer, &items, 8).unwrap_err(),
        };
        let expected = [
            "rank 1: its step was left before its end",
            "the next graph of the step has 4 items, found 1 losses",
        ];
        assert!(failed.to_string().starts_with(expected[number]), "{failed}");
        assert_eq!((bits(&trainer), trainer.steps()), (before, 0));
        emitted_step(&model, &mut trainer, &items, 8).unwrap();
    });
    let (model, mut trainer) = trainer(&optimizer);
    let error = emitted_step(&model, &mut trainer, &items, 8).unwrap_err();
    assert!(error.to_string().starts_with("the trainer has no shards"), "{error}");
}
