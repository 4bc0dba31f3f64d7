"""The names of DyNet's module that are not there, each with the reason."""

MISSING = {
    "ClassFactoredSoftmaxBuilder": "no hierarchical softmax; StandardSoftmaxBuilder has all classes",
    "SparseLSTMBuilder": "pruned weights; use VanillaLSTMBuilder",
    "constrained_softmax": "no op of the engine",
    "inverse": "no matrix inverse in the engine",
    "logdet": "no determinant in the engine",
}


def missing(name):
    """Returns a function that raises an error with the reason."""

    def raises(*_arguments, **_options):
        raise NotImplementedError(f"autobatch.dynet has no {name}: {MISSING[name]}")

    raises.__name__, raises.__doc__ = name, f"Not there: {MISSING[name]}."
    return raises
