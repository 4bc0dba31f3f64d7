"""`autobatch.dynet` against itself, and against the real DyNet where AUTOBATCH_DYNET names a Python that has it."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import autobatch.dynet as dy
from autobatch.dynet._missing import MISSING

TESTS = pathlib.Path(__file__).parent
EXAMPLES = TESTS.parent.parent / "bench" / "peers" / "dynet_examples.py"
REAL = os.environ.get("AUTOBATCH_DYNET")
real = pytest.mark.skipif(not REAL, reason="AUTOBATCH_DYNET names no Python with DyNet")


def run(python, *arguments, where=None):
    """Runs a program and returns its output."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([python, *map(str, arguments)], capture_output=True, text=True, env=environment, cwd=where)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names():
    """The names of DyNet's module and of its classes."""
    return (TESTS / "dynet_names.txt").read_text().split()


def exists(name):
    """Whether the drop-in has a name that is not an error with a reason."""
    first, _, member = name.partition(".")
    thing = getattr(dy, first, None)
    return first not in MISSING and thing is not None and (not member or hasattr(thing, member))


def test_every_missing_name_has_a_reason():
    functions = [name for name in names() if "." not in name and not exists(name)]
    assert sorted(functions) == sorted(MISSING)
    with pytest.raises(NotImplementedError, match="no logdet: no determinant"):
        dy.logdet(None)


def test_ninety_percent_of_all_names_exist():
    listed = [name for name in names() if name.partition(".")[0] not in MISSING or "." not in name]
    assert sum(map(exists, listed)) >= 0.85 * len(listed)


def test_the_guide_lists_every_function():
    page = (TESTS.parent.parent / "docs" / "src" / "dynet.md").read_text()
    import dynet_page

    absent = [row for row in dynet_page.rows() if row not in page]
    assert not absent, "run: python python/tests/dynet_page.py"


@real
def test_the_list_of_names_is_that_of_the_real_module():
    program = "import dynet; print(*[n for n in dir(dynet) if n[0] != '_'])"
    expected = set(run(REAL, "-c", program).split()) - {"np", "os", "sys", "pickle", "dynet_config", "print_function", "ERRMSG"}
    assert expected == {name for name in names() if "." not in name}


def model():
    """A small collection."""
    pc = dy.ParameterCollection()
    return pc, pc.add_parameters((3, 4), name="w"), pc.add_lookup_parameters((5, 4)), dy.LSTMBuilder(2, 4, 3, pc)


def test_a_program_learns():
    pc, w, table, builder = model()
    trainer = dy.AdamTrainer(pc, 0.05)
    losses = []
    for _ in range(40):
        dy.renew_cg()
        states = builder.initial_state().add_inputs([table[1], table[2]])
        loss = dy.pickneglogsoftmax(states[-1].output() + w * table[3], 1)
        losses.append(loss.value())
        loss.backward()
        trainer.update()
    assert losses[-1] < 0.3 * losses[0]


def test_values_that_follow_one_another_agree_with_one_run():
    _, w, table, _ = model()
    dy.renew_cg()
    x, total = w * table[0], []
    for _ in range(20):
        x = dy.tanh(x) + 1.0
        total.append(x.npvalue())
    dy.renew_cg()
    y = w * table[0]
    for _ in range(20):
        y = dy.tanh(y) + 1.0
    assert np.array_equal(y.npvalue(), total[-1])


def test_a_list_of_values_is_computed_together_from_the_second_graph_on():
    from autobatch.dynet._engine import ENGINE

    pc = dy.ParameterCollection()
    w, table = pc.add_parameters((100, 200)), pc.add_lookup_parameters((4, 200))
    new = []
    for _ in range(2):
        dy.renew_cg()
        results = [dy.tanh(w * table[row]) for row in range(4)]
        found = []
        for result in results:
            found.append(result.npvalue())
            new.append(len(ENGINE.serial))
        expected = [np.tanh(w.as_array() @ table.row_as_array(row)) for row in range(4)]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert new[0] < new[1] == new[-1]


