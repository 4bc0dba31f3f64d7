//! Conversion of PyTorch weights.

use autobatch_ir::{Init, ModuleBuilder, Weights};
use autobatch_nn::pytorch::{
    GruArrays, StateArray, from_pytorch_embedding, from_pytorch_gru, from_pytorch_linear, from_pytorch_lstm,
    from_pytorch_projected_lstm, from_pytorch_sum, import, init,
};
use autobatch_nn::{Activation, Mlp};
use std::collections::BTreeMap;

fn counted(from: u8, count: u8) -> Vec<f32> {
    (from..from + count).map(f32::from).collect()
}

#[test]
fn initial_values_are_bounded_by_the_root_of_the_fan() {
    assert_eq!(init(16), Init::Uniform(0.25));
    assert_eq!(init(0), Init::Uniform(1.0));
}

#[test]
fn a_linear_weight_is_transposed() {
    let weight = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // two outputs of three inputs
    assert_eq!(from_pytorch_linear(&weight, 3, 2), Ok(vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
}

#[test]
fn an_embedding_is_unchanged() {
    assert_eq!(from_pytorch_embedding(&[1.0, 2.0], 2, 1), Ok(vec![1.0, 2.0]));
    assert!(from_pytorch_embedding(&[1.0, 2.0], 2, 2).is_err());
}

#[test]
fn an_lstm_weight_starts_with_the_input_rows_and_has_one_bias() {
    let (w_ih, w_hh) = (counted(0, 8), counted(100, 4)); // two inputs, one hidden
    let (b_ih, b_hh) = (counted(1, 4), counted(10, 4));
    let (w, b) = from_pytorch_lstm(&w_ih, &w_hh, &b_ih, &b_hh).unwrap();
    let rows: Vec<&[f32]> = w.chunks(4).collect();
    assert_eq!(rows, [[0.0, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0], [100.0, 101.0, 102.0, 103.0]]);
    assert_eq!(b, [11.0, 13.0, 15.0, 17.0]);
}

#[test]
fn a_projected_lstm_has_one_hidden_row_per_projected_element() {
    let (w_ih, w_hh, bias) = (counted(0, 8), counted(100, 16), counted(1, 8)); // one input, two hidden, projection to two
    let (w, b) = from_pytorch_projected_lstm(&w_ih, &w_hh, &bias, &bias, 2).unwrap();
    assert_eq!(w[..8], w_ih);
    assert_eq!(w[8..16], [100.0, 102.0, 104.0, 106.0, 108.0, 110.0, 112.0, 114.0]);
    assert_eq!((w.len(), b[7]), (24, 16.0));
    assert!(from_pytorch_projected_lstm(&w_ih, &w_hh, &bias, &bias, 3).is_err());
}

#[test]
fn a_gru_has_a_separate_bias_for_the_reset_gate_to_scale() {
    let arrays = from_pytorch_gru(&counted(0, 3), &counted(5, 3), &counted(1, 3), &counted(10, 3)).unwrap();
    let expected =
        GruArrays { wx: counted(0, 3), wh: counted(5, 3), b: vec![11.0, 13.0, 3.0], bn: vec![12.0] };
    assert_eq!(arrays, expected);
}

#[test]
fn added_linear_layers_are_joined() {
    let (left, right) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]); // two outputs; two inputs and one
    let (w, b) = from_pytorch_sum(&[(&left, 2), (&right, 1)], &[&[1.0, 2.0], &[3.0, 4.0]], 2).unwrap();
    assert_eq!(w, [1.0, 3.0, 2.0, 4.0, 5.0, 6.0]);
    assert_eq!(b, [4.0, 6.0]);
}

#[test]
fn errors_name_the_array_with_the_wrong_length() {
    let error = from_pytorch_lstm(&[0.0; 8], &[0.0; 5], &[0.0; 4], &[0.0; 4]).unwrap_err();
    assert_eq!(error.to_string(), "weight_hh: expected 4 numbers, found 5; check the sizes of the layer");
    assert!(from_pytorch_lstm(&[], &[], &[], &[]).is_err());
    assert!(from_pytorch_lstm(&[0.0; 3], &[0.0; 4], &[0.0; 4], &[0.0; 4]).is_err());
    assert!(from_pytorch_gru(&[0.0; 3], &[0.0; 3], &[0.0; 4], &[0.0; 3]).is_err());
}

/// The state dict of linear layers with these names, all 2 by 2, filled with the layer's place.
fn linear_layers(names: &[&str]) -> BTreeMap<String, StateArray> {
    let array = |shape: &[usize], value: usize| StateArray {
        shape: shape.to_vec(),
        values: vec![value as f32 + 1.0; shape.iter().product()],
    };
    let arrays = names.iter().enumerate().flat_map(|(place, name)| {
        [(format!("{name}.weight"), array(&[2, 2], place)), (format!("{name}.bias"), array(&[2], place))]
    });
    arrays.collect()
}

fn perceptron() -> Weights {
    let mut m = ModuleBuilder::new("m");
    Mlp::new(&mut m, "net", &[2, 2, 2, 2], Activation::Relu);
    Weights::init(&m.build().expect("a valid module"), 0)
}

#[test]
fn the_layers_of_sequential_are_those_of_a_perceptron_in_order() {
    for (names, map) in [
        (["mlp.0", "mlp.2", "mlp.4"], [("mlp", "net")]),
        (["mlp.0", "mlp.3", "mlp.6"], [("mlp", "net")]),
        (["mlp.0", "mlp.1", "mlp.2"], [("mlp", "net")]),
        (["0", "2", "4"], [("", "net")]),
    ] {
        let mut weights = perceptron();
        let imported = import(linear_layers(&names), &mut weights, &map).expect("three layers");
        assert!(imported.missing.is_empty() && imported.unexpected.is_empty(), "{names:?}: {imported:?}");
        for layer in 0..3_u8 {
            let bias = weights.by_name(&format!("net.{layer}.b")).expect("declared");
            assert_eq!(bias, [f32::from(layer) + 1.0; 2], "{names:?}");
        }
    }
}

#[test]
fn an_import_refuses_names_that_match_nothing() {
    let before = perceptron();
    let refused = |names: &[&str], map: &[(&str, &str)]| {
        let mut weights = before.clone();
        let error = import(linear_layers(names), &mut weights, map).expect_err("something does not match");
        assert_eq!(weights, before, "an error changes nothing");
        error.to_string()
    };
    let names = ["mlp.0", "mlp.2", "mlp.4"];
    assert!(refused(&names, &[("mpl", "net"), ("mlp", "net")]).contains("has no module \"mpl\""));
    assert!(refused(&names, &[("mlp", "net"), ("", "nothing")]).contains("\"nothing\""));
    let other = refused(&names, &[("mlp", "nett")]);
    assert!(other.contains("no array of module \"mlp\" belongs to a parameter of \"nett\""), "{other}");
    let fewer = refused(&["mlp.0", "mlp.2"], &[("mlp", "net")]);
    assert!(fewer.contains("layers [0, 2], and the layers here are [0, 1, 2]"), "{fewer}");
}
