"""Options of layers, and layers over features: each beside numpy, beside PyTorch's formula or beside plain layers."""

import numpy as np
import pytest

import autobatch as ab
from autobatch import nn

RECURRENT = [nn.LSTM, nn.GRU, nn.RNN]


def vectors(count, width, seed=0):
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("kind", RECURRENT)
def test_stacked_layers_are_plain_layers_on_top_of_each_other(kind):
    m = ab.Module()
    stack, plain = kind(m, "s", 3, 5, layers=3), [kind(m, f"p{number}", 5 if number else 3, 5) for number in range(3)]
    session = ab.Session(m)
    assert {name for name in session.weights if name[:4] == "s.2."} and "s.w" not in session.weights
    session.set_weights({f"p{name[2:]}": value for name, value in session.weights.items() if name[:2] == "s."})

    def model(rows):
        xs = [ab.input(row) for row in rows]
        state, own = stack.start(), xs
        for x in xs:
            state = state.push(x)
        for layer in plain:
            own = layer.run(own)
        return ab.stack(stack.run(xs)), stack.last(xs), state.h, ab.stack(own), own[-1], stack.start(state.values).h

    for rows in (vectors(4, 3), vectors(1, 3)):
        outputs, last, pushed, expected, expected_last, restarted = session.predict([rows], model)[0]
        assert np.array_equal(outputs, expected)
        assert all(np.array_equal(found, expected_last) for found in (last, pushed, restarted))


@pytest.mark.parametrize("kind", [nn.BiLSTM, nn.BiGRU, nn.BiRNN])
def test_stacked_layers_in_both_directions_read_pairs(kind):
    m = ab.Module()
    stack, below, above = kind(m, "s", 3, 4, layers=2), kind(m, "p0", 3, 4), kind(m, "p1", 8, 4)
    session = ab.Session(m)
    session.set_weights({f"p{name[2:]}": value for name, value in session.weights.items() if name[:2] == "s."})

    def model(rows):
        xs = [ab.input(row) for row in rows]
        pairs = [ab.concat(list(pair)) for pair in stack.run_pairs(xs)]
        return ab.stack(stack.run(xs)), ab.stack(pairs), ab.stack(above.run(below.run(xs))), stack.last(xs), above.last(below.run(xs))

    outputs, pairs, expected, last, expected_last = session.predict([vectors(5, 3)], model)[0]
    assert outputs.shape == (5, 8) and np.array_equal(outputs, expected) and np.array_equal(pairs, expected)
    assert np.array_equal(last, expected_last)


@pytest.mark.parametrize("kind", RECURRENT)
def test_masks_of_a_sequence_are_the_same_at_every_step(kind):
    m = ab.Module()
    layer = kind(m, "layer", 6, 6, input_dropout=0.5, hidden_dropout=0.5)
    rows = [vectors(7, 6, seed) for seed in range(8)]

    def pushed(rows):
        state = layer.start()
        for row in rows:
            state = state.push(ab.input(row))
        return state.h.square().sum()

    losses = []
    for loss in (pushed, lambda rows: layer.last([ab.input(row) for row in rows]).square().sum()):
        trainer = ab.Trainer(m, ab.optim.Sgd(0.0), seed=4)
        losses.append(trainer.step(rows, loss).losses)
        assert trainer.step(rows, loss).losses != losses[-1], "each step draws its own masks"
        plain = trainer.predict(rows, loss)
        assert not np.allclose(plain, losses[-1]), "there is no dropout in predictions"
    assert losses[0] == losses[1]


