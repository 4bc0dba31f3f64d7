//! Parameters alone, as safetensors and inside a module's file.

use crate::model::{bits, data, file, train, trainer};
use autobatch::prelude::*;
use autobatch::train::{CheckpointError, read_weights, write_weights};
use std::sync::Arc;

#[test]
fn parameters_go_through_safetensors_and_through_checkpoints() {
    let (model, mut trained) = trainer(1);
    train(&model, &mut trained, &data(1, 32), 0..1);
    let module = Arc::clone(trained.module());
    write_weights(file("params.safetensors"), trained.weights()).unwrap();
    trained.save(file("whole.safetensors")).unwrap();
    for name in ["params.safetensors", "whole.safetensors"] {
        assert_eq!(read_weights(file(name), &module).unwrap(), **trained.weights(), "{name}");
    }
    let other = ModuleBuilder::new("other").build().unwrap();
    let error = read_weights(file("params.safetensors"), &other).unwrap_err();
    assert!(matches!(error, CheckpointError::Unknown { .. }), "{error}");
}

#[test]
fn a_checkpoint_that_is_not_as_it_was_written_gives_no_parameters() {
    let (model, mut trained) = trainer(1);
    train(&model, &mut trained, &data(1, 16), 0..1);
    let module = Arc::clone(trained.module());
    let path = file("flipped-weights.safetensors");
    trained.save(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = read_weights(&path, &module).unwrap_err();
    assert!(error.to_string().contains("another hash than was written"), "{error}");
}

#[test]
fn a_module_file_holds_what_was_learnt_and_damage_is_found() {
    let (model, mut trained) = trainer(1);
    train(&model, &mut trained, &data(1, 32), 0..1);
    let path = file("bundle.abm");
    trained.session().bundle().save(&path).unwrap();
    let loaded = Module::load(&path).unwrap();
    let fresh = Trainer::new(Arc::clone(&loaded), Adam::new(0.1)).unwrap();
    assert_eq!(bits(&fresh), bits(&trained));
    assert!(loaded.cell::<2, 1>("node").is_some());
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    assert!(Module::from_bytes(&bytes).is_err());
}

#[test]
fn averages_lag_behind_the_weights_and_come_back_from_a_checkpoint() {
    let (model, plain) = trainer(1);
    assert_eq!(plain.averages(), None);
    let module = Arc::clone(plain.module());
    let make = || {
        let optimizer = Adam::new(0.02).average(0.9);
        Trainer::with_options(Arc::clone(&module), optimizer, SessionOptions::default(), 7).unwrap()
    };
    let mut averaging = make();
    train(&model, &mut averaging, &data(1, 64), 0..2);
    let averages = averaging.averages().unwrap();
    assert_ne!(averages, **averaging.weights());
    averaging.save(file("averages.safetensors")).unwrap();
    let mut again = make();
    again.load(file("averages.safetensors")).unwrap();
    assert_eq!(again.averages(), Some(averages));
}
