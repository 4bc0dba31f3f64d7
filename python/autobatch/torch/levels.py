"""Runs a fold by torch: calls of one method and level are stacked, as TorchFold does."""

from collections import defaultdict

import torch


def apply(fold, module, groups):
    """Computes groups of nodes level by level. A call is one level above its highest argument."""
    from .fold import Node

    levels, steps = {}, defaultdict(lambda: defaultdict(list))
    for node in fold.nodes:
        above = [levels[arg.number] + 1 for arg in node.args if isinstance(arg, Node)]
        levels[node.number] = max(above, default=0)
        steps[levels[node.number]][node.op].append(node)
    values = {}

    def one(arg):
        made = values[arg.number]
        return made if arg.result is None else made[arg.result]

    def stacked(column):
        if all(isinstance(arg, int) for arg in column):
            return torch.tensor(column)
        if isinstance(column[0], Node) and not column[0].batched:
            if any(arg.number != column[0].number or arg.result != column[0].result for arg in column):
                raise ValueError(f"a batch reads {column[0]!r} and others without a batch; it can share one only")
            return one(column[0])
        return torch.cat([one(arg) if isinstance(arg, Node) else arg for arg in column], 0)

    for level in sorted(steps):
        for op, nodes in steps[level].items():
            made = getattr(module, op)(*(stacked(column) for column in zip(*(node.args for node in nodes))))
            for row, node in enumerate(nodes):
                part = slice(row, row + 1)
                whole = isinstance(made, (tuple, list))
                values[node.number] = tuple(x[part] for x in made) if whole else made[part]
    return [stacked(group) for group in groups]
