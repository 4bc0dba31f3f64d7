//! Recurrent layers.

use crate::lab::*;
use autobatch_ir::{INDEX, Init, ModuleBuilder};
use autobatch_nn::pytorch::{from_pytorch_gru, from_pytorch_lstm};
use autobatch_nn::{
    BiLstm, Gru, GruOptions, Hoist, Lstm, LstmOptions, Rnn, RnnOptions, Stacked, dropout_mask, unroll,
};
use autobatch_oracle::reference::Noise;

const IN: usize = 3;
const H: usize = 4;

/// The two weights of an LSTM's products, from a joint or from separate declarations.
fn halves(lab: &Lab, name: &str, input: usize, gates: usize) -> [Vec<f64>; 2] {
    match lab.weights.by_name(&format!("{name}.w")) {
        Ok(joint) => {
            let (x, h) = joint.split_at(input * gates);
            [wide(x), wide(h)]
        }
        Err(_) => ["wx", "wh"].map(|part| lab.param(&format!("{name}.{part}"))),
    }
}

/// The states of an LSTM, `[h, c]` after each input.
fn lstm(lab: &Lab, name: &str, options: &LstmOptions, xs: &[Vec<f64>]) -> Vec<[Vec<f64>; 2]> {
    let [wx, wh] = halves(lab, name, xs[0].len(), 4 * H);
    let p = |part: &str| lab.param(&format!("{name}.{part}"));
    let (mut h, mut c, mut states) = (vec![0.0; H], vec![0.0; H], Vec::new());
    for x in xs {
        let (mut px, mut ph) = (product(x, &wx), product(&h, &wh));
        if options.layer_norm {
            px = mul(&normed(&px), &p("gx"));
            ph = mul(&normed(&ph), &p("gh"));
        }
        let z = add(&add(&px, &ph), &p("b"));
        let [mut i, mut f, u, mut o] = [0, 1, 2, 3].map(|gate| z[gate * H..(gate + 1) * H].to_vec());
        if options.peepholes {
            i = add(&i, &mul(&p("pi"), &c));
            f = add(&f, &mul(&p("pf"), &c));
        }
        c = add(&mul(&sigmoid(&f), &c), &mul(&sigmoid(&i), &tanh(&u)));
        if options.peepholes {
            o = add(&o, &mul(&p("po"), &c));
        }
        let seen =
            if options.layer_norm { add(&mul(&normed(&c), &p("c.gain")), &p("c.bias")) } else { c.clone() };
        h = mul(&sigmoid(&o), &tanh(&seen));
        states.push([h.clone(), c.clone()]);
    }
    states
}

#[test]
fn an_lstm_computes_its_formula_with_every_option() {
    for hoist in [Hoist::No, Hoist::Yes] {
        for (layer_norm, peepholes) in [(false, false), (true, false), (false, true), (true, true)] {
            let options = LstmOptions { hoist, layer_norm, peepholes, ..LstmOptions::default() };
            let (lab, layer) = Lab::with(|m| Lstm::with_options(m, "l", IN, H, &options));
            let xs = rows(1, 5, IN);
            let found = lab.eval(|g| layer.run(g, inputs(g, &xs)));
            let xs: Vec<Vec<f64>> = xs.iter().map(|x| wide(x)).collect();
            for (found, [expected, _]) in found.iter().zip(lstm(&lab, "l", &options, &xs)) {
                close(found, &expected);
            }
            assert_eq!(found.len(), 5);
        }
    }
}

#[test]
fn a_gru_computes_its_formula() {
    for layer_norm in [false, true] {
        let options = GruOptions { layer_norm, ..GruOptions::default() };
        let (lab, layer) = Lab::with(|m| Gru::with_options(m, "l", IN, H, &options));
        let xs = rows(1, 4, IN);
        let found = lab.eval(|g| layer.run(g, inputs(g, &xs)));
        let p = |part: &str| lab.param(&format!("l.{part}"));
        let mut h = vec![0.0; H];
        for (x, found) in xs.iter().zip(&found) {
            let (mut px, mut ph) = (product(&wide(x), &p("wx")), product(&h, &p("wh")));
            if layer_norm {
                px = mul(&normed(&px), &p("gx"));
                ph = mul(&normed(&ph), &p("gh"));
            }
            let px = add(&px, &p("b"));
            let gate = |k: usize| sigmoid(&add(&px[k * H..(k + 1) * H], &ph[k * H..(k + 1) * H]));
            let (r, z) = (gate(0), gate(1));
            let n = tanh(&add(&px[2 * H..], &mul(&r, &add(&ph[2 * H..], &p("bn")))));
            h = add(&mul(&map(&z, |z| 1.0 - z), &n), &mul(&z, &h));
            close(found, &h);
        }
    }
}

