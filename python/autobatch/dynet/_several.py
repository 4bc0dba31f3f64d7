"""Functions of several expressions, and the gates of an LSTM."""

import autobatch as ab

from ._elements import bmax, cmult, exp, log, logistic, nobackprop, tanh
from ._expression import Expression
from ._reductions import l2_norm
from ._shapes import concatenate, pick_range


def esum(xs):
    """The sum of expressions."""
    xs = xs if xs.__class__ is list else list(xs)
    if len(xs) == 1:
        return xs[0]
    total = Expression.sum_of(xs)
    if total is not None:
        return total
    b = max(x.b for x in xs)
    values = [x.repeated(b) for x in xs]
    if all(value.shape == values[0].shape for value in values):
        return Expression(ab.total(values), b)
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def average(xs):
    """The mean of expressions."""
    return esum(xs) * (1.0 / len(xs))


def emax(xs):
    """The elementwise maximum."""
    largest = xs[0]
    for x in xs[1:]:
        largest = bmax(largest, x)
    return largest


def logsumexp(xs):
    """`log(sum e^x)` over expressions, element by element."""
    xs = [Expression(x.vector(), x.b) for x in xs]
    b = max(x.b for x in xs)
    if b == 1 and not xs[0].extents():
        return Expression(ab.stack([x.v for x in xs]).logsumexp()) if len(xs) > 1 else xs[0]
    largest = nobackprop(emax(xs))
    return log(esum([exp(x - largest) for x in xs])) + largest


affine_transform = Expression.affine_transform


def layer_norm(x, g, b):
    """Layer normalisation with a gain and a bias."""
    return cmult(Expression(x.v.layer_norm(1e-12), x.b), g) + b


def weight_norm(w, g):
    """A weight of length `g`."""
    return cmult(w, g / l2_norm(w))


def vanilla_lstm_gates_concat(x_t, h_tm1, Wx, Wh, b, weightnoise_std=0.0):
    """The gates of an LSTM, of the concatenation of some inputs."""
    gates = affine_transform([b, Wx, concatenate(x_t), Wh, h_tm1])
    width = h_tm1.extents()[-1]
    i, f, o, g = (pick_range(gates, part * width, (part + 1) * width) for part in range(4))
    return concatenate([logistic(i), logistic(f + 1.0), logistic(o), tanh(g)])


def vanilla_lstm_gates(x_t, h_tm1, Wx, Wh, b, weightnoise_std=0.0):
    """The gates of an LSTM."""
    return vanilla_lstm_gates_concat([x_t], h_tm1, Wx, Wh, b)


def vanilla_lstm_gates_dropout(x_t, h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h, weightnoise_std=0.0):
    """The gates of an LSTM with masks."""
    return vanilla_lstm_gates(cmult(x_t, dropout_mask_x), cmult(h_tm1, dropout_mask_h), Wx, Wh, b)


def vanilla_lstm_gates_dropout_concat(x_t, h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h, weightnoise_std=0.0):
    """The gates of an LSTM with masks, of the concatenation of some inputs."""
    return vanilla_lstm_gates_dropout(concatenate(x_t), h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h)


def vanilla_lstm_c(c_tm1, gates_t):
    """The cell of an LSTM."""
    width = c_tm1.extents()[-1]
    i, f, g = (pick_range(gates_t, part * width, (part + 1) * width) for part in (0, 1, 3))
    return cmult(f, c_tm1) + cmult(i, g)


def vanilla_lstm_h(c_t, gates_t):
    """The output of an LSTM."""
    width = c_t.extents()[-1]
    return cmult(pick_range(gates_t, 2 * width, 3 * width), tanh(c_t))


def to_device(e, device_str):
    """Returns the expression: there is one device."""
    return e