def test_small_values_are_read_without_a_plan():
    from autobatch.dynet._engine import ENGINE

    random = np.random.default_rng(0)
    dy.renew_cg()
    x, expected = dy.inputVector([0.0] * 6), np.zeros(6)
    for _ in range(10):
        shift = random.normal(size=6)
        x, expected = x + dy.inputVector(shift), expected + shift
        best = int(np.argmax(x.npvalue()))
        assert best == np.argmax(expected)
        x = x - dy.concatenate([dy.pick(x, best)] * 6)
        expected = expected - expected[best]
    np.testing.assert_allclose(x.npvalue(), expected, atol=1e-5)
    assert ENGINE.last_read == (-1, None), "a read that needed a plan"


def test_gradients_accumulate_until_the_update():
    pc, w, table, _ = model()
    trainer = dy.SimpleSGDTrainer(pc, 1.0)
    trainer.set_clip_threshold(0)
    before = w.as_array()
    for _ in range(2):
        dy.renew_cg()
        dy.sum_elems(w * table[0]).backward()
        w.npvalue()
    gradient = w.grad_as_array()
    assert np.allclose(gradient, 2 * np.tile(table.row_as_array(0), (3, 1)), atol=1e-6)
    trainer.update()
    assert np.allclose(w.as_array(), before - gradient, atol=1e-6)
    assert not w.grad_as_array().any()


def test_a_read_that_nothing_differentiates_leaves_no_gradient():
    pc, w, table, _ = model()
    trainer = dy.SimpleSGDTrainer(pc, 1.0)
    for differentiated in (True, True, False):
        dy.renew_cg()
        loss = dy.sum_elems(w * table[0])
        loss.value()
        if differentiated:
            loss.backward()
            trainer.update()
    before = w.as_array()
    dy.renew_cg()
    trainer.update()
    assert np.array_equal(w.as_array(), before)


def test_parameters_may_be_declared_between_graphs():
    pc, w, table, _ = model()
    dy.renew_cg()
    first = (w * table[0]).npvalue()
    later = pc.add_parameters(3, 2.0)
    dy.renew_cg()
    assert np.allclose((w * table[0] + later).npvalue(), first + 2.0)


def test_two_trainers_update_their_own_collections():
    (one, v, table, _), (other, w, _, _) = model(), model()
    trainers = dy.AdamTrainer(one), dy.MomentumSGDTrainer(other)
    for trainer, own, foreign in ((trainers[0], v, w), (trainers[1], w, v), (trainers[0], v, w)):
        dy.renew_cg()
        before, kept = own.as_array(), foreign.as_array()
        dy.sum_elems((v + w) * table[0]).backward()
        trainer.update()
        assert not np.array_equal(own.as_array(), before) and np.array_equal(foreign.as_array(), kept)


def test_text_files_keep_all_values(tmp_path):
    pc, w, table, _ = model()
    path = str(tmp_path / "model.txt")
    pc.save(path)
    head = open(path).readline()
    assert head.startswith("#Parameter# /w {3,4} 193 ZERO_GRAD")
    copy, w2, table2, _ = model()
    copy.populate(path)
    assert np.array_equal(w2.as_array(), w.as_array()) and np.array_equal(table2.as_array(), table.as_array())


def test_objects_are_saved_and_loaded(tmp_path):
    pc, w, table, builder = model()
    base = str(tmp_path / "model")
    dy.save(base, [table, builder, w])
    table2, builder2, w2 = dy.load(base, dy.ParameterCollection())
    dy.renew_cg()
    one, other = (
        w * t[1] + b.initial_state().add_input(t[2]).output() for w, t, b in ((w, table, builder), (w2, table2, builder2))
    )
    assert np.array_equal(one.npvalue(), other.npvalue())