@pytest.mark.parametrize("options, names", [
    ({"peepholes": True}, {"l.pi", "l.pf", "l.po"}), ({"layer_norm": True}, {"l.c.gain", "l.gx"}), ({"projection": 2}, {"l.wr"}),
    ({"hoist": True}, {"l.wx", "l.wh"}), ({"forget_bias": 1.0}, {"l.b"}), ({"init": ab.init.uniform(0.0)}, {"l.w"}),
])
def test_options_of_an_lstm_declare_their_parameters(options, names):
    m = ab.Module()
    layer = nn.LSTM(m, "l", 3, 4, **options)
    session = ab.Session(m)
    weights = session.weights
    assert names <= set(weights)
    assert session.predict([vectors(2, 3)], lambda rows: layer.last([ab.input(row) for row in rows]))[0].shape == (
        (2,) if "projection" in options else (4,)
    )
    assert np.array_equal(weights["l.b"], [0] * 4 + [1.0 if "forget_bias" in options else 0.0] * 4 + [0] * 8)
    assert "init" not in options or not weights["l.w"].any()


@pytest.mark.parametrize("make, says", [
    (lambda m: nn.LSTM(m, "l", 3, 4, layers=0), "layers of at least 1"),
    (lambda m: nn.RNN(m, "l", 3, 4, activation="swish"), "no activation is called"),
    (lambda m: nn.LSTM(m, "l", 3, 4, peephole=True), "peephole"),
])
def test_wrong_options_say_what_is_expected(make, says):
    with pytest.raises((ValueError, TypeError), match=says):
        make(ab.Module())


def test_a_given_state_has_the_values_of_all_layers():
    m = ab.Module()
    layer = nn.LSTM(m, "l", 3, 4, layers=2)
    session = ab.Session(m)
    with session.graph(), pytest.raises(ValueError, match="the state has 4 values, found 2"):
        layer.start([ab.zeros(4), ab.zeros(4)])


