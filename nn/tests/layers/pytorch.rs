//! Outputs and gradients of layers against figures of PyTorch 2.4 in `f64`.
//!
//! Element `j` of parameter `k`, in the order of declaration, is `((7 j + 5 k + 3) mod 11) / 5 - 1`. The inputs of the
//! layer are parameters too, declared after its own. The loss is the dot product of all outputs, concatenated, with
//! these numbers for `k = 0`. A row of figures is the loss, then the dot product of each parameter's gradient with the same
//! numbers. Equal figures therefore indicate equal gradients. In Python:
//!
//! ```python
//! import torch
//! from torch import nn
//! torch.set_default_dtype(torch.float64)
//! def numbers(k, *shape):
//!     n = torch.Size(shape).numel()
//!     return torch.tensor([((7 * j + 5 * k + 3) % 11) / 5 - 1 for j in range(n)]).reshape(shape).requires_grad_()
//! def figures(params, *outputs):
//!     flat = torch.cat([y.reshape(-1) for y in outputs])
//!     loss = flat @ numbers(0, len(flat)).detach()
//!     grads = torch.autograd.grad(loss, params)
//!     print(loss.item(), *[(g.reshape(-1) @ numbers(0, g.numel())).item() for g in grads])
//! def recurrent(layer, params, xs, state):  # the second bias is zero here
//!     w, b = params
//!     arrays = [w[:3].T, w[3:].T, b, torch.zeros(b.shape)]
//!     names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
//!     return torch.func.functional_call(layer, dict(zip(names, arrays)), (torch.stack(xs), state))
//! ```

use autobatch_ir::{Graph, Init, ModuleBuilder, Param, Value, Weights};
use autobatch_nn::*;
use autobatch_oracle::reference::{Noise, forward, reverse};

fn numbers(k: usize, count: usize) -> Vec<f32> {
    (0..count).map(|j| ((7 * j + 5 * k + 3) % 11) as f32 / 5.0 - 1.0).collect()
}

fn dot(numbers: &[f32], values: &[f64]) -> f64 {
    numbers.iter().zip(values).map(|(&n, v)| f64::from(n) * v).sum()
}

/// Declares `count` parameters that serve as inputs.
pub(crate) fn given(m: &mut ModuleBuilder, name: &str, count: usize, width: usize) -> Vec<Param> {
    (0..count).map(|number| m.param(&format!("{name}.{number}"), [width], Init::ZEROS)).collect()
}

pub(crate) fn values<'g>(g: &'g Graph, params: &[Param]) -> Vec<Value<'g>> {
    params.iter().map(|&param| g.param(param)).collect()
}

/// Compares the loss and the gradients with a row of figures.
#[track_caller]
pub(crate) fn agrees<L>(
    declare: impl FnOnce(&mut ModuleBuilder) -> L,
    emit: impl for<'g> FnOnce(&'g Graph, L) -> Vec<Value<'g>>,
    figures: &[f64],
) {
    let mut m = ModuleBuilder::new("m");
    let layer = declare(&mut m);
    let module = m.build().unwrap();
    let mut weights = Weights::init(&module, 1);
    for (k, decl) in module.params.iter().enumerate() {
        let values = numbers(k, decl.ty.shape.elements());
        weights.set_by_name(&decl.name, &values).unwrap();
    }
    let g = Graph::new(&module);
    g.instance(0);
    let outputs = emit(&g, layer);
    let elements = outputs.iter().map(|y| y.shape().elements()).sum();
    let loss = g.concat(outputs).dot(g.input(&numbers(0, elements))).id().unwrap();
    let graph = g.finish().unwrap();
    let run = forward::<f64>(&graph, &weights, Noise::Off).unwrap();
    let gradients = reverse(&graph, &weights, &run, &[(loss, 1.0)]).unwrap();
    let mut found = vec![run.floats(loss).unwrap()[0]];
    for (number, decl) in module.params.iter().enumerate() {
        let gradient = gradients.param(autobatch_ir::ParamId::new(number)).unwrap();
        found.push(dot(&numbers(0, decl.ty.shape.elements()), gradient));
    }
    assert_eq!(found.len(), figures.len());
    let near = |(found, figure): (&f64, &f64)| (found - figure).abs() < 1e-5 * figure.abs().max(1.0);
    assert!(found.iter().zip(figures).all(near), "{found:?}\n{figures:?}");
}

