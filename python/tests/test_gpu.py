"""Devices: their names, the error of a build without GPUs, and agreement with the CPU where there is a GPU."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from test_core import TREES, tree_rnn

import autobatch as ab

GPUS = [device["device"] for device in ab.devices() if device["kind"] != "cpu"]


def test_devices_lists_the_cpu_first_and_every_name_opens_a_session():
    devices = ab.devices()
    assert devices[0]["device"] == "cpu" and len({device["device"] for device in devices}) == len(devices)
    m, encode = tree_rnn()
    for device in devices:
        assert len(ab.Session(m, device=device["device"]).predict(TREES, encode)) == len(TREES)


def test_a_missing_gpu_says_what_to_do():
    m, _ = tree_rnn()
    with pytest.raises((ValueError, ab.RunError)) as error:
        ab.Session(m, device="gpu:1000")
    said = str(error.value)
    assert "autobatch-engine[gpu]" in said or "execute on the cpu" in said, said


def test_the_package_takes_a_native_half_with_gpus_of_its_version(tmp_path):
    half = tmp_path / "autobatch_gpu"
    half.mkdir()
    (half / "__init__.py").touch()
    own = pathlib.Path(sys.modules["autobatch._autobatch"].__file__)
    program = (
        "import autobatch as ab, sys\n"
        "assert ab.Session(ab.Module('m')) and ab.nn.LSTM.__module__ == 'autobatch.nn'\n"
        "print(sys.modules['autobatch._autobatch'].__file__)"
    )

    def run():
        paths = os.pathsep.join([str(tmp_path), str(pathlib.Path(ab.__file__).parent.parent)])
        return subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)

    shutil.copy(own, half / own.name)
    taken = run()
    assert taken.returncode == 0, taken.stderr
    assert pathlib.Path(taken.stdout.strip()) == half / own.name
    (half / own.name).unlink()
    (half / "_autobatch.py").write_text("__version__ = '0.0.1'")
    refused = run()
    assert "autobatch-engine-gpu 0.0.1 do not fit; install both" in refused.stderr
    (half / "_autobatch.py").write_text("import a_module_that_is_missing")
    assert "a_module_that_is_missing" in run().stderr


def test_both_packages_have_one_version():
    root = pathlib.Path(__file__).parent.parent
    texts = [(root / name).read_text() for name in ("pyproject.toml", "gpu/pyproject.toml", "Cargo.toml")]
    assert all(f'\nversion = "{ab.VERSION}"' in text for text in texts)
    assert f'"autobatch-engine-gpu=={ab.VERSION}"' in texts[0] and f'"autobatch-engine=={ab.VERSION}"' in texts[1]
    assert ab.__version__ == ab.VERSION


@pytest.fixture
def gpu():
    if not GPUS:
        assert os.environ.get("AUTOBATCH_REQUIRE_GPU_PYTHON") != "1", "a GPU is required, and none was found"
        pytest.skip("this build or machine has no GPU")
    return "gpu"


def test_a_gpu_predicts_what_the_cpu_predicts(gpu):
    m, encode = tree_rnn()
    here, there = (ab.Session(m, seed=1, device=device).predict(TREES, encode) for device in ("cpu", gpu))
    for a, b in zip(here, there):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_gpu_trains_as_the_cpu_trains(gpu):
    m, encode = tree_rnn()
    losses = []
    for device in ("cpu", gpu):
        trainer = ab.Trainer(m, ab.optim.Adam(0.01), seed=1, device=device)
        losses.append([trainer.step(TREES, lambda tree: encode(tree).square().sum()).loss for _ in range(5)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[1][-1] < losses[1][0]


def test_tasks_await_values_of_a_gpu(gpu):
    m, encode = tree_rnn()

    async def halvings(x):
        value, count = ab.input([x]), 0
        while (await value)[0] >= 1.0:
            value, count = value * 0.5, count + 1
        return count

    assert ab.Session(m, device=gpu).tasks([1000.0, 0.25, 3.0], halvings) == [10, 0, 2]
