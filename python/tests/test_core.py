"""The native face: modules, cells, sessions, training, tasks."""

import threading

import numpy as np
import pytest

import autobatch as ab


def tree_rnn(width=8):
    m = ab.Module("tree")
    words = m.table("words", 100, width)
    w, b = m.param("w", (2 * width, width)), m.param("b", width)

    @m.cell(ab.f32[width], ab.f32[width])
    def node(left, right):
        return ab.affine([left, right], w, b).tanh()

    def encode(tree):
        return words[tree] if isinstance(tree, int) else node(encode(tree[0]), encode(tree[1]))

    return m, encode


TREES = [3, (1, (4, 1)), ((5, 9), (2, 6)), (5, 3)]


def numpy_encode(weights, tree):
    if isinstance(tree, int):
        return weights["words"][tree]
    children = np.concatenate([numpy_encode(weights, child) for child in tree])
    return np.tanh(children @ weights["w"] + weights["b"])


def test_trees_equal_numpy():
    m, encode = tree_rnn()
    session = ab.Session(m, seed=1)
    vectors = session.predict(TREES, encode)
    for tree, vector in zip(TREES, vectors):
        np.testing.assert_allclose(vector, numpy_encode(session.weights, tree), atol=1e-5)


def test_batched_bits_equal_single_bits():
    m, encode = tree_rnn()
    session = ab.Session(m)
    together = session.predict(TREES, encode)
    for tree, vector in zip(TREES, together):
        assert session.predict([tree], encode)[0].tobytes() == vector.tobytes()
    batches, bound = session.batches()
    assert bound <= batches


def test_a_tuple_of_values_gives_a_tuple_of_arrays():
    m, encode = tree_rnn()
    session = ab.Session(m)
    pairs = session.predict(TREES, lambda tree: (encode(tree), encode(tree).argmax()))
    assert pairs[0][0].shape == (8,) and pairs[0][1].dtype == np.uint32 and pairs[0][1].shape == ()


def test_operators_equal_numpy():
    m = ab.Module()
    session = ab.Session(m)
    a, b = np.array([1.0, -2.0, 3.5], "f4"), np.array([0.5, 4.0, -1.0], "f4")
    with session.graph():
        x, y = ab.input(a), ab.input(b)
        cases = [
            (x + y, a + b), (x - 1, a - 1), (1 - x, 1 - a), (x * y, a * b), (2 / y, 2 / b), (-x, -a),
            (b * x, a * b), (x / b, a / b), (x.maximum(y), np.maximum(a, b)), (x.sum(), a.sum()),
            (x[0:2], a[0:2]), (x[1], a[1]), (x > y, a > b), (ab.concat([x, y]), np.concatenate([a, b])),
            (ab.stack([x, y]), np.stack([a, b])), (x.reshape((3, 1)), a.reshape(3, 1)),
            (ab.list([x, y]).sum(), a + b), (x.dot(y), a @ b), (x.clamp(-1, 1), a.clip(-1, 1)),
            (ab.append(ab.list([x, y]), x).sum(), a + b + a),
        ]
        results = session.run(*[value for value, _ in cases])
    for result, (_, expected) in zip(results, cases):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_values_know_their_types():
    session = ab.Session(ab.Module())
    with session.graph():
        x = ab.input(np.zeros((2, 3)))
        assert x.shape == (2, 3) and repr(x.type) == "f32[2,3]" and not x.type.is_list
        assert x.numpy().shape == (2, 3)
    assert ab.f32[8] == ab.f32[(8,)] and hash(ab.f32[8]) == hash(ab.f32[8])


def classifier():
    m, encode = tree_rnn()
    # The module is still open: a head may follow.
    out = ab.nn.Linear(m, "out", 8, 2)
    return m, lambda tree: out(encode(tree))


def test_training_learns_and_repeats_its_bits(tmp_path):
    data = [(tree, number % 2) for number, tree in enumerate(TREES)]

    def train(steps, path=None, start=None):
        m, logits = classifier()
        trainer = ab.Trainer(m, ab.optim.Adam(0.05, clip_norm=5.0), seed=3)
        if start:
            trainer.load(start)
        losses = [trainer.step(data, lambda item: logits(item[0]).cross_entropy(item[1])).loss for _ in range(steps)]
        if path:
            trainer.save(path)
        return losses, trainer

    losses, trainer = train(30)
    assert losses[-1] < 0.2 * losses[0]
    again, _ = train(10, tmp_path / "half.safetensors")
    resumed, other = train(20, start=tmp_path / "half.safetensors")
    assert again + resumed == losses
    for name, value in trainer.weights.items():
        assert other.weights[name].tobytes() == value.tobytes()


