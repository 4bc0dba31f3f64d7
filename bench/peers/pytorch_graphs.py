"""Graph networks in PyTorch, all graphs as one: `autobatch bench ggnn` and `autobatch bench gat`.

Prints one line of JSON, {"seconds_per_step": x}. Graphs like molecules are drawn from a fixed seed; `--dump-data` writes them for
`autobatch bench ggnn --peer-data FILE`. Edges are numbered over all graphs, and sparse matrices are made, before the measurement,
which favours this program. Sums over neighbours are `index_add` or products with a sparse matrix; graph attention has
`scatter_reduce` for its maxima.

    python bench/peers/pytorch_graphs.py ggnn [--sums index|sparse] [--mode train] [--hidden 64]
"""
import argparse
import json
import random

import torch
from torch import nn
from torch.nn import functional

import timing

LABELS, CLASSES, ROUNDS = 7, 2, 4
LAYERS, HEADS, SLOPE = 2, 4, 0.2
GRAPHS, MEAN_ATOMS, DEVIATION, MIN_ATOMS, MAX_ATOMS, MAX_BONDS = 128, 18, 4, 10, 28, 4


def molecule(rng):
    """Labels, and edges in both directions: rings of six with side chains."""
    size = min(MAX_ATOMS, max(MIN_ATOMS, round(rng.gauss(MEAN_ATOMS, DEVIATION))))
    bonds = [(atom, (atom + 1) % 6) for atom in range(6)]
    count = 6
    if size > 14:
        bonds += [(6 + atom, 6 + (atom + 1) % 6) for atom in range(6)] + [(0, 6)]
        count = 12
    degree = [0] * size
    for bond in bonds:
        for atom in bond:
            degree[atom] += 1
    for atom in range(count, size):
        host = rng.choice([host for host in range(atom) if degree[host] < MAX_BONDS])
        degree[host] += 1
        degree[atom] += 1
        bonds.append((host, atom))
    edges = [edge for one, other in bonds for edge in ((one, other), (other, one))]
    return [rng.randrange(LABELS) for _ in range(size)], edges


def drawn(count):
    rng = random.Random(1)
    molecules = [molecule(rng) for _ in range(count)]
    labels, edges = zip(*molecules)
    return {"labels": list(labels), "edges": list(edges), "classes": [rng.randrange(CLASSES) for _ in labels]}


class Together:
    """All graphs as one graph."""

    def __init__(self, data):
        edges, members, first = [], [], 0
        for number, (labels, own) in enumerate(zip(data["labels"], data["edges"])):
            edges += [(first + one, first + other) for one, other in own]
            members += [number] * len(labels)
            first += len(labels)
        self.nodes, self.graphs = first, len(data["labels"])
        self.labels = torch.tensor([label for labels in data["labels"] for label in labels])
        self.classes = torch.tensor(data["classes"])
        self.graph_of = torch.tensor(members)
        self.sizes = torch.bincount(self.graph_of).unsqueeze(1)
        edges.sort()
        self.to, self.source = torch.tensor(edges).t().contiguous()
        ones = torch.ones(len(edges))
        self.near = torch.sparse_coo_tensor(torch.stack([self.to, self.source]), ones, (first, first)).to_sparse_csr()
        # With itself as a neighbour, for attention.
        itself = torch.arange(first)
        order = torch.argsort(torch.cat([self.to, itself]), stable=True)
        self.to_with = torch.cat([self.to, itself])[order]
        self.source_with = torch.cat([self.source, itself])[order]


class GatedGraphs(nn.Module):
    def __init__(self, width, sums):
        super().__init__()
        self.labels, self.sums = nn.Embedding(LABELS, width), sums
        self.message, self.update = nn.Linear(width, width, bias=False), nn.GRUCell(width, width)
        self.readout, self.out = nn.Linear(2 * width, 2 * width), nn.Linear(width, CLASSES)

    def forward(self, graph):
        x = h = self.labels(graph.labels)
        for _ in range(ROUNDS):
            if self.sums == "sparse":
                near = graph.near @ h
            else:
                near = torch.zeros_like(h).index_add(0, graph.to, h[graph.source])
            h = self.update(self.message(near), h)
        gate, value = self.readout(torch.cat([h, x], 1)).chunk(2, 1)
        read = torch.sigmoid(gate) * torch.tanh(value)
        return self.out(read.new_zeros(graph.graphs, read.shape[1]).index_add(0, graph.graph_of, read))


class AttentionLayer(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.project, self.bias = nn.Linear(inputs, width, bias=False), nn.Parameter(torch.zeros(width))
        self.query, self.key = (nn.Parameter(torch.randn(HEADS, width // HEADS) * 0.1) for _ in range(2))

    def forward(self, x, graph):
        z = self.project(x).view(graph.nodes, HEADS, -1)
        query, key = (z * self.query).sum(2), (z * self.key).sum(2)
        to, source = graph.to_with, graph.source_with
        score = functional.leaky_relu(query[to] + key[source], SLOPE)
        index = to.unsqueeze(1).expand_as(score)
        with torch.no_grad():
            top = torch.full_like(query, -torch.inf).scatter_reduce(0, index, score, "amax")
        weight = (score - top[to]).exp()
        total = torch.zeros_like(query).index_add(0, to, weight)
        read = torch.zeros_like(z).index_add(0, to, z[source] * weight.unsqueeze(2))
        return (read / total.unsqueeze(2)).flatten(1) + self.bias


class AttentionGraphs(nn.Module):
    def __init__(self, width, _):
        super().__init__()
        self.labels = nn.Embedding(LABELS, width)
        self.layers = nn.ModuleList(AttentionLayer(width, width) for _ in range(LAYERS))
        self.out = nn.Linear(width, CLASSES)

    def forward(self, graph):
        h = self.labels(graph.labels)
        for layer in self.layers:
            h = functional.elu(layer(h, graph))
        mean = h.new_zeros(graph.graphs, h.shape[1]).index_add(0, graph.graph_of, h) / graph.sizes
        return self.out(mean)


MODELS = {"ggnn": GatedGraphs, "gat": AttentionGraphs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--sums", choices=["index", "sparse"], default="index")
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--graphs", type=int, default=GRAPHS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of the measurement")
    parser.add_argument("--dump-data", metavar="FILE", help="only write the graphs as JSON")
    args = parser.parse_args()
    data = drawn(args.graphs)
    if args.dump_data:
        with open(args.dump_data, "w") as file:
            json.dump(data, file)
        return
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    graph, model = Together(data), MODELS[args.model](args.hidden, args.sums)
    optimizer = torch.optim.Adam(model.parameters(), lr=timing.LEARNING_RATE, fused=True)

    def infer():
        with torch.inference_mode():
            model(graph)

    def train():
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(graph), graph.classes)
        loss.backward()
        optimizer.step()
        loss.item()

    timing.measure(train if args.mode == "train" else infer, args.seconds, None)


if __name__ == "__main__":
    main()
