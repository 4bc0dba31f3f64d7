"""Parameters, lookup parameters and their collections."""

import numpy as np

import autobatch as ab

from . import _files
from ._engine import ENGINE
from ._expression import Expression
from ._initializers import NumpyInitializer, initializer
from .config import Defaults


class Stored(Expression):
    """What parameters and lookup parameters share. `dims` are DyNet's; native arrays have them in reverse."""

    __slots__ = ("dims", "full_name", "values", "key", "updated", "seen", "node", "__weakref__")

    def __new__(cls, *_arguments):
        return super().__new__(cls, None)

    def __init__(self, dims, full_name, values):
        self.dims, self.full_name = tuple(int(extent) for extent in dims), full_name
        self.values = self.to_native(values)
        self.handle = self.key = self.node = None
        self.updated, self.seen = True, -1
        ENGINE.add(self)

    def detach(self):
        """Takes the values over from a native trainer that is given up."""
        if self.handle is not None:
            self.values, self.handle = np.asarray(ENGINE.trainer.weight(self.key)), None

    def current(self):
        """The values in the native layout."""
        return self.values if self.handle is None else np.asarray(ENGINE.trainer.weight(self.key))

    def put(self, native):
        """Replaces the values, given in the native layout."""
        if self.handle is None:
            self.values = native
        else:
            ENGINE.trainer.set_weights({self.key: native})

    def grad(self):
        """The waiting gradient in the native layout."""
        return np.asarray(ENGINE.native().gradient(self.key))

    def name(self):
        """Returns the name with the path of its collection."""
        return self.full_name

    def as_array(self):
        """Returns the values."""
        return self.from_native(self.current())

    def grad_as_array(self):
        """Returns the waiting gradient."""
        return self.from_native(self.grad())

    def scale(self, s):
        """Multiplies the values."""
        self.put(self.current() * np.float32(s))

    def zero(self):
        """Sets all values to 0."""
        self.put(np.zeros_like(self.current()))

    def is_updated(self):
        """Returns whether trainers update the parameter."""
        return self.updated

    def set_updated(self, b):
        """Sets whether trainers update the parameter. It counts for trainers that have not updated yet."""
        self.updated = bool(b)

    def save(self, fname, key="", append=False):
        """Writes the parameter to a text file."""
        _files.save(fname, [(key or self.full_name, self)], append)

    write_to_textfile = save

    def populate(self, fname, key=""):
        """Reads the parameter from a text file."""
        _files.populate_one(fname, self, key or self.full_name)

    populate_from_textfile = populate

    def computed(self):
        return np.asarray(ENGINE.native().evaluate([self.v])[0])


class Parameters(Stored):
    """A parameter. In an expression it stands for its value."""

    __slots__ = ()

    def to_native(self, values):
        return np.ascontiguousarray(np.asarray(values, dtype=np.float32).T)

    def from_native(self, native):
        return native.T.copy().reshape(self.dims)

    def declare(self, module, key):
        """Declares the native parameter."""
        self.handle, self.key, self.seen = module.param(key, self.values.shape, init=self.values), key, -1

    @property
    def v(self):
        """The native value in the current graph."""
        if self.seen != ENGINE.version or self.node is None:
            ENGINE.open()
            value = self.handle.value()
            self.node, self.seen = value if self.dims != (1,) else value.reshape(()), ENGINE.version
        return self.node

    @property
    def native(self):
        """The native parameter, which a product reads in place."""
        ENGINE.open()
        return self.handle

    def shape(self):
        """Returns the extents."""
        return self.dims

    def dim(self):
        return self.dims, 1

    def expr(self, update=True):
        """Returns the parameter as an expression; without `update` it has no gradient."""
        return self if update else Expression(self.v.stop_gradient())

    def set_value(self, arr):
        """Replaces the values."""
        array = np.asarray(arr, dtype=np.float32)
        if array.size != np.prod(self.dims):
            raise ValueError(f"the parameter has the dimension {self.dims}, the array {array.shape}")
        self.put(self.to_native(array.reshape(self.dims)))

    def clip_inplace(self, left, right):
        """Limits the values to an interval."""
        self.put(np.clip(self.current(), left, right))

    def __repr__(self):
        return f"<autobatch.dynet.Parameters {self.full_name} {self.dims}>"


