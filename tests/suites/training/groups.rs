//! Options of single parameters: learning rates, no weight decay, no training, no gradient.

use crate::model::{bits, data, file, train, trainer};
use autobatch::nn::{Embedding, losses};
use autobatch::prelude::*;
use std::sync::Arc;

/// Two parameters of ones, and their module.
fn pair() -> ([Param; 2], Arc<Module>) {
    let mut m = ModuleBuilder::new("pair");
    let params = ["old.w", "new.b"].map(|name| m.param(name, [1], Init::Constant(1.0)));
    (params, m.build().unwrap())
}

/// Returns both parameters after some updates with gradients of 1.
fn stepped(optimizer: impl Into<Optimizer>, updates: usize) -> [f32; 2] {
    let ([old, new], module) = pair();
    let mut trainer = Trainer::new(&module, optimizer).unwrap();
    for _ in 0..updates {
        trainer.step([()], |g, ()| (g.param(old) + g.param(new)).sum()).unwrap();
    }
    ["old.w", "new.b"].map(|name| trainer.weights().by_name(name).unwrap()[0])
}

#[test]
fn a_session_and_a_trainer_take_a_borrowed_or_an_owned_module() {
    let (_, module) = pair();
    let trainers = [Trainer::new(&module, Sgd::new(1.0)), Trainer::new(Arc::clone(&module), Sgd::new(1.0))];
    let sessions = [Session::new(&module, Device::Cpu), Session::new(module, Device::Cpu)];
    for (trainer, session) in trainers.into_iter().zip(sessions) {
        assert_eq!(trainer.unwrap().weights(), session.unwrap().weights());
    }
}

#[test]
fn a_rate_multiplies_the_rate_of_its_parameters_and_the_last_call_wins() {
    let old = |param: &autobatch::ir::module::ParamDecl| param.name.starts_with("old.");
    assert_eq!(stepped(Sgd::new(0.25).rate(0.5, old), 2), [0.75, 0.5]);
    assert_eq!(stepped(Sgd::new(0.25).rate(0.5, |_| true).rate(2.0, old), 1), [0.5, 0.875]);
    // torch.optim.AdamW([{"params": [old], "lr": 0.1, "weight_decay": 0.5},
    //                    {"params": [new], "lr": 0.01, "weight_decay": 0.0}]), two steps with gradients of 1
    let optimizer = AdamW::new(0.01).weight_decay(0.5).decay_only(old).rate(10.0, old).clip_norm(1e9);
    let [found_old, found_new] = stepped(optimizer, 2);
    assert!((found_old - 0.7075).abs() < 1e-6 && (found_new - 0.98).abs() < 1e-6, "{found_old} {found_new}");
}

#[test]
fn parameters_with_individual_rates_resume_with_the_same_bits() {
    let items = data(1, 48);
    let make = |seed| {
        let (model, plain) = trainer(2);
        let optimizer = AdamW::new(0.02).rate(0.1, |param| param.name == "words").sparse_rows();
        let options = SessionOptions { threads: 2, seed, ..SessionOptions::default() };
        let weights = Arc::new(Weights::init(plain.module(), seed));
        (model, Trainer::with_options(plain.module(), optimizer, weights, options).unwrap())
    };
    let (model, mut whole) = make(7);
    let losses = train(&model, &mut whole, &items, 0..2);
    let (model, mut first) = make(7);
    train(&model, &mut first, &items, 0..1);
    first.save(file("rates.safetensors")).unwrap();
    let (model, mut second) = make(8);
    second.load(file("rates.safetensors")).unwrap();
    assert_eq!(train(&model, &mut second, &items, 1..2), losses[3..]);
    assert_eq!(bits(&second), bits(&whole));
}

#[test]
fn only_chosen_parameters_are_trained() {
    let ([old, new], module) = pair();
    let mut trainer = Trainer::new(module, Sgd::new(0.5)).unwrap();
    trainer.train_only(|param| param.name.ends_with(".b")).unwrap();
    trainer.step([()], |g, ()| (g.param(old) + g.param(new)).sum()).unwrap();
    trainer.train_only(|param| param.name.ends_with(".w")).unwrap();
    trainer.step([()], |g, ()| (g.param(old) - g.param(new)).sum()).unwrap();
    let after = ["old.w", "new.b"].map(|name| trainer.weights().by_name(name).unwrap()[0]);
    assert_eq!(after, [0.5, 0.5]);
    let error = trainer.train_only(|_| false).unwrap_err().to_string();
    assert!(error.contains("all 2 parameters are frozen"), "{error}");
    trainer.step([()], |g, ()| (g.param(old) - g.param(new)).sum()).unwrap();
    assert_eq!(trainer.weights().by_name("old.w").unwrap(), [0.0], "the earlier choice remains");
}

