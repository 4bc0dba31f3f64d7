"""Runs the programs of `dynet_examples.py` under DyNet and under its drop-in, in turns, and prints a table.

    python bench/peers/dynet_table.py PYTHON_WITH_DYNET PYTHON_WITH_AUTOBATCH [--rounds 3] [--steps 60]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

from dynet_examples import PROGRAMS

EXAMPLES = pathlib.Path(__file__).with_name("dynet_examples.py")
WARM_UP = 10
"""The first steps of each run, which the times leave out."""


def run(python, program, steps, *options):
    """Returns the losses and the seconds of the steps."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [python, str(EXAMPLES), program, "--steps", str(steps), *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main():
    """Prints a row for each program."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("dynet")
    arguments.add_argument("autobatch")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=60)
    options = arguments.parse_args()
    print("| program | DyNet, ms | drop-in, ms | times as fast | largest difference of 20 losses |\n|---|---|---|---|---|")
    for program in PROGRAMS:
        medians, losses = {"real": [], "own": []}, {}
        for _ in range(options.rounds):
            for name, python, extra in (("real", options.dynet, ()), ("own", options.autobatch, ("--drop-in",))):
                result = run(python, program, options.steps, *extra)
                medians[name].append(statistics.median(result["seconds"][WARM_UP:]) * 1e3)
                losses[name] = result["losses"][:20]
        real, own = (min(medians[name]) for name in ("real", "own"))
        difference = max(abs(a - b) / abs(a) for a, b in zip(losses["real"], losses["own"]))
        print(f"| `{program}` | {real:.2f} | {own:.2f} | {real / own:.2f} | {difference:.0e} |")


if __name__ == "__main__":
    main()
