"""All functions that make expressions from expressions, by their names in DyNet."""

from ._compositions import *  # noqa: F403
from ._convolution import *  # noqa: F403
from ._elements import *  # noqa: F403
from ._inputs import *  # noqa: F403
from ._losses import *  # noqa: F403
from ._noise import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._several import *  # noqa: F403
from ._shapes import *  # noqa: F403
