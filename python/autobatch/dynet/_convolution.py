"""Convolutions and pooling of images. An image is `{rows, columns, channels}`, natively `[channels, columns, rows]`."""

import itertools

import autobatch as ab

from ._expression import Expression, each, sliced


def conv2d(x, f, stride, is_valid=True):
    """The convolution of an image with filters `{rows, columns, channels, filters}`; without `is_valid`, padded."""
    return each(lambda image: Expression(_convolved(image.v, f.v, tuple(stride), is_valid)), x)


def conv2d_bias(x, f, b, stride, is_valid=True):
    """`conv2d`, with a number for each filter."""

    def biased(image):
        result = _convolved(image.v, f.v, tuple(stride), is_valid)
        filters = result.shape[0]
        return Expression(result + b.v.reshape((filters, 1, 1)).broadcast(result.shape))

    return each(biased, x)


def maxpooling2d(x, ksize, stride, is_valid=True):
    """The largest element of each window."""

    def pooled(image):
        windows = _windows(_with_channels(image.v), tuple(ksize), tuple(stride), is_valid, -3.4e38)
        largest = windows[0]
        for window in windows[1:]:
            largest = largest.maximum(window)
        return Expression(largest if len(image.v.shape) == 3 else largest.reshape(largest.shape[1:]))

    return each(pooled, x)


def _with_channels(image):
    """A native image with its axis of channels."""
    return image if len(image.shape) == 3 else image.reshape((1, *image.shape))


def _convolved(image, filters, stride, is_valid):
    """A native image times a matrix: each place of the result has a column with its window."""
    image = _with_channels(image)
    filters = filters if len(filters.shape) == 4 else filters.reshape((1, *filters.shape))
    number, channels, columns, rows = filters.shape
    if channels != image.shape[0]:
        raise ValueError(f"the filters have {channels} channels, the image {image.shape[0]}")
    windows = _windows(image, (rows, columns), stride, is_valid, 0.0)
    _, width, height = windows[0].shape
    flat = [window.reshape((channels, 1, width * height)) for window in windows]
    matrix = ab.concat(flat, 1).reshape((channels * columns * rows, width * height))
    product = filters.reshape((number, channels * columns * rows)).matmul(matrix)
    return product.reshape((number, width, height))


def _windows(image, size, stride, is_valid, padding):
    """For each place of a window, column by column, the elements that it has in all windows of an image."""
    counts = []
    for axis, extent, step in zip((2, 1), size, stride):
        full = image.shape[axis]
        count = (full - extent) // step + 1 if is_valid else -(-full // step)
        if count < 1:
            raise ValueError(f"a window of {size} does not fit into an image of {image.shape[:0:-1]}")
        before, after = divmod(max((count - 1) * step + extent - full, 0), 2)
        image = _padded(image, axis, before, before + after, padding)
        counts.append(count)
    return [
        _every(_every(image, 1, column, stride[1], counts[1]), 2, row, stride[0], counts[0])
        for column, row in itertools.product(range(size[1]), range(size[0]))
    ]


def _every(image, axis, start, step, count):
    """`count` elements of an axis, `step` apart."""
    return sliced(image, axis, range(start, start + (count - 1) * step + 1, step))


def _padded(image, axis, before, after, number):
    """A native image with more elements at both ends of an axis."""
    if not before and not after:
        return image
    first, last = (
        [ab.fill((*image.shape[:axis], count, *image.shape[axis + 1:]), number)] if count else []
        for count in (before, after)
    )
    return ab.concat([*first, image, *last], axis)
