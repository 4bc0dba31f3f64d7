//! Tree layers.

use crate::lab::*;
use autobatch_ir::Init;
use autobatch_nn::{
    ChildSumTreeLstm, Embedding, Hoist, MvRnn, TreeGru, TreeGruOptions, TreeLstm, TreeLstmOptions, TreeRnn,
    TreeRnnOptions,
};
use autobatch_oracle::reference::Noise;

const IN: usize = 3;
const H: usize = 4;

/// The part of a row that belongs to a gate or child.
fn part(row: &[f64], number: usize) -> &[f64] {
    &row[number * H..(number + 1) * H]
}

#[test]
fn a_binary_tree_lstm_has_the_gates_of_spinn() {
    let (lab, layer) = Lab::with(|m| TreeLstm::<2>::new(m, "t", H));
    let v = rows(1, 4, H);
    let found = lab.eval(|g| {
        let [lh, lc, rh, rc] = [0, 1, 2, 3].map(|k| g.input(&v[k]));
        layer.node(g, [[lh, lc], [rh, rc]]).to_vec()
    });
    let [lh, lc, rh, rc] = [0, 1, 2, 3].map(|k| wide(&v[k]));
    let (w, b) = (lab.param("t.w"), lab.param("t.b"));
    // Two added products, as in SPINN: the rows of the left child first.
    let (left, right) = w.split_at(H * 5 * H);
    let z = add(&add(&product(&lh, left), &product(&rh, right)), &b);
    let [a, i, f1, f2, o] = [0, 1, 2, 3, 4].map(|gate| part(&z, gate));
    let own = mul(&tanh(a), &sigmoid(i));
    let c = add(&add(&own, &mul(&sigmoid(f1), &lc)), &mul(&sigmoid(f2), &rc));
    close(&found[0], &mul(&sigmoid(o), &tanh(&c)));
    close(&found[1], &c);
}

#[test]
fn a_ternary_tree_lstm_takes_its_input_first() {
    let options = TreeLstmOptions { input: Some(IN), ..TreeLstmOptions::default() };
    let (lab, layer) = Lab::with(|m| TreeLstm::<3>::with_options(m, "t", H, &options));
    let (x, v) = (row(9, IN), rows(1, 6, H));
    let found = lab.eval(|g| {
        let children = [0, 2, 4].map(|k| [g.input(&v[k]), g.input(&v[k + 1])]);
        layer.node_with(g, g.input(&x), children).to_vec()
    });
    let all = [&x[..], &v[0], &v[2], &v[4]].concat();
    let z = affine(&wide(&all), &lab.param("t.w"), &lab.param("t.b"));
    let mut c = mul(&tanh(part(&z, 0)), &sigmoid(part(&z, 1)));
    for child in 0..3 {
        c = add(&c, &mul(&sigmoid(part(&z, 2 + child)), &wide(&v[2 * child + 1])));
    }
    close(&found[0], &mul(&sigmoid(part(&z, 5)), &tanh(&c)));
    close(&found[1], &c);
}

#[test]
fn the_forget_gates_of_a_tree_lstm_have_the_configured_initial_bias() {
    let mut m = autobatch_ir::ModuleBuilder::new("m");
    let options = TreeLstmOptions { forget_bias: 2.0, ..TreeLstmOptions::default() };
    let _ = TreeLstm::<2>::with_options(&mut m, "t", 1, &options);
    let module = m.build().unwrap();
    let weights = autobatch_ir::Weights::init(&module, 1);
    assert_eq!(weights.by_name("t.b").unwrap(), [0.0, 0.0, 2.0, 2.0, 0.0]);
}

#[test]
fn a_child_sum_tree_lstm_computes_the_published_formula_for_any_number_of_children() {
    for hoist in [Hoist::No, Hoist::Yes] {
        let (lab, layer) =
            Lab::with(|m| ChildSumTreeLstm::with_options(m, "t", IN, H, hoist, &Init::Glorot(1.0)));
        for count in [0, 1, 3] {
            let (x, v) = (row(9, IN), rows(1, 2 * count, H));
            let found = lab.eval(|g| {
                let v = inputs(g, &v);
                let children: Vec<_> = v.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
                layer.node(g, g.input(&x), &children).to_vec()
            });
            let p = |name: &str| lab.param(&format!("t.{name}"));
            let x = wide(&x);
            let sum = v.iter().step_by(2).fold(vec![0.0; H], |sum, h| add(&sum, &wide(h)));
            // For each form: the gates i, o, u, and the forget gate of one child.
            let joined = p("b");
            let iou = match hoist {
                Hoist::No => affine(&join(&x, &sum), &p("w"), &joined),
                Hoist::Yes => add(&affine(&x, &p("wx"), &joined), &product(&sum, &p("u"))),
            };
            let forget = |h: &[f64]| match hoist {
                Hoist::No => sigmoid(&affine(&join(&x, h), &p("wf"), &p("bf"))),
                Hoist::Yes => sigmoid(&add(&affine(&x, &p("wf"), &p("bf")), &product(h, &p("uf")))),
            };
            let mut c = mul(&sigmoid(part(&iou, 0)), &tanh(part(&iou, 2)));
            for child in v.chunks(2) {
                c = add(&c, &mul(&forget(&wide(&child[0])), &wide(&child[1])));
            }
            close(&found[0], &mul(&sigmoid(part(&iou, 1)), &tanh(&c)));
            close(&found[1], &c);
        }
    }
}

