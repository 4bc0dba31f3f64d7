"""Compares `autobatch.torch.batch` with eager torch on drawn programs.

    python python/tests/differential_batch.py --cases 10000 --seed 1

A program is a list of statements in ordinary torch: documented forms of the functions, methods and layers that `batch()`
records, in place too, with their axes and arguments drawn. Eager torch decides which statements are valid. Each program runs
on several instances, op by op or as the code of a module that becomes one node, in three blocks, and between them an
attribute or a weight changes. Values, types and gradients must agree. A form that is refused is counted by its reason, and
the statements that need its result are left out on both sides.
"""

import argparse
import collections
import random
import re
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import autobatch
from autobatch.torch import batch

WIDTH, WORDS = 4, 7
INSTANCES = 3
#: Above this, float32 says little about the sum of a program.
LARGEST = 1e3


class Layers(nn.Module):
    """The parameters and layers that programs use, and attributes that change between blocks."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(WIDTH, WIDTH) / 2), nn.Parameter(torch.randn(WIDTH) / 2)
        self.linear, self.narrow = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2, bias=False)
        self.words, self.padded = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH, padding_idx=1)
        # With a small eps the gradient through a row of equal numbers is rounding error alone.
        self.norm, self.rms = nn.LayerNorm(WIDTH, eps=0.1), nn.RMSNorm(WIDTH, eps=0.1)
        self.lstm_cell, self.gru_cell, self.rnn_cell = nn.LSTMCell(WIDTH, WIDTH), nn.GRUCell(WIDTH, WIDTH), nn.RNNCell(WIDTH, WIDTH)
        self.lstm, self.gru = nn.LSTM(WIDTH, 2, bidirectional=True), nn.GRU(WIDTH, WIDTH, 2, batch_first=True)
        self.rnn = nn.RNN(WIDTH, WIDTH, nonlinearity="relu")
        self.attention = nn.MultiheadAttention(WIDTH, 2)
        self.conv, self.window = nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, 3, 2, stride=2, dilation=1)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 3), nn.Tanh(), nn.Linear(3, WIDTH))
        self.scale, self.choice, self.one = 1.0, True, nn.Parameter(torch.ones(()))


UNARY = (
    "tanh sigmoid relu exp abs neg square sin cos erf sign floor ceil round log1p expm1 sqrt rsqrt reciprocal log softplus "
    "silu gelu logsigmoid mish elu leaky_relu hardtanh hardsigmoid hardswish relu6 selu celu softsign tanhshrink"
).split()
IN_PLACE = "tanh_ sigmoid_ relu_ exp_ abs_ neg_ square_".split()


def drawn_statement(rng, floats, ints, bools):
    """An expression over variables, and whether it changes its first one."""
    x, y, z = (rng.choice(floats) for _ in range(3))
    axis, other = rng.choice([-1, 0, 1, -2, 2]), rng.choice([0, 1, -1])
    number = rng.choice(["2", "0.5", "-1", "3.0", "self.scale"])
    keep = rng.choice(["", ", keepdim=True"])
    index = rng.choice(["0", "-1", "1", ":2", "1:", "...", "None", "::2", ":, 0", "..., 1", ":, None", "[0, 1]", ":, [1, 0]", "1:2, :", "..., ::3"])
    choices = [
        lambda: f"{x} {rng.choice(['+', '-', '*', '/'])} {y}",
        lambda: f"{x} {rng.choice(['+', '-', '*', '/', '**'])} {number}",
        lambda: f"{number} {rng.choice(['+', '-', '*', '/'])} {x}",
        lambda: f"torch.{rng.choice(['add', 'sub'])}({x}, {y}, alpha={number})",
        lambda: f"torch.{rng.choice(['mul', 'div', 'maximum', 'minimum'])}({x}, {y})",
        lambda: f"{x}.{rng.choice(['tanh', 'sigmoid', 'relu', 'exp', 'abs', 'square', 'neg', 'sin', 'cos'])}()",
        lambda: f"{rng.choice(['torch', 'F'])}.{rng.choice(UNARY)}({x})",
        lambda: f"F.gelu({x}, approximate='tanh')",
        lambda: f"F.leaky_relu({x}, {rng.choice(['0.2', '0.01'])})",
        lambda: f"F.softplus({x}, {rng.choice(['2', '0.5'])}, {rng.choice(['20', '1'])})",
        lambda: f"F.elu({x}, alpha={rng.choice(['0.5', '2.0'])})",
        lambda: f"F.threshold({x}, 0.1, 2.0)",
        lambda: f"{x}.clamp({rng.choice(['-0.5, 0.5', 'min=0.1', 'max=0.2', f'min={y}'])})",
        lambda: f"torch.where({rng.choice(bools)}, {x}, {rng.choice([y, number])})",
        lambda: f"{x}.masked_fill({rng.choice(bools)}, {number})",
        lambda: f"torch.lerp({x}, {y}, {rng.choice(['0.3', z])})",
        lambda: f"torch.addcmul({x}, {y}, {z}, value={number})",
        lambda: f"{x}.{rng.choice(['sum', 'mean', 'logsumexp', 'amax', 'amin', 'prod'])}({axis}{keep})",
        lambda: f"{x}.{rng.choice(['sum', 'mean', 'max', 'min', 'norm', 'prod'])}()",
        lambda: f"{x}.{rng.choice(['sum', 'mean'])}(({axis}, {other}){keep})",
        lambda: f"{x}.{rng.choice(['max', 'min'])}({axis}{keep})[0]",
        lambda: f"{x}.{rng.choice(['var', 'std'])}({axis}, unbiased={rng.choice([True, False])}{keep})",
        lambda: f"{x}.norm({rng.choice(['2', '1'])}, dim={axis}{keep})",
        lambda: f"torch.linalg.vector_norm({x}, dim={axis}{keep})",
        lambda: f"{rng.choice(['F', 'torch'])}.{rng.choice(['softmax', 'log_softmax'])}({x}, dim={axis})",
        lambda: f"F.softmin({x}, {axis})",
        lambda: f"{x}.cumsum({axis})",
        lambda: f"F.normalize({x}, dim={axis})",
        lambda: f"F.cosine_similarity({x}, {y}, dim={axis})",
        lambda: f"F.layer_norm({x}, ({WIDTH},), eps=0.1)",
        lambda: f"self.{rng.choice(['norm', 'rms', 'linear', 'narrow', 'feed'])}({x})",
        lambda: f"F.linear({x}, self.weight, {rng.choice(['None', 'self.bias'])})",
        lambda: f"{x} @ {rng.choice([y, 'self.weight', y + '.T', 'self.weight.t()'])}",
        lambda: f"torch.{rng.choice(['matmul', 'mm', 'bmm', 'mv', 'dot', 'outer', 'inner'])}({x}, {y})",
        lambda: f"torch.einsum('{rng.choice(['ij,ij->i', 'ij,jk->ik', 'i,i->', 'ij->ji', 'ij,kj->ik', 'i,j->ij', 'ij->j', 'bij,bjk->bik', 'ij,j'])}', {x}, {y})",
        lambda: f"torch.addmm(self.bias, {x}, self.weight{rng.choice(['', ', beta=0.5, alpha=2'])})",
        lambda: f"{x}[{index}]",
        lambda: f"{x}[{rng.choice(ints)}]",
        lambda: f"{x}.index_select({axis}, torch.tensor([1, 0, 1]))",
        lambda: f"{x}.gather({axis}, {rng.choice(['torch.tensor([[1], [0]])', 'torch.tensor([[0, 1, 1]])', 'torch.tensor([0, 0])', x + '.argmax(' + str(axis) + ', keepdim=True)'])})",
        lambda: f"{x}.select({axis}, {other})",
        lambda: f"{x}.narrow({axis}, {other}, {rng.choice([1, 2])})",
        lambda: f"torch.{rng.choice(['cat', 'stack'])}([{x}, {y}], {axis})",
        lambda: f"torch.cat(({x}, {y}, {z}), dim={axis})",
        lambda: f"torch.{rng.choice(['hstack', 'vstack'])}([{x}, {y}])",
        lambda: f"{x}.chunk({rng.choice([2, 3])}, {axis})[{other}]",
        lambda: f"{x}.split({rng.choice(['1', '2', '[1, 3]'])}, {axis})[{other}]",
        lambda: f"{x}.unbind({axis})[{other}]",
        lambda: f"{x}.{rng.choice(['view', 'reshape'])}({rng.choice(['-1', '-1, 2', '2, -1', '1, -1', f'-1, {WIDTH}', '(-1, 1)', '2, 2, -1'])})",
        lambda: f"{x}.transpose({axis}, {other})",
        lambda: f"{x}.{rng.choice(['T', 'mT', 't()'])}",
        lambda: f"{x}.permute({rng.choice(['1, 0', '0, 1', '2, 0, 1', '1, 2, 0', '-1, 0'])})",
        lambda: f"{x}.squeeze({rng.choice(['', str(axis)])})",
        lambda: f"{x}.unsqueeze({axis})",
        lambda: f"{x}.expand({rng.choice([f'3, {WIDTH}', f'2, -1, {WIDTH}', '3, -1'])})",
        lambda: f"{x}.expand_as({y})",
        lambda: f"{x}.repeat({rng.choice(['2', '2, 1', '1, 2', '2, 1, 1'])})",
        lambda: f"torch.flip({x}, [{axis}])",
        lambda: f"{x}.flatten({rng.choice(['', '1', '0, 1'])})",
        lambda: f"torch.{rng.choice(['zeros_like', 'ones_like'])}({x}) + {y}",
        lambda: f"{x}.new_{rng.choice(['zeros', 'ones'])}({WIDTH}) + {y}",
        lambda: f"torch.full_like({x}, {number}) * {y}",
        lambda: f"{x}.detach() * {y}",
        lambda: f"{x}.clone()",
        lambda: f"{x}.float()",
        lambda: f"F.dropout({x}, 0.5, training=False)",
        lambda: f"self.words({rng.choice(ints)})",
        lambda: f"self.padded({rng.choice(ints)})",
        lambda: f"self.words({x}.argmax({rng.choice(['', '-1', '0'])}))",
        lambda: f"self.padded({x}.argmax({rng.choice(['', '-1', '0'])}))",
        lambda: f"self.gru_cell({x}, {y})",
        lambda: f"self.rnn_cell({x})",
        lambda: f"self.lstm_cell({x}{rng.choice(['', f', ({y}, {z})'])})[{rng.choice([0, 1])}]",
        lambda: f"self.lstm({x}.unsqueeze({rng.choice([0, 1])}))[0]",
        lambda: f"self.gru({x}{rng.choice(['', '.unsqueeze(0)'])})[{rng.choice(['0', '1'])}]",
        lambda: f"self.rnn({x}{rng.choice(['', '.unsqueeze(1)'])})[{rng.choice(['0', '1'])}]",
        lambda: f"self.attention({x}, {y}, {y}, need_weights=False)[0]",
        lambda: f"self.attention({x}, {y}, {y}{rng.choice(['', ', average_attn_weights=False'])})[{rng.choice([0, 1])}]",
        lambda: f"F.scaled_dot_product_attention({x}, {y}, {y}{rng.choice(['', ', is_causal=True'])})",
        lambda: f"self.{rng.choice(['conv', 'window'])}({x}.T{rng.choice(['', '.unsqueeze(0)'])})",
        lambda: f"F.{rng.choice(['avg_pool1d', 'max_pool1d'])}({x}.unsqueeze(0), 2)",
        lambda: f"F.pad({x}, (1, {other % 3}))",
        lambda: f"F.{rng.choice(['mse_loss', 'l1_loss', 'smooth_l1_loss', 'huber_loss'])}({x}, {y}{rng.choice(['', ', reduction=' + repr(rng.choice(['sum', 'none', 'mean']))])})",
        lambda: f"F.cross_entropy({x}, {rng.choice(ints)}{rng.choice(['', ', label_smoothing=0.1', ', ignore_index=1', ', reduction=' + repr('none')])})",
        lambda: f"F.nll_loss(F.log_softmax({x}, -1), {rng.choice(ints)})",
        lambda: f"F.binary_cross_entropy_with_logits({x}, {y}.sigmoid(){rng.choice(['', ', pos_weight=torch.tensor(2.0)', ', weight=torch.tensor(0.5)'])})",
        lambda: f"F.kl_div(F.log_softmax({x}, -1), F.softmax({y}, -1), reduction='{rng.choice(['sum', 'batchmean', 'none'])}')",
        lambda: f"F.one_hot({rng.choice(ints)}, {WORDS}).float()",
        lambda: f"torch.{rng.choice(['tril', 'triu'])}({x})",
        lambda: f"torch.sum(torch.stack([{x}, {y}, {z}]), dim=0)",
        lambda: f"sum([{x}, {y}])",
        lambda: f"({x} if self.choice else {y}) * 2",
        lambda: f"{x} * {x}.size({axis})",
    ]
    if rng.random() < 0.08:
        return f"{rng.choice(bools)} {rng.choice(['&', '|'])} {rng.choice(bools)}", False
    if rng.random() < 0.08:
        compared = rng.choice([f"{x} {rng.choice(['>', '<', '>=', '<='])} {rng.choice([y, '0.1'])}", f"~{rng.choice(bools)}", f"{rng.choice(bools)}.any()"])
        return compared, False
    if rng.random() < 0.06:
        mask, index = rng.choice(bools), rng.choice(ints)
        return rng.choice([
            f"{mask}.{rng.choice(['sum()', 'long()', 'float()', 'float().mean()', 'to(torch.int64)', 'prod()', f'sum({axis}{keep})', 'cumsum(0)'])}",
            f"{mask} * {rng.choice([x, '2', '2.0', mask, index])}", f"torch.where({mask}, {rng.choice(['1, 0', '1.0, 0', f'{index}, 1', f'{x}, 0'])})",
            f"torch.{rng.choice(['stack', 'cat'])}([{mask}, {rng.choice([mask, rng.choice(bools), x])}])", f"{index} {rng.choice(['+', '-', '*', '/', '//', '>', '=='])} {rng.choice(['2', '2.0', index, x])}",
            f"{x}.{rng.choice(['max', 'min'])}({axis}{keep}).{rng.choice(['values', 'indices'])}", f"torch.stack([{index}, {index}])", f"torch.{rng.choice(['zeros_like', 'ones_like'])}({rng.choice([mask, index])})",
            f"torch.tensor([{rng.randrange(WIDTH)}])", f"{mask}.{rng.choice(['expand(2, -1)', 'view(-1)', 'unsqueeze(0)', 'any(0)', 'all()'])}",
        ]), False  # fmt: skip
    if rng.random() < 0.05:
        return f"{x}.{rng.choice(['argmax', 'argmin'])}({rng.choice(['', '-1', '0'])})", False
    if rng.random() < 0.08:
        change = rng.choice([f"add_({rng.choice([y, number])})", f"mul_({rng.choice([y, number])})", f"sub_({y}, alpha=2)", "clamp_(-1, 1)", f"copy_({y})", "zero_()", f"{rng.choice(IN_PLACE)}()", f"masked_fill_({rng.choice(bools)}, 0.5)"])
        return f"{x}.{change}", True
    return rng.choice(choices)(), False


class Program:
    """Drawn statements over the tensors of an instance."""

    def __init__(self, layers, statements):
        self.layers, self.statements = layers, statements

    def text(self):
        return "".join(f"    {name} = {text}\n" for name, text in self.statements)

    def refused(self, inputs):
        """The numbers of the statements that the open block refuses, with the errors. What needs their results fails too."""
        space, found = {"torch": torch, "F": F, "self": self.layers, **inputs}, {}
        for number, (name, text) in enumerate(self.statements):
            missing = {self.statements[one][0] for one in found} & set(re.findall(r"\w+", text))
            try:
                if missing:
                    raise NameError(min(missing))
                space[name] = eval(text, space)  # noqa: S307
            except (autobatch.RecordError, NameError) as error:
                found[number] = error
        return found

    def without(self, numbers):
        return Program(self.layers, [one for number, one in enumerate(self.statements) if number not in numbers])

    def module(self):
        """The layers as a module whose code are the statements, and the names of its arguments."""
        words = set(re.findall(r"\w+", self.text()))
        used = [name for name in (*FLOATS, *INTS, *BOOLS) if name in words]
        names = [name for name, _ in self.statements]
        # A result that is a view of another one makes no node.
        made = ", ".join(f"{name} * 1.0 if {name}.dtype == torch.float32 else {name}" for name in names)
        code, space = f"def forward(self, {', '.join(used)}):\n{self.text()}    return {made},", {}
        exec(code, {"torch": torch, "F": F}, space)  # noqa: S102
        self.layers.__class__ = type("Drawn", (Layers,), {"forward": space["forward"]})
        return lambda inputs, call: dict(zip(names, call(*(inputs[name] for name in used))))


def inputs_of(rng, rows):
    """The tensors of an instance: a vector, a row, matrices of `rows` rows, indices and a mask."""
    return {
        "a": torch.randn(WIDTH), "b": torch.randn(WIDTH), "r": torch.randn(1, WIDTH), "m": torch.randn(rows, WIDTH),
        "n": torch.randn(rows, WIDTH), "q": torch.randn(WIDTH, WIDTH), "s": torch.randn(()), "k": torch.randn(2, rows, WIDTH),
        "i": torch.tensor(rng.randrange(WIDTH)), "l": torch.tensor([rng.randrange(2) for _ in range(rows)]), "o": torch.tensor([rng.randrange(WIDTH)]),
        "t": torch.randn(WIDTH) > 0,
    }


FLOATS, INTS, BOOLS = ("a", "b", "r", "m", "n", "q", "s", "k"), ("i", "l", "o"), ("t",)


def kind_of(made):
    """0 for floats, 1 for indices, 2 for truth values, None for what no program may compute."""
    for value in made:
        if not isinstance(value, torch.Tensor) or not 0 < value.numel() <= 300:
            return None
        if value.dtype == torch.float32 and not (value.isfinite().all() and value.abs().max() < LARGEST):
            return None
    return {torch.float32: 0, torch.int64: 1, torch.bool: 2}.get(made[0].dtype)


def started(inputs):
    """The same tensors, and results of them: programs may change those in place."""
    leaves = {name: value.clone().requires_grad_() if value.dtype == torch.float32 else value for name, value in inputs.items()}
    return leaves, {name: value * 1.0 if value.requires_grad else value for name, value in leaves.items()}


def recorded(inputs, layers):
    """The same tensors times a parameter, so that an open block records them."""
    return {name: value * layers.one if value.dtype == torch.float32 else value for name, value in inputs.items()}


def drawn_program(rng, layers, instances):
    """Draws statements that eager torch executes on all instances."""
    # Some use only arguments that a node can take.
    plain = rng.random() < 0.3
    statements, names = [], [list(FLOATS), ["i"] if plain else list(INTS), [f"({name} > 0)" for name in FLOATS] if plain else list(BOOLS)]
    spaces = [{"torch": torch, "F": F, "self": layers, **started(inputs)[1]} for inputs in instances]
    wanted = rng.randrange(3, 14)
    for _ in range(400):
        if len(statements) == wanted:
            break
        text, in_place = drawn_statement(rng, *names)
        try:
            made = [eval(text, space) for space in spaces]  # noqa: S307
            kind = kind_of(made)
        except Exception:
            kind = None
        if kind is None:
            if in_place:
                # It may have changed something, so the variables are no longer those of the statements.
                break
            continue
        for space, value in zip(spaces, made):
            space[f"v{len(statements)}"] = value
        # A new variable comes more often than others, so that statements chain.
        names[kind] += 2 * [f"v{len(statements)}"]
        statements.append((f"v{len(statements)}", text))
    return statements


def eager(run, layers, instances, scale=1.0):
    """Values and gradients of eager torch, with the inputs scaled."""
    leaves, begun = zip(*(started({name: scaled(value, scale) for name, value in one.items()}) for one in instances))
    values = [run(one, layers.forward) for one in begun]
    return values, gradients(layers, leaves, values)


def scaled(value, scale):
    return value * scale if value.dtype == torch.float32 else value


def gradients(layers, leaves, values):
    """The gradients of a weighted sum of all values, by the names of parameters and inputs."""
    layers.zero_grad()
    total = torch.zeros((), requires_grad=True) * 1
    for made in values:
        for number, value in enumerate(made.values()):
            value = value.cpu()
            if value.dtype == torch.float32 and value.requires_grad:
                total = total + (value * torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape)).sum() / (number + 1)
    total.backward()
    found = {f"self.{name}": param.grad for name, param in layers.named_parameters()}
    for number, own in enumerate(leaves):
        found |= {f"{name} of instance {number}": leaf.grad for name, leaf in own.items()}
    return {name: torch.zeros(1) if gradient is None else gradient.clone() for name, gradient in found.items()}


def apart(one, other, least):
    """The largest difference, relative to the larger of the largest number and `least`."""
    one, other = one.detach().double(), other.detach().double()
    if torch.equal(one.isnan(), other.isnan()):
        one, other = one.nan_to_num(), other.nan_to_num()
    found = ((one - other).abs().max() / max(one.abs().max().item(), least)).item()
    return found if found == found else float("inf")


def difference(one, other):
    """The largest difference between two outcomes, and its place."""
    found = [(0.0, "")]
    for number, (values, others) in enumerate(zip(one[0], other[0])):
        for name, value in values.items():
            value, made = value.cpu(), others[name].cpu()
            traits = [(tuple(x.shape), x.dtype, x.requires_grad) for x in (value, made)]
            if traits[0] != traits[1]:
                return float("inf"), f"{name} of instance {number} is {traits[0]} and {traits[1]}"
            numbers = f"{value.flatten()[:4].tolist()} and {made.flatten()[:4].tolist()}"
            found.append((apart(value, made, 0.1), f"{name} of instance {number} is {numbers}"))
    largest = max(gradient.abs().max().item() for gradient in one[1].values())
    for name, gradient in one[1].items():
        numbers = f"{gradient.flatten()[:4].tolist()} and {other[1][name].flatten()[:4].tolist()}"
        found.append((apart(gradient, other[1][name], max(largest, 0.1)), f"the gradient of {name} is {numbers}"))
    return max(found, key=lambda pair: pair[0])


def case(seed, reasons):
    """Runs a program. Returns what became of it."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    layers, rows = Layers(), rng.choice([1, 2, 3])
    instances = [inputs_of(rng, rows) for _ in range(INSTANCES)]
    program = Program(layers, drawn_program(rng, layers, instances))
    with batch(threads=1):
        refused = program.refused(started(instances[0])[1])
    with batch(threads=1):
        refused |= program.refused(recorded(instances[0], layers))
    for number, error in refused.items():
        if isinstance(error, autobatch.RecordError):
            why = str(error).split("cannot be recorded: ")[-1].split("; rewrite it")[0]
            reasons.setdefault(why, program.statements[number][1])
    program = program.without(refused)
    if not program.statements:
        return "refused"
    plain, as_module, ops, records = program.module(), rng.random() < 0.5, [], rng.random() < 0.5

    def run(inputs, call):
        return plain(recorded(inputs, layers) if records else inputs, call)

    # A module becomes a node after a number of calls.
    instances = instances * 3 if as_module else instances
    for step in range(3):
        try:
            expected = eager(run, layers, instances)
        except (RuntimeError, IndexError, ValueError, AssertionError):
            return "invalid in torch"
        if not all(number.isfinite().all() for made in expected[0] for number in made.values()):
            return "not finite"
        leaves, begun = zip(*(started(one) for one in instances))
        try:
            with batch(threads=1) as block:
                values = [run(one, layers if as_module else layers.forward) for one in begun]
        except autobatch.RecordError:
            # What it needs was computed when the statements ran by themselves.
            return "refused as a whole"
        ops.append(block.ops)
        found = values, gradients(layers, leaves, values)
        worst, place = difference(expected, found)
        if worst > 1e-4:
            # Rounding decides a comparison, or the program is so steep that it makes large differences of small ones.
            for scale in (1 + 1e-6, 1 - 1e-6):
                if difference(expected, eager(run, layers, instances, scale))[0] > worst / 30:
                    return "steep"
            raise AssertionError(f"step {step}{', as a module' if as_module else ''}: {place}\n{program.text()}")
        if step == 1:
            layers.scale, layers.choice = rng.choice([0.5, 2.0]), rng.random() < 0.5
            layers.linear.weight.data.mul_(0.5)
    return "equal as nodes" if ops[1] < ops[0] else "equal"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    counts, refused, failed = collections.Counter(), {}, 0
    for seed in range(options.seed, options.seed + options.cases):
        try:
            counts[case(seed, refused)] += 1
        except Exception as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{options.cases} programs: {dict(counts)}; {failed} differ")
    for why, text in sorted(refused.items()):
        print(f"refused: {text}: {why}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
