"""DyNet's text files: a header line for each parameter, then its elements column by column.

A header is `#Parameter# /name {rows,columns} bytes ZERO_GRAD`. With `FULL_GRAD`, a line of gradients follows.
"""

import pickle

import numpy as np

WIDTH = 16
"""The characters of one element."""


def save(path, named, append=False):
    """Writes parameters under these names."""
    with open(path, "ab" if append else "wb") as file:
        for name, stored in named:
            lookup = len(stored) if hasattr(stored, "init_row") else None
            dims = (*stored.dims[1:], stored.dims[0]) if lookup else stored.dims
            kind = "#LookupParameter#" if lookup else "#Parameter#"
            elements = np.asarray(stored.current(), dtype=np.float32).ravel()
            text = ",".join(map(str, dims))
            file.write(f"{kind} {name} {{{text}}} {len(elements) * WIDTH + 1} ZERO_GRAD\n".encode())
            file.write(("%+.8e " * len(elements) % tuple(elements.tolist())).encode() + b"\n")


def entries(path):
    """Yields the kind, the name, the extents and the line of elements of each parameter."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith(b"#"):
                continue
            words = line.decode().split()
            if len(words) < 4 or words[0] not in ("#Parameter#", "#LookupParameter#"):
                raise ValueError(f"{path}: entry {number} has no header of a parameter, found {line[:60]!r}")
            dims = tuple(int(extent) for extent in words[2].strip("{}").split(","))
            yield words[0], words[1], dims, file.readline()


def elements(path, name, dims, line):
    """Reads the elements of a line."""
    values = np.array(line.split(), dtype=np.float32)
    if values.size != np.prod(dims):
        raise ValueError(f"{path}: {name} has the dimension {dims} and {values.size} elements")
    return values


def find(path, key, kind):
    """Returns the extents and the elements of a parameter."""
    for found, name, dims, line in entries(path):
        if name == key and found == kind:
            return dims, elements(path, name, dims, line)
    raise ValueError(f"{path} has no {kind} {key}")


def put(path, stored, name, dims, line):
    """Replaces the values of a parameter."""
    own = (*stored.dims[1:], stored.dims[0]) if hasattr(stored, "init_row") else stored.dims
    if tuple(dims) != tuple(own):
        raise ValueError(f"{path}: {name} has the dimension {dims}, the model expects {own}")
    stored.put(elements(path, name, dims, line).reshape(stored.current().shape))


def populate_one(path, stored, key):
    """Reads one parameter. Without its name in the file, the first of its kind counts."""
    kind = "#LookupParameter#" if hasattr(stored, "init_row") else "#Parameter#"
    same = [entry for entry in entries(path) if entry[0] == kind]
    entry = next((entry for entry in same if entry[1] == key), same[0] if same else None)
    if entry is None:
        raise ValueError(f"{path} has no {kind} {key}")
    put(path, stored, *entry[1:])


def populate(path, collection, key=""):
    """Reads all parameters of a collection in their order."""
    for kind, expected in (("#Parameter#", collection.parameters), ("#LookupParameter#", collection.lookups)):
        found = [entry for entry in entries(path) if entry[0] == kind and entry[1].startswith(key)]
        if len(found) != len(expected):
            raise ValueError(f"{path} has {len(found)} entries {kind}, the model expects {len(expected)}")
        for stored, (_, name, dims, line) in zip(expected, found):
            put(path, stored, name, dims, line)


def save_objects(base, objects):
    """Writes parameters and builders to `base.data`, and what they are to `base.meta`."""
    open(base + ".data", "w").close()
    with open(base + ".meta", "wb") as meta:
        for item in objects:
            if hasattr(item, "full_name"):
                pickle.dump((type(item).__name__, item.name()), meta)
                item.save(base + ".data", append=True)
            else:
                collection = item.param_collection()
                pickle.dump((type(item), item.spec, collection.name()), meta)
                collection.save(base + ".data", append=True)


def load_objects(base, collection):
    """Yields the objects of `save_objects`, added to a collection."""
    with open(base + ".meta", "rb") as meta:
        while True:
            try:
                what = pickle.load(meta)
            except EOFError:
                return
            if what[0] == "Parameters":
                yield collection.load_param(base + ".data", what[1])
            elif what[0] == "LookupParameters":
                yield collection.load_lookup_param(base + ".data", what[1])
            else:
                kind, spec, name = what
                item = kind.from_spec(spec, collection)
                item.param_collection().populate(base + ".data", name)
                yield item
