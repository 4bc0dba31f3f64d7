//! Multi-head attention and encoders against figures of PyTorch 2.4. `pytorch.rs` explains the rows of figures and the functions
//! `numbers` and `figures`. In addition:
//!
//! ```python
//! def parameters(*shapes):
//!     return [numbers(k, *shape) for k, shape in enumerate(shapes)]
//! def apply(layer, names, params, *args, **more):  # products of PyTorch are transposed
//!     arrays = {n: p.T if p.dim() == 2 else p for n, p in zip(names, params)}
//!     for name in [n for n in arrays if ".q_proj" in n]:
//!         thirds = [arrays.pop(name.replace("q_proj", f"{part}_proj")) for part in "qkv"]
//!         arrays[name.replace("q_proj", "in_proj")] = torch.cat(thirds)
//!     return torch.func.functional_call(layer, arrays, args, more)
//! def causal(n):
//!     return torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
//! A = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
//! L = ["self_attn." + n for n in A]
//! L += [a + b for a in ("linear1", "linear2", "norm1", "norm2") for b in (".weight", ".bias")]
//! SHAPES = [(4, 12), (12,), (4, 4), (4,), (4, 5), (5,), (5, 4), (4,), (4,), (4,), (4,), (4,)]
//! ```

use crate::lab::*;
use crate::pytorch::{agrees, given, values};
use autobatch_ir::Graph;
use autobatch_ir::graph::Callee;
use autobatch_nn::*;
use autobatch_oracle::reference::Noise;

#[test]
fn self_attention_has_pytorchs_gradients() {
    // p = parameters((4, 12), (12,), (4, 4), (4,), *[(4,)] * 3); x = torch.stack(p[4:])
    // for heads, mask in ((1, None), (2, None), (2, causal(3)), (4, None)):
    //     figures(p, apply(nn.MultiheadAttention(4, heads), A, p, x, x, x, attn_mask=mask)[0])
    let figures = [
        [-1.5123089, -2.9600212, -0.3942522, 0.3117415, 0.12, 0.1331376, -1.4386029, 1.0806886],
        [-0.4332006, -0.2889741, -0.2416844, 0.4429925, 0.12, 0.2084606, -2.5169594, 1.7296734],
        [-3.2662456, -0.0135974, 0.2005589, -0.0716977, 0.12, -0.7196483, -0.4115639, -0.6870035],
        [0.5209179, 1.5706845, -0.2727201, 0.5650092, 0.12, 1.0731136, -1.4322150, 0.0360827],
    ];
    for ((heads, causal), figures) in [(1, false), (2, false), (2, true), (4, false)].into_iter().zip(figures)
    {
        agrees(
            |m| (MultiHeadAttention::new(m, "a", 4, heads), given(m, "x", 3, 4)),
            |g, (layer, xs)| {
                let xs = values(g, &xs);
                if causal { layer.run_causal(g, xs) } else { layer.run(g, xs) }
            },
            &figures,
        );
    }
    // p = parameters((4, 12), (4, 4), *[(4,)] * 3); x = torch.stack(p[2:])
    // figures(p, apply(nn.MultiheadAttention(4, 2, bias=False), A[::2], p, x, x, x)[0])
    let bare = MultiHeadOptions { bias: false, ..MultiHeadOptions::default() };
    agrees(
        |m| (MultiHeadAttention::with_options(m, "a", 4, 2, &bare), given(m, "x", 3, 4)),
        |g, (layer, xs)| layer.run(g, values(g, &xs)),
        &[-3.3637929, -7.6624075, 3.4524674, -1.8253401, 4.0258403, -3.2623359],
    );
}

