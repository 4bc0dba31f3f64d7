"""Ordinary PyTorch models for one instance, as people write them, with data for them."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Node(nn.Module):
    """A node of a binary Tree-LSTM."""

    def __init__(self, width):
        super().__init__()
        self.left, self.right = nn.Linear(width, 5 * width), nn.Linear(width, 5 * width, bias=False)

    def forward(self, left, right):
        (left_h, left_c), (right_h, right_c) = left, right
        a, i, f1, f2, o = (self.left(left_h) + self.right(right_h)).chunk(5, 1)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * left_c + f2.sigmoid() * right_c
        return o.sigmoid() * c.tanh(), c


class TreeLSTM(nn.Module):
    """The binary Tree-LSTM of the TorchFold post."""

    def __init__(self, words=50, width=12, classes=5):
        super().__init__()
        self.embedding, self.node, self.out = nn.Embedding(words, width), Node(width), nn.Linear(width, classes)
        #: A module that is called becomes one node. A call of its method `forward` is recorded op by op.
        self.as_module = True

    def encode(self, tree):
        if isinstance(tree, int):
            h = self.embedding(torch.tensor([tree]))
            return h, torch.zeros_like(h)
        return (self.node if self.as_module else self.node.forward)(self.encode(tree[0]), self.encode(tree[1]))

    def forward(self, tree, label):
        return F.cross_entropy(self.out(self.encode(tree)[0]), torch.tensor([label]))

    @staticmethod
    def draw(rng):
        def tree(leaves):
            cut = rng.randrange(1, leaves) if leaves > 1 else 0
            return (tree(cut), tree(leaves - cut)) if cut else rng.randrange(50)

        return tree(rng.randrange(1, 12)), rng.randrange(5)


class DagNet(nn.Module):
    """A network over directed acyclic graphs: the mean of the parents, then a layer with LayerNorm."""

    def __init__(self, width=12):
        super().__init__()
        self.kinds = nn.Embedding(7, width)
        self.layer, self.norm, self.out = nn.Linear(2 * width, width), nn.LayerNorm(width), nn.Linear(width, 1)

    def forward(self, nodes, target):
        states = []
        for kind, parents in nodes:
            own = self.kinds(torch.tensor(kind))
            above = torch.stack([states[parent] for parent in parents]).mean(0) if parents else torch.zeros_like(own)
            states.append(self.norm(F.relu(self.layer(torch.cat([own, above])))))
        return F.mse_loss(self.out(states[-1]).squeeze(-1), torch.tensor(target))

    @staticmethod
    def draw(rng):
        count = rng.randrange(1, 10)
        nodes = [(rng.randrange(7), rng.sample(range(at), rng.randrange(0, min(at, 4) + 1))) for at in range(count)]
        return nodes, rng.random()


class StackParser(nn.Module):
    """Shift and reduce with a GRUCell over a stack of states."""

    def __init__(self, words=40, width=10):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(words, width), nn.GRUCell(2 * width, width)
        self.start = nn.Parameter(torch.randn(1, width) * 0.1)
        self.actions = nn.Linear(width, 2)

    def forward(self, words, actions):
        buffer = [self.embedding(torch.tensor([word])) for word in reversed(words)]
        stack, losses = [self.start], []
        for action in actions:
            losses.append(F.cross_entropy(self.actions(stack[-1]), torch.tensor([action])))
            if action == 0:
                word = buffer.pop()
                stack.append(self.cell(torch.cat([word, stack[-1]], dim=1), stack[-1]))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(self.cell(torch.cat([left, right], dim=-1), left))
        return sum(losses) / len(losses)

    @staticmethod
    def draw(rng):
        words = [rng.randrange(40) for _ in range(rng.randrange(2, 9))]
        actions, depth, left = [], 0, len(words)
        while left or depth > 1:
            shift = left and (depth < 2 or rng.random() < 0.5)
            actions.append(0 if shift else 1)
            depth, left = (depth + 1, left - 1) if shift else (depth - 1, left)
        return words, actions


class PointerNet(nn.Module):
    """An LSTM that points at its inputs."""

    def __init__(self, width=10):
        super().__init__()
        self.inputs = nn.Linear(3, width)
        self.encoder, self.decoder = nn.LSTM(width, width, batch_first=True), nn.LSTMCell(width, width)
        self.keys, self.query, self.score = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, points, order):
        points = torch.tensor(points)
        inputs = torch.tanh(self.inputs(points))
        encoded, (h, c) = self.encoder(inputs.unsqueeze(0))
        h, c = h[0], c[0]
        keys, loss, x = self.keys(encoded[0]), 0.0, torch.zeros(1, h.size(1))
        for target in order:
            h, c = self.decoder(x, (h, c))
            scores = self.score(torch.tanh(keys + self.query(h))).squeeze(-1)
            loss = loss + F.cross_entropy(scores.unsqueeze(0), torch.tensor([target]))
            x = inputs[target].unsqueeze(0)
        return loss

    @staticmethod
    def draw(rng):
        count = rng.randrange(2, 8)
        points = [[rng.random() for _ in range(3)] for _ in range(count)]
        return points, sorted(range(count), key=lambda at: points[at][0])


class CrfTagger(nn.Module):
    """A bidirectional LSTM with a linear-chain CRF."""

    def __init__(self, words=40, width=8, tags=4):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.LSTM(width, width, bidirectional=True)
        self.scores = nn.Linear(2 * width, tags)
        self.transitions = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, words, tags):
        encoded, _ = self.encoder(self.embedding(torch.tensor(words)).unsqueeze(1))
        scores = self.scores(encoded.squeeze(1))
        alpha, gold = scores[0], scores[0, tags[0]]
        for at in range(1, len(words)):
            alpha = torch.logsumexp(alpha.unsqueeze(1) + self.transitions, dim=0) + scores[at]
            gold = gold + self.transitions[tags[at - 1], tags[at]] + scores[at][tags[at]]
        return torch.logsumexp(alpha, dim=0) - gold

    @staticmethod
    def draw(rng):
        count = rng.randrange(1, 9)
        return [rng.randrange(40) for _ in range(count)], [rng.randrange(4) for _ in range(count)]


class Transformer(nn.Module):
    """A small encoder over sentences of unequal lengths."""

    def __init__(self, words=40, width=16):
        super().__init__()
        self.embedding, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        layer = nn.TransformerEncoderLayer(width, 4, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 3)

    def forward(self, words, label):
        x = self.embedding(torch.tensor(words)) + self.places(torch.arange(len(words)))
        x = self.encoder(x.unsqueeze(0)).mean(dim=1)
        return F.cross_entropy(self.out(x), torch.tensor([label]))

    @staticmethod
    def draw(rng):
        return [rng.randrange(40) for _ in range(rng.randrange(1, 9))], rng.randrange(3)


MODELS = [TreeLSTM, DagNet, StackParser, PointerNet, CrfTagger, Transformer]


def instances(model, count, seed=0):
    rng = random.Random(seed)
    return [model.draw(rng) for _ in range(count)]
