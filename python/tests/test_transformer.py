"""Transformers: calls equal states bit for bit, and PyTorch's layers with the same parameters."""

import autobatch as ab
import numpy as np
import pytest

WIDTH, HEADS, LAYERS = 12, 3, 2


def sentence(length, seed):
    return np.random.default_rng(seed).standard_normal((length, WIDTH)).astype(np.float32)


def stacks(**options):
    m = ab.Module("m")
    encoder = ab.nn.TransformerEncoder(m, "encoder", WIDTH, HEADS, LAYERS, **options)
    decoder = ab.nn.TransformerDecoder(m, "decoder", WIDTH, HEADS, LAYERS, **options)
    return m, encoder, decoder


OPTIONS = [{}, {"norm_first": True, "activation": "gelu", "feed_forward": 20, "bias": False}]


@pytest.mark.parametrize("options", OPTIONS)
def test_states_equal_calls_bit_for_bit(options):
    m, encoder, decoder = stacks(**options)
    session = ab.Session(m)
    sentences = [sentence(length, length) for length in (1, 4, 7)]

    def called(xs):
        xs = [ab.input(x) for x in xs]
        return ab.stack(encoder(xs, causal=True) + decoder(xs, encoder(xs)))

    def pushed(xs):
        xs = [ab.input(x) for x in xs]
        outputs = []
        for state in (encoder.start(), decoder.start(encoder(xs))):
            for x in xs:
                state = state.push(x)
                outputs.append(state.output)
            assert len(state) == len(xs)
        return ab.stack(outputs)

    for one, two in zip(session.predict(sentences, called), session.predict(sentences, pushed)):
        assert np.array_equal(one, two)


def test_a_state_branches():
    m, encoder, _ = stacks()
    session = ab.Session(m)
    a, b, c = sentence(3, 1)

    def branches(_):
        first = encoder.start().push(ab.input(a))
        second = [first.push(ab.input(x)).output for x in (b, c)]
        return ab.stack([encoder([ab.input(a), ab.input(x)], causal=True)[1] for x in (b, c)] + second)

    whole_b, whole_c, b_output, c_output = session.predict([0], branches)[0]
    assert np.array_equal(whole_b, b_output) and np.array_equal(whole_c, c_output)


def test_mistakes_are_errors():
    m = ab.Module("m")
    with pytest.raises(ab.EmitError, match="1 to 1000 layers, found 0"):
        ab.nn.TransformerEncoder(m, "none", WIDTH, HEADS, 0)
        ab.Session(m)
    with pytest.raises(ValueError, match='no activation is called "rellu"'):
        ab.nn.TransformerDecoder(ab.Module("m"), "decoder", WIDTH, HEADS, LAYERS, activation="rellu")
    m, encoder, decoder = stacks()
    session = ab.Session(m)
    with pytest.raises(IndexError, match="no position yet"):
        session.predict([0], lambda _: encoder.start().output)
    with pytest.raises(ab.EmitError, match="no values to attend to"):
        session.predict([0], lambda _: decoder([ab.input(sentence(1, 0)[0])], [])[0])


def test_positions_are_added_one_by_one_as_to_a_sequence():
    m = ab.Module("m")
    positions = [ab.nn.Positions.sinusoidal(WIDTH), ab.nn.Positions.learned(m, "positions", 5, WIDTH)]
    session = ab.Session(m)
    xs = sentence(5, 3)

    def added(each):
        values = [ab.input(x) for x in xs]
        return ab.stack(each(values) + [each.at(x, place) for place, x in enumerate(values)])

    for rows in session.predict(positions, added):
        assert np.array_equal(rows[:5], rows[5:])


@pytest.mark.parametrize("options", OPTIONS)
def test_imported_parameters_give_the_results_and_gradients_of_torch(options):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    words = {"dim_feedforward": options.get("feed_forward", 4 * WIDTH), "dropout": 0.0, "batch_first": True}
    words |= {"norm_first": options.get("norm_first", False), "activation": options.get("activation", "relu")}
    words |= {"bias": options.get("bias", True)}

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            norm = lambda: torch.nn.LayerNorm(WIDTH, bias=words["bias"]) if words["norm_first"] else None  # noqa: E731
            layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, **words)
            self.enc = torch.nn.TransformerEncoder(layer, LAYERS, norm(), enable_nested_tensor=False)
            layer = torch.nn.TransformerDecoderLayer(WIDTH, HEADS, **words)
            self.dec = torch.nn.TransformerDecoder(layer, LAYERS, norm())

    model = Both()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    m, encoder, decoder = stacks(**options)
    session = ab.Session(m)
    names = {"enc": "encoder", "dec": "decoder"}
    report = session.import_pytorch(model.state_dict(), names)
    assert report["missing"] == [] and report["unexpected"] == [] and report["joint_biases"] == []
    assert sorted(report["read"]) == sorted(session.weights)
    trainer = ab.Trainer(m, ab.optim.Sgd(0.1))
    assert trainer.import_pytorch(model.state_dict(), names) == report
    with pytest.raises(ab.CheckpointError, match="dek"):
        session.import_pytorch(model.state_dict(), {"dek": "decoder"})

    def translated(pair):
        source, target = ([ab.input(x) for x in xs] for xs in pair)
        return ab.stack(decoder(target, encoder(source)))

    pairs = [(sentence(length, 1), sentence(other, 2)) for length, other in ((3, 5), (9, 2), (1, 1))]
    for (source, target), found in zip(pairs, session.predict(pairs, translated)):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(len(target))
        with torch.no_grad():
            encoded = model.enc(torch.from_numpy(source)[None])
            expected = model.dec(torch.from_numpy(target)[None], encoded, tgt_mask=mask)[0].numpy()
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()

    # One step of plain gradient descent moves each parameter by its gradient.
    factors = sentence(1, 7)[0]

    def loss(pair):
        source, target = ([ab.input(x) for x in xs] for xs in pair)
        return ab.stack([(x * ab.input(factors)).sum() for x in decoder(target, encoder(source))]).sum()

    trainer = ab.Trainer(m, ab.optim.Sgd(1.0))
    trainer.import_pytorch(model.state_dict(), names)
    before = trainer.weights
    trainer.step(pairs, loss)
    model.double()
    total = 0.0
    for source, target in pairs:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(len(target), dtype=torch.float64)
        encoded = model.enc(torch.from_numpy(source).double()[None])
        decoded = model.dec(torch.from_numpy(target).double()[None], encoded, tgt_mask=mask)
        total = total + (decoded * torch.from_numpy(factors).double()).sum()
    (total / len(pairs)).backward()
    gradients = ab.Session(m)
    gradients.import_pytorch({name: p.grad for name, p in model.named_parameters()}, names)
    for name, expected in gradients.weights.items():
        found = before[name] - trainer.weights[name]
        # The gradient of a key's bias is zero, because a softmax ignores what it adds to all scores.
        assert np.abs(found - expected).max() < 1e-5 * max(np.abs(expected).max(), 1.0), name
