"""Threads, processes and signals."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import autobatch as ab


def module(width=16):
    m = ab.Module("steps")
    w, b = m.param("w", (width, width)), m.param("b", width)
    cell = m.cell(ab.f32[width], name="cell")(lambda x: x.affine(w, b).tanh())

    def emit(steps):
        x = ab.input(np.ones(width))
        for _ in range(steps):
            x = cell(x)
        return x

    return m, emit


def test_two_threads_run_a_session_each():
    m, emit = module()
    expected = ab.Session(m).predict(range(1, 20), emit)
    found, errors = {}, []

    def work(name):
        try:
            session = ab.Session(m)
            for _ in range(20):
                found[name] = session.predict(range(1, 20), emit)
        except Exception as error:  # A thread has no other way to report it.
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for arrays in found.values():
        assert all(np.array_equal(one, other) for one, other in zip(arrays, expected))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_process_that_was_forked_after_the_import_computes():
    program = """
import os, numpy as np, autobatch as ab
m = ab.Module("m")
w = m.param("w", (4, 4))
emit = lambda x: (ab.input([x] * 4) @ w).tanh()
expected = ab.Session(m).predict([1.0, 2.0], emit)
child = os.fork()
if child == 0:
    found = ab.Session(m).predict([1.0, 2.0], emit)
    os._exit(0 if all(np.array_equal(a, b) for a, b in zip(found, expected)) else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timers")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_stops_a_step_within_its_plan(threads):
    """Ctrl-C is such a signal. A step that runs to its end would have changed the weights before the handler was called."""
    m = ab.Module("long")
    w = m.param("w", (512, 512))
    trainer = ab.Trainer(m, ab.optim.Sgd(0.1), threads=threads)
    before, emitted = trainer.weights["w"], False

    def loss(_):
        nonlocal emitted
        x = ab.input(np.ones((512, 512)))
        for _ in range(150):
            x = (x @ w).tanh()
        emitted = True
        return x.square().mean()

    class Stopped(Exception):
        """The exception of the handler."""

    def stop(*_):
        if not emitted:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        raise Stopped

    previous = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Stopped):
            trainer.step([0], loss)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert trainer.steps == 0 and np.array_equal(trainer.weights["w"], before)
    assert trainer.step([0], lambda _: (w.value() - 1.0).square().mean()).number == 0