def test_the_activation_of_a_recurrent_layer():
    m = ab.Module()
    layer = nn.RNN(m, "l", 3, 4, activation="relu")
    session = ab.Session(m)
    x = vectors(1, 3)
    found = session.predict([x], lambda rows: layer.last([ab.input(rows[0])]))[0]
    weights = session.weights
    np.testing.assert_allclose(found, np.maximum(x[0] @ weights["l.w"][:3] + weights["l.b"], 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, expected", [
    ("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x)), ("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
    ("relu6", lambda x: np.clip(x, 0, 6)), ("hardtanh", lambda x: np.clip(x, -1, 1)),
    ("gelu_tanh", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
])
def test_activations_by_name(name, expected):
    m = ab.Module()
    layer = nn.MLP(m, "l", [3, 3, 3], activation=name)
    session = ab.Session(m)
    names = list(session.weights)
    session.set_weights({one: np.eye(3) * 4 if "w" in one.split(".")[-1] else np.zeros(3) for one in names})
    x = vectors(1, 3)[0]
    found = session.predict([x], lambda x: layer(ab.input(x)))[0]
    np.testing.assert_allclose(found, 4 * expected(4 * x.astype(np.float64)), rtol=1e-4, atol=1e-5)


def test_nodes_of_trees_with_inputs():
    m = ab.Module()
    lstm, gru = nn.TreeLSTM(m, "lstm", 4, input=2, forget_bias=1.0), nn.TreeGRU(m, "gru", 4, input=2)
    rnn, plain = nn.TreeRNN(m, "rnn", 4, input=2, bias=True, activation="relu"), nn.TreeLSTM(m, "plain", 4)
    session = ab.Session(m)
    weights = session.weights
    a, b, x = vectors(2, 4)[0], vectors(2, 4)[1], vectors(1, 2)[0]

    def model(_):
        left, right, own = ab.input(a), ab.input(b), ab.input(x)
        state = lstm.node(lstm.leaf(left), lstm.leaf(right), own)
        return state[0], rnn.node(left, right, own), gru.node(left, right, own)

    h, value, gated = session.predict([0], model)[0]
    both = np.concatenate([x, a, b])
    np.testing.assert_allclose(value, np.maximum(both @ weights["rnn.w"] + weights["rnn.b"], 0), rtol=1e-5, atol=1e-6)
    u, i, _, _, o = np.split(both @ weights["lstm.w"] + weights["lstm.b"], 5)
    np.testing.assert_allclose(h, sigmoid(o) * np.tanh(np.tanh(u) * sigmoid(i)), rtol=1e-5, atol=1e-6)
    assert gated.shape == (4,) and np.array_equal(np.split(weights["lstm.b"], 5)[2], np.ones(4))
    with session.graph():
        left = lstm.leaf(ab.input(a))
        with pytest.raises(TypeError, match="nodes of this layer have an input of width 2; pass x"):
            lstm.node(left, left)
        with pytest.raises(TypeError, match="declare the layer with input="):
            plain.node(left, left, ab.input(x))


def test_a_hoisted_child_sum_layer_computes_the_same_function():
    m = ab.Module()
    layers = [nn.ChildSumTreeLSTM(m, "plain", 3, 4), nn.ChildSumTreeLSTM(m, "hoisted", 3, 4, hoist=True)]
    session = ab.Session(m)
    weights = session.weights
    assert {name for name in weights if name.startswith("hoisted.")} != set()
    xs = vectors(3, 3)
    found = session.predict(layers, lambda layer: layer.node(ab.input(xs[0]), [
        layer.node(ab.input(xs[1]), []), layer.node(ab.input(xs[2]), []),
    ]))
    assert all(h.shape == (4,) and np.isfinite(h).all() for h, _ in found)


def test_matrices_and_vectors_of_nodes():
    m = ab.Module()
    layer = nn.MVRNN(m, "l", 3)
    session = ab.Session(m)
    weights = session.weights
    a, b = vectors(2, 3)
    at, bt = vectors(2, 9, seed=1)

    def model(_):
        return layer.node(layer.leaf(ab.input(a), ab.input(at)), layer.leaf(ab.input(b), ab.input(bt)))

    vector, matrix = session.predict([0], model)[0]
    at, bt = at.reshape(3, 3), bt.reshape(3, 3)
    expected = np.tanh(np.concatenate([a @ bt, b @ at]) @ weights["l.w"] + weights["l.b"])
    np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(matrix, np.concatenate([at, bt], 1) @ weights["l.wm"], rtol=1e-5, atol=1e-5)


def test_bilinear_forms_slopes_and_groups():
    m = ab.Module()
    bilinear, slope = nn.Bilinear(m, "bilinear", 3, 4, 2), nn.PReLU(m, "slope", 3)
    norm = nn.GroupNorm(m, "norm", 2, 4)
    session = ab.Session(m)
    weights = session.weights
    a, b, image = vectors(1, 3)[0], vectors(1, 4)[0], vectors(4, 5)

    def model(_):
        return bilinear(ab.input(a), ab.input(b)), slope(ab.input(a)), norm(ab.input(image))

    found, sloped, normed = session.predict([0], model)[0]
    forms = weights["bilinear.w"].reshape(3, 2, 4)
    np.testing.assert_allclose(found, np.einsum("i,ioj,j->o", a, forms, b), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sloped, np.where(a > 0, a, 0.25 * a), rtol=1e-6)
    groups = image.reshape(2, 10)
    expected = (groups - groups.mean(1, keepdims=True)) / np.sqrt(groups.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(normed, expected.reshape(4, 5), rtol=1e-4, atol=1e-5)


def test_characters_of_a_word_are_convolved():
    m = ab.Module()
    layer = nn.CharCNN(m, "cnn", 2, 3, 5, activation="tanh")
    session = ab.Session(m)
    weights = session.weights
    words = [vectors(length, 2, length) for length in (1, 2, 6)]
    found = session.predict(words, lambda word: layer([ab.input(char) for char in word]))
    for word, features in zip(words, found):
        padded = np.concatenate([np.zeros((1, 2)), word, np.zeros((1, 2))])
        windows = np.stack([padded[at : at + 3].reshape(-1) for at in range(len(word))])
        np.testing.assert_allclose(features, np.tanh(windows @ weights["cnn.w"] + weights["cnn.b"]).max(0), rtol=1e-5, atol=1e-6)
    (empty,) = session.predict([()], lambda _: layer([]))
    assert np.array_equal(empty, np.zeros(5))


def test_a_lattice_reads_the_words_that_end_at_a_character():
    m = ab.Module()
    layer = nn.LatticeLSTM(m, "lattice", 3, 2, 4)
    session = ab.Session(m)
    chars, word = vectors(4, 3), vectors(1, 2)[0]

    def model(words):
        own = [(first, last, ab.input(word)) for first, last in words]
        return [h for h, _ in layer.run([ab.input(char) for char in chars], own)]

    plain, with_word = session.predict([[], [(0, 2)]], model)
    assert all(np.array_equal(a, b) for a, b in zip(plain[:2], with_word[:2]))
    assert all(not np.array_equal(a, b) for a, b in zip(plain[2:], with_word[2:]))
    with pytest.raises(ab.EmitError, match="2 to 1|first|last"):
        session.predict([[(2, 1)]], model)


def test_an_adaptive_softmax_is_a_distribution():
    m = ab.Module()
    layer = nn.AdaptiveSoftmax(m, "softmax", 8, [4, 10, 30])
    session = ab.Session(m)
    x = vectors(1, 8)[0]
    logs, *losses = session.predict([0], lambda _: (
        layer.log_probabilities(ab.input(x)), *(layer.loss(ab.input(x), class_) for class_ in range(30)),
    ))[0]
    assert logs.shape == (30,) and np.exp(logs).sum() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(losses, -logs, rtol=1e-4, atol=1e-5)


def test_pretrained_rows_padding_and_the_loss_of_tied_rows():
    rows = vectors(5, 3)
    m = ab.Module()
    words = nn.Embedding(m, "words", 5, 3, init=rows, padding=2)
    trainer = ab.Trainer(m, ab.optim.Sgd(1.0))
    found = trainer.predict([0, 2, 4], words)
    assert np.array_equal(found, [rows[0], np.zeros(3), rows[4]])
    trainer.step([1, 2], lambda word: words(word).sum())
    changed = np.abs(trainer.weights["words"] - rows).sum(1) > 0
    assert changed.tolist() == [False, True, False, False, False]
    x = vectors(1, 3, seed=3)[0]
    loss, scores = trainer.predict([3], lambda label: (words.label_loss(ab.input(x), label), words.scores(ab.input(x))))[0]
    assert loss == pytest.approx(np.log(np.exp(scores).sum()) - scores[3], rel=1e-4)


def test_dot_attention_and_attention_over_other_widths():
    m = ab.Module()
    heads = nn.MultiHeadAttention(m, "heads", 8, 2, bias=False, key=3, value=5)
    additive = nn.AdditiveAttention(m, "additive", 3, 3, 4)
    session = ab.Session(m)
    assert not [name for name in session.weights if name.startswith("heads") and name.endswith(".b")]
    q, keys, values = vectors(1, 3)[0], vectors(4, 3, 1), vectors(4, 5, 2)

    def model(_):
        own, others = [ab.input(key) for key in keys], [ab.input(value) for value in values]
        (crossed,) = heads.cross([ab.input(vectors(1, 8)[0])], own, others)
        scores = additive.scores(ab.input(q), additive.keys(own))
        return (
            nn.DotAttention(3).read(ab.input(q), own, others), nn.DotAttention(3, scale=2.0).read(ab.input(q), own, others), crossed,
            additive.read(ab.input(q), additive.keys(own), others), ab.stack(scores),
        )

    scaled, doubled, crossed, added, scores = session.predict([0], model)[0]
    for found, products in ((scaled, keys @ q / np.sqrt(3)), (doubled, 2 * keys @ q), (added, scores)):
        shares = np.exp(products) / np.exp(products).sum()
        np.testing.assert_allclose(found, shares.reshape(-1) @ values, rtol=1e-4, atol=1e-5)
    assert crossed.shape == (8,)