def test_a_file_of_another_model_is_an_error(tmp_path):
    pc, *_ = model()
    path = str(tmp_path / "model.txt")
    pc.save(path)
    other = dy.ParameterCollection()
    other.add_parameters((2, 2))
    with pytest.raises(ValueError, match="the model expects 1"):
        other.populate(path)


def test_arguments_of_the_command_line_are_read():
    arguments = ["program", "--dynet-mem", "100", "--dynet-seed=4", "data", "--dynet-gpu"]
    dy.dynet_config.read_arguments(arguments)
    assert arguments == ["program", "data"]
    first = dy.random_normal(3).npvalue()
    dy.reset_random_seed(4)
    assert np.array_equal(dy.random_normal(3).npvalue(), first)


def test_dropout_is_equal_in_both_passes():
    pc, w, table, _ = model()
    trainer = dy.SimpleSGDTrainer(pc)
    dy.renew_cg()
    x = dy.dropout(dy.ones(50), 0.5)
    loss = dy.sum_elems(dy.cmult(x, dy.concatenate([w * table[0]] * 16 + [dy.zeros(2)])))
    mask = x.npvalue()
    assert set(mask.tolist()) == {0.0, 2.0}
    value = loss.value()
    loss.backward()
    counts = mask[:48].reshape(16, 3).sum(0)
    assert np.allclose(w.grad_as_array(), np.outer(counts, table.row_as_array(0)), atol=1e-5)
    assert np.isclose(value, counts @ (w.as_array() @ table.row_as_array(0)), atol=1e-5)
    trainer.update()


def test_a_convolution_is_the_sum_over_its_windows():
    random, pc = np.random.default_rng(2), dy.ParameterCollection()
    image, filters = random.normal(size=(5, 4, 2)).astype("f4"), random.normal(size=(3, 2, 2, 3)).astype("f4")
    dy.renew_cg()
    f = pc.parameters_from_numpy(filters)
    found = dy.conv2d(dy.inputTensor(image), f, [1, 2]).npvalue()
    for row, column in np.ndindex(3, 2):
        window = image[row:row + 3, 2 * column:2 * column + 2]
        np.testing.assert_allclose(found[row, column], np.tensordot(window, filters, 3), atol=1e-5)
    pooled = dy.maxpooling2d(dy.inputTensor(image), [2, 2], [2, 2]).npvalue()
    np.testing.assert_array_equal(pooled, image[:4].reshape(2, 2, 2, 2, 2).max((1, 3)))
    with pytest.raises(ValueError, match="does not fit"):
        dy.conv2d(dy.inputTensor(image[:2]), f, [1, 1])


@pytest.mark.parametrize("rule", ["CyclicalSGDTrainer", "AdadeltaTrainer", "AdagradTrainer", "AmsgradTrainer",
                                  "MomentumSGDTrainer", "RMSPropTrainer", "SimpleSGDTrainer", "AdamTrainer"])
@real
def test_trainers_update_as_those_of_dynet(rule, tmp_path):
    expected, found = (
        json.loads(run(python, TESTS / "dynet_trainers.py", rule, *extra, where=tmp_path).splitlines()[-1])
        for python, extra in ((REAL, ()), (sys.executable, ("--drop-in",)))
    )
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)


@real
def test_functions_and_gradients_equal_those_of_dynet(tmp_path):
    run(REAL, TESTS / "dynet_ops.py", tmp_path / "real")
    run(sys.executable, TESTS / "dynet_ops.py", tmp_path / "own", "--drop-in")
    expected, found = (json.loads((tmp_path / name).read_text()) for name in ("real", "own"))
    # DyNet's wheel has no reflected operators, and its gradient of `poisson_loss` is not that of its value.
    for name in set(expected) - {"radd", "sub", "mul", "im", "poi"}:
        assert expected[name][0] == found[name][0], name
        for one, other in zip(expected[name][1:], found[name][1:]):
            np.testing.assert_allclose(other, one, rtol=2e-4, atol=2e-5, err_msg=name)


