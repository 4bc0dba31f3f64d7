"""Steps over weighted items, in parts and over tasks, frozen parameters, gradients, minibatches and searches."""

import itertools
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import autobatch as ab

SENTENCES = [([1, 2, 3], [0, 1, 2]), ([4], [1]), ([5, 6], [2, 0]), ([7, 8, 9, 1], [0, 0, 1, 2])]


def tagger(optimizer=None, **options):
    m = ab.Module("tagger")
    words = m.table("words", 10, 4)
    out, bias = m.param("out", (4, 3)), m.param("bias", 3)

    def loss(sentence):
        tokens, tags = sentence
        return ab.total([words[token].affine(out, bias).cross_entropy(tag) for token, tag in zip(tokens, tags)])

    return ab.Trainer(m, optimizer or ab.optim.Sgd(0.5), seed=3, **options), loss


def test_weights_divide_the_sum_of_the_losses():
    trainer, loss = tagger()
    step = trainer.step(SENTENCES, loss, weights=lambda sentence: len(sentence[0]))
    assert (step.weight, step.instances) == (10.0, 4)
    assert step.loss == pytest.approx(sum(step.losses) / 10)
    other, loss = tagger()
    assert other.step(SENTENCES, loss, weights=[3, 1, 2, 4]).loss == step.loss
    for name, weight in trainer.weights.items():
        assert np.array_equal(weight, other.weights[name])


def test_parts_make_one_update_like_the_whole():
    whole, loss = tagger()
    one = whole.step(SENTENCES, loss)
    for together in (1, 2, 3, 100):
        parts, loss = tagger()
        step = parts.step(SENTENCES, loss, together=together)
        assert step.losses == one.losses and parts.steps == 1
        for name, weight in whole.weights.items():
            np.testing.assert_allclose(parts.weights[name], weight, rtol=1e-5, atol=1e-7)


def test_parts_have_the_noise_of_the_whole():
    losses = []
    for together in (None, 2):
        m = ab.Module("noisy")
        w = m.param("w", 64, init=np.ones(64))
        trainer = ab.Trainer(m, ab.optim.Sgd(0.0), seed=5)
        losses.append(trainer.step(range(6), lambda _: w.value().dropout(0.5).sum(), together=together).losses)
    assert losses[0] == losses[1] and len(set(losses[0])) > 3


@pytest.mark.parametrize("weights, message", [
    ([1.0], "a weight for each of the 4 items, found 1"),
    ("abc", "a number for each item"),
    ([0.0] * 4, "sum"),
    (lambda sentence: float("nan"), "sum"),
])
def test_wrong_weights_say_what_is_expected(weights, message):
    trainer, loss = tagger()
    with pytest.raises((ValueError, TypeError, ab.TrainError), match=message):
        trainer.step(SENTENCES, loss, weights=weights)
    assert trainer.steps == 0


def test_tasks_train_on_the_course_that_values_choose():
    m = ab.Module("line")
    w = m.param("w", 1, init=[3.0])
    trainer = ab.Trainer(m, ab.optim.Sgd(0.1))

    async def loss(x):
        y = ab.input([x]) * w
        while abs((await y)[0]) > 1.0:
            y = y * 0.5
        return (y * y).sum()

    step = trainer.step_tasks([1.0, 2.0], loss)
    assert step.losses == [0.5625, 0.5625]
    # y = w / 4 and 2 w / 8, so both losses are w^2 / 16 and the gradient of their mean is w / 8.
    assert trainer.weights["w"][0] == pytest.approx(3.0 - 0.1 * 3.0 / 8)


def test_tasks_see_the_dropout_of_their_step():
    m = ab.Module("noisy")
    w = m.param("w", 64, init=np.ones(64))
    trainer = ab.Trainer(m, ab.optim.Sgd(0.0), seed=5)
    seen = []

    async def loss(_):
        y = w.value().dropout(0.5)
        seen.append(await y)
        return y.sum()

    for _ in range(3):
        step = trainer.step_tasks([0], loss)
        assert step.losses[0] == seen[-1].sum()
    assert not np.array_equal(seen[0], seen[1])


