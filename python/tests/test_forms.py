"""Many documented forms of torch's functions and modules: a block gives torch's values, types and gradients, or refuses the form."""

import contextlib
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import autobatch  # noqa: E402
from autobatch.torch import batch  # noqa: E402

#: Expressions of a recorded matrix `x` with 3 rows and 4 columns, one a line.
FORMS = """
x.norm(float('inf'), 1)
torch.norm(x)
x.norm(3, -1)
x.norm(0, 1)
torch.linalg.norm(x)
torch.linalg.matrix_norm(x)
x.sum(dtype=torch.float64)
x.sum((0, 1))
x.sum(1, True)
x.sum(axis=1)
x.mean(axis=(0, 1), keepdims=True)
x.sum(dim=None)
torch.max(x, x * 2)
torch.max(x, dim=1, keepdim=True)[0]
x.amax()
x.argmax(1, keepdim=True).float()
x.median()
x.mode(1).values
x.std()
x.std(1, correction=0)
torch.var_mean(x, 1)[0]
x.logsumexp((0, 1))
F.softmax(x, 1, dtype=torch.float32)
F.softmax(x)
x.cumsum(0)
x.cumprod(1)
x.prod(1)
x.diff(dim=1)
torch.einsum('...i,ij->...j', x, self.weight)
torch.einsum('ij,jk,lk->il', x, self.weight, x)
torch.einsum('ij,jk', x, self.weight)
torch.einsum('ij,kj->ik', [x, x])
torch.einsum('ij->', x)
torch.bmm(x[None], x.T[None])
x @ self.vector
self.vector @ x.T
torch.baddbmm(x[None] * 0, x[None], self.weight[None])
torch.addmm(self.vector, x, self.weight, beta=0.5, alpha=2)
torch.addmv(x[:, 0], x, self.vector)
torch.addr(self.weight, x[0], x[1])
x[0].outer(self.vector)
torch.ger(x[0], self.vector)
torch.inner(x, self.weight)
torch.tensordot(x, self.weight, dims=1)
torch.kron(x[0], self.vector)
torch.cross(x[:, :3], x[:, 1:], dim=1)
torch.linalg.multi_dot([x, self.weight, self.weight])
torch.linalg.vecdot(x, x)
x.view(torch.int32).float()
x.view(-1)
x.reshape(2, -1, 2)
x.view_as(x * 1)
x.unfold(1, 2, 1)
x[None, :, :, None].squeeze((0, 3))
x.movedim(0, 1)
torch.moveaxis(x, 0, 1)
x.swapaxes(0, 1)
x.permute(dims=(1, 0))
x[:, None].expand(-1, 2, -1)
x.expand(torch.Size([2, 3, 4]))
x.repeat_interleave(2, 0)
x.tile((2, 1))
x.roll(1, 0)
x.flip((0, 1))
x.rot90()
torch.cat(x.chunk(2, 0))
x.split([1, 2], -2)[1]
x.tensor_split(2, 1)[0]
x.hsplit(2)[0]
x.unbind(1)[2]
torch.stack([x, x], -1)
torch.cat((x, x), -2)
torch.dstack([x, x])
torch.column_stack([x, x])
torch.block_diag(x, x)
torch.atleast_3d(x)
torch.meshgrid(x[0], self.vector, indexing='ij')[0]
torch.diag(x[0])
x.diagonal()
x.tril(-1)
torch.triu(x, 1)
x.select(-1, 2)
x.narrow(1, 1, 2)
x.take(torch.tensor([0, 5]))
x.index_select(1, torch.tensor([2, 0, 2]))
x.gather(1, torch.tensor([[0, 1], [2, 2], [3, 0]]))
x.gather(0, torch.tensor([[0, 1, 2, 0]]))
torch.take_along_dim(x, torch.tensor([[1], [2], [0]]), 1)
x.scatter(1, torch.tensor([[1], [2], [0]]), 0.0)
x.index_add(0, torch.tensor([0]), x[:1])
x[torch.tensor([0, 1]), torch.tensor([2, 3])]
x[torch.tensor([2, 0])]
x[[0, 2]]
x[1:, ::2]
x[-1, -2:]
x[..., None, 0]
x[torch.tensor([True, False, True])]
x.masked_select(x > 0)
(x > 0).nonzero().float()
torch.where(x > 0)[0].float()
x.where(x > 0, torch.tensor(0.0))
x.masked_fill(x > 0, torch.tensor(2.0))
torch.masked_fill(x, x > 0, 1)
x.clamp(min=x * 0.5)
torch.clamp(x, max=0.3)
x.clip(-0.1, 0.1)
x.nan_to_num()
torch.lerp(x, x * 2, 0.3)
torch.addcdiv(x, x, x.abs() + 1, value=2)
torch.fmod(x, 0.5)
x % 0.5
x // 0.5
torch.div(x, 0.3, rounding_mode='floor')
x.abs().pow(x)
2 ** x
(x.abs() + 1) ** (-1.5)
x.exp2()
(x.abs() + 1).log2()
(x.abs() + 1).log10()
x.abs().log1p()
x.expm1()
x.sinh()
torch.atan2(x, x + 1)
x.tanh().asin()
x.tanh().erfinv()
(x.abs() + 1).lgamma()
torch.logaddexp(x, x * 2)
torch.hypot(x, x)
x.sign()
torch.heaviside(x, torch.tensor(0.5))
x.frac()
x.round(decimals=1)
x.isnan().float()
x.isfinite().float()
torch.isclose(x, x).float()
torch.tensor(float(torch.allclose(x, x)))
torch.tensor(float(torch.equal(x, x * 1)))
torch.cdist(x, x)
torch.dist(x, x * 2)
(x @ x.T).trace()
(x @ x.T + torch.eye(3)).det()
(x @ x.T + torch.eye(3)).inverse()
x @ x.T + torch.eye(3)
x * torch.arange(4)
torch.full_like(x, 2.0) * x
x.new_tensor([1.0, 2.0]).sum() + x
x.new_full((2,), 3.0).sum() + x
x.new_ones(3, 4) * x
torch.zeros_like(x, dtype=torch.long).float() + x
x.to(torch.float64).float()
x.half().float()
x.type(torch.float32)
(x * 3).int().float()
x.bool().float()
x.clone()
x.t().contiguous()
x.detach() + x
x.data + x
x.T
x[None].mT
x.H
x.real
x * x[0, 0].item()
x * x.tolist()[0][1]
x * float(x.detach().numpy()[0, 0])
x * len(x)
sum((r for r in x))
x * x.size(-1) / x.shape[0] * x.numel() * x.dim() * x.ndim * x.nelement()
x * x.stride()[0]
x if x.is_contiguous() else x * 0
x.topk(2).values
x.sort(1)[0]
x.argsort(1).float()
x.unique()
x.argmax(1).bincount().float()
x.histc(3)
F.dropout1d(x, 0.0)
F.dropout(x, p=0.5, training=False)
F.scaled_dot_product_attention(x, x, x)
F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(3, 3).tril().bool())
F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], scale=0.3, is_causal=True)
F.scaled_dot_product_attention(x[None], x[None], x[None])
F.cross_entropy(x, torch.tensor([0, 3, 1]))
F.cross_entropy(x, torch.tensor([0, 3, 1]), weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
F.cross_entropy(x, torch.tensor([0, -100, 1]))
F.cross_entropy(x, torch.tensor([0, 2, 1]), reduction='sum')
F.cross_entropy(x, torch.tensor([0, 2, 1]), reduction='none')
F.cross_entropy(x, torch.tensor([0, 2, 1]), label_smoothing=0.2)
F.cross_entropy(x, torch.tensor([0, 2, 1]), label_smoothing=0.2, weight=torch.tensor([1.0, 2.0, 0.5, 1.0]))
F.cross_entropy(x, F.softmax(x.detach() * 2, 1))
F.cross_entropy(x[0], torch.tensor(2))
F.cross_entropy(x, torch.tensor([-100, 1, -100]), reduction='sum')
F.cross_entropy(x, torch.tensor([0, 9, 1]))
F.nll_loss(x.log_softmax(1), torch.tensor([0, 2, 1]))
F.binary_cross_entropy(x.sigmoid(), torch.ones(3, 4) * 0.3)
F.binary_cross_entropy_with_logits(x, torch.ones(3, 4) * 0.3, pos_weight=torch.ones(4) * 2)
F.mse_loss(x, torch.zeros(3, 4))
F.mse_loss(x, torch.zeros(4))
F.smooth_l1_loss(x, torch.zeros(3, 4), beta=0.5)
F.huber_loss(x, torch.zeros(3, 4), delta=0.5)
F.kl_div(x.log_softmax(1), x.detach().log_softmax(1), log_target=True, reduction='batchmean')
F.hinge_embedding_loss(x, torch.ones(3, 4))
F.margin_ranking_loss(x[0], x[1], torch.ones(4))
F.cosine_embedding_loss(x, x * 2, torch.ones(3))
F.triplet_margin_loss(x, x * 2, x * 3)
F.multi_margin_loss(x, torch.tensor([0, 2, 1]))
F.poisson_nll_loss(x, torch.ones(3, 4))
F.gaussian_nll_loss(x, torch.ones(3, 4), torch.ones(3, 4))
F.ctc_loss(x[:, None].log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([3]), torch.tensor([2]))
F.soft_margin_loss(x, torch.ones(3, 4))
F.multilabel_soft_margin_loss(x, torch.ones(3, 4))
F.l1_loss(x, x * 2, reduction='none')
F.normalize(x, p=1, dim=0)
F.one_hot(torch.tensor([1, 0, 2]), 4) * x
F.pad(x, (-1, 1))
F.pad(x, (1, 1, 0, 2), value=2.0)
F.pad(x[None], (1, 1), mode='reflect')
F.interpolate(x[None], scale_factor=2)
F.pixel_shuffle(x.reshape(1, 4, 1, 3), 2)
torch.logit(x.sigmoid())
x.unflatten(1, (2, 2))
torch.softmax(x, 0)
F.layer_norm(x, (4,), self.vector, self.vector, 0.001)
F.group_norm(x[None].mT, 2)
F.linear(x[0], self.weight, self.vector)
F.bilinear(x, x, self.weight[None])
(x * 1).relu_()
(x * 1).add_(x, alpha=2)
(x * 1).__iadd__(1)
(lambda y: (y.__setitem__((slice(None), 0), 0.0), y)[1])(x * 1)
(x * 1).fill_(2.0) + x
(x * 1).zero_() + x
(x * 1).copy_(x * 2)
(x * 1).exp_()
(x * 1).clamp_(0, 1)
(x * 1).masked_fill_(x > 0, 3.0)
(x * 1).t_()
(x * 1)[None].squeeze_(0)
(x * 1).unsqueeze_(0)
(x * 1).resize_(4, 3)
x.index_fill(1, torch.tensor([0]), 0.0)
torch.cartesian_prod(x[0], x[1])
torch.combinations(x[0])
torch.searchsorted(x.sort(1)[0], x).float()
torch.bucketize(x, torch.tensor([0.0, 1.0])).float()
torch.fft.rfft(x).abs()
torch.corrcoef(x)
torch.cov(x)
x.quantile(0.5)
x.renorm(2, 0, 1.0)
(x @ x.T + torch.eye(3)).logdet()
torch.linalg.svdvals(x)
torch.linalg.solve(x @ x.T + torch.eye(3), x)
torch.xlogy(x.abs(), x.abs() + 1)
torch.special.expit(x)
(x.abs() + 1).digamma()
sum([x, x, x])
torch.stack([r * 2 for r in x.unbind(0)]).sum(0)
"""
#: Modules, the shape of `x`, and the call.
MODULES = [
    ("nn.LSTM(4, 6, proj_size=3)", (5, 4), "m(x)"),
    ("nn.LSTM(4, 5, 2, dropout=0.5).eval()", (5, 4), "m(x)"),
    ("nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)", (1, 5, 4), "m(x)"),
    ("nn.GRU(4, 5, 2, bidirectional=True)", (5, 1, 4), "m(x)"),
    ("nn.GRU(4, 5, bias=False)", (5, 4), "m(x)"),
    ("nn.RNN(4, 5, nonlinearity='relu')", (5, 4), "m(x)"),
    ("nn.RNN(4, 5)", (1, 4), "m(x)"),
    ("nn.Conv1d(4, 8, 3, groups=2)", (4, 7), "m(x)"),
    ("nn.Conv1d(4, 8, 3, padding='same')", (4, 7), "m(x)"),
    ("nn.Conv1d(4, 8, 3, padding=1, padding_mode='reflect')", (4, 7), "m(x)"),
    ("nn.Conv1d(4, 2, 3, dilation=2, stride=2, padding=2)", (1, 4, 9), "m(x)"),
    ("nn.Conv1d(4, 2, 1, bias=False)", (4, 7), "m(x)"),
    ("nn.MultiheadAttention(4, 2)", (5, 4), "m(x, x, x)"),
    ("nn.MultiheadAttention(4, 2, kdim=3, vdim=5)", (5, 4), "m(x, x[:, :3], torch.cat([x, x[:, :1]], 1))"),
    ("nn.MultiheadAttention(4, 2, add_bias_kv=True)", (5, 4), "m(x, x, x)"),
    ("nn.MultiheadAttention(4, 2, add_zero_attn=True)", (5, 4), "m(x, x, x)"),
    ("nn.MultiheadAttention(4, 2, batch_first=True)", (1, 5, 4), "m(x, x, x)"),
    ("nn.MultiheadAttention(4, 2, bias=False)", (5, 4), "m(x, x, x)"),
    ("nn.LayerNorm((3, 4))", (2, 3, 4), "m(x)"),
    ("nn.LayerNorm(4, bias=False)", (3, 4), "m(x)"),
    ("nn.LayerNorm(4, elementwise_affine=False)", (3, 4), "m(x)"),
    ("nn.RMSNorm(4)", (3, 4), "m(x)"),
    ("nn.RMSNorm((3, 4))", (2, 3, 4), "m(x)"),
    ("nn.GroupNorm(2, 4)", (1, 4, 5), "m(x)"),
    ("nn.InstanceNorm1d(4)", (4, 5), "m(x)"),
    ("nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, activation='gelu', batch_first=True).eval()", (1, 5, 4), "m(x)"),
    ("nn.TransformerDecoderLayer(4, 2, 8, batch_first=True).eval()", (1, 5, 4), "m(x, x * 0.5)"),
    ("nn.Transformer(4, 2, 1, 1, 8, batch_first=True).eval()", (1, 5, 4), "m(x, x * 0.5)"),
    ("nn.Embedding(5, 4, max_norm=1.0)", (3, 4), "m(x.argmax(1)) * x"),
    ("nn.Embedding(5, 4, padding_idx=-1)", (3, 4), "m(x.argmax(1)) * x"),
    ("nn.Embedding(5, 4, scale_grad_by_freq=True)", (3, 4), "m(x.argmax(1)) * x"),
    ("nn.EmbeddingBag(5, 4)", (3, 4), "m(torch.tensor([[1, 2]])) * x[:1]"),
    ("nn.Bilinear(4, 4, 3)", (3, 4), "m(x, x * 2 + 1)"),
    ("nn.PReLU()", (3, 4), "m(x)"),
    ("nn.PReLU(4)", (3, 4), "m(x)"),
    ("nn.Softmax(-1)", (3, 4), "m(x)"),
    ("nn.GLU()", (3, 4), "m(x)"),
    ("nn.Hardshrink()", (3, 4), "m(x)"),
    ("nn.Softshrink()", (3, 4), "m(x)"),
    ("nn.LogSigmoid()", (3, 4), "m(x)"),
    ("nn.Softplus(2, 1)", (3, 4), "m(x)"),
    ("nn.Threshold(0.1, 2.0)", (3, 4), "m(x)"),
    ("nn.RReLU().eval()", (3, 4), "m(x)"),
    ("nn.Dropout(0.5).eval()", (3, 4), "m(x)"),
    ("nn.AlphaDropout(0.5).eval()", (3, 4), "m(x)"),
    ("nn.CosineSimilarity(1)", (3, 4), "m(x, x * 2 + 1)"),
    ("nn.PairwiseDistance()", (3, 4), "m(x, x * 2 + 1)"),
    ("nn.MaxPool1d(2, 1)", (4, 6), "m(x)"),
    ("nn.AvgPool1d(2)", (4, 6), "m(x)"),
    ("nn.AdaptiveMaxPool1d(1)", (4, 6), "m(x)"),
    ("nn.Unflatten(1, (2, 2))", (3, 4), "m(x)"),
    ("nn.Flatten(0)", (3, 4), "m(x)"),
    ("nn.BatchNorm1d(4).eval()", (1, 4), "m(x)"),
    ("nn.ZeroPad1d(1)", (3, 4), "m(x)"),
    ("nn.Upsample(scale_factor=2)", (1, 3, 4), "m(x)"),
    ("nn.ChannelShuffle(2)", (1, 4, 4, 2), "m(x)"),
]


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.vector = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4))
        #: A product with it is recorded.
        self.one = nn.Parameter(torch.ones(()))


