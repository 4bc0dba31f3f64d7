"""Layers over graphs, tags, experts and large vocabularies, beside numpy; and the ops on lists that such models use."""
import itertools

import numpy as np
import pytest

import autobatch as ab
from autobatch import nn

NEIGHBOURS = [[1, 2], [0], [0, 1, 2], []]


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def vectors(count, width, seed=0):
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


def test_folds_and_picks_of_lists():
    session = ab.Session(ab.Module())
    xs = vectors(5, 3)

    def model(rows):
        values = [ab.input(row) for row in rows]
        all_values = ab.list(values)
        best = all_values.argmax()
        first = ab.list([value[0] for value in values])
        chosen = all_values.pick(first.argmax())
        shares = ab.log_softmax_of(values)
        return (all_values.logsumexp(), best, chosen, all_values.pick(1), shares[-1])

    for rows in (xs, xs[:2]):
        total, best, chosen, second, last = session.predict([rows], model)[0]
        expected = np.log(np.exp(rows).sum(0))
        np.testing.assert_allclose(total, expected, rtol=1e-5)
        np.testing.assert_array_equal(best, rows.argmax(0))
        np.testing.assert_array_equal(chosen, rows[rows[:, 0].argmax()])
        np.testing.assert_array_equal(second, rows[1])
        np.testing.assert_allclose(last, rows[-1] - expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ab.AutobatchError, match="below 2"):
        session.predict([xs[:2]], lambda rows: ab.list([ab.input(row) for row in rows]).pick(2))


def test_a_gradient_flows_to_the_picked_value():
    m = ab.Module()
    words = m.table("words", 4, 2)
    trainer = ab.Trainer(m, ab.optim.Sgd(1.0))
    before = trainer.weights["words"].copy()

    def loss(row):
        values = [words[word] for word in range(4)]
        return ab.list(values).pick(ab.list([ab.input([x]) for x in row]).argmax().reshape([])).sum()

    trainer.step([[0.0, 3.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0]], loss)
    np.testing.assert_allclose(before - trainer.weights["words"], [[0, 0], [0.5, 0.5], [0, 0], [0.5, 0.5]])


def test_a_crf_has_the_probabilities_of_all_sequences():
    m = ab.Module()
    crf = nn.CRF(m, "crf", 3)
    session = ab.Session(m)
    weights = {name: np.asarray(session.weights[f"crf.{name}"]) for name in ("transitions", "start", "end")}
    scores = vectors(4, 3)

    def total(tags):
        steps = sum(weights["transitions"][to, before] for before, to in zip(tags, tags[1:]))
        own = sum(row[tag] for row, tag in zip(scores, tags))
        return weights["start"][tags[0]] + own + steps + weights["end"][tags[-1]]

    every = {tags: total(tags) for tags in itertools.product(range(3), repeat=4)}
    expected = np.log(np.exp(list(every.values())).sum()) - every[(0, 2, 1, 1)]

    def model(rows):
        values = [ab.input(row) for row in rows]
        return (crf.loss(values, [0, 2, 1, 1]), *crf.decode(values))

    loss, *tags = session.predict([scores], model)[0]
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    assert tuple(int(tag) for tag in tags) == max(every, key=every.get)
    with pytest.raises(ab.AutobatchError, match="4 positions and 1 tags"):
        session.predict([scores], lambda rows: crf.loss([ab.input(row) for row in rows], [0]))


