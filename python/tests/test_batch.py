"""`autobatch.torch.batch` against torch without it."""

import contextlib
import pathlib
import sys
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
sys.path.append(str(pathlib.Path(__file__).parent.parent / "examples"))
from batch_models import MODELS, TreeLSTM, instances  # noqa: E402

import autobatch as ab  # noqa: E402
from autobatch.torch import batch  # noqa: E402


def gradients(module):
    found = {name: param.grad for name, param in module.named_parameters()}
    module.zero_grad(set_to_none=True)
    return found


def assert_close(found, expected, tolerance):
    scale = max(float(expected.detach().abs().max()), 1e-3)
    assert found.shape == expected.shape
    assert float((found.detach() - expected.detach()).abs().max()) <= tolerance * scale


@pytest.mark.parametrize("kind", MODELS)
def test_models_equal_eager(kind):
    torch.manual_seed(1)
    model, data = kind(), instances(kind, 10)
    expected = torch.stack([model(*instance) for instance in data])
    expected.mean().backward()
    of_eager = gradients(model)
    for _ in range(2):
        with batch() as block:
            losses = [model(*instance) for instance in data]
            loss = torch.stack(losses).mean()
        assert block.ops > 50
        loss.backward()
        assert_close(torch.stack(losses), expected, 1e-5)
        found = gradients(model)
        for name, gradient in of_eager.items():
            assert_close(found[name], gradient, 1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_inference_equals_eager(kind):
    torch.manual_seed(2)
    model, data = kind().eval(), instances(kind, 6)
    with torch.no_grad():
        expected = [model(*instance) for instance in data]
        with batch():
            found = [model(*instance) for instance in data]
    for one, other in zip(found, expected):
        assert not one.requires_grad
        assert_close(one, other, 1e-5)


#: Functions of two vectors, a matrix and a parameter, as people write them.
FORMS = {
    "arithmetic": lambda a, b, m, w: (a + 2 * b - a / (b.abs() + 1)) ** 2,
    "right operators": lambda a, b, m, w: 1 - a + 2 / (1 + b * b),
    "alpha": lambda a, b, m, w: torch.add(a, b, alpha=0.5) - torch.sub(a, b, alpha=2),
    "activations": lambda a, b, m, w: F.gelu(a) + F.silu(b) + F.elu(a, 0.5) + F.leaky_relu(b, 0.2) + F.softplus(a, 2.0),
    "more activations": lambda a, b, m, w: F.gelu(a, approximate="tanh") + F.hardtanh(b) + F.logsigmoid(a) + F.mish(b),
    "clamp": lambda a, b, m, w: a.clamp(-0.5, 0.5) + b.clamp(min=0.1) + torch.clamp(a, max=0.2),
    "where": lambda a, b, m, w: torch.where(a > b, a, b * 2) + a.masked_fill(b < 0, 3.0),
    "a mask from outside": lambda a, b, m, w: a.masked_fill(torch.tensor([True, False, True, False, False]), -1.0),
    "views": lambda a, b, m, w: m.t().reshape(-1)[2:9].unsqueeze(0).squeeze() * m.flatten()[:7],
    "transposes": lambda a, b, m, w: m.transpose(0, 1) @ m + m.T @ m + torch.einsum("ij,ik->jk", m, m),
    "indices": lambda a, b, m, w: m[0] + m[-1] + m[1:, :2].sum() + m[..., 3:].sum() + m[:, None, 1].sum() + a[2],
    "lists of indices": lambda a, b, m, w: m[[0, 2]].sum(0) + m[torch.tensor([1, 1])].mean(0) + m.index_select(0, torch.tensor([2]))[0],
    "cat": lambda a, b, m, w: torch.cat([a, b]).view(2, 5) @ torch.stack([a, b], dim=1) + torch.cat([m, m], 1)[0, 1],
    "stack": lambda a, b, m, w: torch.stack([a, b, a * b]).mean(0) + torch.stack([a, b]).max(0)[0] + torch.stack([a, b]).sum(),
    "chunk": lambda a, b, m, w: sum(part.sum() * k for k, part in enumerate(m.chunk(3, 1))) + m.split(2)[1].sum(),
    "unbind": lambda a, b, m, w: sum(row * k for k, row in enumerate(m)) + m.unbind(1)[2].sum(),
    "expand": lambda a, b, m, w: a.expand(3, 5) * m + b.unsqueeze(0).repeat(3, 1),
    "linear": lambda a, b, m, w: F.linear(a, w) + m @ w.t() + torch.addmm(a, m, w) + w @ b,
    "a weight seen in another shape": lambda a, b, m, w: (w.view(5, 5) * a).sum(1) + w[1] + w[:, 2],
    "sums": lambda a, b, m, w: m.sum(0) + m.mean(1).sum() + m.sum(dim=(0, 1)) + m.amax(1).sum() + m.min() + m.var(1).sum(),
    "keepdim": lambda a, b, m, w: m - m.mean(0, keepdim=True) + m.sum(1, keepdim=True) + m.std(1, keepdim=True),
    "softmax": lambda a, b, m, w: F.softmax(m, 0) + m.softmax(-1) + F.log_softmax(m, dim=1) + m.logsumexp(1)[:, None],
    "norms": lambda a, b, m, w: m.norm() + m.norm(dim=1).sum() + a.norm(1) + F.normalize(m, dim=1).sum() + F.cosine_similarity(a, b, dim=0),
    "layer_norm": lambda a, b, m, w: F.layer_norm(m, (5,), a, b) + F.rms_norm(m, (5,), a, 1e-6),
    "dot": lambda a, b, m, w: torch.dot(a, b) + torch.outer(a, b).sum() + a @ b + torch.matmul(m, a).sum(),
    "bmm": lambda a, b, m, w: torch.bmm(torch.stack([m, m * 2]), torch.stack([m.t(), m.t()])).sum(0),
    "attention": lambda a, b, m, w: F.scaled_dot_product_attention(m[None], m[None] * 2, m[None]),
    "causal attention": lambda a, b, m, w: F.scaled_dot_product_attention(m[None], m[None], m[None] + 1, is_causal=True),
    "losses": lambda a, b, m, w: F.mse_loss(a, b) + F.l1_loss(a, b) + F.smooth_l1_loss(a * 3, b) + F.huber_loss(a * 3, b),
    "losses of probabilities": lambda a, b, m, w: F.binary_cross_entropy_with_logits(a, b.sigmoid()) + F.binary_cross_entropy(
        a.sigmoid(), b.sigmoid()
    ) + F.kl_div(F.log_softmax(a, 0), F.softmax(b, 0), reduction="sum"),
    "losses of classes": lambda a, b, m, w: F.cross_entropy(m, torch.tensor([1, -100, 4])) + F.cross_entropy(
        m, torch.tensor([0, 1, 2]), reduction="sum", label_smoothing=0.1
    ) + F.cross_entropy(a, torch.tensor(2)) + F.nll_loss(F.log_softmax(m, 1), torch.tensor([1, 2, 3]), weight=torch.arange(1.0, 6)),
    "in place": lambda a, b, m, w: F.relu(a * 2, inplace=True) + (a * 2).add_(b).mul_(3),
    "assignment": lambda a, b, m, w: in_place(a, b),
    "like": lambda a, b, m, w: torch.zeros_like(a) + torch.ones_like(b) * b + a.new_zeros(5) + a.new_full((5,), 2.0),
    "detach": lambda a, b, m, w: a.detach() * b + without_gradient(a) * b,
    "cumsum": lambda a, b, m, w: m.cumsum(0) + a.cumsum(0),
    "gather": lambda a, b, m, w: m.gather(1, torch.tensor([[1], [0], [4]])).sum() + a.narrow(0, 1, 2).sum() + a.select(0, 3),
    "choices": lambda a, b, m, w: a[m.sum(0).argmax()] * b + (a.max(0)[1] == 2).float(),
}


def in_place(a, b):
    x = a * 1
    y = x
    x += b
    x *= 2
    return y


def without_gradient(a):
    with torch.no_grad():
        return a * 2


def made(form, inputs, w):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    result = FORMS[form](*(leaf * 1 for leaf in leaves), w)
    return leaves, result


@pytest.mark.parametrize("form", FORMS)
def test_forms_equal_eager(form):
    torch.manual_seed(3)
    w = nn.Parameter(torch.randn(5, 5))
    several = [(torch.randn(5), torch.randn(5), torch.randn(3, 5)) for _ in range(3)]
    expected = []
    for inputs in several:
        leaves, result = made(form, inputs, w)
        result.sum().backward()
        expected.append((result, [leaf.grad for leaf in leaves]))
    of_w, w.grad = w.grad, None
    held = nn.ParameterList([w, nn.Parameter(torch.ones(()))])
    with batch() as block:
        found = [[leaf.clone().requires_grad_() for leaf in inputs] for inputs in several]
        results = [FORMS[form](*(held[1] * leaf for leaf in leaves), held[0]) for leaves in found]
    assert block.ops >= 12
    sum(result.sum() for result in results).backward()
    for leaves, result, (value, gradients_) in zip(found, results, expected):
        assert_close(result.detach(), value, 1e-5)
        for leaf, gradient in zip(leaves, gradients_):
            if gradient is None:
                assert leaf.grad is None or not leaf.grad.any()
            else:
                assert_close(leaf.grad, gradient, 1e-4)
    if of_w is not None:
        assert_close(w.grad, of_w, 1e-4)


def test_reads_compute_what_was_recorded():
    linear = nn.Linear(4, 4)
    x = torch.randn(1, 4)
    with batch() as block:
        y = linear(x)
        steps = 0
        while y.sum().item() > -1e9 and steps < 3:
            y = torch.tanh(linear(y))
            steps += 1
        assert bool(y.max() < 2)
        assert np.asarray(y.detach()).shape == (1, 4)
        loss = y.sum()
    assert block.flushes >= 3
    loss.backward()
    found = gradients(linear)
    expected = linear(x)
    for _ in range(3):
        expected = torch.tanh(linear(expected))
    expected.sum().backward()
    assert_close(found["weight"], linear.weight.grad, 1e-4)


def test_training_with_an_optimiser_equals_eager():
    def train(blocks):
        torch.manual_seed(5)
        model = TreeLSTM()
        optimiser = torch.optim.Adam(model.parameters(), 0.01)
        for step in range(4):
            data = instances(TreeLSTM, 5, step)
            optimiser.zero_grad()
            if blocks:
                with batch():
                    loss = torch.stack([model(*instance) for instance in data]).mean()
            else:
                loss = torch.stack([model(*instance) for instance in data]).mean()
            loss.backward()
            optimiser.step()
        return [param.detach().clone() for param in model.parameters()]

    for found, expected in zip(train(True), train(False)):
        assert_close(found, expected, 1e-3)


def test_two_backward_calls():
    linear, x = nn.Linear(3, 2), torch.randn(1, 3)
    with batch():
        a, b = linear(x).sum(), linear(x).square().sum()
    a.backward(retain_graph=True)
    b.backward()
    found = gradients(linear)
    (linear(x).sum() + linear(x).square().sum()).backward()
    assert_close(found["weight"], linear.weight.grad, 1e-5)


def test_dropout_draws_the_noise_of_torch():
    x = torch.ones(50)
    linear = nn.Linear(50, 3)
    torch.manual_seed(7)
    expected = linear(F.dropout(x * 2, 0.4))
    with batch():
        y = x + linear.weight[0] * 0
        torch.manual_seed(7)
        z = linear(F.dropout(y * 2, 0.4))
    assert_close(z, expected, 1e-5)


def test_what_is_unknown_is_an_error_with_the_line():
    linear, x = nn.Linear(3, 2), torch.randn(1, 3)
    with pytest.raises(ab.RecordError, match=r'erfinv at File ".*test_batch.py", line \d+ cannot be recorded.*unknown="eager"'):
        with batch():
            torch.erfinv(linear(x).tanh())
    with pytest.raises(ab.RecordError, match="indices that are no ints"):
        with batch():
            linear(x)[torch.tensor([[True, False]])]
    with batch(unknown="eager"):
        y = torch.erfinv(linear(x).tanh()) * 2
    assert_close(y, torch.erfinv(linear(x).tanh()) * 2, 1e-5)
    y.sum().backward()
    assert linear.weight.grad is not None


def test_a_part_that_changes_in_place_is_refused():
    linear, x = nn.Linear(3, 4), torch.randn(1, 3)
    with pytest.raises(ab.RecordError, match="changes in place"):
        with batch():
            y = linear(x)
            y[0] = 1.0
    with pytest.raises(ab.RecordError, match="other tensors view"):
        with batch():
            y = linear(x)
            z = y.view(-1)
            z += 1
    with batch():
        y = linear(x)
        y = y.view(-1)
        y += 1
    assert_close(y, linear(x).view(-1) + 1, 1e-5)


def test_an_error_in_a_block_leaves_torch_as_it_was():
    linear, x = nn.Linear(3, 2), torch.randn(1, 3)
    with pytest.raises(ZeroDivisionError):
        with batch():
            y = linear(x)
            1 / 0
    with pytest.raises(ab.RecordError, match="ended with an error"):
        y + 1
    assert type(linear(x)) is torch.Tensor


def test_parameters_of_several_models_and_new_ones():
    x = torch.randn(1, 4)
    for _ in range(3):
        one, two = nn.Linear(4, 4), nn.Linear(4, 4)
        with batch():
            y = two(one(x)).sum()
        y.backward()
        expected = two(one(x)).sum()
        assert_close(y, expected, 1e-5)
        assert one.weight.grad is not None and two.weight.grad is not None
        one.weight.data.mul_(2)
        with batch():
            y = two(one(x)).sum()
        assert_close(y, two(one(x)).sum(), 1e-5)


def test_a_change_of_a_parameter_computes_what_was_recorded_before():
    linear, x, counter = nn.Linear(3, 2), torch.randn(1, 3), torch.zeros(1)
    expected = linear(x)
    with batch() as block:
        before = linear(x)
        counter.add_(1)
        with torch.no_grad():
            linear.weight.data[0].mul_(2)
        after = linear(x)
    assert block.flushes == 2 and float(counter) == 1
    assert_close(before, expected, 1e-5)
    assert_close(after, linear(x), 1e-5)


def test_integers_and_booleans_beside_gradients():
    linear, x = nn.Linear(4, 5), torch.randn(3, 4)
    y = linear(x)
    expected = (y.argmax(), y.argmax(-1), y > 0, y.argmax().item())
    with batch():
        y = linear(x)
        found = (y.argmax(), y.argmax(-1), y > 0, y.argmax().item())
    for one, other in zip(found[:3], expected):
        assert one.dtype == other.dtype and one.tolist() == other.tolist()
    assert found[3] == expected[3] and isinstance(found[3], int) and y.requires_grad


def test_a_recorded_tensor_where_torch_wants_a_number():
    linear, x = nn.Linear(3, 2), torch.randn(1, 3)
    mask, numbers = torch.tensor([True, False]), torch.arange(4)
    with batch():
        y = linear(x)
        assert isinstance(y, torch.Tensor)
        chosen = torch.where(mask, y, -1), torch.where(torch.tensor(True), 2.0, y)
        for wrong in (lambda: torch.full((2,), y), lambda: torch.arange(y), lambda: torch.zeros(y), lambda: numbers.chunk(y)):
            with pytest.raises((TypeError, RuntimeError, ab.RecordError)):
                wrong()
    y = linear(x)
    assert_close(chosen[0], torch.where(mask, y, -1), 1e-5)
    assert_close(chosen[1], torch.full((1, 2), 2.0), 1e-5)


def test_a_tensor_that_changes_in_place_after_it_was_recorded():
    torch.manual_seed(11)
    layer = nn.Linear(3, 3)
    for change in (lambda x: x.mul_(0.5), lambda x: F.relu(x, inplace=True), lambda x: x.__setitem__(0, 2.0)):
        found = []
        for record in (False, True):
            leaf = torch.tensor([[0.3, -0.4, 0.5]], requires_grad=True)
            with batch() if record else contextlib.nullcontext():
                x = leaf * 1.0
                before = x + layer.bias
                change(x)
                after = layer(x) * x
            (before.sum() + after.square().sum()).backward()
            found.append((before.detach().clone(), after.detach().clone(), leaf.grad))
        for expected, made in zip(*found):
            assert_close(made, expected, 1e-6)


def test_a_picture_of_the_batches():
    torch.manual_seed(12)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    with batch(explain=True) as block:
        made = [model(torch.randn(1, 3)) for _ in range(5)]
    shown = block._repr_html_()
    assert "flush 1: " in shown and shown.count("<svg ") == 1 and "batches" in shown and len(made) == 5
    with batch() as block:
        made = [model(torch.randn(1, 3)) for _ in range(5)]
    assert "<svg" not in block._repr_html_()


class Doubled(torch.autograd.Function):
    """Its gradient is not that of its forward pass."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 5


def test_functions_that_torch_does_not_pass_to_a_mode_get_tensors():
    layer = nn.Linear(3, 3)
    x = torch.ones(1, 3)
    with pytest.raises(ab.RecordError, match="Doubled at .*test_batch.py"), batch():
        Doubled.apply(layer(x))
    with batch(unknown="eager"):
        total = Doubled.apply(layer(x)).sum()
    total.backward()
    assert torch.allclose(layer.bias.grad, torch.full((3,), 5.0))
    assert float(Doubled.apply(torch.ones(2)).sum()) == 4.0
    for transform in (lambda y: torch.vmap(lambda row: row.sum())(y), lambda y: torch.func.grad(lambda q: (q * q).sum())(y)):
        with pytest.raises(ab.RecordError, match="block.flush"), batch():
            transform(layer(x))
        with batch() as block:
            y = layer(x)
            block.flush()
            found = transform(y)
        assert torch.allclose(found, transform(layer(x)))


def test_threads_have_blocks_of_their_own():
    model = TreeLSTM()
    data = instances(TreeLSTM, 12)
    expected = torch.stack([model(*one) for one in data]).detach()
    found = {}

    def run(number):
        for _ in range(3):
            with batch(threads=1):
                losses = torch.stack([model(*one) for one in data])
            found[number] = losses.detach()

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for losses in found.values():
        assert_close(losses, expected, 1e-5)


def test_a_second_derivative_is_an_error():
    layer, x = nn.Linear(3, 3), torch.ones(1, 3, requires_grad=True)
    with batch():
        y = layer(x).square().sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    (expected,) = torch.autograd.grad(layer(x).square().sum(), x)
    assert_close(gradient, expected, 1e-5)
    with pytest.raises(RuntimeError, match="computes no second derivatives"):
        (y + gradient.square().sum()).backward()