#[test]
fn a_child_sum_tree_lstm_of_words_equals_one_of_vectors_bit_for_bit() {
    for hoist in [Hoist::No, Hoist::Yes] {
        let (lab, of_words) = Lab::with(|m| {
            let words = Embedding::new(m, "words", 9, IN).padding(4);
            ChildSumTreeLstm::of_words(m, "t", words, H, hoist, &Init::Glorot(1.0))
        });
        // The same parameters, declared in the same order.
        let (same, (words, layer)) = Lab::with(|m| {
            let words = Embedding::new(m, "words", 9, IN).padding(4);
            (words, ChildSumTreeLstm::with_options(m, "t", IN, H, hoist, &Init::Glorot(1.0)))
        });
        assert_eq!(of_words.input(), IN);
        let found = lab.bits(Noise::Off, |g| {
            let leaves = [3, 4, 8].map(|word| of_words.node(g, word, &[]));
            let root = of_words.node(g, 5, &leaves);
            [root, leaves[1]].concat()
        });
        let emitted = same.bits(Noise::Off, |g| {
            let leaves = [3, 4, 8].map(|word| layer.node(g, words.lookup(g, word), &[]));
            let root = layer.node(g, words.lookup(g, 5), &leaves);
            [root, leaves[1]].concat()
        });
        assert_eq!(found, emitted);
    }
}

#[test]
fn a_tree_rnn_concatenates_its_children() {
    let options = TreeRnnOptions { input: Some(IN), bias: true, ..TreeRnnOptions::default() };
    let (lab, (plain, full)) =
        Lab::with(|m| (TreeRnn::<2>::new(m, "plain", H), TreeRnn::<3>::with_options(m, "full", H, &options)));
    let (x, v) = (row(9, IN), rows(1, 3, H));
    let found = lab.eval(|g| {
        let [a, b, c] = [0, 1, 2].map(|k| g.input(&v[k]));
        vec![plain.node(g, [a, b]), full.node_with(g, g.input(&x), [a, b, c])]
    });
    let pair = wide(&[&v[0][..], &v[1]].concat());
    close(&found[0], &tanh(&product(&pair, &lab.param("plain.w"))));
    let all = wide(&[&x[..], &v[0], &v[1], &v[2]].concat());
    close(&found[1], &tanh(&affine(&all, &lab.param("full.w"), &lab.param("full.b"))));
}

#[test]
fn a_tree_gru_resets_each_child() {
    for input in [None, Some(IN)] {
        let options = TreeGruOptions { input, ..TreeGruOptions::default() };
        let (lab, layer) = Lab::with(|m| TreeGru::<2>::with_options(m, "t", H, &options));
        let (x, v) = (row(9, IN), rows(1, 2, H));
        let found = lab.eval(|g| {
            let children = [0, 1].map(|k| g.input(&v[k]));
            vec![match input {
                None => layer.node(g, children),
                Some(_) => layer.node_with(g, g.input(&x), children),
            }]
        });
        let x = if input.is_some() { wide(&x) } else { Vec::new() };
        let [l, r] = [0, 1].map(|k| wide(&v[k]));
        let p = |name: &str| lab.param(&format!("t.{name}"));
        let gates = sigmoid(&affine(&[&x[..], &l, &r].concat(), &p("w"), &p("b")));
        let reset = [&x[..], &mul(part(&gates, 0), &l), &mul(part(&gates, 1), &r)].concat();
        let n = tanh(&affine(&reset, &p("u"), &p("bn")));
        let z = part(&gates, 2);
        close(&found[0], &add(&mul(z, &add(&l, &r)), &mul(&map(z, |z| 1.0 - z), &n)));
    }
}

#[test]
fn matrix_vector_nodes_apply_each_matrix_to_the_other_vector() {
    const N: usize = 2;
    let (lab, layer) = Lab::with(|m| MvRnn::new(m, "t", N));
    let (v, mats) = (rows(1, 2, N), rows(5, 2, N * N));
    let found = lab.eval(|g| {
        let [l, r] = [0, 1].map(|k| layer.leaf(g.input(&v[k]), g.input(&mats[k])));
        layer.node(g, l, r).to_vec()
    });
    // The published form, without transposition.
    let transpose = |m: &[f64]| vec![m[0], m[2], m[1], m[3]];
    let times = |m: &[f64], v: &[f64]| vec![m[0] * v[0] + m[1] * v[1], m[2] * v[0] + m[3] * v[1]];
    let [a, b] = [0, 1].map(|k| wide(&v[k]));
    let [ma, mb] = [0, 1].map(|k| transpose(&wide(&mats[k])));
    let acted = join(&times(&mb, &a), &times(&ma, &b));
    close(&found[0], &tanh(&affine(&acted, &lab.param("t.w"), &lab.param("t.b"))));
    let wm = lab.param("t.wm"); // [2 N, N], the transpose of the paper's N x 2 N
    let mut p = [[0.0; N]; N];
    for (i, row) in p.iter_mut().enumerate() {
        for (j, element) in row.iter_mut().enumerate() {
            for k in 0..N {
                *element += wm[k * N + i] * ma[k * N + j] + wm[(N + k) * N + i] * mb[k * N + j];
            }
        }
    }
    close(&found[1], &transpose(&p.concat()));
}

#[test]
fn a_leaf_has_its_vector_and_a_zero_memory() {
    let (lab, layer) = Lab::with(|m| TreeLstm::<2>::new(m, "t", H));
    let x = row(1, H);
    let found = lab.eval(|g| layer.leaf(g.input(&x)).to_vec());
    assert_eq!(found, [wide(&x), vec![0.0; H]]);
}
