"""Optimisers, schedules, types and steps: how they show themselves, and their copies by `copy` and `pickle`."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import autobatch as ab

OPTIMIZERS = [
    (ab.optim.Sgd(0.5), "Sgd(lr=0.5)"),
    (ab.optim.Adam(1e-3, clip_norm=1.0), "Adam(lr=0.001, betas=(0.9, 0.999), eps=1e-08, eps_uncorrected=False, clip_norm=1.0)"),
    (ab.optim.RmsProp(0.01, sparse_rows=True), "RmsProp(lr=0.01, alpha=0.99, eps=1e-08, eps_under_root=False, sparse_rows=True)"),
    (
        ab.optim.Momentum(0.1, schedule=ab.optim.Schedule.warm_up(10, ab.optim.Schedule.cosine(100))),
        "Momentum(lr=0.1, momentum=0.9, "
        "schedule=Schedule.warm_up(updates=10, then=Schedule.cosine(updates=100, low=0.0)))",
    ),
]


def copies(thing):
    """Copies of an object, each made in another way."""
    return [copy.copy(thing), copy.deepcopy(thing), *(pickle.loads(pickle.dumps(thing, version)) for version in (2, 5))]


@pytest.mark.parametrize("optimizer, shown", OPTIMIZERS, ids=lambda value: value if isinstance(value, str) else "")
def test_optimisers_show_their_call_and_copies_train_alike(optimizer, shown):
    def trained(optimizer):
        m = ab.Module("m")
        w = m.param("w", 3, init=np.ones(3))
        trainer = ab.Trainer(m, optimizer)
        for _ in range(3):
            trainer.step([1.0, 2.0], lambda x: (w.value() * x).square().sum())
        return trainer.weights["w"]

    assert repr(optimizer) == shown
    assert repr(eval(shown, vars(ab.optim))) == shown
    expected = trained(optimizer)
    for other in copies(optimizer):
        assert repr(other) == shown and other is not optimizer
        assert np.array_equal(trained(other), expected)


@pytest.mark.parametrize("name", sorted(set(ab.optim.__all__) - {"Optimizer", "Schedule"}))
def test_signatures_show_the_defaults(name):
    make = getattr(ab.optim, name)
    shown = [p for p in inspect.signature(make).parameters.values() if p.kind is not p.VAR_KEYWORD]
    defaults = {p.name: 0.5 if p.default is p.empty else p.default for p in shown}
    assert repr(make(*(0.5 for p in shown if p.default is p.empty))) == repr(make(**defaults))
    assert repr(make(**defaults)) == f"{name}({', '.join(f'{key}={value!r}' for key, value in defaults.items())})"


@pytest.mark.parametrize("schedule", [
    ab.optim.Schedule.step(3, 0.5), ab.optim.Schedule.linear(7, 0.1), ab.optim.Schedule.cyclical(4, 0.2),
    ab.optim.Schedule.warm_up(5, ab.optim.Schedule.cosine(9, 0.3)),
])
def test_copies_of_schedules_have_their_factors(schedule):
    for other in copies(schedule):
        assert [other(update) for update in range(20)] == [schedule(update) for update in range(20)]


def test_types_are_read_from_their_spelling_and_copied():
    for kind in (ab.f32, ab.f32[8], ab.f32[2, 3], ab.index, ab.bool_[4], ab.list_of(ab.f32[5])):
        assert ab.Type(repr(kind)) == kind
        assert all(other == kind and hash(other) == hash(kind) for other in copies(kind))
    with pytest.raises(ValueError, match=r'"f33\[8\]" is no type: an element type is one of f32'):
        ab.Type("f33[8]")


def test_steps_are_copied_logged_and_drawn():
    m = ab.Module("m")
    w = m.param("w", 3, init=np.ones(3))
    step = ab.Trainer(m, ab.optim.Sgd(0.1)).step([1.0, 2.0], lambda x: (w.value() * x).square().sum())
    for other in copies(step):
        assert repr(other) == repr(step) and other.losses == step.losses and other.seconds == step.seconds
        assert other.gradient_norm == step.gradient_norm and other.batches == step.batches
    metrics = step.metrics()
    assert metrics["loss"] == 7.5 and metrics["instances"] == 2 and not metrics["skipped"]
    assert all(isinstance(value, (int, float)) for value in metrics.values())
    shown = step._repr_html_()
    assert "<b>loss 7.5000</b> over 2 items" in shown and "execute" in shown


def test_trainers_and_sessions_name_the_way_to_store_them():
    m = ab.Module("m")
    m.param("w", 3)
    for thing in (ab.Trainer(m, ab.optim.Sgd(0.1)), ab.Session(m)):
        with pytest.raises(TypeError, match="set_weights"):
            pickle.dumps(thing)
