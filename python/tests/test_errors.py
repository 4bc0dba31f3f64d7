"""Wrong calls: each is an exception that names the place and the remedy, and never a panic."""

import numpy as np
import pytest

import autobatch as ab


def fresh():
    m = ab.Module("m")
    w = m.param("w", (3, 2))
    table = m.table("words", 10, 3)

    @m.cell(ab.f32[3], ab.f32[3])
    def add(a, b):
        return a + b

    return m, w, table, add


class Case:
    """Everything that a wrong call may use."""

    def __init__(self):
        self.m, self.w, self.table, self.add = fresh()
        self.session = ab.Session(self.m)
        self.graph = self.session.graph()
        self.graph.__enter__()
        self.x = ab.input([1.0, 2.0, 3.0])
        self.other = ab.Session(fresh()[0])

    def foreign(self):
        with self.other.graph():
            return ab.input([1.0, 2.0, 3.0])


@pytest.fixture
def c():
    case = Case()
    yield case
    case.graph.__exit__(None, None, None)


CALLS = {
    "shapes that do not fit": (lambda c: c.x + ab.input([1.0, 2.0]), ab.EmitError, "f32"),
    "an affine of the wrong width": (lambda c: ab.input([1.0]) @ c.w, ab.EmitError, "affine"),
    "a value of another graph": (lambda c: c.x + c.foreign(), ab.EmitError, "graph"),
    "a value of another graph in a cell": (lambda c: c.add(c.x, c.foreign()), ab.EmitError, "graph"),
    "too few arguments": (lambda c: c.add(c.x), ab.EmitError, "takes 2 values, found 1"),
    "no arguments": (lambda c: c.add(), ab.EmitError, "takes 2 values, found 0"),
    "a string argument": (lambda c: c.add(c.x, "y"), TypeError, "an index is an int"),
    "a float argument": (lambda c: c.add(c.x, 1.5), TypeError, "an index is an int"),
    "an index where a vector belongs": (lambda c: c.add(c.x, 1), ab.EmitError, "takes f32"),
    "keywords of a cell": (lambda c: c.add(a=c.x, b=c.x), TypeError, "keyword"),
    "a row outside of the table": (lambda c: c.table[10], IndexError, "10 rows"),
    "a negative row": (lambda c: c.table[-1], TypeError, "an index is an int"),
    "a row named by a string": (lambda c: c.table["the"], TypeError, "an index is an int"),
    "a row named by a float": (lambda c: c.table[1.0], TypeError, "an index is an int"),
    "a float value as an index": (lambda c: c.table[c.x], ab.EmitError, "lookup"),
    "a value as a condition": (lambda c: bool(c.x), TypeError, "not computed yet"),
    "a slice with a step": (lambda c: c.x[::2], TypeError, "no step"),
    "a slice beyond the end": (lambda c: c.x.slice(2, 5), ab.EmitError, "slice"),
    "an empty slice": (lambda c: c.x[3:3], ab.EmitError, "slice"),
    "a pick by a string": (lambda c: c.x.pick("a"), TypeError, "an index is an int"),
    "an operand that is a string": (lambda c: c.x + "1", TypeError, "expected a value"),
    "an operand that is None": (lambda c: c.x + None, TypeError, "expected a value"),
    "a list of unlike values": (lambda c: ab.list([c.x, ab.input([1.0])]), ab.EmitError, "element 1"),
    "an empty list without a type": (lambda c: ab.list([]), ab.EmitError, "empty list"),
    "numbers in a list": (lambda c: ab.list([1.0, 2.0]), TypeError, "ab.input"),
    "an empty input": (lambda c: ab.input([]), ab.EmitError, "input"),
    "a ragged input": (lambda c: ab.input([[1.0], [1.0, 2.0]]), TypeError, "array"),
    "an input of strings": (lambda c: ab.input(["a"]), TypeError, "array"),
    "a shape of the wrong size": (lambda c: c.x.reshape(4), ab.EmitError, "reshape"),
    "a shape of zeros": (lambda c: c.x.reshape((0,)), ValueError, None),
    "a negative shape": (lambda c: c.x.reshape((-1,)), TypeError, "a shape is"),
    "a shape of five axes": (lambda c: ab.zeros((1, 1, 1, 1, 1)), ValueError, None),
    "a huge shape": (lambda c: ab.zeros((1 << 20, 1 << 20)), ValueError, None),
    "a cast to an unknown type": (lambda c: c.x.cast("f99"), ValueError, "choose one of"),
    "a label that is a float": (lambda c: c.x.cross_entropy(1.0), TypeError, "an index is an int"),
    "a mask of the wrong length": (lambda c: c.x.mask([True]), ab.EmitError, "select"),
    "a dropout rate above one": (lambda c: c.x.dropout(2.0), ab.EmitError, "dropout"),
    "a split into unequal parts": (lambda c: c.x.split(2), ab.EmitError, "split"),
    "a parameter after the session": (lambda c: c.m.param("v", 3), ab.ClosedError, "before"),
    "a cell after the session": (lambda c: c.m.cell(ab.f32[3])(lambda x: x), ab.ClosedError, "before"),
    "a name twice": (lambda c: ab_twice(), ab.EmitError, "taken"),
    "a name with a space": (lambda c: ab.Module().param("a b", 1), ab.EmitError, "name"),
    "an empty name": (lambda c: ab.Module().param("", 1), ab.EmitError, "name"),
    "initial values of the wrong length": (lambda c: ab.Module().param("w", 3, [1.0, 2.0]), ab.EmitError, "3 values"),
    "a parameter inside a cell": (lambda c: declares_inside(), ab.ClosedError, "before it"),
    "a cell that returns a number": (lambda c: traced(lambda x: 1.0), TypeError, "a cell returns"),
    "a cell that returns nothing": (lambda c: traced(lambda x: None), TypeError, "a cell returns"),
    "a number bound inside a cell": (lambda c: traced(lambda x: x + ab.input([1.0] * 3)), ab.EmitError, "inside a cell"),
    "a cell that raises": (lambda c: traced(lambda x: 1 / 0), ZeroDivisionError, None),
    "a port outside of its cell": (lambda c: escaped() + 1.0, ab.ClosedError, "closed"),
    "an unknown policy": (lambda c: ab.Session(c.m, policy="best"), ValueError, "best"),
    "an unknown device": (lambda c: ab.Session(c.m, device="tpu"), ValueError, "tpu"),
    "too many threads": (lambda c: ab.Session(c.m, threads=1 << 20), ab.RunError, "thread"),
    "a memory limit that is too small": (
        lambda c: ab.Session(c.m, memory_limit=8).run(c.x + c.x), ab.AutobatchError, "memory limit"),
    "an unknown option of an optimiser": (lambda c: ab.optim.Adam(0.1, momentum=0.9), TypeError, "clip_norm"),
    "a trainer without parameters": (lambda c: ab.Trainer(ab.Module(), ab.optim.Sgd(0.1)), ab.TrainError, "parameters"),
    "an empty minibatch": (lambda c: trainer().step([], lambda x: x), ab.TrainError, "no items"),
    "a loss that is a vector": (lambda c: trainer().step([1.0], lambda x: ab.input([x, x])), ab.TrainError, "scalar"),
    "a loss that is a number": (lambda c: trainer().step([1.0], lambda x: x), TypeError, "return"),
    "a loss that is not finite": (
        lambda c: trainer().step([0.0], lambda x: ab.input([x]).log().sum()), ab.TrainError, "inf"),
    "a prediction that is a number": (lambda c: c.session.predict([1.0], lambda x: x), TypeError, "return a value"),
    "items that cannot be iterated": (lambda c: c.session.predict(3, lambda x: x), TypeError, "iterable"),
    "a task that is no coroutine": (lambda c: c.session.tasks([1.0], lambda x: x), TypeError, "async function"),
    "a task that awaits something else": (lambda c: c.session.tasks([1], awaits_sleep), (TypeError, RuntimeError), None),
    "a file that does not exist": (lambda c: c.session.load_weights("/nowhere/w"), ab.CheckpointError, "nowhere"),
    "a file in a folder that does not exist": (lambda c: c.session.save_weights("/nowhere/w"), ab.CheckpointError, "nowhere"),
    "a checkpoint of another model": (lambda c: trainer().load(__file__), ab.CheckpointError, None),
}


