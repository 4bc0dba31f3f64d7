"""TorchFold's interface over autobatch: the program of `torchfold_program.py` with another `Fold`.

    python autobatch_torch_program.py trees.json --mode train
"""
import torch

import timing
from autobatch.torch import Fold
from torchfold_program import Folded, encode


def main():
    args = timing.arguments(__doc__)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    labels = torch.tensor(args.labels)

    def scores(model):
        fold = Fold(threads=1)
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
