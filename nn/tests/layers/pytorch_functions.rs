//! Losses, activations and small layers against figures of PyTorch 2.4; `pytorch.rs` explains the rows of figures.
//!
//! In Python, with `F = nn.functional` and `t = torch.tensor([1., 0., .25, 1., 0., .5])`:
//!
//! ```python
//! def one(f, *shapes):
//!     p = [numbers(k, *shape) for k, shape in enumerate(shapes)]
//!     figures(p, f(*p))
//! ```

use crate::pytorch::{agrees, given};
use autobatch_ir::{Graph, Value};
use autobatch_nn::*;

const TARGET: [f32; 6] = [1.0, 0.0, 0.25, 1.0, 0.0, 0.5];

/// A function of `N` vectors of six numbers.
#[track_caller]
fn one<const N: usize>(f: impl for<'g> FnOnce(&'g Graph, [Value<'g>; N]) -> Value<'g>, figures: &[f64]) {
    agrees(
        |m| given(m, "x", N, 6),
        |g, xs| {
            let y = f(g, std::array::from_fn(|number| g.param(xs[number])));
            vec![if y.shape().rank() == 0 { y.reshape([1]) } else { y }]
        },
        figures,
    );
}

#[test]
fn losses_have_pytorchs_gradients() {
    // one(lambda x: F.binary_cross_entropy_with_logits(x, t), (6,)), and with pos_weight=torch.tensor(3.)
    one(|g, [x]| x.bce(g.input(&TARGET)), &[-0.3917434, -0.1313249]);
    one(|g, [x]| losses::weighted_bce(x, g.input(&TARGET), 1.0), &[-0.3917434, -0.1313249]);
    one(|g, [x]| losses::weighted_bce(x, g.input(&TARGET), 3.0), &[-0.7179583, -0.2119063]);
    // one(lambda x, y: F.huber_loss(x, y, delta=.5), (6,), (6,)); F.smooth_l1_loss(x, y, beta=.5), F.l1_loss, F.mse_loss
    one(|_, [x, y]| losses::huber(x, y, 0.5), &[-0.17, -0.1, 0.1]);
    one(|_, [x, y]| losses::smooth_l1(x, y, 0.5), &[-0.34, -0.2, 0.2]);
    one(|_, [x, y]| losses::l1(x, y), &[-0.44, -0.2, 0.2]);
    one(|_, [x, y]| x.mse(y), &[-0.488, -0.4533333, 0.4533333]);
    // one(lambda x, y: F.cosine_embedding_loss(x[None], y[None], torch.tensor([1])), (6,), (6,))
    one(|_, [x, y]| losses::cosine_embedding(x, y, true, 0.0), &[-0.5962210, 0.0, 0.2731704]);
    // the same with torch.tensor([-1]), margin=-.9
    one(|_, [x, y]| losses::cosine_embedding(x, y, false, -0.9), &[-0.1637790, 0.0, -0.2731704]);
    // one(lambda x, y: F.cosine_similarity(x, y, 0), (6,), (6,))
    one(|_, [x, y]| losses::cosine_similarity(x, y), &[0.1962210, 0.0, -0.2731704]);
    // one(lambda a, y, z: F.triplet_margin_loss(a, y, z, margin=1.), (6,), (6,), (6,))
    one(
        |_, [a, y, z]| losses::triplet_distance(a, y, z, 1.0),
        &[-1.2862599, -0.3393713, 0.5026706, -0.1632993],
    );
    // one(lambda x, y, v: F.gaussian_nll_loss(x, y, v.square() + .5), (6,), (6,), (6,))
    one(
        |_, [x, y, v]| losses::gaussian_nll(x, y, v.square() + 0.5),
        &[-0.2786830, -0.2426895, 0.2426895, 0.0369876],
    );
    // one(lambda x: F.poisson_nll_loss(x, 4 * t), (6,))
    one(|g, [x]| losses::poisson_nll(x, 4.0 * g.input(&TARGET)), &[-0.8122905, -0.5297053]);
    // one(lambda x: F.multi_margin_loss(x[None], torch.tensor([2])), (6,)): the mean over classes
    one(|_, [x]| x.hinge(2, 1.0) / 6.0, &[-0.32, 0.0133333]);
    // one(lambda x: F.cross_entropy(x, torch.tensor(2), label_smoothing=.1), (6,))
    one(|_, [x]| losses::label_smoothing(x, 2, 0.1), &[-0.7718804, -0.1191102]);
}

#[test]
fn activations_have_pytorchs_gradients() {
    // one(F.softplus, (6,)), F.mish, F.selu, lambda x: x.clamp(-1, .6), lambda x: F.gelu(x, approximate="tanh")
    let figures = [
        (Activation::Softplus, [1.9420711, 1.3864093]),
        (Activation::Mish, [1.6431062, 1.8590235]),
        (Activation::Selu, [2.4729621, 2.3010875]),
        (Activation::Clamp(-1.0, 0.6), [1.6400000, 0.5600000]),
        (Activation::GeluTanh, [1.5225940, 1.8201936]),
    ];
    for (activation, figures) in figures {
        one(|_, [x]| activation.on(x), &figures);
    }
    // one(lambda x, a: F.prelu(x, a), (6,), (1,))
    agrees(
        |m| (given(m, "x", 1, 6), PRelu::new(m, "p", 1)),
        |g, (x, layer)| vec![layer.on(g.param(x[0]))],
        &[1.992, 1.992, -0.208],
    );
}

#[test]
fn bilinear_layers_and_group_norms_have_pytorchs_gradients() {
    // one(lambda w, b, x, y: F.bilinear(x, y, w.reshape(3, 2, 4).permute(1, 0, 2), b), (3, 8), (2,), (3,), (4,))
    agrees(
        |m| (Bilinear::new(m, "b", [3, 4], 2), given(m, "x", 1, 3), given(m, "y", 1, 4)),
        |g, (layer, x, y)| vec![layer.on(g.param(x[0]), g.param(y[0]))],
        &[-0.64, -0.2, 1.16, -0.5312, 0.4304],
    );
    // one(lambda g, b, x: F.group_norm(x[None], 3, g, b), (6,), (6,), (6,)); pairs become -1 and 1, so the slope is 0
    agrees(
        |m| (GroupNorm::new(m, "n", 3, 6), given(m, "x", 1, 6)),
        |g, (layer, x)| vec![layer.on(g.param(x[0]))],
        &[-0.0400186, 1.1599814, 2.2, 0.0000371],
    );
    // one(lambda g, b, x: F.group_norm(x.reshape(1, 4, 3), 2, g, b), (4,), (4,), (12,))
    agrees(
        |m| (GroupNorm::new(m, "n", 2, 4), given(m, "x", 1, 12)),
        |g, (layer, x)| vec![layer.on(g.param(x[0]).reshape([4, 3])).reshape([12])],
        &[2.3626217, 1.9226217, 0.4000000, -0.8185906],
    );
}