#[test]
fn an_lstm_with_an_initial_state_has_pytorchs_gradients() {
    // p = [numbers(0, 5, 8), numbers(1, 8), *[numbers(k, 3) for k in (2, 3, 4)], numbers(5, 2), numbers(6, 2)]
    // y, (_, c) = recurrent(nn.LSTM(3, 2), p[:2], p[2:5], (p[5][None], p[6][None])); figures(p, y, c)
    agrees(
        |m| (Lstm::new(m, "l", 3, 2), given(m, "x", 3, 3), given(m, "h", 2, 2)),
        |g, (layer, xs, state)| {
            let mut state = layer.start_from([g.param(state[0]), g.param(state[1])]);
            let mut outputs = Vec::new();
            for x in values(g, &xs) {
                state = state.push(x);
                outputs.push(state.h());
            }
            outputs.push(state.values()[1]);
            outputs
        },
        &[0.4048808, -0.2435045, -0.0531752, -0.0613625, -0.0984387, -0.1921972, 0.0515312, 0.3523544],
    );
}

#[test]
fn a_projected_lstm_has_pytorchs_gradients() {
    // p = [numbers(0, 5, 16), numbers(1, 16), numbers(2, 4, 2), *[numbers(k, 3) for k in (3, 4, 5)], numbers(6, 2),
    //     numbers(7, 4)]
    // w, b, wr = p[:3]; arrays = [w[:3].T, w[3:].T, b, torch.zeros(16), wr.T]
    // names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    // given = torch.stack(p[3:6]), (p[6][None], p[7][None])
    // y, (_, c) = torch.func.functional_call(nn.LSTM(3, 4, proj_size=2), dict(zip(names, arrays)), given); figures(p, y, c)
    let options = LstmOptions { projection: Some(2), ..LstmOptions::default() };
    agrees(
        |m| {
            (
                Lstm::with_options(m, "l", 3, 4, &options),
                given(m, "x", 3, 3),
                given(m, "h", 1, 2),
                given(m, "c", 1, 4),
            )
        },
        |g, (layer, xs, h, c)| {
            let mut state = layer.start_from([g.param(h[0]), g.param(c[0])]);
            let mut outputs = Vec::new();
            for x in values(g, &xs) {
                state = state.push(x);
                outputs.push(state.h());
            }
            outputs.push(state.values()[1]);
            outputs
        },
        &[
            -1.1681444, 0.0490478, -0.0088601, 0.1865165, 0.4508247, -0.2924160, -0.2269285, -0.7469608,
            -0.2931588,
        ],
    );
}

#[test]
fn a_gru_with_an_initial_state_has_pytorchs_gradients() {
    // wx, wh, b, bn, *xs, h = p = [numbers(0, 3, 6), numbers(1, 2, 6), numbers(2, 6), numbers(3, 2),
    //     *[numbers(k, 3) for k in (4, 5, 6)], numbers(7, 2)]
    // arrays = {"weight_ih_l0": wx.T, "weight_hh_l0": wh.T, "bias_ih_l0": b,
    //     "bias_hh_l0": torch.cat([torch.zeros(4), bn])}
    // figures(p, torch.func.functional_call(nn.GRU(3, 2), arrays, (torch.stack(xs), h[None]))[0])
    agrees(
        |m| (Gru::new(m, "l", 3, 2), given(m, "x", 3, 3), given(m, "h", 1, 2)),
        |g, (layer, xs, state)| {
            let mut state = layer.start_from([g.param(state[0])]);
            let mut outputs = Vec::new();
            for x in values(g, &xs) {
                state = state.push(x);
                outputs.push(state.h());
            }
            outputs
        },
        &[
            -0.0228350, -0.2558818, 0.1124389, 0.3364279, -0.0475864, -0.1126061, 0.0781112, -0.0203347,
            0.2928455,
        ],
    );
}

#[test]
fn a_bidirectional_lstm_has_pytorchs_order_and_gradients() {
    // p = [numbers(0, 5, 8), numbers(1, 8), numbers(2, 5, 8), numbers(3, 8), *[numbers(k, 3) for k in (4, 5, 6)]]
    // zero = (torch.zeros(1, 2), torch.zeros(1, 2))
    // f = recurrent(nn.LSTM(3, 2), p[:2], p[4:], zero)[0]
    // b = recurrent(nn.LSTM(3, 2), p[2:4], p[:3:-1], zero)[0].flip(0)
    // figures(p, torch.cat([f, b], 1))
    agrees(
        |m| (BiLstm::new(m, "l", 3, 2), given(m, "x", 3, 3)),
        |g, (layer, xs)| layer.run(g, values(g, &xs)),
        &[-0.3650120, -0.0136812, -0.0496272, 0.1850346, -0.0941600, -0.0745130, -0.0383255, -0.0329894],
    );
}

#[test]
fn a_layer_norm_has_pytorchs_gradients() {
    // p = [numbers(k, 7) for k in range(3)]; figures(p, nn.functional.layer_norm(p[2], (7,), p[0], p[1]))
    agrees(
        |m| (LayerNorm::new(m, "n", 7), given(m, "x", 1, 7)),
        |g, (layer, x)| vec![layer.on(g.param(x[0]))],
        &[-0.3434465, 1.0165535, 2.8400000, 0.0000251],
    );
}