def test_a_gated_graph_sums_neighbours_and_updates_every_node():
    m = ab.Module()
    layer, readout = nn.GatedGraph(m, "graph", 4), nn.GatedSum(m, "readout", 4, 2)
    session = ab.Session(m)
    w, b = (np.asarray(session.weights[f"readout.{part}"]) for part in "wb")
    xs = vectors(4, 4)

    def model(rows, neighbours=NEIGHBOURS, rounds=1):
        values = [ab.input(row) for row in rows]
        states = layer(values, neighbours, rounds)
        return (*states, readout(states, values))

    *states, read = session.predict([xs], model)[0]
    both = np.concatenate([np.stack(states), xs], 1) @ w + b
    np.testing.assert_allclose(read, (sigmoid(both[:, :2]) * np.tanh(both[:, 2:])).sum(0), rtol=1e-4, atol=1e-5)
    # One neighbour with the sum of two states counts as the two.
    joined = session.predict([np.stack([xs[0], xs[1] + xs[2]])], lambda rows: model(rows, [[1], []]))[0]
    np.testing.assert_allclose(states[0], joined[0], rtol=1e-4, atol=1e-6)
    # Rounds follow one another.
    twice = session.predict([xs], lambda rows: model(rows, rounds=2))[0]
    again = session.predict([np.stack(states)], model)[0]
    np.testing.assert_allclose(np.stack(twice[:4]), np.stack(again[:4]), rtol=1e-5, atol=1e-6)


def test_graph_attention_weighs_neighbours_and_the_node_itself():
    m = ab.Module()
    layer = nn.GraphAttention(m, "graph", 3, 4, 2, slope=0.1, activation="tanh")
    session = ab.Session(m)
    w, query, key, b = (np.asarray(session.weights[f"graph.{part}"]) for part in ("w", "query", "key", "b"))
    xs = vectors(4, 3)
    z = (xs @ w).reshape(4, 2, 2)
    of_query, of_key = (z * query.reshape(2, 2)).sum(2), (z * key.reshape(2, 2)).sum(2)
    expected = []
    for node, near in enumerate(NEIGHBOURS):
        near = [node, *(other for other in near if other != node)]
        heads = []
        for head in range(2):
            s = of_query[node, head] + of_key[near, head]
            heads.append(softmax(np.where(s > 0, s, 0.1 * s)) @ z[near, head])
        expected.append(np.tanh(np.concatenate(heads) + b))
    found = session.predict([xs], lambda rows: tuple(layer([ab.input(row) for row in rows], NEIGHBOURS)))[0]
    np.testing.assert_allclose(np.stack(found), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ab.AutobatchError, match="neighbour"):
        session.predict([xs], lambda rows: tuple(layer([ab.input(row) for row in rows], [[9], [], [], []])))


def test_experts_mix_all_or_those_that_are_named():
    m = ab.Module()
    layer = nn.Experts(m, "experts", [3, 5, 2], 4, activation="tanh")
    session = ab.Session(m)
    xs = vectors(6, 3)

    def model(row):
        x = ab.input(row)
        gates = layer.gates(x)
        return (gates, layer(x), layer.sparse(x, gates, [0, 1, 2, 3]), *(layer.sparse(x, gates, [e]) for e in range(4)))

    for gates, dense, every, *alone in session.predict(list(xs), model):
        np.testing.assert_allclose(gates.sum(), 1, rtol=1e-5)
        np.testing.assert_allclose(dense, every, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(dense, sum(g * y for g, y in zip(gates, alone)), rtol=1e-4, atol=1e-6)
    with pytest.raises(ab.AutobatchError, match="different experts 0..4"):
        session.predict([xs[0]], lambda row: layer.sparse(ab.input(row), layer.gates(ab.input(row)), [4]))


def test_a_sampled_softmax_learns_what_the_full_loss_measures():
    m = ab.Module()
    words = m.table("words", 40, 8)
    layer = nn.SampledSoftmax(m, "out", 8, 40, 12)
    trainer = ab.Trainer(m, ab.optim.Adam(0.05))
    pairs = [(word, (word + 1) % 40) for word in range(40)]

    def full():
        return float(np.mean(trainer.predict(pairs, lambda pair: layer.full_loss(words[pair[0]], pair[1]))))

    before = full()
    samples = {}
    for step in range(60):
        samples.clear()

        def loss(pair, step=step):
            if "sample" not in samples:
                samples["sample"] = layer.sample(step)
            return layer.loss(samples["sample"], [words[pair[0]]], [pair[1]])

        trainer.step(pairs, loss)
    assert before > 3.0 and full() < 0.5 * before