#[test]
fn an_rnn_computes_its_formula() {
    for (hoist, layer_norm) in [(Hoist::No, false), (Hoist::Yes, false), (Hoist::Yes, true)] {
        let activation = autobatch_nn::Activation::Relu;
        let options = RnnOptions { hoist, layer_norm, activation, ..RnnOptions::default() };
        let (lab, layer) = Lab::with(|m| Rnn::with_options(m, "l", IN, H, &options));
        let xs = rows(1, 4, IN);
        let found = lab.eval(|g| layer.run(g, inputs(g, &xs)));
        let [wx, wh] = halves(&lab, "l", IN, H);
        let mut h = vec![0.0; H];
        for (x, found) in xs.iter().zip(&found) {
            let (mut px, mut ph) = (product(&wide(x), &wx), product(&h, &wh));
            if layer_norm {
                px = mul(&normed(&px), &lab.param("l.gx"));
                ph = mul(&normed(&ph), &lab.param("l.gh"));
            }
            h = map(&add(&add(&px, &ph), &lab.param("l.b")), |x| x.max(0.0));
            close(found, &h);
        }
    }
}

#[test]
fn the_three_ways_to_use_a_layer_give_the_same_bits() {
    for hoist in [Hoist::No, Hoist::Yes] {
        let options = LstmOptions { hoist, ..LstmOptions::default() };
        let (lab, layer) = Lab::with(|m| Lstm::with_options(m, "l", IN, H, &options));
        let xs = rows(1, 4, IN);
        let run = lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &xs)));
        let last = lab.bits(Noise::Off, |g| vec![layer.last(g, inputs(g, &xs))]);
        let pushed = lab.bits(Noise::Off, |g| {
            let mut state = layer.start(g);
            inputs(g, &xs)
                .into_iter()
                .map(|x| {
                    state = state.push(x);
                    state.h()
                })
                .collect()
        });
        assert_eq!(run, pushed);
        assert_eq!(run[3..], last);
    }
}

#[test]
fn continuing_from_an_older_state_pops() {
    let (lab, layer) = Lab::with(|m| Lstm::new(m, "l", IN, H));
    let xs = rows(1, 3, IN);
    let popped = lab.bits(Noise::Off, |g| {
        let [a, b, c] = [0, 1, 2].map(|k| g.input(&xs[k]));
        let kept = layer.start(g).push(a);
        let _ = kept.push(b);
        kept.push(c).values().to_vec()
    });
    let direct = lab.bits(Noise::Off, |g| {
        let [a, c] = [0, 2].map(|k| g.input(&xs[k]));
        layer.start(g).push(a).push(c).values().to_vec()
    });
    assert_eq!(popped, direct);
}

#[test]
fn hoisting_preserves_the_bits_of_grus_and_normalised_layers() {
    let xs = rows(1, 4, IN);
    for layer_norm in [false, true] {
        let [a, b] = [Hoist::No, Hoist::Yes].map(|hoist| {
            let options = GruOptions { hoist, layer_norm, ..GruOptions::default() };
            let (lab, layer) = Lab::with(|m| Gru::with_options(m, "l", IN, H, &options));
            lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &xs)))
        });
        assert_eq!(a, b);
    }
    let [a, b] = [Hoist::No, Hoist::Yes].map(|hoist| {
        let options = LstmOptions { hoist, layer_norm: true, ..LstmOptions::default() };
        let (lab, layer) = Lab::with(|m| Lstm::with_options(m, "l", IN, H, &options));
        lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &xs)))
    });
    assert_eq!(a, b);
}

