"""TorchFold: the recursion adds named calls to a fold, and the fold executes them in batches.

    python torchfold_program.py trees.json --mode train

torchfold 0.1.0 names two things that PyTorch no longer has. `load` replaces both names in the installed source.
"""
import importlib.util
import pathlib
import types

import torch

import timing
from pytorch_by_hand import TreeLstm


def load():
    """Returns the module torchfold, adapted to the installed PyTorch."""
    folder = pathlib.Path(importlib.util.find_spec("torchfold").origin).parent
    source = (folder / "torchfold.py").read_text()
    source = source.replace("torch.tensor._TensorBase", "torch.Tensor").replace(", volatile=self.volatile", "")
    module = types.ModuleType("torchfold")
    exec(compile(source, "torchfold.py", "exec"), module.__dict__)
    return module


class Folded(TreeLstm):
    """The same model, with one method per named call."""

    def leaf(self, word):
        h = self.words(word)
        return h, torch.zeros_like(h)

    def children(self, left_h, left_c, right_h, right_c):
        return self.node(torch.cat([left_h, right_h], dim=1), torch.cat([left_c, right_c], dim=1))

    def logits(self, h):
        return self.out(h)


def encode(fold, tree):
    if isinstance(tree, int):
        return fold.add("leaf", tree).split(2)
    return fold.add("children", *encode(fold, tree[0]), *encode(fold, tree[1])).split(2)


def main():
    args = timing.arguments(__doc__)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torchfold, labels = load(), torch.tensor(args.labels)

    def scores(model):
        fold = torchfold.Fold()
        roots = [fold.add("logits", encode(fold, tree)[0]) for tree in args.trees]
        return fold.apply(model, [roots])[0]

    model, checksum_model = Folded(args.hidden), Folded(args.hidden)
    with torch.inference_mode():
        for weight in checksum_model.parameters():
            weight.fill_(timing.CHECKSUM_WEIGHT)
        checksum = scores(checksum_model).sum().item()
    optimizer = torch.optim.Adam(model.parameters(), lr=timing.LEARNING_RATE, fused=True)
    loss = torch.nn.CrossEntropyLoss()

    def infer():
        with torch.inference_mode():
            scores(model)

    def train():
        optimizer.zero_grad()
        loss(scores(model), labels).backward()
        optimizer.step()

    timing.measure(train if args.mode == "train" else infer, args.seconds, checksum)


if __name__ == "__main__":
    main()
