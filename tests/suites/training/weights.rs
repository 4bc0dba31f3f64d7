//! Parameters without a trainer, in safetensors files and in module files.

use crate::model::{bits, data, file, train, trainer};
use autobatch::prelude::*;
use autobatch::train::{CheckpointError, read_matching_weights, read_weights, write_weights};
use std::sync::Arc;

#[test]
fn parameters_survive_safetensors_files_and_checkpoints() {
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
    assert!(matches!(error.fault(), CheckpointError::Unknown { .. }), "{error}");
}

#[test]
fn a_damaged_checkpoint_gives_no_parameters() {
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
    assert!(error.to_string().contains("does not match its hash"), "{error}");
}

/// Returns the bytes of a safetensors file with one array, `w`.
fn one_array(kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let header =
        format!(r#"{{"w":{{"dtype":"{kind}","shape":{shape},"data_offsets":[0,{}]}}}}"#, values.len());
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), values].concat()
}

#[test]
fn arrays_may_have_any_float_type_and_no_other() {
    let mut m = ModuleBuilder::new("m");
    m.param("w", [2], Init::ZEROS);
    let module = m.build().unwrap();
    let path = file("kinds.safetensors");
    let doubles = [0.1f64, -2.0].map(f64::to_le_bytes).concat();
    std::fs::write(&path, one_array("F64", "[2]", &doubles)).unwrap();
    assert_eq!(read_weights(&path, &module).unwrap().by_name("w").unwrap(), [0.1, -2.0]);
    std::fs::write(&path, one_array("I64", "[2]", &[0; 16])).unwrap();
    let error = read_weights(&path, &module).unwrap_err();
    assert_eq!(error.fault().to_string(), "w: expected F32, F16, BF16 or F64, found I64; write floats");
    assert_eq!(error.to_string(), format!("{}: {}", path.display(), error.fault()));
}

#[test]
fn a_file_of_another_model_loads_matching_parameters_and_reports_the_others() {
    let (model, mut trained) = trainer(1);
    train(&model, &mut trained, &data(1, 16), 0..1);
    let path = file("matching.safetensors");
    trained.save(&path).unwrap();
    let other = |rows: usize| {
        let mut m = ModuleBuilder::new("other");
        m.param("head", [2], Init::Constant(3.0));
        m.param("out.b", [3], Init::Constant(3.0));
        m.table("words", [rows, 10], Init::Constant(3.0));
        Weights::init(&m.build().unwrap(), 0)
    };
    let mut weights = other(12);
    let matching = read_matching_weights(&path, &mut weights).unwrap();
    assert_eq!(
        (matching.read, matching.missing),
        (vec!["out.b".into(), "words".into()], vec!["head".into()])
    );
    // The optimiser's arrays of a checkpoint are not reported as unexpected.
    assert_eq!(matching.unexpected, ["join.b", "join.w", "out.w"]);
    for name in ["out.b", "words"] {
        assert_eq!(weights.by_name(name), trained.weights().by_name(name));
    }
    assert_eq!(weights.by_name("head").unwrap(), [3.0; 2]);
    let mut wider = other(13);
    let error = read_matching_weights(&path, &mut wider).unwrap_err().to_string();
    let named = format!("{}: words: expected the shape [13, 10], found [12, 10]", path.display());
    assert!(error.starts_with(&named), "{error}");
    assert_eq!(wider, other(13), "the weights are unchanged");
    write_weights(&path, trained.weights()).unwrap();
    assert_eq!(read_matching_weights(&path, &mut other(12)).unwrap().unexpected.len(), 3);
}

#[test]
fn a_module_file_holds_the_trained_parameters_and_damage_is_detected() {
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
fn averages_lag_behind_the_weights_and_survive_a_checkpoint() {
    let (model, plain) = trainer(1);
    assert_eq!(plain.averages().unwrap(), None);
    let module = Arc::clone(plain.module());
    let make = || {
        let optimizer = Adam::new(0.02).average(0.9);
        let weights = Arc::new(Weights::init(&module, 7));
        let options = SessionOptions { seed: 7, ..SessionOptions::default() };
        Trainer::with_options(&module, optimizer, weights, options).unwrap()
    };
    let mut averaging = make();
    train(&model, &mut averaging, &data(1, 64), 0..2);
    let averages = averaging.averages().unwrap().unwrap();
    assert_ne!(averages, **averaging.weights());
    averaging.save(file("averages.safetensors")).unwrap();
    let mut again = make();
    again.load(file("averages.safetensors")).unwrap();
    assert_eq!(again.averages().unwrap(), Some(averages));
}
