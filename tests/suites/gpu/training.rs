//! Trainers on a GPU: parameters and optimiser states stay there; checkpoints and lost devices do not change bits.

use crate::common::executor;
use autobatch::nn::Linear;
use autobatch::prelude::*;
use autobatch::train::TrainError;
use autobatch_nn::optim::Optimizer;
use autobatch_runtime_wgpu::{GpuError, Options};
use autobatch_tests::work_of_an_item;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

const WORDS: u32 = 40;
const CLASSES: usize = 3;

#[derive(Clone, Copy)]
struct Model {
    words: Table,
    join: Cell<2, 1>,
    out: Linear,
}

/// A sentence with its class.
type Item = (Vec<u32>, u32);

impl Model {
    fn logits<'g>(&self, g: &'g Graph, sentence: &[u32]) -> Value<'g> {
        let hidden = sentence.iter().fold(g.zeros([8]), |hidden, &word| {
            let [hidden] = g.call(self.join, [self.words.lookup(g, word), hidden]);
            hidden
        });
        self.out.on(hidden)
    }

    fn loss<'g>(&self, g: &'g Graph, (sentence, class): &Item) -> Value<'g> {
        self.logits(g, sentence).cross_entropy(*class)
    }
}

/// The model of all trainers in this file.
fn shared() -> (Model, Arc<Module>) {
    static SHARED: OnceLock<(Model, Arc<Module>)> = OnceLock::new();
    let make = || {
        let mut m = ModuleBuilder::new("sentences");
        let words = m.table("words", [WORDS as usize, 8], Init::Uniform(0.5));
        let both = Linear::new(&mut m, "both", 16, 8);
        let out = Linear::new(&mut m, "out", 8, CLASSES);
        let join = m.cell("join", [f32([8]); 2], |g, pair| [both.on_parts(g, pair).tanh().dropout(0.1)]);
        (Model { words, join, out }, m.build().expect("sound"))
    };
    SHARED.get_or_init(make).clone()
}

/// A trainer on a device.
fn trainer(optimizer: impl Into<Optimizer>, device: &str) -> (Model, Trainer) {
    let (model, module) = shared();
    let device = device.parse().expect("a device");
    let options = SessionOptions { device, threads: 1, seed: 7, ..SessionOptions::default() };
    let weights = Arc::new(Weights::init(&module, 7));
    (model, Trainer::with_options(module, optimizer, weights, options).expect("opens"))
}

/// A trainer on the GPU after this many uninterrupted steps, and the bits of its losses.
fn uninterrupted(steps: u64) -> (Model, Trainer, Vec<u32>) {
    let (model, mut trainer) = trainer(adam(), "gpu");
    let losses = train(&model, &mut trainer, steps);
    (model, trainer, losses)
}

fn no_adapter() -> bool {
    executor(Options::default()).is_none()
}

/// Minibatch number `n`.
fn minibatch(n: u64) -> Vec<Item> {
    let word = |i: u64| ((n * 31 + i * 17 + i * i * 5) % u64::from(WORDS)) as u32;
    (0..6).map(|i| ((0..1 + (i + n) % 5).map(|at| word(7 * i + at)).collect(), (i % 3) as u32)).collect()
}

/// Makes the steps from the trainer's own to `end`. Returns the bits of the losses.
fn train(model: &Model, trainer: &mut Trainer, end: u64) -> Vec<u32> {
    let mut losses = Vec::new();
    while trainer.steps() < end {
        let batch = minibatch(trainer.steps());
        losses.push(trainer.step(&batch, |g, item| model.loss(g, item)).expect("steps").loss.to_bits());
    }
    losses
}

/// The error of the next step, which fails.
fn failed(model: &Model, trainer: &mut Trainer) -> autobatch::Error {
    let batch = minibatch(trainer.steps());
    trainer.step(&batch, |g, item| model.loss(g, item)).expect_err("it must be told")
}

fn bits(trainer: &Trainer) -> Vec<u32> {
    trainer.weights().iter().flat_map(|param| param.values().iter().map(|x| x.to_bits())).collect()
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("autobatch-gpu-{}-{name}.safetensors", std::process::id()))
}

fn adam() -> Optimizer {
    Adam::new(0.02).clip_norm(1.0).average(0.9)
}

fn destroy(trainer: &mut Trainer) {
    trainer.session().gpu().expect("open").destroy();
}

fn went_back(error: &autobatch::Error) -> Option<(u64, u64)> {
    match error {
        autobatch::Error::Train(TrainError::WentBack { from, to, .. }) => Some((*from, *to)),
        _ => None,
    }
}

