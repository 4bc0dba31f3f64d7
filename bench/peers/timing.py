"""Options and timing that the measured programs share.

Each program builds a Tree-LSTM, repeats its step for a while after a warm-up, and prints one line of JSON:
{"seconds_per_step": x, "checksum": y}. The checksum is the sum of all scores of an untrained model whose
weights are all equal to a constant, so equal models print equal checksums.
"""
import argparse
import json
import time

from instances import read

# The value of every weight while the checksum is computed.
CHECKSUM_WEIGHT = 0.01
LEARNING_RATE = 1e-3


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="instances as instances.py writes them")
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of the measurement")
    parser.add_argument("--device", default="cpu", help="where PyTorch computes: cpu, cuda")
    args = parser.parse_args()
    args.trees, args.labels = read(args.data)
    return args


def measure(step, seconds, checksum):
    """Prints the mean time of a step, after one step that warms up."""
    step()
    steps, start = 0, time.perf_counter()
    while steps == 0 or time.perf_counter() - start < seconds:
        step()
        steps += 1
    print(json.dumps({"seconds_per_step": (time.perf_counter() - start) / steps, "checksum": checksum}))
