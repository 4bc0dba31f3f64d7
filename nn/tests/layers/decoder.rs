//! Decoders of transformers against figures of PyTorch 2.15: `pytorch.rs` explains the rows of figures, `transformer.rs`
//! the other Python functions. In addition:
//!
//! ```python
//! C = [f"{part}_proj_{kind}" for part in "qkv" for kind in ("weight", "bias")] + A[2:]
//! D = ["self_attn." + n for n in A] + ["multihead_attn." + n for n in C]  # apply joins the thirds to in_proj
//! D += [a + b for a in ("linear1", "linear2", "norm1", "norm2", "norm3") for b in (".weight", ".bias")]
//! S = [(4, 12), (12,), (4, 4), (4,)] + [(4, 4), (4,)] * 4 + [(4, 5), (5,), (5, 4)] + [(4,)] * 7
//! ```

use crate::lab::*;
use crate::pytorch::{agrees, given, values};
use autobatch_ir::Graph;
use autobatch_ir::graph::Callee;
use autobatch_nn::*;
use autobatch_oracle::reference::Noise;

#[test]
fn a_layer_of_a_decoder_has_pytorchs_gradients() {
    // p = parameters(*S, *[(4,)] * 5); x, e = torch.stack(p[22:24]), torch.stack(p[24:])
    // figures(p, apply(nn.TransformerDecoderLayer(4, 2, 5, 0.), D, p, x, e, tgt_mask=causal(2)))
    let figures = [
        0.5410837, 0.0065372, 0.0053021, 0.0083164, 0.0081885, -0.0636023, 0.0101166, 0.0694943, -0.0,
        0.0763298, -0.0548875, -0.2654926, 0.0506206, -3.047406, -0.7208876, 0.5906815, -1.3957029,
        -0.0511665, 0.0820674, -2.4808477, -1.5214515, 0.6420993, 0.72, 0.0086977, -0.0081972, -0.0334894,
        0.0906252, -0.056638,
    ];
    agrees(
        |m| {
            let options = TransformerOptions { feed_forward: Some(5), ..Default::default() };
            let decoder = TransformerDecoder::with_options(m, "d", 4, 2, 1, &options);
            (decoder, given(m, "x", 2, 4), given(m, "e", 3, 4))
        },
        |g, (decoder, xs, encoded)| {
            let memory = decoder.memory(g, values(g, &encoded));
            decoder.run(g, values(g, &xs), &memory)
        },
        &figures,
    );
}

#[test]
fn a_decoder_has_pytorchs_gradients_and_a_final_norm() {
    // p = parameters(*S, *S, (4,), (4,), *[(4,)] * 5); x, e = torch.stack(p[46:48]), torch.stack(p[48:])
    // layer = nn.TransformerDecoderLayer(4, 2, 5, 0., norm_first=True)
    // names = [f"layers.{l}.{n}" for l in range(2) for n in D] + ["norm.weight", "norm.bias"]
    // figures(p, apply(nn.TransformerDecoder(layer, 2, nn.LayerNorm(4)), names, p, x, e, tgt_mask=causal(2)))
    let options = TransformerOptions { feed_forward: Some(5), norm_first: true, ..Default::default() };
    agrees(
        |m| {
            let decoder = TransformerDecoder::with_options(m, "d", 4, 2, 2, &options);
            (decoder, given(m, "x", 2, 4), given(m, "e", 3, 4))
        },
        |g, (decoder, xs, encoded)| {
            let memory = decoder.memory(g, values(g, &encoded));
            decoder.run(g, values(g, &xs), &memory)
        },
        &[
            1.7725595, -0.3062681, 0.393431, 0.0873588, 0.3877599, 0.1361191, -0.0166328, -0.0446105, 0.0,
            -0.2138533, 0.0197404, 0.3696005, 0.2354348, 0.4643684, 0.0246745, -0.0347603, 0.2777673,
            -1.1086637, -0.7746048, -0.0164418, -0.2232306, 0.1847874, 0.1053168, -0.5285491, 0.2224688,
            -0.0415427, 0.1848732, 0.0484309, -0.0129907, -0.0375935, 0.0, -0.1494048, 0.0040071, 0.1896486,
            0.1657783, 0.2598195, 0.0237436, -0.009177, 0.1876679, -0.7152085, -0.424273, -0.0438459,
            -0.1131411, 0.0675321, 0.0681246, 1.1325595, 0.72, 0.3167723, 0.1367269, 0.0229248, -0.0333752,
            0.2264454,
        ],
    );
}

#[test]
fn positions_one_by_one_give_the_same_bits_as_all_at_once() {
    let options = TransformerOptions { norm_first: true, ..Default::default() };
    let (lab, (encoder, decoder)) = Lab::with(|m| {
        let encoder = TransformerEncoder::with_options(m, "e", 4, 2, 2, &options);
        (encoder, TransformerDecoder::with_options(m, "d", 4, 2, 2, &options))
    });
    let (xs, read) = (rows(1, 4, 4), rows(2, 3, 4));
    let at_once = lab.bits(Noise::Off, |g| {
        let memory = decoder.memory(g, encoder.run(g, inputs(g, &read)));
        let mut all = decoder.run(g, inputs(g, &xs), &memory);
        all.extend(encoder.run_causal(g, inputs(g, &xs)));
        all
    });
    let one_by_one = lab.bits(Noise::Off, |g| {
        let memory = decoder.memory(g, encoder.run(g, inputs(g, &read)));
        let mut states = [decoder.start(g, &memory), encoder.start(g)];
        assert!(states[0].is_empty());
        let mut found = [Vec::new(), Vec::new()];
        for x in inputs(g, &xs) {
            // An abandoned branch has no effect.
            let mut branch = states[0].clone();
            let _ = branch.push(g.zeros([4]));
            assert_eq!(branch.len(), states[0].len() + 1);
            states.iter_mut().zip(&mut found).for_each(|(state, found)| found.push(state.push(x)));
        }
        assert_eq!(states[1].len(), 4);
        found.concat()
    });
    assert_eq!(at_once, one_by_one);
    for length in 1..4 {
        let some = lab.bits(Noise::Off, |g| {
            let memory = decoder.memory(g, encoder.run(g, inputs(g, &read)));
            decoder.run(g, inputs(g, &xs[..length]), &memory)
        });
        assert_eq!(some, at_once[..length], "later positions must not affect earlier ones");
    }
}

#[test]
fn decoders_of_all_lengths_share_their_signatures() {
    let options = TransformerOptions { norm_first: true, dropout: 0.1, ..Default::default() };
    let (lab, decoder) = Lab::with(|m| TransformerDecoder::with_options(m, "d", 4, 2, 2, &options));
    let names: Vec<&str> = lab.module.cells.iter().map(|cell| cell.name.as_str()).collect();
    let expected = ["d.layers.0.remember", "d.layers.0.enter", "d.layers.0.leave", "d.norm"];
    assert_eq!(names, expected, "layers must share their cells");
    let g = Graph::new(&lab.module);
    for (key, length) in [3, 1, 7].into_iter().enumerate() {
        g.instance(key as u64);
        let memory = decoder.memory(&g, inputs(&g, &rows(1, length + 2, 4)));
        let _ = decoder.run(&g, inputs(&g, &rows(1, length, 4)), &memory);
    }
    let graph = g.finish().unwrap();
    let mut called: Vec<_> = graph.arena.nodes().iter().map(|node| node.sig).collect();
    called.retain(|&sig| matches!(graph.sigs.get(sig).callee, Callee::Cell(_)));
    called.sort();
    called.dedup();
    assert_eq!(called.len(), 7, "three cells per layer, and the final norm");
}
