//! Decoders of transformers against figures of PyTorch 2.4: `pytorch.rs` explains the rows of figures, `transformer.rs`
//! the other Python functions. In addition:
//!
//! ```python
//! D = [a + n for a in ("self_attn.", "multihead_attn.") for n in A]
//! D += [a + b for a in ("linear1", "linear2", "norm1", "norm2", "norm3") for b in (".weight", ".bias")]
//! S = [(4, 12), (12,), (4, 4), (4,)] * 2 + [(4, 5), (5,), (5, 4)] + [(4,)] * 7
//! ```

use crate::lab::*;
use crate::pytorch::{agrees, given, values};
use autobatch_ir::Graph;
use autobatch_ir::graph::Callee;
use autobatch_nn::*;
use autobatch_oracle::reference::Noise;

#[test]
fn a_layer_of_a_decoder_has_pytorchs_gradients() {
    // p = parameters(*S, *[(4,)] * 5); x, e = torch.stack(p[18:20]), torch.stack(p[20:])
    // figures(p, apply(nn.TransformerDecoderLayer(4, 2, 5, 0.), D, p, x, e, tgt_mask=causal(2)))
    let figures = [
        -0.5256761, 0.0192825, 0.0439976, -0.0215462, -0.0184262, 0.0219977, -0.006056, 0.0420147, 0.019721,
        0.0659905, 0.2159095, -0.2005935, -0.2208828, -0.0127969, 0.0221372, 0.0022544, -0.060088, 1.5677326,
        0.72, 0.0022367, -0.0379228, 0.0736408, 0.0097562, -0.0019063,
    ];
    agrees(
        |m| {
            let options = TransformerOptions { feed_forward: Some(5), ..Default::default() };
            let decoder = TransformerDecoder::with(m, "d", 4, 2, 1, &options);
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
    // p = parameters(*S, *S, (4,), (4,), *[(4,)] * 5); x, e = torch.stack(p[38:40]), torch.stack(p[40:])
    // layer = nn.TransformerDecoderLayer(4, 2, 5, 0., norm_first=True)
    // names = [f"layers.{l}.{n}" for l in range(2) for n in D] + ["norm.weight", "norm.bias"]
    // figures(p, apply(nn.TransformerDecoder(layer, 2, nn.LayerNorm(4)), names, p, x, e, tgt_mask=causal(2)))
    let options = TransformerOptions { feed_forward: Some(5), norm_first: true, ..Default::default() };
    agrees(
        |m| {
            let decoder = TransformerDecoder::with(m, "d", 4, 2, 2, &options);
            (decoder, given(m, "x", 2, 4), given(m, "e", 3, 4))
        },
        |g, (decoder, xs, encoded)| {
            let memory = decoder.memory(g, values(g, &encoded));
            decoder.run(g, values(g, &xs), &memory)
        },
        &[
            1.3296675, 0.5032167, -0.1969537, 0.3533712, -0.0673435, -0.2024626, 0.022846, -0.1276795,
            -0.0666748, -0.3048187, 0.0267031, 0.002167, -0.068645, -0.3523757, 0.2935168, 0.0421504,
            -0.0272872, -0.0767083, -0.0373844, 0.3923691, -0.0272138, 0.1418023, -0.0855777, 0.057852,
            -0.2375409, -0.0167429, -0.0880539, -0.1793493, 0.073657, -0.0388551, -0.0662018, -0.090438,
            0.3247009, 0.0068299, 0.0450146, 0.0807019, 0.0827582, -0.980415, 0.72, 0.0633245, -0.0135166,
            -0.1043398, 0.2168662, -0.0484455,
        ],
    );
}

#[test]
fn positions_one_by_one_give_the_same_bits_as_all_at_once() {
    let options = TransformerOptions { norm_first: true, ..Default::default() };
    let (lab, (encoder, decoder)) = Lab::with(|m| {
        let encoder = TransformerEncoder::with(m, "e", 4, 2, 2, &options);
        (encoder, TransformerDecoder::with(m, "d", 4, 2, 2, &options))
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
    let (lab, decoder) = Lab::with(|m| TransformerDecoder::with(m, "d", 4, 2, 2, &options));
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
