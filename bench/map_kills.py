"""Maps a model over many generated trees on two processes, kills processes on the way, and compares the result with an undisturbed run.

    cargo build --release -p autobatch-cli --features mpi
    python3 bench/map_kills.py target/release/autobatch [--instances 1000000] [--kills 10]

It prints the rate and the largest memory of an undisturbed run on one process and on two, and fails if a byte differs.
"""

import argparse
import filecmp
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

OPERATORS = ["[MIN", "[MAX", "[FIRST", "[LAST"]
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def expression(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return str(rng.randrange(10))
    text = rng.choice(OPERATORS)
    for _ in range(rng.randint(1, 4)):
        text = f"( {text} {expression(rng, depth - 1)} )"
    return f"( {text} ] )"


def write_trees(path, count):
    rng = random.Random(3)
    with open(path, "w") as file:
        while count:
            line = expression(rng, 3)
            if not line.isdigit():
                file.write(line + "\n")
                count -= 1


def children(process):
    try:
        text = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


class Runs:
    """Runs of one command into several folders."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def command(self, output, processes):
        own = [self.program, "map", "treelstm", "--weights", "w.safetensors", "--data", "trees.txt", "--threads", "1", "-o", output]
        return own if processes == 1 else ["mpirun", "-n", str(processes), *own]

    def start(self, output, processes):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(self.command(output, processes), cwd=self.folder, env={**os.environ, **SETTINGS}, **quiet)

    def complete(self, output, processes):
        """Runs to the end. Returns the seconds."""
        start = time.perf_counter()
        if self.start(output, processes).wait():
            raise SystemExit(f"the run on {processes} processes failed")
        return time.perf_counter() - start

    def kill_one(self, output, processes, after):
        """Starts a run and kills one of its processes. Returns whether it was still running."""
        run = self.start(output, processes)
        time.sleep(after)
        victims = children(run.pid)
        if run.poll() is None and victims:
            os.kill(random.choice(victims), signal.SIGKILL)
        return run.wait() != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = str(pathlib.Path(options.program).resolve())
        write_trees(folder / "trees.txt", options.instances)
        train = [program, "train", "treelstm", "--count", "200", "--hidden", "20", "--epochs", "1", "--save", "w.safetensors"]
        subprocess.run(train, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        runs, seconds = Runs(program, folder), {}
        for processes in (1, 2):
            seconds[processes] = runs.complete(f"undisturbed-{processes}", processes)
            largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            rate = options.instances / seconds[processes]
            print(f"{processes} processes: {seconds[processes]:.1f} s, {rate:,.0f} instances/s, at most {largest >> 10} MiB each")
        kills = 0
        while kills < options.kills:
            after = random.uniform(0.1, 1.0) * seconds[2] / options.kills
            if not runs.kill_one("killed", 2, after):
                shutil.rmtree(folder / "killed")
                continue
            kills += 1
        runs.complete("killed", 2)
        names = sorted(os.listdir(folder / "undisturbed-1"))
        for other in ("undisturbed-2", "killed"):
            if sorted(os.listdir(folder / other)) != names:
                raise SystemExit(f"{other} has other files")
            equal, different, failed = filecmp.cmpfiles(folder / "undisturbed-1", folder / other, names, shallow=False)
            if different or failed:
                raise SystemExit(f"{other} differs in {different[:3]}")
        print(f"{len(names)} files are equal after {kills} kills")


if __name__ == "__main__":
    main()