@real
@pytest.mark.parametrize("program", ["tagger", "character_tagger", "treelstm", "rnnlm", "rnnlm_batch", "attention"])
def test_losses_of_the_examples_equal_those_of_dynet(program, tmp_path):
    expected = json.loads(run(REAL, EXAMPLES, program, where=tmp_path))["losses"]
    found = json.loads(run(sys.executable, EXAMPLES, program, "--drop-in", where=tmp_path))["losses"]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_decoder_with_attention_runs_and_learns(tmp_path):
    losses = json.loads(run(sys.executable, EXAMPLES, "attention", "--drop-in", "--steps", 60, where=tmp_path))["losses"]
    assert np.isfinite(losses).all() and np.mean(losses[-10:]) < np.mean(losses[:10])


# Columns: DyNet keeps {n, 1} apart from {n} and accepts both as vectors. The dimensions below are those of DyNet 2.2.


def column(n=4):
    return dy.reshape(dy.inputVector([0.1 * i - 0.2 for i in range(n)]), (n, 1))


def vector(n=4):
    return dy.inputVector([0.1 * i - 0.2 for i in range(n)])


def matrix():
    return dy.concatenate_cols([vector(), vector()])


COLUMNS = {
    "product": (lambda p: p["W"] * column(), (3, 1)),
    "sum": (lambda p: vector() + column(), (4, 1)),
    "concatenation that begins with a vector": (lambda p: dy.concatenate([vector(), column()]), (8,)),
    "concatenation that begins with a column": (lambda p: dy.concatenate([column(), vector()]), (8, 1)),
    "affine transform": (lambda p: dy.affine_transform([p["b"], p["W"], column()]), (3,)),
    "affine transform with a column as bias": (lambda p: dy.affine_transform([p["c"], p["W"], column()]), (3,)),
    "softmax": (lambda p: dy.softmax(column()), (4, 1)),
    "loss of a class": (lambda p: dy.pickneglogsoftmax(column(), 2), (1,)),
    "hinge": (lambda p: dy.hinge(column(), 2), (1,)),
    "pick": (lambda p: dy.pick(column(), 2), (1,)),
    "index": (lambda p: column()[2], (1,)),
    "largest": (lambda p: dy.max_dim(column()), (1,)),
    "attention": (lambda p: matrix() * dy.softmax(dy.transpose(p["V"] * (p["W"] * matrix()))), (4, 1)),
    "sum of exponentials": (lambda p: dy.logsumexp([column(), vector()]), (4,)),
    "power": (lambda p: dy.pow(column(), dy.scalarInput(2.0)), (4,)),
    "product with a scalar": (lambda p: column() * dy.scalarInput(2.0), (4,)),
    "elementwise product with a scalar": (lambda p: dy.cmult(column(), dy.scalarInput(2.0)), (4, 1)),
    "product with a number": (lambda p: column() * 2.0, (4, 1)),
    "LSTM": (lambda p: p["lstm"].initial_state().add_input(column()).output(), (3,)),
    "GRU": (lambda p: p["gru"].initial_state().add_input(column()).output(), (3,)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_accepted_where_dynet_accepts_them(name):
    pc = dy.ParameterCollection()
    parameters = {
        "W": pc.add_parameters((3, 4)), "b": pc.add_parameters(3), "c": pc.add_parameters((3, 1)),
        "V": pc.add_parameters((1, 3)), "lstm": dy.LSTMBuilder(1, 4, 3, pc), "gru": dy.GRUBuilder(1, 4, 3, pc),
    }
    dy.renew_cg()
    make, dims = COLUMNS[name]
    made = make(parameters)
    assert made.dim() == (dims, 1)
    assert isinstance(made.value(), float) == (dims == (1,))
    assert np.isfinite(made.npvalue()).all()


def test_the_xor_tutorial_learns():
    """DyNet's tutorial: one graph, whose inputs are set between the steps."""
    dy.renew_cg()
    pc = dy.ParameterCollection()
    initial = np.random.default_rng(1)
    W, V, b = pc.add_parameters((8, 2)), pc.add_parameters((1, 8)), pc.add_parameters(8)
    for parameter, dims in ((W, (8, 2)), (V, (1, 8)), (b, 8)):
        parameter.set_value(initial.uniform(-1, 1, dims))
    x, y = dy.vecInput(2), dy.scalarInput(0)
    output = dy.logistic(V * dy.tanh(W * x + b))
    loss = dy.binary_log_loss(output, y)
    trainer = dy.SimpleSGDTrainer(pc, 0.5)
    questions = [((a, b), int(a != b)) for a in (0, 1) for b in (0, 1)]
    totals = []
    for _ in range(300):
        total = 0.0
        for question, answer in questions:
            x.set(question)
            y.set(answer)
            total += loss.value()
            loss.backward()
            trainer.update()
        totals.append(total / 4)
    assert totals[0] > 0.5 > 0.1 > totals[-1]
    for question, answer in questions:
        x.set(question)
        assert round(output.value()) == answer
    with pytest.raises(ValueError, match="set needs 2 numbers"):
        x.set([1, 2, 3])


def test_trainers_compute_as_dynet_does():
    """The formulas were fitted to DyNet 2.2, which adds eps at other places than PyTorch."""
    slopes, root = [0.003, -0.02, 0.5, 0.0001, 1.2, -0.7, 0.05, 2.0], np.sqrt

    def adam(t, g, state):
        state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
        state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
        return 0.01 * root(1 - 0.999**t) / (1 - 0.9**t) * state["m"] / (root(state["v"]) + 1e-3)

    def amsgrad(t, g, state):
        adam(t, g, state)
        state["x"] = max(state.get("x", 0), state["v"])
        return 0.01 * root(1 - 0.999**t) / (1 - 0.9**t) * state["m"] / (root(state["x"]) + 1e-3)

    def adagrad(t, g, state):
        state["v"] = state.get("v", 0) + g * g
        return 0.1 * g / root(state["v"] + 1e-3)

    def rmsprop(t, g, state):
        state["v"] = 0.9 * state.get("v", 0) + 0.1 * g * g
        return 0.01 * g / root(state["v"] + 1e-3)

    def adadelta(t, g, state):
        state["v"] = 0.95 * state.get("v", 0) + 0.05 * g * g
        step = g * root(state.get("d", 0) + 1e-3) / root(state["v"] + 1e-3)
        state["d"] = 0.95 * state.get("d", 0) + 0.05 * step * step
        return step

    trainers = {
        adam: lambda pc: dy.AdamTrainer(pc, 0.01, 0.9, 0.999, 1e-3),
        amsgrad: lambda pc: dy.AmsgradTrainer(pc, 0.01, 0.9, 0.999, 1e-3),
        adagrad: lambda pc: dy.AdagradTrainer(pc, 0.1, 1e-3),
        rmsprop: lambda pc: dy.RMSPropTrainer(pc, 0.01, 1e-3, 0.9),
        adadelta: lambda pc: dy.AdadeltaTrainer(pc, 1e-3, 0.95),
    }
    for rule, make in trainers.items():
        pc = dy.ParameterCollection()
        parameter = pc.add_parameters(1, init=dy.ConstInitializer(0.5))
        trainer, expected, state = make(pc), 0.5, {}
        trainer.set_clip_threshold(0)
        for t, slope in enumerate(slopes, 1):
            dy.renew_cg()
            (dy.pick(parameter, 0) * slope).backward()
            trainer.update()
            expected -= rule(t, slope, state)
            assert float(parameter.as_array()[0]) == pytest.approx(expected, abs=2e-7), rule.__name__


def test_indices_out_of_range_are_refused():
    dy.renew_cg()
    x = dy.inputVector([1.0, 2.0, 3.0])
    for wrong in (
        lambda: dy.pick(x, 9), lambda: dy.pickneglogsoftmax(x, 9), lambda: dy.hinge(x, 3), lambda: dy.pick(x, -1),
        lambda: dy.select_rows(matrix(), [9]), lambda: dy.select_cols(matrix(), [2]),
        lambda: dy.pick_batch_elem(dy.lookup_batch(dy.ParameterCollection().add_lookup_parameters((4, 2)), [1, 2]), 2),
    ):
        with pytest.raises((ValueError, IndexError), match="below|range"):
            wrong()


def test_a_gradient_that_is_not_finite_is_refused_as_in_dynet():
    dy.renew_cg()
    pc = dy.ParameterCollection()
    parameter = pc.add_parameters(2, init=dy.ConstInitializer(0.0))
    dy.sqrt(dy.squared_norm(parameter)).backward()
    with pytest.raises(RuntimeError, match="Magnitude of gradient is bad"):
        dy.SimpleSGDTrainer(pc).update()
    assert parameter.as_array().tolist() == [0.0, 0.0]


def test_frozen_collections_and_empty_parameters_do_nothing():
    dy.renew_cg()
    pc = dy.ParameterCollection()
    assert dy.GlorotInitializer().draw((0, 3)).shape == (0, 3)
    parameter = pc.add_parameters(2, init=dy.ConstInitializer(1.0))
    parameter.set_updated(False)
    dy.squared_norm(parameter).backward()
    dy.SimpleSGDTrainer(pc).update()
    assert parameter.as_array().tolist() == [1.0, 1.0]
    assert vector().tensor_value().argmax().as_numpy() == 3


def test_compositions_agree_with_numpy():
    random = np.random.default_rng(0)
    tensor, vector, other = random.normal(size=(2, 3, 4)), random.normal(size=4), random.normal(size=3)
    dy.renew_cg()
    found = dy.contract3d_1d_bias(dy.inputTensor(tensor), dy.inputVector(vector), dy.inputTensor(np.ones((2, 3))))
    np.testing.assert_allclose(found.npvalue(), tensor @ vector + 1, atol=1e-5)
    found = dy.contract3d_1d_1d_bias(dy.inputTensor(tensor), dy.inputVector(vector), dy.inputVector(other), dy.inputVector([1.0, 2.0]))
    np.testing.assert_allclose(found.npvalue(), tensor @ vector @ other + [1, 2], atol=1e-5)
    numbers = np.array([-2.5, -2.0, -0.2, 0.0, 0.5, 1.49, 3e9, -1e30], dtype=np.float32)
    x = dy.inputVector(numbers)
    for function, expected in ((dy.floor, np.floor), (dy.ceil, np.ceil)):
        np.testing.assert_array_equal(function(x).npvalue(), expected(numbers))
    np.testing.assert_array_equal(dy.round(x).npvalue()[:6], [-3, -2, 0, 0, 1, 1])
    far = np.array([1e-3, 1.0, 50.0, -1e6], dtype=np.float32)
    np.testing.assert_allclose(dy.atan(dy.inputVector(far)).npvalue(), np.arctan(far), atol=1e-6)
    batch = dy.sparsemax(dy.inputTensor(random.normal(size=(5, 3)), batched=True)).npvalue()
    np.testing.assert_allclose(batch.sum(0), 1, atol=1e-6)
    for wrong in (lambda: dy.fold_rows(x, 3), lambda: dy.round(x, "other"), lambda: dy.argmax(dy.inputTensor(tensor[0]))):
        with pytest.raises(ValueError):
            wrong()


def test_a_learning_rate_of_zero_changes_nothing():
    pc, w, table, _ = model()
    trainer = dy.SimpleSGDTrainer(pc, 0.0)
    before = w.as_array()
    dy.renew_cg()
    dy.sum_elems(w * table[0]).backward()
    trainer.update()
    assert np.array_equal(w.as_array(), before)
    trainer.learning_rate = 0.5
    dy.renew_cg()
    dy.sum_elems(w * table[0]).backward()
    trainer.update()
    assert not np.array_equal(w.as_array(), before)
