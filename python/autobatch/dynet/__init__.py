"""DyNet's Python interface on this engine: `import autobatch.dynet as dy` runs programs written for DyNet.

`install()` makes a program that says `import dynet` use this module without an edit. The chapter "DyNet's Python" of
the guide lists every function.
"""

import sys as _sys

import numpy as np

from . import config as dynet_config
from ._builders import *  # noqa: F403
from ._engine import ENGINE as _ENGINE
from ._expression import Expression, Tensor, pick
from ._files import load_objects as _load_objects
from ._files import save_objects as _save_objects
from ._functions import *  # noqa: F403
from ._missing import MISSING as _MISSING
from ._missing import missing as _missing
from ._initializers import *  # noqa: F403
from ._parameters import *  # noqa: F403
from ._trainers import *  # noqa: F403
from .config import read_arguments as _read_arguments
from .config import reset_random_seed

__version__ = "2.1"
HAVE_CUDA = False


def install():
    """Puts this module into `sys.modules` as `dynet` and `_dynet`, and its settings as `dynet_config`."""
    _sys.modules["dynet"] = _sys.modules["_dynet"] = _sys.modules[__name__]
    _sys.modules["dynet_config"] = dynet_config


def init(shared_parameters=None):
    """Reads the `--dynet-*` arguments of the command line."""
    _read_arguments()


class DynetParams:
    """Settings that a program makes itself. Only the seed and the weight decay have an effect."""

    def __init__(self):
        self.seed, self.decay = 0, 0.0

    def from_args(self, shared_parameters=None):
        """Reads the command line."""
        _read_arguments()

    def from_config(self, conf):
        """Reads the settings of `dynet_config`."""
        self.seed, self.decay = conf["seed"], conf["weight_decay"]

    def init(self):
        """Applies the settings."""
        dynet_config.apply(self.seed, self.decay)

    def set_random_seed(self, random_seed):
        """Sets the seed."""
        self.seed = random_seed

    def set_weight_decay(self, weight_decay):
        """Sets the weight decay."""
        self.decay = weight_decay

    def _ignore(self, *_values):
        """Accepts a setting that has no effect."""

    set_mem = set_autobatch = set_profiling = set_shared_parameters = set_requested_gpus = set_gpu_mask = _ignore
    set_cpu_mode = _ignore


def init_from_params(params):
    """Applies settings."""
    params.init()


class ComputationGraph:
    """The current graph."""

    def renew(self, immediate_compute=False, check_validity=False, autobatching=None):
        """Starts a new graph."""
        return renew_cg()

    def version(self):
        """Returns the number of the current graph."""
        return _ENGINE.version

    def print_graphviz(self):
        """Prints the text form of the graph."""
        print_text_graphviz()


def cg():
    """Returns the current graph."""
    return ComputationGraph()


def renew_cg(immediate_compute=False, check_validity=False, autobatching=None):
    """Starts a new graph. The arguments have no effect: batching is always automatic."""
    _ENGINE.renew()
    return cg()


def cg_version():
    """Returns the number of the current graph."""
    return _ENGINE.version


def cg_checkpoint():
    """Does nothing: an expression that is not needed costs no execution."""


def cg_revert():
    """Does nothing, see `cg_checkpoint`."""


def print_text_graphviz():
    """Prints the text form of the graph."""
    print(_ENGINE.open().text())


print_graphviz = print_text_graphviz


def dump_cg(filename="", show_values=True, show_gradients=True, nan_check_only=False):
    """Writes the text form of the graph, or prints it."""
    if not filename:
        return print_text_graphviz()
    with open(filename, "w") as file:
        file.write(_ENGINE.open().text())


def forward(exps, recalculate=False):
    """Computes expressions together."""
    _ENGINE.compute(exps)


def values(exps, recalculate=False):
    """Computes expressions together and returns their values."""
    _ENGINE.compute(exps)
    return [expression.value() for expression in exps]


def npvalues(exps, recalculate=False):
    """Computes expressions together and returns their arrays."""
    _ENGINE.compute(exps)
    return [expression.npvalue() for expression in exps]


def save(basename, objects):
    """Writes parameters and builders to `basename.data` and `basename.meta`."""
    _save_objects(basename, objects)


def load_generator(basename, params):
    """Yields the objects of `save`, added to a collection."""
    return _load_objects(basename, params)


def load(basename, params):
    """Returns the objects of `save`, added to a collection."""
    return list(load_generator(basename, params))


class _Holder:
    """A number or a vector that a program changes between two runs."""

    def __init__(self, val=0):
        self.val = val

    def set(self, val):
        """Replaces the content."""
        self.val = val

    def get(self):
        """Returns the content."""
        return self.val

    def size(self):
        """Returns the length of a vector."""
        return len(self.val)


UnsignedValue = FloatValue = UnsignedVectorValue = FloatVectorValue = _Holder


class DeviceInfo:
    """A device."""

    def __init__(self, name, id, dtype):
        self.name, self.id, self.type = name, id, dtype


def available_devices():
    """Returns the only device."""
    return ["CPU"]


def get_device_info(name):
    """Returns the description of a device."""
    return DeviceInfo(name, 0, "CPU")


for _name in _MISSING:
    globals()[_name] = _missing(_name)

if dynet_config.get() is None:
    init()
