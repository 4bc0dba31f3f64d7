"""Functions of each element."""

import operator

import autobatch as ab

from ._expression import Expression, elementwise


def unary(name, doc):
    """Makes a function from a native method."""

    def function(x):
        return Expression(getattr(x.v, name)(), x.b)

    function.__doc__ = doc
    return function


abs = unary("abs", "`|x|`")
exp = unary("exp", "`e^x`")
log = unary("log", "The natural logarithm.")
sqrt = unary("sqrt", "The square root.")
square = unary("square", "`x^2`")
sin = unary("sin", "The sine.")
cos = unary("cos", "The cosine.")
erf = unary("erf", "The error function.")
nobackprop = unary("stop_gradient", "The identity with derivative zero.")


def tanh(x):
    """The hyperbolic tangent."""
    return Expression(x.v.tanh(), x.b)


def logistic(x):
    """`1 / (1 + e^-x)`"""
    return Expression(x.v.sigmoid(), x.b)


def rectify(x):
    """`max(x, 0)`"""
    return Expression(x.v.relu(), x.b)


def tan(x):
    """The tangent."""
    return sin(x) / cos(x)


def sinh(x):
    """The hyperbolic sine."""
    return (exp(x) - exp(-x)) * 0.5


def cosh(x):
    """The hyperbolic cosine."""
    return (exp(x) + exp(-x)) * 0.5


def asinh(x):
    """The inverse of `sinh`."""
    return log(x + sqrt(square(x) + 1.0))


def acosh(x):
    """The inverse of `cosh`."""
    return log(x + sqrt(square(x) - 1.0))


def atanh(x):
    """The inverse of `tanh`."""
    return log((1.0 + x) / (1.0 - x)) * 0.5


def cube(x):
    """`x^3`"""
    return elementwise(x, square(x), operator.mul)


def log_sigmoid(x):
    """`log(logistic(x))`"""
    return Expression(-((-x.v).softplus()), x.b)


def softsign(x):
    """`x / (1 + |x|)`"""
    return x / (abs(x) + 1.0)


def silu(x, beta=1.0):
    """`x * logistic(beta * x)`"""
    return cmult(x, logistic(x * beta))


def elu(x, alpha=1.0):
    """`x` where positive, `alpha * (e^x - 1)` elsewhere."""
    return Expression(x.v.elu(alpha), x.b)


def selu(x):
    """The scaled exponential linear unit."""
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def flip_gradient(x):
    """The identity; it negates the gradient."""
    return scale_gradient(x, -1.0)


def scale_gradient(x, lambd=1.0):
    """The identity; it multiplies the gradient."""
    return Expression(x.v.scale_gradient(lambd), x.b)


def cmult(x, y):
    """The elementwise product."""
    if x.b == 1 == y.b:
        try:
            return Expression(x.v * y.v)
        except ab.EmitError:
            pass  # The shapes differ, so the smaller one is repeated.
    return elementwise(x, y, operator.mul)


def cdiv(x, y):
    """The elementwise quotient."""
    return elementwise(x, y, operator.truediv)


def colwise_add(x, y):
    """Adds a vector to each column."""
    return elementwise(x, y, operator.add)


def pow(x, y):
    """`x^y`"""
    return elementwise(Expression(x.vector(), x.b), y, operator.pow)


def bmin(x, y):
    """The smaller of two elements."""
    return elementwise(x, y, lambda x, y: x.minimum(y))


def bmax(x, y):
    """The larger of two elements."""
    return elementwise(x, y, lambda x, y: x.maximum(y))
