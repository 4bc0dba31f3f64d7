"""Functions of each element."""

from autobatch._autobatch import Expression


abs = Expression.abs
exp = Expression.exp
log = Expression.log
sqrt = Expression.sqrt
square = Expression.square
sin = Expression.sin
cos = Expression.cos
erf = Expression.erf
tanh = Expression.tanh
logistic = Expression.logistic
rectify = Expression.rectify
nobackprop = Expression.nobackprop
cmult = Expression.cmult
cdiv = Expression.cdiv
colwise_add = Expression.colwise_add
bmin = Expression.bmin
bmax = Expression.bmax


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
    return cmult(x, square(x))


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


def pow(x, y):
    """`x^y`"""
    return Expression(x.vector(), x.b) ** y
