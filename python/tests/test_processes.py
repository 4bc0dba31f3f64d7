"""Threads, processes and long runs."""

import os
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


def resident():
    """The resident memory in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system has no /proc")
def test_the_memory_of_a_long_run_is_flat():
    m, emit = module()
    trainer = ab.Trainer(m, ab.optim.Sgd(0.01), threads=1)
    steps = int(os.environ.get("AUTOBATCH_LONG_RUN", "4000"))
    sizes = []
    for step in range(steps):
        trainer.step([step % 5 + 1], lambda length: emit(length).sum())
        if step in (steps // 4, steps - 1):
            sizes.append(resident())
    assert sizes[1] - sizes[0] < 4 << 20, f"{sizes[1] - sizes[0]} bytes more after {steps} steps"