#[test]
fn no_inputs_give_the_initial_state() {
    let (lab, (one, both)) = Lab::with(|m| (Lstm::new(m, "l", IN, H), BiLstm::new(m, "b", IN, H)));
    let none: [Vec<f32>; 0] = [];
    let found = lab.eval(|g| vec![one.last(g, inputs(g, &none)), both.last(g, inputs(g, &none))]);
    assert_eq!(found, [vec![0.0; H], vec![0.0; 2 * H]]);
    assert!(lab.eval(|g| both.run(g, inputs(g, &none))).is_empty());
}

#[test]
fn a_bidirectional_layer_reads_from_both_ends() {
    let (lab, layer) = Lab::with(|m| BiLstm::new(m, "l", IN, H));
    let xs = rows(1, 4, IN);
    let found = lab.eval(|g| {
        let xs = inputs(g, &xs);
        let mut outputs = layer.run(g, &xs);
        outputs.push(layer.last(g, &xs));
        outputs
    });
    let mut xs: Vec<Vec<f64>> = xs.iter().map(|x| wide(x)).collect();
    let options = LstmOptions::default();
    let forward = lstm(&lab, "l.fw", &options, &xs);
    xs.reverse();
    let mut backward = lstm(&lab, "l.bw", &options, &xs);
    let last = join(&forward[3][0], &backward[3][0]);
    backward.reverse();
    for (found, (f, b)) in found.iter().zip(forward.iter().zip(&backward)) {
        close(found, &join(&f[0], &b[0]));
    }
    close(&found[4], &last);
    assert_eq!((layer.input(), layer.width()), (IN, 2 * H));
}

#[test]
fn a_layer_of_a_stack_takes_the_outputs_of_the_layer_below() {
    let (lab, layer) = Lab::with(|m| Stacked::<Lstm, 3>::new(m, "l", IN, H));
    let xs = rows(1, 4, IN);
    let found = lab.eval(|g| {
        let xs = inputs(g, &xs);
        let mut outputs = layer.run(g, &xs);
        outputs.push(layer.last(g, &xs));
        let mut state = layer.start(g);
        for &x in &xs {
            state = state.push(x);
        }
        outputs.push(state.h());
        outputs
    });
    let xs: Vec<Vec<f64>> = xs.iter().map(|x| wide(x)).collect();
    let options = LstmOptions::default();
    let hidden = |name: &str, xs: &[Vec<f64>]| -> Vec<Vec<f64>> {
        lstm(&lab, name, &options, xs).into_iter().map(|[h, _]| h).collect()
    };
    let above = hidden("l.2", &hidden("l.1", &hidden("l.0", &xs)));
    for (found, place) in found.iter().zip([0, 1, 2, 3, 3, 3]) {
        close(found, &above[place]);
    }
    assert_eq!(found.len(), 6);
}

#[test]
fn stacked_bidirectional_layers_take_both_directions() {
    let (lab, layer) = Lab::with(|m| Stacked::<BiLstm, 2>::new(m, "l", IN, H));
    assert_eq!((layer.input(), layer.width()), (IN, 2 * H));
    assert_eq!(lab.param("l.1.fw.w").len(), (2 * H + H) * 4 * H);
    let found = lab.eval(|g| layer.run(g, inputs(g, &rows(1, 3, IN))));
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [2 * H; 3]);
}

#[test]
fn stacked_and_bidirectional_projected_layers_have_the_projections_width() {
    for hoist in [Hoist::No, Hoist::Yes] {
        let options = LstmOptions {
            hoist,
            projection: Some(2),
            layer_norm: true,
            peepholes: true,
            hidden_dropout: 0.5,
            forget_bias: 1.0,
            ..LstmOptions::default()
        };
        let (lab, layer) = Lab::with(|m| Stacked::<BiLstm, 2>::with_options(m, "l", IN, H, &options, 0.0));
        assert_eq!((layer.input(), layer.width()), (IN, 4));
        assert_eq!(lab.param("l.1.fw.wx").len(), 4 * 4 * H);
        assert_eq!(lab.param("l.1.bw.wh").len(), 2 * 4 * H);
        assert_eq!(lab.param("l.0.bw.wr").len(), H * 2);
        let found = lab.eval(|g| layer.run(g, inputs(g, &rows(1, 3, IN))));
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [4; 3]);
        let none: [Vec<f32>; 0] = [];
        assert_eq!(lab.eval(|g| vec![layer.last(g, inputs(g, &none))]), [vec![0.0; 4]]);
    }
}

