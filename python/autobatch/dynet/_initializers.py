"""Initialisers: the first elements of parameters."""

import numpy as np

from .config import Defaults


class PyInitializer:
    """An initialiser: `draw(dims)` returns the elements of a parameter."""

    def draw(self, dims, lookup=False):
        raise NotImplementedError


class NormalInitializer(PyInitializer):
    """Normal with a mean and a variance."""

    def __init__(self, mean=0.0, var=1.0):
        self.mean, self.deviation = mean, var**0.5

    def draw(self, dims, lookup=False):
        return Defaults.random.normal(self.mean, self.deviation, dims)


class UniformInitializer(PyInitializer):
    """Uniform in `-scale..scale`."""

    def __init__(self, scale):
        self.scale = scale

    def draw(self, dims, lookup=False):
        return Defaults.random.uniform(-self.scale, self.scale, dims)


class ConstInitializer(PyInitializer):
    """Every element is one number."""

    def __init__(self, c):
        self.number = c

    def draw(self, dims, lookup=False):
        return np.full(dims, self.number)


class IdentityInitializer(PyInitializer):
    """The identity matrix."""

    def draw(self, dims, lookup=False):
        if len(dims) != 2 or dims[0] != dims[1]:
            raise ValueError(f"the identity is a square matrix, found {dims}")
        return np.eye(dims[0])


class GlorotInitializer(PyInitializer):
    """Glorot's uniform distribution."""

    def __init__(self, is_lookup=False, gain=1.0):
        self.is_lookup, self.gain = is_lookup, gain

    def draw(self, dims, lookup=False):
        own = dims[1:] if lookup or self.is_lookup else dims
        if len(own) == 4:
            fan, rank = own[0] * own[1] * (own[2] + own[3]), 2
        else:
            fan, rank = sum(own), len(own)
        if 0 in dims:
            return np.zeros(dims)
        return UniformInitializer(self.gain * np.sqrt(3.0 * rank / fan)).draw(dims)


class SaxeInitializer(PyInitializer):
    """A random orthogonal matrix."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def draw(self, dims, lookup=False):
        left, _, right = np.linalg.svd(Defaults.random.normal(size=dims), full_matrices=False)
        return self.scale * (left if left.shape == tuple(dims) else right)


class FromFileInitializer(PyInitializer):
    """The numbers of a text file, column by column."""

    def __init__(self, fname):
        self.path = fname

    def draw(self, dims, lookup=False):
        with open(self.path) as file:
            return np.array(file.read().split(), dtype=np.float32).reshape(dims, order="F")


class NumpyInitializer(PyInitializer):
    """The elements of an array."""

    def __init__(self, array):
        self.array = np.asarray(array, dtype=np.float32)

    def draw(self, dims, lookup=False):
        if self.array.shape != tuple(dims):
            raise ValueError(f"the parameter has the dimension {dims}, the array {self.array.shape}")
        return self.array


def initializer(init, scale, mean, std):
    """Reads the argument `init` of a declaration."""
    named = {
        None: GlorotInitializer, "glorot": GlorotInitializer, "saxe": lambda: SaxeInitializer(scale),
        "uniform": lambda: UniformInitializer(scale), "normal": lambda: NormalInitializer(mean, std**2),
        "identity": IdentityInitializer,
    }
    if isinstance(init, PyInitializer):
        return init
    if init is None or isinstance(init, str) and init in named:
        return named[init]()
    if isinstance(init, str):
        return FromFileInitializer(init)
    if np.ndim(init) == 0:
        return ConstInitializer(float(init))
    return NumpyInitializer(init)
