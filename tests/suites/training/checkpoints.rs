//! Checkpoints: a resumed run has the bits of an uninterrupted one, and loading detects damage.

use crate::model::{Model, bits, data, file, train, trainer};
use autobatch::prelude::*;
use autobatch::train::CheckpointError;
use std::sync::Arc;

#[test]
fn a_resumed_run_has_the_bits_of_an_uninterrupted_one() {
    let items = data(1, 96);
    let path = file("resumed.safetensors");
    let (model, mut whole) = trainer(1);
    let losses = train(&model, &mut whole, &items, 0..4);
    let (model, mut first) = trainer(1);
    let early = train(&model, &mut first, &items, 0..2);
    first.set_progress(Progress { epoch: 2, batches: 0 });
    first.save(&path).unwrap();
    // The trainer starts with another seed and other weights, so all state comes from the file.
    let (model, module) = Model::new();
    let weights = Arc::new(Weights::init(&module, 99));
    let options = SessionOptions { seed: 99, ..SessionOptions::default() };
    let mut second = Trainer::with_options(module, Adam::new(0.02), weights, options).unwrap();
    second.load(&path).unwrap();
    assert_eq!((second.progress(), second.steps()), (Progress { epoch: 2, batches: 0 }, 12));
    let epoch = second.progress().epoch;
    let late = train(&model, &mut second, &items, epoch..4);
    assert_eq!([early, late].concat(), losses);
    assert_eq!(bits(&second), bits(&whole));
}

#[test]
fn equal_trainers_write_equal_files() {
    let items = data(1, 32);
    let write = |name: &str| {
        let (model, mut trainer) = trainer(1);
        train(&model, &mut trainer, &items, 0..1);
        trainer.save(file(name)).unwrap();
        std::fs::read(file(name)).unwrap()
    };
    assert_eq!(write("equal-1.safetensors"), write("equal-2.safetensors"));
}

/// Returns the error of loading these bytes. The trainer must stay unchanged.
fn refused(bytes: &[u8], name: &str, trainer: &mut Trainer) -> CheckpointError {
    let path = file(name);
    std::fs::write(&path, bytes).unwrap();
    let before = (bits(trainer), trainer.steps());
    let error = trainer.load(&path).unwrap_err();
    assert_eq!((bits(trainer), trainer.steps()), before, "{error}");
    assert!(error.to_string().starts_with(&*path.to_string_lossy()), "{error}");
    error
}

#[test]
fn every_truncation_and_every_flipped_bit_of_a_checkpoint_is_detected() {
    let items = data(1, 16);
    let path = file("damaged.safetensors");
    let (model, mut trainer) = trainer(1);
    train(&model, &mut trainer, &items, 0..1);
    trainer.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        refused(&bytes[..length], "cut.safetensors", &mut trainer);
    }
    for place in (0..bytes.len()).step_by(31) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        // Only a flip from or to a space of the padded header may leave the meaning unchanged.
        if flipped[place] != b' ' && bytes[place] != b' ' {
            refused(&flipped, "flipped.safetensors", &mut trainer);
        }
    }
    trainer.load(&path).unwrap();
}