#[test]
fn the_forget_gate_has_the_configured_initial_bias() {
    let mut m = ModuleBuilder::new("m");
    let options = LstmOptions { forget_bias: 1.0, ..LstmOptions::default() };
    let _ = Lstm::with_options(&mut m, "l", IN, 2, &options);
    let module = m.build().unwrap();
    let weights = autobatch_ir::Weights::init(&module, 1);
    assert_eq!(weights.by_name("l.b").unwrap(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
}

const TRAIN: Noise = Noise::On { seed: 5, step: 2 };

#[test]
fn variational_dropout_uses_one_mask_per_sequence() {
    for hoist in [Hoist::No, Hoist::Yes] {
        let options =
            LstmOptions { hoist, input_dropout: 0.5, hidden_dropout: 0.5, ..LstmOptions::default() };
        let (lab, layer) = Lab::with(|m| Lstm::with_options(m, "l", IN, H, &options));
        let plain = LstmOptions { hoist, ..LstmOptions::default() };
        let (plain_lab, plain_layer) = Lab::with(|m| Lstm::with_options(m, "l", IN, H, &plain));
        let xs = rows(1, 4, IN);
        let dropped = lab.bits(TRAIN, |g| layer.run(g, inputs(g, &xs)));
        let by_hand = plain_lab.bits(TRAIN, |g| {
            let (mx, mh) = (dropout_mask(g, IN, 0.5), dropout_mask(g, H, 0.5));
            let mut c = g.zeros([H]);
            let mut h = c;
            let mut outputs = Vec::new();
            for x in inputs(g, &xs) {
                [h, c] = plain_layer.start_from([h * mh, c]).push(x * mx).values();
                outputs.push(h);
            }
            outputs
        });
        let plain = plain_lab.bits(TRAIN, |g| plain_layer.run(g, inputs(g, &xs)));
        assert_eq!(dropped, by_hand);
        assert_ne!(dropped, plain);
        let evaluated = lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &xs)));
        assert_eq!(evaluated, plain, "in inference a mask must be ones");
    }
}

#[test]
fn dropout_between_layers_draws_a_new_mask_at_each_step() {
    let (lab, layer) =
        Lab::with(|m| Stacked::<Rnn, 2>::with_options(m, "l", H, H, &RnnOptions::default(), 0.5));
    let x = row(4, H);
    let emit = |g: &autobatch_ir::Graph| g.data().arena.len();
    let g = autobatch_ir::Graph::new(&lab.module);
    g.instance(0);
    let xs = [g.input(&x), g.input(&x), g.input(&x)];
    let before = emit(&g);
    let _ = layer.run(&g, xs);
    // Two starts, three steps of two layers, three dropouts; two bound words each.
    assert_eq!(emit(&g) - before, 2 + 6 + 3);
    assert_eq!(g.finish().unwrap().bindings.words.len(), 6);
    let trained = lab.bits(TRAIN, |g| layer.run(g, inputs(g, &[x.clone(), x.clone()])));
    let evaluated = lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &[x.clone(), x.clone()])));
    assert_ne!(trained, evaluated);
}

#[test]
fn any_cell_unrolls_over_values_or_words() {
    let (lab, cell) = Lab::with(|m| {
        let words = m.table("words", [5, H], Init::ZEROS);
        m.cell("count", [INDEX, autobatch_ir::f32([H]), autobatch_ir::f32([H])], |_, [word, s, t]| {
            [s + words.row(word), s * t]
        })
    });
    let found = lab.eval(|g| {
        let start = [g.zeros([H]), g.fill([H], 1.0)];
        let states = unroll(g, cell, start, [4u32, 2]);
        states.into_iter().flatten().collect()
    });
    let words = lab.param("words");
    let [four, two] = [4, 2].map(|k| words[k * H..(k + 1) * H].to_vec());
    close(&found[0], &four);
    close(&found[1], &[0.0; H]);
    close(&found[2], &add(&four, &two));
    close(&found[3], &[0.0; H]);
}