#[test]
fn cross_attention_has_pytorchs_gradients() {
    // p = parameters((4, 12), (12,), (4, 4), (4,), *[(4,)] * 5); q, x = torch.stack(p[4:6]), torch.stack(p[6:])
    // figures(p, apply(nn.MultiheadAttention(4, 2), A, p, q, x, x)[0])
    agrees(
        |m| (MultiHeadAttention::new(m, "a", 4, 2), given(m, "q", 2, 4), given(m, "x", 3, 4)),
        |g, (layer, queries, xs)| {
            let xs = values(g, &xs);
            let memory = layer.memory(g, &xs, &xs);
            values(g, &queries).into_iter().map(|query| layer.read(query, &memory)).collect()
        },
        &[
            -0.6133313, 1.5307443, -1.7091278, 2.2802582, 0.72, 0.1972960, 0.6818202, 1.6726049, 0.9441110,
            -1.9735159,
        ],
    );
    // p = parameters((4, 4), (4,), (3, 4), (4,), (2, 4), (4,), (4, 4), (4,), *[(4,)] * 2, *[(3,)] * 3, *[(2,)] * 3)
    // wq, bq, wk, bk, wv, bv, wo, bo = p[:8]; q, k, v = torch.stack(p[8:10]), torch.stack(p[10:13]), torch.stack(p[13:])
    // names = ["q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", *A[2:]]
    // arrays = [wq, wk, wv, torch.cat([bq, bk, bv]), wo, bo]
    // figures(p, apply(nn.MultiheadAttention(4, 2, kdim=3, vdim=2), names, arrays, q, k, v)[0])
    let apart = MultiHeadOptions { key: Some(3), value: Some(2), ..MultiHeadOptions::default() };
    agrees(
        |m| {
            let layer = MultiHeadAttention::with_options(m, "a", 4, 2, &apart);
            (layer, given(m, "q", 2, 4), given(m, "k", 3, 3), given(m, "v", 3, 2))
        },
        |g, (layer, queries, keys, read)| {
            let memory = layer.memory(g, values(g, &keys), values(g, &read));
            values(g, &queries).into_iter().map(|query| layer.read(query, &memory)).collect()
        },
        &[
            -0.6152142, -0.5787445, 0.0480904, -0.3860498, 0.0, 0.6977065, -0.5120000, -1.5902644, 0.72,
            -0.1554123, 0.1230737, 0.3609361, -0.6023064, 0.2413704, -0.0579633, 0.8455577, -0.0467944,
        ],
    );
}

#[test]
fn encoder_layers_have_pytorchs_gradients() {
    // p = parameters(*SHAPES, *[(4,)] * 3); x = torch.stack(p[12:])
    // for act, first, mask in (("relu", 0, None), ("gelu", 0, None), ("relu", 1, None), ("gelu", 1, causal(3))):
    //     figures(p, apply(nn.TransformerEncoderLayer(4, 2, 5, 0., act, norm_first=first), L, p, x, src_mask=mask))
    let cases = [
        (Activation::Relu, false, false),
        (Activation::Gelu, false, false),
        (Activation::Relu, true, false),
        (Activation::Gelu, true, true),
    ];
    let figures = [
        [
            0.5575349, 0.0749267, -0.7227165, 0.0845771, 0.1366451, 0.3369935, 0.2225998, 0.0292946,
            0.2599800, -0.3574991, 0.4267752, 0.2376842, 0.12, 0.7762363, -0.0292437, 0.0030483,
        ],
        [
            0.5562464, -0.2957249, -0.6247521, -0.0088693, 0.0992262, 0.3457697, 0.2117939, 0.0192480,
            0.3263644, -0.4174246, 0.5171948, 0.1611990, 0.12, 0.5274597, -0.0104483, 0.1564411,
        ],
        [
            -3.6642248, -6.7097581, 0.9557396, -1.8678714, -0.2046921, 0.5997315, 0.1280000, 0.3146796, 0.12,
            -5.2119438, -0.1067562, -0.1766955, 0.1632, 2.7733361, -0.6709687, 0.3947724,
        ],
        [
            0.2029595, 0.2965798, 0.0368370, -0.6753236, 0.0514045, 0.2433345, 0.3673128, 0.1519680, 0.12,
            1.7418176, -1.0194010, 0.0166157, 0.2883715, 2.6577618, -0.7356804, -0.7341595,
        ],
    ];
    let plain = TransformerOptions { feed_forward: Some(5), ..TransformerOptions::default() };
    for ((activation, norm_first, causal), figures) in cases.into_iter().zip(figures) {
        let options = TransformerOptions { activation, norm_first, ..plain.clone() };
        agrees(
            |m| (TransformerEncoderLayer::with_options(m, "l", 4, 2, &options), given(m, "x", 3, 4)),
            |g, (layer, xs)| {
                let xs = values(g, &xs);
                if causal { layer.run_causal(g, xs) } else { layer.run(g, xs) }
            },
            &figures,
        );
    }
    // p = parameters(*SHAPES[::2], *[(4,)] * 3); layer = nn.TransformerEncoderLayer(4, 2, 5, 0., bias=False)
    // figures(p, apply(layer, L[::2], p, torch.stack(p[6:])))
    let bare = TransformerOptions { bias: false, ..plain };
    agrees(
        |m| (TransformerEncoderLayer::with_options(m, "l", 4, 2, &bare), given(m, "x", 3, 4)),
        |g, (layer, xs)| layer.run(g, values(g, &xs)),
        &[
            1.2671421, 0.1902455, -0.1186882, -1.2727836, 0.0024139, 0.1266335, -1.8695951, 0.4422741,
            0.4813121, 0.1421271,
        ],
    );
}

