"""PyTorch, batched by hand: all nodes of one height are one matrix product.

The index tensors of the levels are made before the measurement, so planning is not part of the time. That
favours this program: the other programs plan in every step.

    python pytorch_by_hand.py trees.json --mode train
    python pytorch_by_hand.py trees.json --floor      # the matrix products alone
"""
import sys

import torch

import instances
import timing


class TreeLstm(torch.nn.Module):
    """Binary Tree-LSTM over concatenated children, with a classifier of the root."""

    def __init__(self, hidden):
        super().__init__()
        self.words = torch.nn.Embedding(instances.WORDS, hidden)
        self.gates = torch.nn.Linear(2 * hidden, 5 * hidden)
        self.out = torch.nn.Linear(hidden, instances.CLASSES)

    def node(self, children_h, children_c):
        a, i, left, right, o = self.gates(children_h).chunk(5, dim=1)
        left_c, right_c = children_c.chunk(2, dim=1)
        c = a.tanh() * i.sigmoid() + left.sigmoid() * left_c + right.sigmoid() * right_c
        return o.sigmoid() * c.tanh(), c

    def forward(self, levels):
        h = self.words(levels.leaves)
        c = torch.zeros_like(h)
        for children, kept in levels.steps:
            pairs = children.numel() // 2
            new_h, new_c = self.node(h[children].view(pairs, -1), c[children].view(pairs, -1))
            h, c = torch.cat([h[kept], new_h]), torch.cat([c[kept], new_c])
        return self.out(h[levels.roots])


class Levels:
    """Nodes grouped by height. A step keeps the rows that later levels read and appends its own."""

    def __init__(self, trees):
        leaves, by_height = [], []

        def visit(tree):
            if isinstance(tree, int):
                leaves.append(tree)
                return 0, len(leaves) - 1
            children = [visit(child) for child in tree]
            height = 1 + max(level for level, _ in children)
            by_height.extend([] for _ in range(height - len(by_height)))
            by_height[height - 1].append(children)
            return height, len(by_height[height - 1]) - 1

        roots = [visit(tree) for tree in trees]
        live = [(0, row) for row in range(len(leaves))]
        self.steps, self.sizes = [], [len(level) for level in by_height]
        for height, level in enumerate(by_height, start=1):
            row_of = {node: row for row, node in enumerate(live)}
            children = [row_of[child] for pair in level for child in pair]
            read = set(children)
            kept = [row for row in range(len(live)) if row not in read]
            live = [live[row] for row in kept] + [(height, number) for number in range(len(level))]
            self.steps.append((torch.tensor(children), torch.tensor(kept, dtype=torch.long)))
        row_of = {node: row for row, node in enumerate(live)}
        self.leaves, self.roots = torch.tensor(leaves), torch.tensor([row_of[root] for root in roots])


def products(levels, hidden, trains):
    """Returns a step of the matrix products alone, in preallocated memory: a lower bound for every program."""
    weight = torch.randn(2 * hidden, 5 * hidden)
    inputs = [torch.randn(rows, 2 * hidden) for rows in levels.sizes]
    outputs = [torch.randn(rows, 5 * hidden) for rows in levels.sizes]
    # The reverse multiplies all rows at once where their order allows it.
    all_inputs, all_outputs, gradient = torch.cat(inputs), torch.cat(outputs), torch.empty_like(weight)

    def step():
        for x, y in zip(inputs, outputs):
            torch.mm(x, weight, out=y)
        if trains:
            for x, y in zip(inputs, outputs):
                torch.mm(y, weight.t(), out=x)
            torch.mm(all_inputs.t(), all_outputs, out=gradient)

    return step


def main():
    floor = "--floor" in sys.argv
    if floor:
        sys.argv.remove("--floor")
    args = timing.arguments(__doc__)
    torch.set_num_threads(1)
    torch.set_default_device(args.device)
    # Denormal numbers make Adam slow after many steps of a task that cannot be learnt.
    torch.set_flush_denormal(True)
    levels, labels = Levels(args.trees), torch.tensor(args.labels)
    if floor:
        with torch.inference_mode():
            timing.measure(products(levels, args.hidden, args.mode == "train"), args.seconds, None)
        return
    model = TreeLstm(args.hidden)
    checksum_model = TreeLstm(args.hidden)
    with torch.inference_mode():
        for weight in checksum_model.parameters():
            weight.fill_(timing.CHECKSUM_WEIGHT)
        checksum = checksum_model(levels).sum().item()
    optimizer = torch.optim.Adam(model.parameters(), lr=timing.LEARNING_RATE, fused=True)
    loss = torch.nn.CrossEntropyLoss()

    # Results return to the host, which waits for a GPU.
    def infer():
        with torch.inference_mode():
            model(levels).cpu()

    def train():
        optimizer.zero_grad()
        total = loss(model(levels), labels)
        total.backward()
        optimizer.step()
        total.item()

    timing.measure(train if args.mode == "train" else infer, args.seconds, checksum)


if __name__ == "__main__":
    main()
