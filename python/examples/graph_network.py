"""Labels the nodes of graphs of any shape with a gated graph network.

    python python/examples/graph_network.py [--steps 150] [--graphs 32]

A node is red or blue; its label is the number of its red neighbours, at most 3. The example prints the accuracy on new graphs and
the nodes a second, and where PyTorch is installed those of the same model in eager PyTorch, graph by graph.
"""

import argparse
import random
import time
from dataclasses import dataclass

import autobatch as ab

WIDTH, ROUNDS, LABELS = 32, 2, 4


@dataclass
class Graph:
    """The colours of the nodes, and the neighbours of each."""

    colours: list[int]
    neighbours: list[list[int]]

    def labels(self) -> list[int]:
        """The label of each node."""
        return [min(sum(self.colours[other] for other in others), LABELS - 1) for others in self.neighbours]


def drawn(rng: random.Random) -> Graph:
    """A random graph."""
    count = rng.randint(4, 30)
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one in range(1, count):
        for other in {rng.randrange(one) for _ in range(rng.randint(1, 2))}:
            neighbours[one].append(other)
            neighbours[other].append(one)
    return Graph([rng.randrange(2) for _ in range(count)], neighbours)


module = ab.Module("graphs")
colours = ab.nn.Embedding(module, "colours", 2, WIDTH)
network = ab.nn.GatedGraph(module, "network", WIDTH)
out = ab.nn.Linear(module, "out", WIDTH, LABELS)


def scores(graph: Graph) -> list[ab.Value]:
    """The scores of the labels of each node."""
    return [out(state) for state in network([colours(colour) for colour in graph.colours], graph.neighbours, ROUNDS)]


def loss(graph: Graph) -> ab.Value:
    """The sum of the losses of a graph."""
    return ab.total([row.cross_entropy(label) for row, label in zip(scores(graph), graph.labels())])


def eager(batches: list[list[Graph]]) -> float:
    """Trains the same model in eager PyTorch. Returns the nodes a second."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    embedding, message, gru = nn.Embedding(2, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False), nn.GRUCell(WIDTH, WIDTH)
    linear = nn.Linear(WIDTH, LABELS)
    layers = nn.ModuleList([embedding, message, gru, linear])
    optimizer = torch.optim.Adam(layers.parameters(), 5e-3)
    start = time.perf_counter()
    for graphs in batches:
        total = torch.zeros(())
        for graph in graphs:
            states = embedding(torch.tensor(graph.colours))
            pairs = [(one, other) for one, others in enumerate(graph.neighbours) for other in others]
            to, source = (torch.tensor(column) for column in zip(*pairs))
            for _ in range(ROUNDS):
                sums = torch.zeros_like(states).index_add(0, to, message(states)[source])
                states = gru(sums, states)
            total = total + nn.functional.cross_entropy(linear(states), torch.tensor(graph.labels()), reduction="sum")
        optimizer.zero_grad()
        (total / sum(len(graph.colours) for graph in graphs)).backward()
        optimizer.step()
    return sum(len(graph.colours) for graphs in batches for graph in graphs) / (time.perf_counter() - start)


def main() -> None:
    """Trains and prints."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    arguments.add_argument("--steps", type=int, default=150)
    arguments.add_argument("--graphs", type=int, default=32)
    options = arguments.parse_args()
    rng = random.Random(1)
    batches = [[drawn(rng) for _ in range(options.graphs)] for _ in range(options.steps)]
    trainer = ab.Trainer(module, ab.optim.Adam(5e-3), threads=1)
    start = time.perf_counter()
    losses = [trainer.step(graphs, loss, weights=lambda graph: len(graph.colours)).loss for graphs in batches]
    rate = sum(len(graph.colours) for graphs in batches for graph in graphs) / (time.perf_counter() - start)
    new = [drawn(rng) for _ in range(200)]
    hits = [
        int(row.argmax()) == label
        for graph, rows in zip(new, trainer.predict(new, scores)) for row, label in zip(rows, graph.labels())
    ]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {sum(hits) / len(hits):.3f}, {rate:,.0f} nodes/s")
    try:
        few = eager(batches[:5])
    except ImportError:
        return
    print(f"eager PyTorch: {few:,.0f} nodes/s, {rate / few:.1f} times slower")


if __name__ == "__main__":
    main()