def outcome(run, own, shape, record):
    """The value and the gradients, or the type of the exception."""
    for param in own.parameters():
        param.grad = None
    leaf = torch.randn(*shape, generator=torch.Generator().manual_seed(3)).requires_grad_()
    try:
        with batch(threads=1) if record else contextlib.nullcontext():
            made = run(leaf * own.one)
            made = made[0] if isinstance(made, tuple) else made
        if made.requires_grad:
            (made * torch.linspace(0.5, 1.5, made.numel()).reshape(made.shape)).sum().backward()
    except autobatch.RecordError:
        return "refused", []
    except Exception as error:
        return type(error), []
    return made.detach(), [torch.zeros_like(param) if param.grad is None else param.grad for param in (leaf, *own.parameters())]


def check(run, own, shape):
    """Whether the form has a value in a block. Fails if it gives something else than torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (expected, gradients), (made, others) = (outcome(run, own, shape, record) for record in (False, True))
    if made == "refused":
        return False
    if not isinstance(expected, torch.Tensor):
        assert not isinstance(made, torch.Tensor), made
        return False
    assert isinstance(made, torch.Tensor), made
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    assert torch.allclose(made.float(), expected.float(), atol=2e-5, rtol=1e-4, equal_nan=True)
    for gradient, other in zip(gradients, others):
        assert gradient.shape == other.shape and torch.allclose(gradient, other, atol=2e-4, rtol=1e-3, equal_nan=True)
    return True


def test_forms_of_functions():
    torch.manual_seed(0)
    own, recorded, wrong = Parameters(), 0, []
    forms = FORMS.strip().splitlines()
    for form in forms:
        run = eval(f"lambda x: {form}", {"torch": torch, "F": F, "self": own})  # noqa: S307
        try:
            recorded += check(run, own, (3, 4))
        except AssertionError as error:
            wrong.append(f"{form}: {error}")
    assert not wrong, "\n".join(wrong)
    assert recorded >= 120, f"{recorded} of {len(forms)}"


@pytest.mark.parametrize(("module", "shape", "call"), MODULES)
def test_forms_of_modules(module, shape, call):
    torch.manual_seed(1)
    own = nn.Module()
    own.m, own.one = eval(module, {"nn": nn}), nn.Parameter(torch.ones(()))  # noqa: S307
    check(eval(f"lambda x: {call}", {"torch": torch, "m": own.m}), own, shape)  # noqa: S307