#[test]
fn training_on_a_gpu_matches_training_on_the_cpu() {
    if no_adapter() {
        return;
    }
    for optimizer in [adam(), AdamW::new(0.02).sparse_rows(), Momentum::new(0.1, 0.9).into()] {
        let (model, mut here) = trainer(optimizer.clone(), "cpu");
        let (_, mut there) = trainer(optimizer, "gpu");
        train(&model, &mut here, 12);
        train(&model, &mut there, 12);
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 2e-4);
        for (a, b) in here.weights().iter().zip(there.weights().iter()) {
            assert!(close(a.values(), b.values()), "{}: {:?} {:?}", a.name(), a.values(), b.values());
        }
        let averages = [&here, &there].map(|trainer| trainer.averages().unwrap());
        assert_eq!(averages[0].is_some(), averages[1].is_some());
        if let [Some(a), Some(b)] = &averages {
            assert!(a.iter().zip(b.iter()).all(|(a, b)| close(a.values(), b.values())));
        }
        let batch = minibatch(99);
        let predict = |trainer: &mut Trainer| {
            trainer.session().predict(&batch, |g, (words, _)| model.logits(g, words)).expect("executes")
        };
        let (here, there) = (predict(&mut here), predict(&mut there));
        assert!(
            here.iter().zip(&there).all(|(a, b)| a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() < 1e-3))
        );
    }
}

/// A finite loss whose gradient is infinite at zero.
fn root_of_row<'g>(g: &'g Graph, w: Param, table: Table, x: f32) -> Value<'g> {
    (table.lookup(g, 7) * x).sqrt().sum() + g.param(w).sum()
}

#[test]
fn gradients_that_are_not_finite_change_nothing_and_others_have_their_norm() {
    if no_adapter() {
        return;
    }
    for device in ["cpu", "gpu"] {
        let mut m = ModuleBuilder::new("root");
        let w = m.param("w", [2], Init::Constant(4.0));
        let table = m.table("words", [40, 3], Init::Constant(1.0));
        let options = SessionOptions { device: device.parse().unwrap(), ..SessionOptions::default() };
        let module = m.build().unwrap();
        let weights = Arc::new(Weights::init(&module, 0));
        let optimizer = Adam::new(0.1).clip_norm(1.0);
        let mut trainer = Trainer::with_options(module, optimizer, weights, options).unwrap();
        let mut norm_of = |scale: f32| {
            let step = trainer.step([1.0, 2.0], |g, x: f32| {
                (g.param(w) * (x * scale)).sum() + (table.lookup(g, 3) * (x * scale)).sum()
            });
            step.unwrap().gradient_norm.unwrap() / f64::from(scale)
        };
        for scale in [1.0, 1e30, 1e-25] {
            let norm = norm_of(scale);
            assert!((norm / (1.5 * 5f64.sqrt()) - 1.0).abs() < 1e-5, "{device} {scale}: {norm}");
        }
        let before = bits(&trainer);
        let error = trainer.step([1.0, 0.0], |g, x| root_of_row(g, w, table, x)).unwrap_err().to_string();
        assert!(error.contains("@words") && error.contains("step 3"), "{device}: {error}");
        assert_eq!((bits(&trainer), trainer.steps()), (before.clone(), 3), "{device}");
        trainer = trainer.skip_non_finite(true);
        let step = trainer.step([1.0, 0.0], |g, x| root_of_row(g, w, table, x)).unwrap();
        assert!(step.skipped && step.gradient_norm.is_none() && step.loss.is_finite(), "{device}");
        assert_eq!((bits(&trainer), trainer.skipped()), (before.clone(), 1), "{device}");
        trainer.step([1.0], |g, x| root_of_row(g, w, table, x)).unwrap();
        assert_ne!(bits(&trainer), before, "{device}");
    }
}

#[test]
fn equal_runs_have_equal_bits_whatever_is_read() {
    if no_adapter() {
        return;
    }
    let (model, mut one) = trainer(adam(), "gpu");
    let (_, mut other) = trainer(adam(), "gpu");
    let other = &mut other;
    let losses = train(&model, &mut one, 8);
    let mut again = train(&model, other, 3);
    let held = other.weights().clone();
    let copy = (*held).clone();
    again.extend(train(&model, other, 4));
    other.save(file("between")).expect("writes");
    again.extend(train(&model, other, 8));
    assert_eq!((losses, bits(&one)), (again, bits(other)));
    assert_eq!(*held, copy, "copies of the weights do not change");
    // Weights that were read and set again are the same, and so are earlier ones.
    let early = train(&model, other, 9);
    other.set_weights(held).expect("they belong to this module");
    assert_eq!(**other.weights(), copy);
    assert_ne!(train(&model, other, 10), early);
}

