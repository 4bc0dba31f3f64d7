"""Trainers in shards: the weights of one process, of threads that share a communicator, and of processes of MPI."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import autobatch as ab

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
ITEMS = [[(7 * item + at) % 11 for at in range(1 + item % 4)] for item in range(21)]


class Threads:
    """A communicator whose ranks are threads of this process, with the methods of mpi4py."""

    def __init__(self, rank, shared):
        self.rank, self.shared = rank, shared

    @classmethod
    def group(cls, ranks):
        shared = (threading.Barrier(ranks, timeout=20), [None] * ranks)
        return [cls(rank, shared) for rank in range(ranks)]

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return len(self.shared[1])

    def allgather(self, message):
        barrier, messages = self.shared
        messages[self.rank] = message
        barrier.wait()
        received = list(messages)
        barrier.wait()
        return received

    def alltoall(self, parts):
        return [own[self.rank] for own in self.allgather(parts)]


def model():
    module = ab.Module("words")
    words = ab.nn.Embedding(module, "words", 11, 6)
    score = ab.nn.Linear(module, "score", 6, 2)

    def loss(item):
        return score(sum((words(word) for word in item[1:]), words(item[0]))).cross_entropy(item[0] % 2)

    return module, loss


def trained(*, steps=3, together=None, fail=lambda step: None, **options):
    """The losses and weights of a trainer."""
    module, loss = model()
    trainer = ab.Trainer(module, ab.optim.Adam(0.05), seed=3, threads=1, **options)
    losses = []
    for step in range(steps):
        fail(step)
        report = trainer.step(ITEMS, loss, weights=len, together=together)
        losses.append((report.loss, report.losses, report.weight))
    return losses, {name: np.array(values) for name, values in trainer.weights.items()}, trainer


def on_ranks(ranks, work):
    """The results or exceptions of each rank."""
    results = [None] * ranks

    def run(comm):
        try:
            results[comm.rank] = work(comm)
        except Exception as error:
            results[comm.rank] = error

    threads = [threading.Thread(target=run, args=(comm,)) for comm in Threads.group(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def assert_equal(found, expected):
    assert not isinstance(found, Exception), found
    assert found[0] == expected[0]
    for name, values in expected[1].items():
        assert found[1][name].tobytes() == values.tobytes(), name


@pytest.mark.parametrize("together", [None, 4])
def test_weights_do_not_depend_on_the_ranks(together):
    alone = trained(shards=8, together=together)
    assert alone[2].rank == 0 and alone[2].ranks == 1
    for ranks in (1, 2, 3):
        found = on_ranks(ranks, lambda comm: trained(shards=8, group=comm, together=together))
        for rank, own in enumerate(found):
            assert_equal(own, alone)
            assert (own[2].rank, own[2].ranks) == (rank, ranks)


def test_divided_states_keep_the_bits_of_weights_averages_and_checkpoints(tmp_path):
    def train(comm=None, **options):
        module, loss = model()
        trainer = ab.Trainer(module, ab.optim.Adam(0.05, average=0.9), seed=3, threads=1, group=comm, **options)
        for _ in range(3):
            trainer.step(ITEMS, loss)
        path = tmp_path / f"{trainer.ranks}.safetensors"
        trainer.save(path)
        averages = {name: np.array(values).tobytes() for name, values in trainer.averages().items()}
        return averages, path.read_bytes()

    alone = train(shards=8)
    for ranks in (2, 3):
        assert on_ranks(ranks, lambda comm: train(comm, divide_states=True)) == [alone] * ranks


def test_a_group_has_eight_shards_and_shards_change_only_rounding():
    (by_default,) = on_ranks(1, lambda comm: trained(group=comm))
    assert_equal(by_default, trained(shards=8))
    plain, sharded = trained(), trained(shards=8)
    assert plain[0] != sharded[0]
    for name, values in plain[1].items():
        assert np.allclose(values, sharded[1][name], atol=1e-5)


def test_an_error_of_one_rank_is_one_of_all_and_changes_nothing():
    def work(comm):
        module, loss = model()
        trainer = ab.Trainer(module, ab.optim.Adam(0.05), seed=3, group=comm)
        before = {name: values.copy() for name, values in trainer.weights.items()}

        def failing(item):
            if comm.rank == 1:
                raise KeyError("no such word")
            return loss(item)

        with pytest.raises(KeyError if comm.rank == 1 else ab.AutobatchError) as raised:
            trainer.step(ITEMS, failing)
        assert trainer.steps == 0
        assert all((trainer.weights[name] == values).all() for name, values in before.items())
        trainer.step(ITEMS, loss)
        return str(raised.value)

    messages = on_ranks(3, work)
    assert "no such word" in messages[1]
    assert all("rank 1: its step was left before its end" in messages[rank] for rank in (0, 2)), messages


def test_ranks_compare_options_and_facts():
    def disagree(comm):
        module, _ = model()
        return ab.Trainer(module, ab.optim.Adam(0.1 if comm.rank else 0.2), group=comm)

    assert all("rank 1 disagrees with rank 0 on the optimiser" in str(error) for error in on_ranks(2, disagree))

    def facts(comm):
        module, _ = model()
        ab.Trainer(module, ab.optim.Adam(0.1), group=comm).agree("the corpus", f"file {comm.rank}")

    assert all("on the corpus: rank 0 has file 0" in str(error) for error in on_ranks(2, facts))


def test_checkpoints_are_written_by_the_first_rank_and_read_by_all(tmp_path):
    path = tmp_path / "words.safetensors"

    def work(comm):
        _, weights, trainer = trained(group=comm)
        trainer.save(path)
        module, _ = model()
        resumed = ab.Trainer(module, ab.optim.Adam(0.05), seed=3, group=comm)
        resumed.load(path)
        assert resumed.steps == 3
        return all((resumed.weights[name] == values).all() for name, values in weights.items())

    assert on_ranks(2, work) == [True, True]


def test_a_checkpoint_of_other_settings_is_read_with_a_warning(tmp_path):
    path = tmp_path / "words.safetensors"
    module, _ = model()
    ab.Trainer(module, ab.optim.Adam(0.05), shards=4).save(path)
    same = ab.Trainer(model()[0], ab.optim.Adam(0.05), shards=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same.load(path)
    for trainer, change in [
        (ab.Trainer(model()[0], ab.optim.Adam(0.01), shards=4), r"learning_rate: 0.01.*before.*learning_rate: 0.05"),
        (ab.Trainer(model()[0], ab.optim.Adam(0.05), shards=8), "shards 8, before 4"),
    ]:
        with pytest.warns(UserWarning, match=f"other settings than before: .*{change}"):
            trainer.load(path)


def test_wrong_groups_and_steps_are_refused():
    module, loss = model()
    adam = ab.optim.Adam(0.1)
    with pytest.raises(TypeError, match="group has no method Get_rank; pass a communicator such as mpi4py"):
        ab.Trainer(module, adam, group=[])
    with pytest.raises(ValueError, match="shards must be at least 1"):
        ab.Trainer(module, adam, shards=0)
    trainer = ab.Trainer(module, adam, shards=4)
    with pytest.raises(ab.AutobatchError, match="step_graph has no items to cut into shards; use step"):
        trainer.step_graph(lambda: loss([1, 2]))
    with pytest.raises(ab.AutobatchError, match="5 items, found 10 losses|6 items, found 12 losses|items, found"):
        trainer.step(ITEMS, lambda item: [loss(item), loss(item)])
    with pytest.raises(ab.AutobatchError, match="empty|no items"):
        trainer.step([], loss)

    class Broken(Threads):
        def allgather(self, message):
            raise ConnectionError("the network is gone")

    with pytest.raises(ab.AutobatchError, match="the communicator's allgather failed: ConnectionError: the network is gone"):
        ab.Trainer(module, adam, group=Broken(0, (None, [None] * 2)))


def test_balanced_shards_have_nearly_equal_costs():
    lengths = [9, 1, 8, 2, 7, 3, 6, 4]
    shards = ab.train.balanced(lengths, 4, lambda length: length)
    assert [sum(shards[at : at + 2]) for at in range(0, 8, 2)] == [10, 10, 10, 10]


def test_processes_of_mpi_end_with_the_weights_of_one():
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    variables = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
    }
    program = [sys.executable, str(EXAMPLES / "mpi_train.py")]
    last = []
    for launcher in ([], ["mpirun", "-n", "2"], ["mpirun", "-n", "3"]):
        ended = subprocess.run(
            launcher + program, env=os.environ | variables, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        last.append(ended.stdout.splitlines()[-1])
    assert last[0].startswith("hash of the weights") and len(set(last)) == 1, last