/// `weight · x + bias` with PyTorch's `[outputs, inputs]`.
fn pytorch_linear(weight: &[f32], bias: &[f32], x: &[f64]) -> Vec<f64> {
    let dots = weight.chunks(x.len()).map(|row| mul(&wide(row), x).iter().sum::<f64>());
    dots.zip(bias).map(|(dot, &bias)| dot + f64::from(bias)).collect()
}

/// `weight_ih`, `weight_hh`, `bias_ih`, `bias_hh` of a layer with this number of gates.
fn pytorch_arrays(gates: usize) -> [Vec<f32>; 4] {
    let width = gates * H;
    [row(21, width * IN), row(22, width * H), row(23, width), row(24, width)]
}

#[test]
fn a_converted_pytorch_lstm_has_the_same_outputs() {
    let [w_ih, w_hh, b_ih, b_hh] = pytorch_arrays(4);
    let (w, b) = from_pytorch_lstm(&w_ih, &w_hh, &b_ih, &b_hh).unwrap();
    let xs = rows(1, 4, IN);
    for hoist in [Hoist::No, Hoist::Yes] {
        let options = LstmOptions { hoist, ..LstmOptions::default() };
        let (mut lab, layer) = Lab::with(|m| Lstm::with_options(m, "l", IN, H, &options));
        match hoist {
            Hoist::No => lab.weights.set_by_name("l.w", &w).unwrap(),
            Hoist::Yes => {
                let (wx, wh) = w.split_at(IN * 4 * H);
                lab.weights.set_by_name("l.wx", wx).unwrap();
                lab.weights.set_by_name("l.wh", wh).unwrap();
            }
        }
        lab.weights.set_by_name("l.b", &b).unwrap();
        let found = lab.eval(|g| layer.run(g, inputs(g, &xs)));
        let (mut h, mut c) = (vec![0.0; H], vec![0.0; H]);
        for (x, found) in xs.iter().zip(&found) {
            let z = add(&pytorch_linear(&w_ih, &b_ih, &wide(x)), &pytorch_linear(&w_hh, &b_hh, &h));
            let gate = |k: usize| &z[k * H..(k + 1) * H];
            c = add(&mul(&sigmoid(gate(1)), &c), &mul(&sigmoid(gate(0)), &tanh(gate(2))));
            h = mul(&sigmoid(gate(3)), &tanh(&c));
            // The sum of the two biases was rounded to f32.
            assert!(found.iter().zip(&h).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {h:?}");
        }
    }
}

#[test]
fn a_converted_pytorch_gru_has_the_same_outputs() {
    let [w_ih, w_hh, b_ih, b_hh] = pytorch_arrays(3);
    let arrays = from_pytorch_gru(&w_ih, &w_hh, &b_ih, &b_hh).unwrap();
    let xs = rows(1, 4, IN);
    let (mut lab, layer) = Lab::with(|m| Gru::new(m, "l", IN, H));
    for (name, values) in [("wx", arrays.wx), ("wh", arrays.wh), ("b", arrays.b), ("bn", arrays.bn)] {
        lab.weights.set_by_name(&format!("l.{name}"), &values).unwrap();
    }
    let found = lab.eval(|g| layer.run(g, inputs(g, &xs)));
    let mut h = vec![0.0; H];
    for (x, found) in xs.iter().zip(&found) {
        let (px, ph) = (pytorch_linear(&w_ih, &b_ih, &wide(x)), pytorch_linear(&w_hh, &b_hh, &h));
        let gate = |k: usize| sigmoid(&add(&px[k * H..(k + 1) * H], &ph[k * H..(k + 1) * H]));
        let n = tanh(&add(&px[2 * H..], &mul(&gate(0), &ph[2 * H..])));
        h = add(&mul(&map(&gate(1), |z| 1.0 - z), &n), &mul(&gate(1), &h));
        assert!(found.iter().zip(&h).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {h:?}");
    }
}