#[test]
fn a_pass_makes_the_steps_of_its_minibatches() {
    if no_adapter() {
        return;
    }
    let (_, whole, losses) = uninterrupted(6);
    let (model, mut passing) = trainer(adam(), "gpu");
    let pass = passing.pass((0..6).map(minibatch), |g, item| {
        // The next minibatch is prepared at the same time.
        work_of_an_item();
        model.loss(g, &item)
    });
    let steps: Vec<u32> = pass.map(|step| step.expect("steps").loss.to_bits()).collect();
    assert_eq!((steps, bits(&passing)), (losses, bits(&whole)));
}

#[test]
fn a_resumed_run_has_the_bits_of_an_uninterrupted_one() {
    if no_adapter() {
        return;
    }
    let path = file("resumed");
    let (model, whole, losses) = uninterrupted(9);
    let (_, mut first) = trainer(adam(), "gpu");
    let early = train(&model, &mut first, 4);
    first.save(&path).expect("writes");
    let (_, mut second) = trainer(adam(), "gpu");
    // The earlier contents of the device are forgotten.
    train(&model, &mut second, 2);
    second.load(&path).expect("reads");
    let late = train(&model, &mut second, 9);
    assert_eq!([early, late].concat(), losses);
    assert_eq!(bits(&second), bits(&whole));
    std::fs::remove_file(path).expect("it was written");
}

#[test]
fn a_step_in_parts_equals_the_step_of_the_minibatch() {
    if no_adapter() {
        return;
    }
    for optimizer in [adam(), AdamW::new(0.02).sparse_rows()] {
        let (model, mut whole) = trainer(optimizer.clone(), "gpu");
        let [mut parts, mut slow] = [(); 2].map(|()| trainer(optimizer.clone(), "gpu").1);
        for n in 0..3 {
            let batch = minibatch(n);
            whole.step(&batch, |g, item| model.loss(g, item)).expect("steps");
            parts.step(Minibatch::new(&batch).in_parts(2), |g, item| model.loss(g, item)).expect("steps");
            let step = slow.step(Minibatch::new(&batch).in_parts(2), |g, item| {
                // The next part is prepared at the same time.
                work_of_an_item();
                model.loss(g, item)
            });
            step.expect("steps");
        }
        assert_eq!(bits(&parts), bits(&slow));
        for (a, b) in whole.weights().iter().zip(parts.weights().iter()) {
            let close = a.values().iter().zip(b.values()).all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(close, "{}: {:?} {:?}", a.name(), a.values(), b.values());
        }
    }
}

#[test]
fn after_a_device_loss_a_trainer_repeats_steps_from_its_mirror() {
    if no_adapter() {
        return;
    }
    let (model, whole, losses) = uninterrupted(8);
    let (_, mut lost) = trainer(adam(), "gpu");
    train(&model, &mut lost, 3);
    lost.set_progress(Progress { epoch: 1, batches: 3 });
    let path = file("mirrored");
    lost.save(&path).expect("writes");
    train(&model, &mut lost, 4);
    lost.set_progress(Progress { epoch: 1, batches: 4 });
    train(&model, &mut lost, 5);
    destroy(&mut lost);
    let error = failed(&model, &mut lost);
    assert_eq!(went_back(&error), Some((5, 3)), "{error}");
    assert!(error.to_string().contains("went back from step 5 to step 3"), "{error}");
    assert_eq!((lost.steps(), lost.progress()), (3, Progress { epoch: 1, batches: 3 }));
    assert_eq!(train(&model, &mut lost, 8), losses[3..]);
    assert_eq!(bits(&lost), bits(&whole));
    std::fs::remove_file(path).expect("it was written");
}

#[test]
fn after_a_device_loss_without_a_mirror_a_trainer_restarts() {
    if no_adapter() {
        return;
    }
    let (model, mut lost) = trainer(adam(), "gpu");
    let before = bits(&lost);
    let losses = train(&model, &mut lost, 2);
    destroy(&mut lost);
    // Nothing can be read: training continues from these weights.
    assert_eq!(bits(&lost), before);
    let error = lost.save(file("never")).expect_err("nothing can be read");
    assert!(error.to_string().contains("cannot read the parameters from the device"), "{error}");
    let error = failed(&model, &mut lost);
    assert_eq!(went_back(&error), Some((2, 0)), "{error}");
    assert_eq!(train(&model, &mut lost, 2), losses);
}