def test_gradients_equal_finite_differences():
    m = ab.Module()
    w = m.param("w", (3, 2))
    trainer = ab.Trainer(m, ab.optim.Sgd(1.0))
    x, y = np.array([1.0, 2.0, -1.0], "f4"), np.array([0.5, -0.5], "f4")
    before = trainer.weights["w"]
    trainer.step_graph(lambda: (ab.input(x) @ w).mse(y))
    gradient = before - trainer.weights["w"]
    expected = np.outer(x, (x @ before - y))
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_the_loss_of_a_label_is_that_of_the_scores_of_all():
    m = ab.Module("labels")
    words, rows = m.table("words", 700, 8), m.param("rows", (5, 8))
    session = ab.Session(m, seed=2)

    def losses(word):
        x = words[word].tanh()
        pairs = [(words.as_param(), 699 - word), (rows, x.argmax())]
        short = [x.label_loss(table, label) for table, label in pairs]
        return tuple(short + [x.affine_transposed(table).cross_entropy(label) for table, label in pairs])

    for found in session.predict([3, 650, 0], losses):
        np.testing.assert_allclose(found[:2], found[2:], rtol=1e-5)


def test_tasks_branch_on_values():
    session = ab.Session(ab.Module())

    async def halvings(x):
        x, count = ab.input([x]), 0
        while (await x)[0] >= 1.0:
            x, count = x * 0.5, count + 1
        return count

    assert session.tasks([1000.0, 0.3, 8.0], halvings) == [10, 0, 4]

    async def both(x):
        x = ab.input([x])
        a, b = await ab.gather(x + 1, x * 2)
        return float(a[0]), float(b[0])

    assert session.tasks([1.0, 2.0], both) == [(2.0, 2.0), (3.0, 4.0)]


def test_recurrent_layers_and_states():
    m = ab.Module()
    lstm = ab.nn.LSTM(m, "lstm", 4, 3)
    both = ab.nn.BiLSTM(m, "both", 4, 3)
    session = ab.Session(m)
    xs = np.random.default_rng(0).normal(size=(5, 4)).astype("f4")
    with session.graph():
        inputs = [ab.input(x) for x in xs]
        state = lstm.start()
        for x in inputs:
            state = state.push(x)
        last, pushed, run, context = session.run(lstm.last(inputs), state.h, lstm.run(inputs)[-1], both.run(inputs)[0])
    assert last.tobytes() == pushed.tobytes() == run.tobytes()
    assert context.shape == (6,)


def test_weights_in_and_out(tmp_path):
    m, encode = tree_rnn()
    session = ab.Session(m)
    session.set_weights({"b": np.arange(8)})
    assert session.weights["b"].tolist() == list(range(8))
    session.save_weights(tmp_path / "w.safetensors")
    other = ab.Session(tree_rnn()[0], seed=9)
    other.load_weights(tmp_path / "w.safetensors")
    assert all((other.weights[name] == value).all() for name, value in session.weights.items())
    with pytest.raises(ab.WeightsError, match="transpose"):
        session.set_weights({"w": np.zeros((8, 16))})
    with pytest.raises(ab.WeightsError, match="@nothing"):
        session.set_weights({"nothing": np.zeros(1)})


def test_two_threads_with_a_session_each():
    results = {}

    def work(seed):
        m, encode = tree_rnn()
        session = ab.Session(m, seed=seed, threads=1)
        for _ in range(50):
            results[seed] = session.predict(TREES, encode)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        m, encode = tree_rnn()
        alone = ab.Session(m, seed=seed).predict(TREES, encode)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(alone, results[seed]))