#[test]
fn an_encoder_has_pytorchs_gradients_and_a_final_norm() {
    // p = parameters(*SHAPES, *SHAPES, (4,), (4,), *[(4,)] * 3)
    // layer = nn.TransformerEncoderLayer(4, 2, 5, 0., norm_first=True)
    // names = [f"layers.{l}.{n}" for l in range(2) for n in L] + ["norm.weight", "norm.bias"]
    // figures(p, apply(nn.TransformerEncoder(layer, 2, nn.LayerNorm(4), False), names, p, torch.stack(p[26:])))
    let options = TransformerOptions { feed_forward: Some(5), norm_first: true, ..Default::default() };
    agrees(
        |m| (TransformerEncoder::with_options(m, "e", 4, 2, 2, &options), given(m, "x", 3, 4)),
        |g, (layer, xs)| layer.run(g, values(g, &xs)),
        &[
            -0.4098667, -0.1991403, 0.1535769, -0.3090507, -0.0724391, 0.0806744, -0.1934884, -0.2780971,
            -0.0863509, 0.1587621, -0.0196865, -0.3682699, -0.0463618, 0.0604312, 0.0762802, -0.1627136,
            -0.0669903, 0.2145426, 0.1878283, 0.0348833, -0.0494862, 0.0276989, 0.0292186, 0.0417784,
            -0.0698066, -0.2437678, 0.12, 0.1215009, -0.0233557, -0.1085194,
        ],
    );
}

#[test]
fn a_root_mean_square_norm_has_pytorchs_gradients() {
    // p = [numbers(0, 7), numbers(1, 7)]; figures(p, nn.functional.rms_norm(p[1], (7,), p[0], 1e-6))
    agrees(
        |m| (RmsNorm::new(m, "n", 7, 1e-6), given(m, "x", 1, 7)),
        |g, (layer, x)| vec![layer.on(g.param(x[0]))],
        &[-0.2038468, -0.2038468, 1.0589327],
    );
    let (lab, layer) = Lab::with(|m| RmsNorm::new(m, "n", 3, 1e-6));
    let v = rows(1, 4, 3);
    let found = lab.eval(|g| {
        let mut emitted = vec![layer.on(g.input_shaped([2, 2, 3], &v.concat()))];
        emitted.extend(inputs(g, &v).into_iter().map(|x| layer.on(x)));
        emitted
    });
    assert_eq!(found[0], found[1..].concat());
}

