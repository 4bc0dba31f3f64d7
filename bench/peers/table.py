"""Makes the table of the README: one step of a Tree-LSTM in PyTorch, TorchFold, DyNet and autobatch.

    python bench/peers/table.py [--rounds 7] [--hidden 100] [--trees 128] [--core 0]

The programs run in turns on one core, each for a second per round. The table shows the least and the median
time of a step over all rounds. The script builds the command line first, and compares the checksums of the peers.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
MAX_CHECKSUM_ERROR = 1e-4


def programs(data, args):
    """Returns the command of each row of the table, by the name of the row."""
    def peer(script, *options):
        return [sys.executable, str(FOLDER / script), data, "--hidden", str(args.hidden), *options]

    bench = [args.program, "bench", "treelstm", "--peer-data", data, "--hidden", str(args.hidden)]
    return {
        "PyTorch, batched by hand": peer("pytorch_by_hand.py"),
        "TorchFold": peer("torchfold_program.py"),
        "DyNet, automatic batching": peer("dynet_program.py"),
        "autobatch": [*bench, "--alone", "--rounds", "1", "--turn", "1000", "--json"],
        "floor: the matrix products alone, in PyTorch": peer("pytorch_by_hand.py", "--floor"),
    }


def run(command, core):
    """Returns the last line of the output, as JSON."""
    pinned = ["taskset", "-c", str(core), *command]
    output = subprocess.run(pinned, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if output.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{output.stderr}")
    return json.loads(output.stdout.strip().splitlines()[-1])


def processor():
    """The name of the processor, on Linux."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--trees", type=int, default=128)
    parser.add_argument("--core", type=int, default=0, help="the core on which all programs run")
    parser.add_argument("--program", help="the command line [default: built here]")
    args = parser.parse_args()
    if args.program is None:
        subprocess.run(["cargo", "build", "--release", "-p", "autobatch-cli"], cwd=ROOT, check=True)
        args.program = str(ROOT / "target/release/autobatch")
    folder = ROOT / "target/peers-data"
    folder.mkdir(parents=True, exist_ok=True)
    data = str(folder / "trees.json")
    subprocess.run([sys.executable, str(FOLDER / "instances.py"), data, "--trees", str(args.trees)], check=True)
    commands = programs(data, args)
    times = {(name, mode): [] for name in commands for mode in ("infer", "train")}
    checksums, loads = {}, []
    for _ in range(args.rounds):
        loads.append(os.getloadavg()[0])
        for (name, mode), found in times.items():
            line = run([*commands[name], "--mode", mode], args.core)
            found.append(line["seconds_per_step"] * 1e3)
            checksums.setdefault(line.get("checksum"), name)
    known = [checksum for checksum in checksums if checksum is not None]
    if max(known) - min(known) > MAX_CHECKSUM_ERROR * abs(max(known)):
        sys.exit(f"the peers compute different models: {checksums}")
    print(f"{processor()}, one core, load {min(loads):.1f} to {max(loads):.1f}, {args.rounds} rounds; hidden "
          f"{args.hidden}, {args.trees} trees; milliseconds per step, least (median)\n")
    print("| | infer | train |\n|---|---|---|")
    for name in commands:
        cells = [f"{min(found):.1f} ({statistics.median(found):.1f})" for found in (times[name, mode] for mode in ("infer", "train"))]
        print(f"| {name} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
