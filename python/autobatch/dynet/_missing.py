"""The names of DyNet's module that are not there, each with the reason."""

MISSING = {
    "ClassFactoredSoftmaxBuilder": "no hierarchical softmax; StandardSoftmaxBuilder has all classes",
    "FastLSTMBuilder": "diagonal peepholes; use CoupledLSTMBuilder or VanillaLSTMBuilder",
    "SparseLSTMBuilder": "pruned weights; use VanillaLSTMBuilder",
    "acos": "no op of the engine",
    "argmax": "no straight-through gradient; use np.argmax(x.npvalue())",
    "asin": "no op of the engine",
    "atan": "no op of the engine",
    "ceil": "no op of the engine",
    "circ_conv": "no convolution in the engine",
    "circ_corr": "no convolution in the engine",
    "constrained_softmax": "no op of the engine",
    "contract3d_1d": "no tensor contraction in the engine; reshape and multiply",
    "contract3d_1d_1d": "no tensor contraction in the engine; reshape and multiply",
    "contract3d_1d_1d_bias": "no tensor contraction in the engine; reshape and multiply",
    "contract3d_1d_bias": "no tensor contraction in the engine; reshape and multiply",
    "filter1d_narrow": "no convolution in the engine",
    "floor": "no op of the engine",
    "fold_rows": "no op of the engine; use pick_range and esum",
    "inverse": "no matrix inverse in the engine",
    "kmax_pooling": "no op of the engine",
    "kmh_ngram": "no op of the engine",
    "lgamma": "no op of the engine",
    "logdet": "no determinant in the engine",
    "round": "no op of the engine",
    "sparsemax": "no op of the engine",
}


def missing(name):
    """Returns a function that raises an error with the reason."""

    def raises(*_arguments, **_options):
        raise NotImplementedError(f"autobatch.dynet has no {name}: {MISSING[name]}")

    raises.__name__, raises.__doc__ = name, f"Not there: {MISSING[name]}."
    return raises