#[test]
fn the_error_for_an_incompatible_checkpoint_names_the_difference() {
    let path = file("other.safetensors");
    let (_, mut ours) = trainer(1);
    let mut narrow = ModuleBuilder::new("trees");
    narrow.table("words", [12, 9], Init::Uniform(0.5));
    let narrow = Trainer::new(narrow.build().unwrap(), Adam::new(0.1)).unwrap();
    narrow.save(&path).unwrap();
    assert!(
        matches!(ours.load(&path).unwrap_err().fault(), CheckpointError::Shape { name, .. } if name == "words")
    );
    let mut strange = ModuleBuilder::new("trees");
    strange.param("strange", [1], Init::ZEROS);
    Trainer::new(strange.build().unwrap(), Adam::new(0.1)).unwrap().save(&path).unwrap();
    assert!(
        matches!(ours.load(&path).unwrap_err().fault(), CheckpointError::Unknown { name } if name == "strange")
    );
    let (_, module) = Model::new();
    Trainer::new(module, Sgd::new(0.1)).unwrap().save(&path).unwrap();
    let error = ours.load(&path).unwrap_err().to_string();
    assert!(error.contains("expected a checkpoint of adam, found one of sgd"), "{error}");
    let (_, mut frozen) = trainer(1);
    frozen.freeze("words").unwrap();
    frozen.save(&path).unwrap();
    assert!(
        matches!(ours.load(&path).unwrap_err().fault(), CheckpointError::Missing { name } if name.contains("words"))
    );
    let told = ours.load(&path).unwrap_err().to_string();
    assert!(told.contains("optimizer:") && told.contains("or other parameters were frozen"), "{told}");
    autobatch::train::write_weights(&path, ours.weights()).unwrap();
    assert!(matches!(ours.load(&path).unwrap_err().fault(), CheckpointError::NoCheckpoint));
    ours.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let newer = String::from_utf8_lossy(&bytes).find("\\\"version\\\":1").unwrap();
    // The header is ASCII, so offsets in the text are offsets in the file.
    let mut newer_bytes = bytes.clone();
    newer_bytes[newer + "\\\"version\\\":".len()] = b'7';
    let error = refused(&newer_bytes, "newer.safetensors", &mut ours);
    assert!(matches!(error.fault(), CheckpointError::Version { found: 7, known: 1 }), "{error}");
    let error = ours.load(file("nowhere").join("file")).unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
}

/// Plain gradient descent has no state per parameter, so no array shows the frozen parameters.
#[test]
fn a_checkpoint_with_other_frozen_parameters_is_rejected_for_every_optimiser() {
    let path = file("frozen.safetensors");
    let trainer = |frozen: &[&str]| {
        let mut trainer = Trainer::new(Model::new().1, Sgd::new(0.1)).unwrap();
        frozen.iter().for_each(|name| trainer.freeze(name).unwrap());
        trainer
    };
    let loaded = |saved: &[&str], taken: &[&str]| {
        trainer(saved).save(&path).unwrap();
        trainer(taken).load(&path).map_err(|error| error.to_string())
    };
    for same in [&[][..], &["words"], &["words", "out"]] {
        loaded(same, same).unwrap();
    }
    let told = loaded(&["words"], &[]).unwrap_err();
    assert!(told.contains("the checkpoint froze other parameters: @words there alone;"), "{told}");
    let told = loaded(&["words"], &["out"]).unwrap_err();
    assert!(told.contains("@out.w and 1 more here alone; @words there alone;"), "{told}");
    let told = loaded(&[], &["words"]).unwrap_err();
    assert!(told.contains("@words here alone; freeze the same parameters and load"), "{told}");
}

#[test]
fn the_error_for_other_optimiser_options_names_the_difference_in_state() {
    let path = file("options.safetensors");
    let trainer = |average: bool| {
        let optimizer = Adam::new(0.1);
        let optimizer = if average { optimizer.average(0.9) } else { optimizer.into() };
        Trainer::new(Model::new().1, optimizer).unwrap()
    };
    for (saved, words) in [(false, "expected an array"), (true, "does not use")] {
        trainer(saved).save(&path).unwrap();
        let told = trainer(!saved).load(&path).unwrap_err().to_string();
        assert!(told.contains(".average") && told.contains(words), "{told}");
    }
}

#[test]
fn notes_that_do_not_fit_are_an_error_and_leave_the_file_unchanged() {
    let path = file("notes.safetensors");
    let (_, mut trainer) = trainer(1);
    trainer.save(&path).unwrap();
    let before = std::fs::read(&path).unwrap();
    trainer.set_note("words", "x".repeat(100_000_001));
    let error = trainer.save(&path).unwrap_err();
    assert!(matches!(error, CheckpointError::Unwritten(_)), "{error}");
    assert!(error.to_string().contains("write shorter notes"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
