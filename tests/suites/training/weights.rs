//! Parameters alone, as safetensors and inside a module's file.

use crate::model::{bits, data, file, train, trainer};
use autobatch::prelude::*;
use autobatch::train::{CheckpointError, read_weights, write_weights};
use std::sync::Arc;

#[test]
fn parameters_go_through_safetensors_and_through_checkpoints() {
    let (model, mut trained) = trainer(1);
    train(&model, &mut trained, &data(1, 32), 0..1);
    let module = Arc::clone(trained.session().module());
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