#[test]
fn a_mirror_of_every_step_loses_no_step() {
    if no_adapter() {
        return;
    }
    let (model, whole, losses) = uninterrupted(6);
    let (_, lost) = trainer(adam(), "gpu");
    let mut lost = lost.mirror_every(1);
    train(&model, &mut lost, 4);
    destroy(&mut lost);
    let error = failed(&model, &mut lost);
    assert!(matches!(error, autobatch::Error::Gpu(GpuError::Lost { .. })), "{error}");
    assert_eq!(lost.steps(), 4);
    assert_eq!(train(&model, &mut lost, 6), losses[4..]);
    assert_eq!(bits(&lost), bits(&whole));
}

#[test]
fn a_prediction_that_loses_the_device_resets_the_trainer_to_its_mirror() {
    if no_adapter() {
        return;
    }
    let (model, mut lost) = trainer(adam(), "gpu");
    let losses = train(&model, &mut lost, 3);
    destroy(&mut lost);
    let batch = minibatch(3);
    let predict = |session: &mut Session| session.predict(&batch, |g, (words, _)| model.logits(g, words));
    let error = predict(lost.session()).expect_err("the device is gone");
    assert!(matches!(error, autobatch::Error::Gpu(GpuError::Lost { .. })), "{error}");
    assert_eq!(lost.steps(), 0, "the session and the trainer return to the same step");
    predict(lost.session()).expect("executes on a new device");
    let error = failed(&model, &mut lost);
    assert_eq!(went_back(&error), Some((3, 0)), "{error}");
    assert_eq!(train(&model, &mut lost, 3), losses);
}

#[test]
fn a_minibatch_that_does_not_fit_changes_nothing() {
    if no_adapter() {
        return;
    }
    let (model, whole, losses) = uninterrupted(4);
    let options = SessionOptions {
        device: "gpu".parse().expect("a device"),
        threads: 1,
        limits: Limits::of_memory(200_000),
        seed: 7,
        ..SessionOptions::default()
    };
    let (_, module) = shared();
    let weights = Arc::new(Weights::init(&module, 7));
    let mut limited = Trainer::with_options(module, adam(), weights, options).expect("opens");
    let mut found = train(&model, &mut limited, 2);
    let large: Vec<Item> = (0..40).flat_map(minibatch).collect();
    let error = limited.step(&large, |g, item| model.loss(g, item)).expect_err("does not fit");
    assert!(error.to_string().contains("plan a smaller minibatch"), "{error}");
    found.extend(train(&model, &mut limited, 4));
    assert_eq!((found, bits(&limited)), (losses, bits(&whole)));
}

#[test]
fn training_moves_between_devices_with_its_state() {
    if no_adapter() {
        return;
    }
    let (model, mut whole) = trainer(adam(), "cpu");
    train(&model, &mut whole, 6);
    let (_, mut moving) = trainer(adam(), "cpu");
    for (device, end) in [("gpu", 2), ("cpu", 4), ("gpu", 6)] {
        moving = moving.on_device(device.parse().expect("a device")).expect("opens");
        train(&model, &mut moving, end);
    }
    for (a, b) in whole.weights().iter().zip(moving.weights().iter()) {
        let close = a.values().iter().zip(b.values()).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(close, "{}: {:?} {:?}", a.name(), a.values(), b.values());
    }
}

#[test]
fn freezing_restarts_the_optimiser_from_the_device_parameters() {
    if no_adapter() {
        return;
    }
    let (model, mut trainer) = trainer(adam(), "gpu");
    train(&model, &mut trainer, 2);
    let held = trainer.weights().clone();
    trainer.freeze("words").expect("there is such a table");
    train(&model, &mut trainer, 4);
    let same: Vec<bool> =
        held.iter().zip(trainer.weights().iter()).map(|(a, b)| a.values() == b.values()).collect();
    assert!(same[0], "the table is frozen");
    assert!(same[1..].iter().all(|same| !same), "other parameters are still trained");
}

#[test]
fn a_session_continues_after_a_device_loss() {
    if no_adapter() {
        return;
    }
    let (model, mut trainer) = trainer(adam(), "gpu");
    let batch = minibatch(0);
    let predict = |session: &mut Session| session.predict(&batch, |g, (words, _)| model.logits(g, words));
    let session = trainer.session();
    let before = predict(session).expect("executes");
    session.gpu().expect("open").destroy();
    let error = predict(session).expect_err("the device is gone");
    assert!(error.to_string().contains("execute again"), "{error}");
    assert!(session.gpu().is_none());
    assert_eq!(predict(session).expect("executes on a new device"), before);
    assert!(session.gpu().is_some());
}