#[test]
fn the_padding_row_gets_no_gradient_and_reads_as_zeros() {
    let mut m = ModuleBuilder::new("padded");
    let words = Embedding::new(&mut m, "words", 4, 2).padding(1);
    let cell = m.cell("cell", [INDEX], |_, [word]| [words.row(word).sum()]);
    let mut trainer = Trainer::new(m.build().unwrap(), Sgd::new(1.0)).unwrap();
    let before = trainer.weights().by_name("words").unwrap().to_vec();
    trainer
        .step([[0, 1], [1, 1], [1, 3]], |g, pair| {
            let [in_cell] = g.call(cell, pair[0]);
            in_cell + words.lookup(g, pair[1]).sum() + words.lookup(g, g.index(pair[1])).sum()
        })
        .unwrap();
    let changed: Vec<bool> =
        before.iter().zip(trainer.weights().by_name("words").unwrap()).map(|(a, b)| a != b).collect();
    assert_eq!(changed, [true, true, false, false, false, false, true, true]);
    let read = trainer.session().predict([1, 3], |g, word: u32| words.lookup(g, g.index(word))).unwrap();
    assert_eq!(read[0].to_vec(), [0.0; 2]);
    assert_ne!(read[1].to_vec(), [0.0; 2]);
}

#[test]
fn a_weighted_mean_divides_by_the_weights_of_the_counted_labels() {
    // x = torch.tensor([[1., 2., 0.5], [0.5, -0.5, 3.], [3., 0., -1.], [0.2, 0.1, 0.]], requires_grad=True)
    // y, weight = torch.tensor([1, -100, 0, 2]), torch.tensor([1., 5., 0.25])
    // loss = torch.nn.functional.cross_entropy(x, y, weight, ignore_index=-100); loss.backward()
    // print(loss, x.grad)
    let rows = [[1.0, 2.0, 0.5], [0.5, -0.5, 3.0], [3.0, 0.0, -1.0], [0.2, 0.1, 0.0]];
    let (labels, weights) = ([Some(1), None, Some(0), Some(2)], [1.0, 5.0, 0.25]);
    let mut m = ModuleBuilder::new("logits");
    let x = m.param("x", [4, 3], Init::Values(rows.concat().into()));
    let mut trainer = Trainer::new(m.build().unwrap(), Sgd::new(1.0)).unwrap();
    let step = trainer.step([()], |g, ()| {
        let term = |(number, label): (u32, Option<u32>)| {
            let label: u32 = label?;
            Some((weights[label as usize], g.param(x).pick(number).cross_entropy(label)))
        };
        losses::weighted_mean(g, (0..).zip(labels).filter_map(term))
    });
    let loss = step.unwrap().loss;
    assert!((loss - 0.4301142).abs() < 1e-6, "{loss}");
    let after = trainer.weights().by_name("x").unwrap();
    let found: Vec<f32> = rows.concat().iter().zip(after).map(|(before, after)| before - after).collect();
    let expected = [
        0.1849791, -0.2971746, 0.1121955, 0.0, 0.0, 0.0, -0.0102017, 0.007458, 0.0027437, 0.0146866,
        0.013289, -0.0279756,
    ];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
}

#[test]
fn invalid_optimiser_arguments_are_rejected_at_the_line_of_the_trainer() {
    let nan = f64::NAN;
    let optimizers = [
        (Sgd::new(0.1).clip_norm(nan), "clip_norm(NaN)"),
        (Sgd::new(0.1).clip_norm(-1.0), "clip_norm(-1.0)"),
        (Sgd::new(0.1).clip_value(nan), "clip_value(NaN)"),
        (Adam::new(0.1).weight_decay(nan), "weight_decay(NaN)"),
        (Adam::new(0.1).decoupled_weight_decay(f64::INFINITY), "weight_decay(inf)"),
        (Adam::new(0.1).rate(nan, |_| true), "rate(NaN, ..)"),
        (Adam::new(0.1).average(nan), "average(NaN)"),
        (Adam::new(0.1).average(1.5), "average(1.5)"),
    ];
    let (_, module) = pair();
    for (optimizer, argument) in optimizers {
        let (made, line) = (Trainer::new(&module, optimizer), line!());
        let message = made.unwrap_err().to_string();
        assert!(message.contains(&format!("{argument} is not a valid argument")), "{message}");
        assert!(message.contains(&format!("groups.rs:{line}:")), "{message}");
    }
    for optimizer in [Sgd::new(0.1).clip_norm(0.0), Sgd::new(0.1).average(1.0), Sgd::new(0.1).average(0.0)] {
        Trainer::new(&module, optimizer).unwrap();
    }
}
