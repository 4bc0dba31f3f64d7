"""The line of the user's program that runs."""

import pathlib
import sys

import torch

#: The folders whose lines no message names: torch's and this one.
_FOLDERS = (str(pathlib.Path(torch.__file__).parent), str(pathlib.Path(__file__).parent), "<")


def line_of_user():
    """The innermost line on the stack that is not torch's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_FOLDERS):
        frame = frame.f_back
    return "an unknown line" if frame is None else f'File "{frame.f_code.co_filename}", line {frame.f_lineno}'
