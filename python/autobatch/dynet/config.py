"""The module `dynet_config`: settings that a program makes before it imports DyNet."""

import random
import sys

import numpy as np

_settings = None
_gpu = None


def set(mem="512", random_seed=0, autobatch=0, profiling=0, weight_decay=0, shared_parameters=0, requested_gpus=0,
        gpu_mask=None):
    """Keeps the settings for `init`. Only the seed and the weight decay have an effect."""
    global _settings
    _settings = {
        "mem": mem, "seed": random_seed, "autobatch": autobatch, "profiling": profiling, "weight_decay": weight_decay,
        "shared_params": shared_parameters, "requested_gpus": requested_gpus, "gpu_mask": gpu_mask or [],
    }
    apply(random_seed, weight_decay)


def set_gpu(flag=True):
    """Accepts the request for a GPU. The package computes on the CPU."""
    global _gpu
    _gpu = flag


def gpu():
    """Returns what `set_gpu` got."""
    return _gpu


def get():
    """Returns the settings, or None."""
    return _settings


class Defaults:
    """The values that new collections and random numbers start from."""

    weight_decay = 0.0
    seed = 0
    random = np.random.default_rng()


def reset_random_seed(seed):
    """Starts the random numbers of initialisers, masks and noise again."""
    Defaults.seed = int(seed)
    Defaults.random = np.random.default_rng(Defaults.seed)


def apply(seed, weight_decay):
    """Applies the settings that have an effect. Seed 0 draws a seed."""
    reset_random_seed(int(seed) or random.getrandbits(31))
    Defaults.weight_decay = float(weight_decay)


def read_arguments(arguments=None):
    """Removes the `--dynet-*` arguments from the command line and applies the seed and the weight decay."""
    arguments = sys.argv if arguments is None else arguments
    found, kept, words = {}, [], iter(arguments)
    for word in words:
        name = word.lstrip("-").replace("_", "-")
        if not (word.startswith("--") and name.startswith("dynet-")):
            kept.append(word)
            continue
        name, equals, value = name.partition("=")
        if name in ("dynet-gpu", "dynet-viz"):
            continue
        found[name] = value if equals else next(words, "0")
    arguments[:] = kept
    if found:
        apply(found.get("dynet-seed", 0), found.get("dynet-weight-decay", 0.0))
    return found