def test_frozen_parameters_keep_their_values():
    trainer, loss = tagger()
    before = trainer.weights
    trainer.freeze("words")
    trainer.step(SENTENCES, loss)
    assert np.array_equal(trainer.weights["words"], before["words"])
    assert not np.array_equal(trainer.weights["out"], before["out"])
    trainer.unfreeze("words")
    trainer.step(SENTENCES, loss)
    assert not np.array_equal(trainer.weights["words"], before["words"])
    trainer.train_only(lambda name: name == "bias")
    out = trainer.weights["out"]
    trainer.step(SENTENCES, loss)
    assert np.array_equal(trainer.weights["out"], out)
    with pytest.raises(ab.TrainError, match="nothing"):
        trainer.freeze("nothing")
    with pytest.raises(ab.TrainError, match="train"):
        trainer.train_only(lambda name: False)


def test_gradients_are_those_of_a_step():
    trainer, loss = tagger()
    before, gradients = trainer.weights, trainer.gradients(SENTENCES, loss)
    trainer.step(SENTENCES, loss)
    for name, weight in trainer.weights.items():
        assert gradients[name].shape == weight.shape
        np.testing.assert_allclose(weight, before[name] - 0.5 * gradients[name], atol=1e-6)
    with pytest.raises(ValueError, match="no items"):
        trainer.gradients([], loss)


def test_the_watch_names_the_op():
    trainer, _ = tagger(skip_non_finite=True)
    trainer.set_watch(True)
    with pytest.raises(ab.AutobatchError, match="log"):
        trainer.step([-1.0], lambda x: ab.input([x]).log().sum())


def test_notes_travel_with_checkpoints(tmp_path):
    trainer, _ = tagger()
    trainer.set_note("vocabulary", "a b c")
    trainer.save(tmp_path / "c.safetensors")
    other, _ = tagger()
    assert other.note("vocabulary") is None
    other.load(tmp_path / "c.safetensors")
    assert other.note("vocabulary") == "a b c"


def test_averages_follow_the_weights():
    trainer, loss = tagger()
    assert trainer.averages() is None


def test_minibatches_hold_items_of_similar_size_once():
    items = ["a" * length for length in (5, 1, 3, 2, 4, 1, 5)]
    plain = list(ab.data.batches(items, 3))
    assert [len(batch) for batch in plain] == [3, 3, 1] and sum(plain, []) == items
    for seed in range(5):
        drawn = list(ab.data.batches(items, 2, key=len, seed=seed))
        assert sorted(sum(drawn, [])) == sorted(items)
        assert drawn == list(ab.data.batches(items, 2, key=len, seed=seed))
        assert all(abs(len(batch[0]) - len(batch[-1])) <= 1 for batch in drawn)
    assert len({str(list(ab.data.batches(items, 2, key=len, seed=seed))) for seed in range(5)}) > 1


class Markov:
    """Symbols whose probabilities depend on the last symbol, so all sequences can be listed."""

    END = 3

    def __init__(self, seed):
        self.scores = np.random.default_rng(seed).normal(size=(5, 4)).astype(np.float32)
        m = ab.Module("markov")
        self.table = m.table("scores", 5, 4, init=self.scores)
        self.session = ab.Session(m)

    def step(self, state, symbol):
        return self.table[symbol], state

    def best(self, limit):
        """The best sequence of all, by enumeration."""
        logs = self.scores - np.log(np.exp(self.scores).sum(1, keepdims=True))
        def score(symbols):
            path = [4, *symbols, self.END]
            return sum(logs[one, other] for one, other in zip(path, path[1:]))
        every = itertools.chain.from_iterable(itertools.product(range(3), repeat=n) for n in range(limit))
        return max(every, key=score), max(map(score, itertools.chain.from_iterable(
            itertools.product(range(3), repeat=n) for n in range(limit))))


