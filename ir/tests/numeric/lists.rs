//! Products and list folds against a second implementation of their definition.

use autobatch_ir::numeric::product::{Part, outer, prod_chain};
use autobatch_ir::numeric::{list, row, scalar};

use crate::Random;
use crate::folds::assert_same;

const NAN: f32 = f32::NAN;

#[test]
fn a_product_is_one_chain_for_any_split_of_its_operands() {
    let seed = 25;
    println!("seed {seed}");
    let mut random = Random(seed);
    let (x, w) = (random.row(37, 1.0), random.row(37 * 5, 1.0));
    for column in 0..5 {
        let expected = (0..37).fold(0.25, |acc, k| x[k].mul_add(w[k * 5 + column], acc));
        for cut in 0..=37 {
            let parts =
                [Part::column(&x[..cut], &w, 5, 0, column), Part::column(&x[cut..], &w, 5, cut, column)];
            assert_same("two parts", prod_chain(0.25, &parts), expected);
            let hoisted = prod_chain(0.25, &parts[..1]);
            assert_same("the first part hoisted", prod_chain(hoisted, &parts[1..]), expected);
        }
    }
    assert_same("no parts", prod_chain(-0.0, &[]), -0.0);
    assert_same("contiguous", prod_chain(0.0, &[Part::contiguous(&[2.0, 3.0], &[5.0, 7.0])]), 31.0);
    assert_same(
        "beyond the weight",
        prod_chain(1.0, &[Part { x: &x, w: &w, first: usize::MAX, stride: 0 }]),
        1.0,
    );
    let mut out = [0.0; 6];
    outer(&[1.0, 2.0], &[3.0, 4.0, 5.0], &mut out);
    assert_eq!(out, [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]);
}

#[test]
fn list_folds_go_left_to_right() {
    let values: [&[f32]; 3] = [&[1e8, -0.0, 1.0], &[1.0, -0.0, NAN], &[-1e8, -0.0, 2.0]];
    let mut out = [9.0; 3];
    list::sum(&values, &mut out);
    assert_same("absorbed", out[0], 0.0);
    assert_same("negative zeros", out[1], -0.0);
    assert!(out[2].is_nan());
    list::mean(&values[..2], &mut out);
    assert_same("mean", out[0], (1e8f32 + 1.0) / 2.0);
    list::max(&values, &mut out);
    assert_same("max", out[0], 1e8);
    assert!(out[2].is_nan());
    let mut places = [9; 3];
    list::argmax(&values, &mut places);
    assert_eq!(places, [0, 0, 1]);
    list::argmax::<f32>(&[&[1.0, 5.0], &[1.0, 7.0]], &mut places[..2]);
    assert_eq!(places[..2], [0, 1]);

    let coefficients: [&[f32]; 3] = [&[0.5], &[0.25, 0.5, 0.125], &[2.0]];
    list::weighted_sum(&coefficients, &values, &mut out);
    let expected = (-1e8f32).mul_add(2.0, 1f32.mul_add(0.25, 1e8f32.mul_add(0.5, 0.0)));
    assert_same("weighted sum", out[0], expected);
}

#[test]
fn folds_of_empty_lists_are_zero() {
    type Fold = fn(&mut [f32]);
    let folds: [(&str, Fold); 6] = [
        ("sum", |out| list::sum(&[], out)),
        ("mean", |out| list::mean(&[], out)),
        ("max", |out| list::max(&[], out)),
        ("weighted_sum", |out| list::weighted_sum(&[], &[], out)),
        ("softmax_weighted_sum", |out| list::softmax_weighted_sum(&[], &[], out)),
        ("attend", |out| list::attend(&[1.0], &[], &[], 1.0, out)),
    ];
    for (name, fold) in folds {
        let mut out = [NAN; 3];
        fold(&mut out);
        assert_eq!(out.map(f32::to_bits), [0; 3], "{name}");
    }
}

#[test]
fn softmax_over_a_list_is_softmax_per_element() {
    let scores: [&[f32]; 3] = [&[1.0, -5.0], &[2.0, 5.0], &[3.0, 0.0]];
    let mut weights = [0.0; 6];
    list::softmax(&scores, &mut weights);
    for e in 0..2 {
        let column = scores.map(|score| score[e]);
        let top = column.into_iter().fold(column[0], scalar::max);
        let exponentials = column.map(|s| scalar::exp(s - top));
        let total = exponentials[0] + exponentials[1] + exponentials[2];
        for i in 0..3 {
            assert_same("weight", weights[i * 2 + e], exponentials[i] * (1.0 / total));
        }
    }
    let values: [&[f32]; 3] = [&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]];
    let mut out = [0.0; 2];
    list::softmax_weighted_sum(&scores, &values, &mut out);
    for e in 0..2 {
        let expected = (0..3).fold(0.0, |acc, i| weights[i * 2 + e].mul_add(values[i][e], acc));
        assert_same("gated sum", out[e], expected);
    }
}

#[test]
fn attention_is_dot_scale_softmax_weighted_sum() {
    let query = [1.0f32, -2.0, 0.5];
    let keys: [&[f32]; 2] = [&[0.5, 0.25, 1.0], &[-1.0, 0.0, 2.0]];
    let values: [&[f32]; 2] = [&[1.0, 2.0], &[3.0, -4.0]];
    let scores = keys.map(|key| [row::dot(&query, key) * 0.5]);
    let mut expected = [0.0; 2];
    list::softmax_weighted_sum(&[&scores[0], &scores[1]], &values, &mut expected);
    let mut out = [0.0; 2];
    list::attend(&query, &keys, &values, 0.5, &mut out);
    assert_eq!(out.map(f32::to_bits), expected.map(f32::to_bits));
    let one = [values[0]];
    list::attend(&query, &keys[..1], &one, 0.5, &mut out);
    assert_eq!(out, [1.0, 2.0], "a single value must be returned unchanged");
}