class LookupParameters(Stored):
    """A table of vectors or tensors, one a row. `dims` starts with the number of rows."""

    __slots__ = ("row",)

    def __init__(self, dims, full_name, values):
        super().__init__(dims, full_name, values)
        plain = len(self.dims) == 2 and self.dims[1] != 1
        self.row = None if plain else tuple(reversed(self.dims[1:])) if self.dims[1:] != (1,) else ()

    def to_native(self, values):
        array = np.asarray(values, dtype=np.float32)
        own = array.transpose(0, *range(array.ndim - 1, 0, -1))
        return np.ascontiguousarray(own.reshape(len(array), -1))

    def from_native(self, native):
        own = native.reshape(self.dims[0], *reversed(self.dims[1:]))
        return own.transpose(0, *range(own.ndim - 1, 0, -1)).copy()

    def declare(self, module, key):
        """Declares the native table."""
        rows, width = self.values.shape
        self.handle, self.key = module.table(key, rows, width, init=self.values), key

    @property
    def v(self):
        """The whole table as a native value of the current graph."""
        ENGINE.open()
        return self.handle.as_param().value().reshape((self.dims[0], *reversed(self.dims[1:])))

    def __getitem__(self, i):
        if ENGINE.graph is None:
            ENGINE.open()
        row = self.row_of(self.handle, i)
        return row if self.row is None else Expression(row.v.reshape(self.row))

    def batch(self, i):
        """Returns several rows as a minibatch."""
        rows = [self[int(row)].v for row in i]
        return Expression(ab.stack(rows) if len(rows) > 1 else rows[0], len(rows))

    def __len__(self):
        return self.dims[0]

    def shape(self):
        """Returns the extents, the number of rows first."""
        return self.dims

    def dim(self):
        return (*self.dims[1:], self.dims[0]), 1

    def expr(self, update=True):
        """Returns the table itself."""
        return self

    def init_from_array(self, arr):
        """Replaces all rows."""
        array = np.asarray(arr, dtype=np.float32)
        if array.shape != self.dims:
            raise ValueError(f"the table has the dimension {self.dims}, the array {array.shape}")
        self.put(self.to_native(array))

    def init_row(self, i, row):
        """Replaces one row."""
        native = self.current().copy()
        native[i] = np.asarray(row, dtype=np.float32).ravel()
        self.put(native)

    def row_as_array(self, row):
        """Returns one row."""
        return self.as_array()[row]

    def rows_as_array(self, rows):
        """Returns several rows."""
        return self.as_array()[list(rows)]

    def row_grad_as_array(self, row):
        """Returns the waiting gradient of one row."""
        return self.grad_as_array()[row]

    def rows_grad_as_array(self, rows):
        """Returns the waiting gradient of several rows."""
        return self.grad_as_array()[list(rows)]

    def __repr__(self):
        return f"<autobatch.dynet.LookupParameters {self.full_name} {self.dims}>"


class ParameterCollection:
    """Parameters under a common name. Collections nest."""

    def __init__(self, parent=None, path="/"):
        self.parent, self.path = parent, path
        self.parameters, self.lookups, self.taken = [], [], {}
        self.weight_decay = Defaults.weight_decay

    def unique(self, name):
        """Returns a name that the collection has not used yet."""
        count = self.taken.get(name, 0)
        self.taken[name] = count + 1
        if not name:
            return f"_{count}"
        return name if count == 0 else f"{name}_{count}"

    def attach(self, stored):
        """Adds a parameter to this collection and those around it."""
        collection = self
        while collection is not None:
            (collection.lookups if isinstance(stored, LookupParameters) else collection.parameters).append(stored)
            collection = collection.parent
        return stored

    def add_parameters(self, dim, init=None, name="", device="", scale=1.0, mean=0.0, std=1.0):
        """Declares a parameter. Glorot's initialiser is the default."""
        if isinstance(init, np.ndarray) and dim is None:
            dim = init.shape
        dims = tuple(int(extent) for extent in dim) if np.ndim(dim) else (int(dim),)
        values = initializer(init, scale, mean, std).draw(dims)
        return self.attach(Parameters(dims, self.path + self.unique(name), values))

    def add_lookup_parameters(self, dim, init=None, name="", device="", scale=1.0, mean=0.0, std=1.0):
        """Declares a table of `dim[0]` rows."""
        dims = tuple(int(extent) for extent in dim)
        dims = dims if len(dims) > 1 else (*dims, 1)
        values = initializer(init, scale, mean, std).draw(dims, lookup=True)
        return self.attach(LookupParameters(dims, self.path + self.unique(name), values))

    def parameters_from_numpy(self, array, name="", device=""):
        """Declares a parameter with the elements of an array."""
        return self.add_parameters(np.shape(array), NumpyInitializer(array), name)

    def lookup_parameters_from_numpy(self, array, name="", device=""):
        """Declares a table with the rows of an array."""
        return self.add_lookup_parameters(np.shape(array), NumpyInitializer(array), name)

    def add_subcollection(self, name=None):
        """Returns a new collection inside this one."""
        return ParameterCollection(self, f"{self.path}{self.unique(name or '')}/")

    def all(self):
        """Returns the parameters and the tables."""
        return [*self.parameters, *self.lookups]

    def parameters_list(self):
        """Returns the parameters."""
        return list(self.parameters)

    def lookup_parameters_list(self):
        """Returns the tables."""
        return list(self.lookups)

    def parameter_count(self):
        """Returns the number of elements."""
        return int(sum(np.prod(stored.dims) for stored in self.all()))

    def name(self):
        """Returns the path."""
        return self.path

    def save(self, fname, name="", append=False):
        """Writes all parameters to a text file."""
        prefix = name if not name or name.endswith("/") else name + "/"
        path = len(self.path)
        named = [(prefix + stored.full_name[path:] if name else stored.full_name, stored) for stored in self.all()]
        _files.save(fname, named, append)

    write_to_textfile = save

    def populate(self, fname, key=""):
        """Reads all parameters from a text file, in the order of declaration."""
        _files.populate(fname, self, key)

    populate_from_textfile = populate

    def load_param(self, fname, key):
        """Declares a parameter that a text file holds."""
        dims, values = _files.find(fname, key, "#Parameter#")
        return self.add_parameters(dims, NumpyInitializer(values.reshape(dims, order="F")))

    def load_lookup_param(self, fname, key):
        """Declares a table that a text file holds."""
        dims, values = _files.find(fname, key, "#LookupParameter#")
        return self.add_lookup_parameters(
            (dims[-1], *dims[:-1]), NumpyInitializer(np.moveaxis(values.reshape(dims, order="F"), -1, 0))
        )

    def get_weight_decay(self):
        """Returns the part that an update takes from each weight."""
        return self.weight_decay

    def set_weight_decay(self, lam):
        """Sets the part that an update takes from each weight. It counts for trainers that have not updated yet."""
        self.weight_decay = float(lam)

    set_weight_decay_lambda = set_weight_decay


Model = ParameterCollection