def ab_twice():
    m = ab.Module()
    m.param("w", 1)
    m.param("w", 1)


def declares_inside():
    m = ab.Module()
    m.cell(ab.f32[3], name="c")(lambda x: x + m.param("inner", 3).value())


def traced(body):
    return ab.Module().cell(ab.f32[3], name="c")(body)


def escaped():
    kept = []
    traced(lambda x: kept.append(x) or x)
    return kept[0]


def trainer():
    return ab.Trainer(fresh()[0], ab.optim.Sgd(0.1))


async def awaits_sleep(_):
    import asyncio

    await asyncio.sleep(0)


@pytest.mark.parametrize("call, kind, words", CALLS.values(), ids=CALLS.keys())
def test_a_wrong_call_is_an_exception(c, call, kind, words):
    with pytest.raises(kind) as raised:
        call(c)
    text = str(raised.value)
    assert "panicked" not in text and "PanicException" not in type(raised.value).__name__
    if words:
        assert words in text, text


def test_an_emit_error_names_the_python_line(c):
    with pytest.raises(ab.EmitError) as raised:
        c.x + ab.input([1.0, 2.0])
    text = str(raised.value)
    assert "test_errors.py:" in text and "c.x + ab.input([1.0, 2.0])" in text, text


def test_an_error_leaves_the_graph_usable(c):
    with pytest.raises(ab.EmitError):
        c.x + ab.input([1.0, 2.0])
    np.testing.assert_array_equal((c.x + c.x).numpy(), [2.0, 4.0, 6.0])