#[test]
fn causal_attention_ignores_later_positions() {
    let (lab, layer) = Lab::with(|m| TransformerEncoder::new(m, "e", 4, 2, 2));
    let xs = rows(1, 5, 4);
    let all = lab.bits(Noise::Off, |g| layer.run_causal(g, inputs(g, &xs)));
    for length in 1..5 {
        let some = lab.bits(Noise::Off, |g| layer.run_causal(g, inputs(g, &xs[..length])));
        assert_eq!(some, all[..length]);
    }
    assert_ne!(lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &xs)))[..4], all[..4]);
}

#[test]
fn an_empty_sequence_is_encoded_to_an_empty_sequence() {
    let (lab, (layer, attention)) =
        Lab::with(|m| (TransformerEncoder::new(m, "e", 4, 2, 2), MultiHeadAttention::new(m, "a", 4, 2)));
    let none: [Vec<f32>; 0] = [];
    assert!(lab.eval(|g| layer.run(g, inputs(g, &none))).is_empty());
    assert!(lab.eval(|g| attention.run_causal(g, inputs(g, &none))).is_empty());
}

#[test]
fn sequences_of_all_lengths_share_their_signatures() {
    let options = TransformerOptions { norm_first: true, dropout: 0.1, ..Default::default() };
    let (lab, layer) = Lab::with(|m| TransformerEncoder::with_options(m, "e", 4, 2, 2, &options));
    let names: Vec<&str> = lab.module.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["e.layers.0.enter", "e.layers.0.leave", "e.norm"], "layers must share their cells");
    let g = Graph::new(&lab.module);
    for (key, length) in [3, 1, 7].into_iter().enumerate() {
        g.instance(key as u64);
        let _ = layer.run(&g, inputs(&g, &rows(1, length, 4)));
    }
    let graph = g.finish().unwrap();
    let mut called: Vec<_> = graph.arena.nodes().iter().map(|node| node.sig).collect();
    called.retain(|&sig| matches!(graph.sigs.get(sig).callee, Callee::Cell(_)));
    called.sort();
    called.dedup();
    assert_eq!(called.len(), 5, "two cells per layer, and the final norm");
}

#[test]
fn an_encoder_has_dropout_only_in_training() {
    let dropped = TransformerOptions { dropout: 0.5, ..TransformerOptions::default() };
    let (lab, layer) = Lab::with(|m| TransformerEncoderLayer::with_options(m, "e", 4, 2, &dropped));
    let (same, plain) = Lab::with(|m| TransformerEncoderLayer::new(m, "e", 4, 2));
    let xs = rows(1, 3, 4);
    let evaluated = lab.bits(Noise::Off, |g| layer.run(g, inputs(g, &xs)));
    let trained = Noise::On { seed: 1, step: 1 };
    assert_eq!(evaluated, same.bits(trained, |g| plain.run(g, inputs(g, &xs))));
    assert_ne!(evaluated, lab.bits(trained, |g| layer.run(g, inputs(g, &xs))));
}

#[test]
fn positions_are_added() {
    let (lab, learned) = Lab::with(|m| Positions::learned(m, "p", 3, 4));
    let xs = rows(1, 3, 4);
    let found = lab.eval(|g| {
        let mut emitted = learned.add(g, inputs(g, &xs));
        emitted.extend(Positions::sinusoidal(4).add(g, inputs(g, &xs)));
        emitted
    });
    let table = lab.param("p");
    for place in 0..3 {
        let x = wide(&xs[place]);
        close(&found[place], &add(&x, &table[4 * place..4 * place + 4]));
        let [slow, t] = [place as f64 / 100.0, place as f64];
        let waves = [t.sin(), t.cos(), slow.sin(), slow.cos()];
        let near = found[3 + place].iter().zip(add(&x, &waves)).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near, "{found:?}");
    }
    assert_eq!(
        sinusoid(2, 3)[2],
        (2.0 / 10000f64.powf(2.0 / 3.0)).sin() as f32,
        "an odd width ends with a sine"
    );
    assert!(sinusoid(1, 0).is_empty());
}