def test_a_value_is_a_sequence_of_its_rows():
    session = ab.Session(ab.Module("m"))
    with session.graph():
        x = ab.input([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        assert len(x) == 3
        first, _, last = x
        rows = session.run(*x, x[-1], x[-1][0], first, last)
    assert [row.tolist() for row in rows] == [[1, 2], [3, 4], [5, 6], [5, 6], 5, [1, 2], [5, 6]]


@pytest.mark.parametrize("index", [3, 99, -4])
def test_an_index_out_of_range_is_an_error(index):
    session = ab.Session(ab.Module("m"))
    with session.graph():
        x = ab.input([1.0, 2.0, 3.0])
        with pytest.raises(IndexError, match="the value has 3"):
            x[index]
        with pytest.raises(IndexError, match="the value has 3"):
            x.pick(index)
        with pytest.raises(ab.AutobatchError, match="99 bound at .*test_core.py.*below 4"):
            session.run(ab.one_hot(99, 4))
        with pytest.raises(TypeError, match="scalar"):
            list(x[0])
        with pytest.raises(TypeError, match="not computed yet"):
            np.asarray(x)


def test_a_gradient_that_is_not_finite_is_refused_or_skipped():
    for skip in (False, True):
        m = ab.Module("m")
        w = m.param("w", 2)
        trainer = ab.Trainer(m, ab.optim.Sgd(0.1), skip_non_finite=skip)
        trainer.set_weights({"w": np.zeros(2, dtype=np.float32)})
        step = lambda: trainer.step([1.0], lambda x: w.value().square().sum().sqrt())  # noqa: E731
        if skip:
            made = step()
            assert (made.skipped, made.gradient_norm, trainer.skipped) == (True, None, 1)
        else:
            with pytest.raises(ab.TrainError, match="@w.*unchanged"):
                step()
        assert trainer.weights["w"].tolist() == [0.0, 0.0]
        sound = trainer.step([2.0], lambda x: (w.value() * x).sum())
        assert sound.gradient_norm == pytest.approx(2.0 * 2**0.5) and not sound.skipped


def test_arrays_that_lie_column_by_column_keep_their_elements():
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    columns = np.asfortranarray(rows)
    module = ab.Module("columns")
    w = module.param("w", (2, 3), init=columns)
    session = ab.Session(module)
    with session.graph():
        found = session.run(ab.input(columns), ab.input(rows.T), ab.input(rows) * columns, w.value())
    for one, other in zip(found, (rows, rows.T, rows * rows, rows)):
        assert np.array_equal(one, other)
    session.set_weights({"w": 2 * columns})
    assert np.array_equal(session.weights["w"], 2 * rows)
    session.follow_weights({"w": 3 * columns})
    assert np.array_equal(session.weights["w"], 3 * rows)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 3, 2, 2), (1, 3), (3, 1)])
def test_reductions_along_an_axis_agree_with_numpy(shape):
    numbers = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    session = ab.Session(ab.Module("m"))
    with session.graph():
        x = ab.input(numbers)
        for axis in range(-len(shape), len(shape)):
            for name in ("sum", "mean", "max", "min"):
                found = session.run(getattr(x, name)(axis))[0]
                expected = getattr(numbers, name)(axis=axis)
                assert found.shape == expected.shape
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"{name}({axis})")
        for axis in (len(shape), -len(shape) - 1):
            with pytest.raises(IndexError, match=f"no axis {axis}"):
                x.sum(axis)


def test_operators_of_python_are_ops_and_never_identities():
    session = ab.Session(ab.Module("m"))
    with session.graph():
        x, y = ab.input([1.0, 2.0, 3.0]), ab.input([1.0, 5.0, 3.0])
        found = session.run(x == y, x != y, x == 2.0, 2.0**x, x**2.0, x[-1], x < y)
        numbers = [[True, False, True], [False, True, False], [False, True, False], [2, 4, 8], [1, 4, 9], 3, [False, True, False]]
        for one, other in zip(found, numbers):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert (x == None) is False and (x != "x") is True  # noqa: E711
        assert {x: 1}[x] == 1
        with pytest.raises(TypeError, match="not computed yet"):
            y in [x]


class Lent:
    """An object that lends its memory by DLPack and is no array, as those of other libraries."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("array", [
    np.arange(6, dtype=np.float32), np.arange(6).reshape(2, 3).T, np.float64([[1.5, 2.5]]), np.float32([[1, 2], [3, 4]])[::-1],
])
def test_memory_that_is_lent_by_dlpack_is_an_operand(array):
    session = ab.Session(ab.Module("m"))
    with session.graph():
        found, sums = session.run(ab.input(Lent(array)), ab.input(array) + Lent(array))
    assert np.array_equal(found, array) and np.array_equal(sums, 2 * array)
    assert np.array_equal(np.from_dlpack(found), found), "results lend their memory too"