@pytest.mark.parametrize("seed", range(6))
def test_a_wide_beam_finds_the_best_of_all_sequences(seed):
    markov = Markov(seed)

    async def search(_):
        return await ab.decode.beam(markov.step, None, start=4, end=Markov.END, width=50, limit=5)

    found, other = markov.session.tasks([0, 1], search)
    symbols, score = markov.best(5)
    assert tuple(found[0].symbols) == symbols and found[0].ended
    assert found[0].score == pytest.approx(score, abs=1e-5)
    assert found == other
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_greedy_takes_the_most_probable_symbols_and_samples_follow_the_distribution():
    markov = Markov(1)
    options = {"start": 4, "end": Markov.END, "limit": 6}

    async def greedy(_):
        return await ab.decode.greedy(markov.step, None, **options)

    symbol, expected = 4, []
    while len(expected) < 6 and (symbol := int(np.argmax(markov.scores[symbol]))) != Markov.END:
        expected.append(symbol)
    assert markov.session.tasks([0], greedy)[0].symbols == expected

    random = np.random.default_rng(0)

    async def drawn(_):
        return await ab.decode.sample(markov.step, None, random=random, **options)

    first = [found.symbols[0] if found.symbols else Markov.END for found in markov.session.tasks(range(2000), drawn)]
    probabilities = np.exp(markov.scores[4]) / np.exp(markov.scores[4]).sum()
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 2000, probabilities, atol=0.04)

    async def cold(_):
        return await ab.decode.sample(markov.step, None, random=random, top_k=1, **options)

    assert markov.session.tasks([0], cold)[0].symbols == expected

    async def none(_):
        return await ab.decode.sample(markov.step, None, random=random, top_k=0, **options)

    with pytest.raises(ValueError, match="top_k is at least 1"):
        markov.session.tasks([0], none)


def test_scores_without_a_next_symbol_are_errors():
    m = ab.Module("masked")
    table = m.table("scores", 2, 2)
    session = ab.Session(m)

    async def search(_):
        return await ab.decode.greedy(lambda state, symbol: (table[0].mask([False, False]), state), None, start=0, end=1)

    with pytest.raises(ValueError, match="no next symbol"):
        session.tasks([0], search)


@pytest.mark.parametrize("progress", [None, False, True])
def test_epochs_yield_the_steps_of_a_loop(progress, capsys):
    if progress:
        pytest.importorskip("tqdm")
    trainer, loss = tagger()
    other, own = tagger()
    batches = list(ab.data.batches(SENTENCES, 3))
    steps = list(ab.train.epoch(trainer, batches, loss, weights=lambda item: len(item[0]), progress=progress))
    expected = [other.step(batch, own, weights=lambda item: len(item[0])) for batch in batches]
    assert [step.loss for step in steps] == [step.loss for step in expected]
    shown = capsys.readouterr().err
    assert ("items/s" in shown) == bool(progress)


def test_a_bar_that_is_insisted_on_names_the_package(monkeypatch):
    trainer, loss = tagger()
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert len(list(ab.train.epoch(trainer, [SENTENCES], loss))) == 1
    with pytest.raises(ImportError, match="pip install tqdm"):
        next(ab.train.epoch(trainer, [SENTENCES], loss, progress=True))


def test_a_mapper_adds_the_answers_to_a_batch():
    def make():
        m = ab.Module("words")
        words = m.table("words", 9, 4)
        return ab.Session(m, threads=1), lambda row: ab.stack([words[int(word)] for word in row])

    session, emit = make()
    mapper = ab.data.Mapper(make, "words", answers="vectors")
    even = mapper({"words": np.array([[1, 2], [3, 4]]), "id": np.array([7, 8])})
    assert even["vectors"].shape == (2, 2, 4) and even["id"].tolist() == [7, 8]
    assert np.array_equal(even["vectors"], session.predict([[1, 2], [3, 4]], emit))
    ragged = mapper({"words": [[1], [2, 3]]})
    assert [vectors.shape for vectors in ragged["vectors"]] == [(1, 4), (2, 4)]
    with pytest.raises(KeyError, match="no column 'words'; it has 'word'"):
        mapper({"word": [[1]]})


def test_ray_maps_trees_with_an_actor_each():
    pytest.importorskip("ray", reason="Ray is not installed; pip install 'ray[data]' runs this test")
    example = pathlib.Path(__file__).parent.parent / "examples" / "ray_map.py"
    command = [sys.executable, "-W", "ignore", str(example), "--trees", "3000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "3,000 trees" in done.stdout and "equal to those of one session" in done.stdout