#[test]
fn attention_has_pytorchs_gradients() {
    // q, *kv = p = [numbers(0, 3), *[numbers(k, 3) for k in range(1, 5)], *[numbers(k, 2) for k in range(5, 9)]]
    // attend = nn.functional.scaled_dot_product_attention
    // figures(p, attend(q[None], torch.stack(kv[:4]), torch.stack(kv[4:])))
    agrees(
        |m| (given(m, "q", 1, 3), given(m, "k", 4, 3), given(m, "v", 4, 2)),
        |g, (q, keys, read)| {
            vec![DotAttention::scaled(3).read(g, g.param(q[0]), values(g, &keys), values(g, &read))]
        },
        &[
            0.0012287, 0.2031941, -0.0653849, 0.2022321, -0.0903958, -0.0464514, 0.1607022, 0.4239016,
            0.1888987, 0.3864975,
        ],
    );
    // wq, b, wk, v, q, *kv = p = [numbers(0, 3, 5), numbers(1, 5), numbers(2, 2, 5), numbers(3, 5, 1), numbers(4, 3),
    //     *[numbers(k, 2) for k in (5, 6)], *[numbers(k, 4) for k in (7, 8)]]
    // scores = (torch.tanh(q @ wq + b + torch.stack(kv[:2]) @ wk) @ v)[:, 0]
    // figures(p, torch.softmax(scores, 0) @ torch.stack(kv[2:]))
    agrees(
        |m| {
            let layer = AdditiveAttention::new(m, "a", 3, 2, 5);
            (layer, given(m, "q", 1, 3), given(m, "k", 2, 2), given(m, "x", 2, 4))
        },
        |g, (layer, q, keys, read)| {
            let keys = layer.keys(g, values(g, &keys));
            vec![layer.read(g, g.param(q[0]), &keys, values(g, &read))]
        },
        &[
            -0.7055417, 0.0190421, -0.0215106, -0.0290001, 0.0329321, 0.0087212, 0.0252558, -0.0096509,
            0.6139791, 0.9460209,
        ],
    );
}

#[test]
fn a_character_cnn_has_pytorchs_gradients() {
    // w, b, *xs = p = [numbers(0, 12, 5), numbers(1, 5), *[numbers(k, 3) for k in range(2, 7)]]
    // x = nn.functional.pad(torch.stack(xs).T[None], (1, 2))
    // y = torch.tanh(nn.functional.conv1d(x, w.reshape(4, 3, 5).permute(2, 1, 0), b))
    // figures(p, y.max(2).values)
    agrees(
        |m| (CharCnn::new(m, "c", 3, 4, 5, Activation::Tanh), given(m, "x", 5, 3)),
        |g, (layer, xs)| vec![layer.on(g, values(g, &xs))],
        &[-0.3146408, 0.9000618, 1.8706093, -0.9696021, -0.2939135, 0.1506980, 0.9085452, -0.2498095],
    );
}

#[test]
fn activations_have_pytorchs_slopes_at_their_corners() {
    // x = torch.tensor([0., 1e4, -1e4, 12., -12.], requires_grad=True)
    // [torch.autograd.grad(f(x).sum(), x)[0] for f in
    //     (F.relu, lambda x: F.leaky_relu(x, .25), lambda x: F.elu(x, .5), F.gelu, F.silu, F.tanh, F.sigmoid)]  # F = nn.functional
    let figures = [
        (Activation::Relu, [0.0, 1.0, 0.0, 1.0, 0.0]),
        (Activation::LeakyRelu(0.25), [0.250000000, 1.0, 0.250000000, 1.0, 0.250000000]),
        (Activation::Elu(0.5), [0.500000000, 1.0, 0.0, 1.0, 0.000003072]),
        (Activation::Gelu, [0.500000000, 1.0, 0.0, 1.0, -0.0]),
        (Activation::Silu, [0.500000000, 1.0, -0.0, 1.000067585, -0.000067585]),
        (Activation::Tanh, [1.0, 0.0, 0.0, 0.000000000, 0.000000000]),
        (Activation::Sigmoid, [0.250000000, 0.0, 0.0, 0.000006144, 0.000006144]),
    ];
    for (activation, slopes) in figures {
        let module = ModuleBuilder::new("m").build().unwrap();
        let g = Graph::new(&module);
        g.instance(0);
        let x = g.input(&[0.0, 1e4, -1e4, 12.0, -12.0]);
        let (x, loss) = (x.id().unwrap(), activation.on(x).sum().id().unwrap());
        let graph = g.finish().unwrap();
        let weights = Weights::init(&module, 1);
        let run = forward::<f32>(&graph, &weights, Noise::Off).unwrap();
        let gradients = reverse(&graph, &weights, &run, &[(loss, 1.0)]).unwrap();
        for (found, slope) in gradients.value(x).unwrap().iter().zip(slopes) {
            assert!((f64::from(*found) - slope).abs() < 1e-6, "{activation:?}: {found} for {slope}");
        }
    }
}