def test_an_error_leaves_the_module_open():
    m = ab.Module()
    with pytest.raises(ab.EmitError):
        m.param("a b", 1)
    with pytest.raises(ZeroDivisionError):
        m.cell(ab.f32[3], name="c")(lambda x: 1 / 0)
    w = m.param("w", 1)
    session = ab.Session(m)
    with session.graph():
        assert w.value().numpy().shape == (1,)


def test_an_index_out_of_range_at_run_time_names_the_line():
    m = ab.Module("m")
    table = m.table("words", 10, 3)

    @m.cell(ab.index)
    def look(word):
        return table[word].tanh()

    session = ab.Session(m)
    with pytest.raises(ab.AutobatchError, match=r"index 12 bound at .*test_errors.py:\d+"):
        session.predict([3, 12], lambda word: look(word))


def test_exceptions_name_the_line_and_the_remedy_as_attributes(c):
    with pytest.raises(ab.EmitError) as caught:
        c.x + ab.input([1.0, 2.0])
    error = caught.value
    assert error.file == __file__ and error.line == caught.traceback[-1].lineno + 1
    assert error.help is None or error.help in str(error)
    with pytest.raises(ab.EmitError) as caught:
        ab.indices([1]) + 0.5
    assert caught.value.help and caught.value.help in str(caught.value)
    with pytest.raises(ab.CheckpointError) as caught:
        c.session.load_weights("/nowhere/w")
    assert (caught.value.file, caught.value.line, caught.value.help) == (None, None, None)


def test_a_row_that_a_table_does_not_have_is_no_error_of_training():
    m, _, table, _ = fresh()
    session = ab.Session(m)
    with pytest.raises(ab.RunError, match="10 rows|below 10|0..10") as caught:
        session.predict([3, 12], lambda word: table[ab.input([float(word)]).cast("u32").reshape(())])
    assert not isinstance(caught.value, ab.TrainError)
    assert caught.value.file == __file__
