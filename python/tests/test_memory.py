"""The memory of each interface over many steps. Each runs in a process of its own: the memory that other tests used would hide a leak.

AUTOBATCH_LONG_RUN is the number of steps, 1,500 without it. Under a few thousand steps the allowed growth is that of allocators.
"""

import importlib.util
import os
import subprocess
import sys

import pytest

PROGRAMS = {
    "predictions": """
import numpy as np, autobatch as ab
m = ab.Module("m")
w, b = m.param("w", (8, 8)), m.param("b", 8)
cell = m.cell(ab.f32[8], name="cell")(lambda x: x.affine(w, b).tanh())
session = ab.Session(m, threads=1)
def emit(length):
    x = ab.input(np.ones(8))
    for _ in range(length):
        x = cell(x)
    return x
def step(number):
    session.predict(range(1, 2 + number % 7), emit)
""",
    "training": """
import numpy as np, autobatch as ab
m = ab.Module("m")
words, w, b = m.table("words", 20, 8), m.param("w", (8, 8)), m.param("b", 8)
cell = m.cell(ab.f32[8], name="cell")(lambda x: x.affine(w, b).tanh())
trainer = ab.Trainer(m, ab.optim.Adam(0.001), threads=1)
def loss(length):
    x = words[length]
    for _ in range(length):
        x = cell(x)
    return x.dropout(0.1).square().sum()
def step(number):
    trainer.step(range(1, 2 + number % 7), loss, together=3 if number % 2 else None)
    repr(trainer.step_graph(lambda: loss(3)).metrics())
""",
    "tasks": """
import numpy as np, autobatch as ab
m = ab.Module("m")
w, b = m.param("w", (8, 8)), m.param("b", 8)
session, trainer = ab.Session(m, threads=1), ab.Trainer(m, ab.optim.Sgd(0.01), threads=1)
async def task(length):
    x = ab.input(np.ones(8))
    for _ in range(length):
        x = x.affine(w, b).tanh()
        if await x.sum() > 7.5:
            break
    return x.sum()
def step(number):
    session.tasks(range(1, 2 + number % 5), task)
    trainer.step_tasks(range(1, 2 + number % 5), task)
""",
    "plans": """
import numpy as np, autobatch as ab
m = ab.Module("m")
w = m.param("w", (4, 4))
session = ab.Session(m, threads=1)
def step(number):
    plan = session.plan(range(1, 2 + number % 5), lambda length: (ab.input(np.ones(4)) @ w).tanh() * float(length))
    repr(plan), plan._repr_html_()
""",
    "errors": """
import numpy as np, autobatch as ab
m = ab.Module("m")
words = m.table("words", 4, 4)
session = ab.Session(m, threads=1)
def step(number):
    for index in (number % 4, 99):
        try:
            session.predict([index], lambda word: words[word])
        except (ab.RunError, IndexError):
            assert index == 99
""",
    "dynet": """
import autobatch.dynet as dy
pc = dy.ParameterCollection()
words, w, b = pc.add_lookup_parameters((20, 8)), pc.add_parameters((8, 8)), pc.add_parameters(8)
lstm = dy.LSTMBuilder(1, 8, 8, pc)
trainer = dy.AdamTrainer(pc)
def step(number):
    dy.renew_cg()
    losses = []
    for length in range(1, 2 + number % 7):
        out = lstm.initial_state().transduce([words[word] for word in range(length)])[-1]
        losses.append(dy.pickneglogsoftmax(dy.affine_transform([b, w, out]), length % 8))
    loss = dy.esum(losses)
    loss.value()
    loss.backward()
    trainer.update()
    dy.softmax(dy.affine_transform([b, w, words[1]])).npvalue()
""",
    "batch": """
import torch
from torch import nn
from autobatch.torch import batch
linear = nn.Linear(8, 8)
optimizer = torch.optim.Adam(linear.parameters())
def step(number):
    optimizer.zero_grad()
    with batch(threads=1):
        losses = []
        for length in range(1, 2 + number % 5):
            x = torch.ones(8)
            for _ in range(length):
                x = torch.tanh(linear(x))
            losses.append(x.sum())
        loss = torch.stack(losses).mean()
        if number % 3 == 0:
            float(loss)
    loss.backward()
    optimizer.step()
""",
    "fold": """
import torch
from torch import nn
from autobatch.torch import Fold
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.linear = nn.Embedding(20, 8), nn.Linear(16, 8)
    def leaf(self, word):
        return self.words(word)
    def node(self, left, right):
        return torch.tanh(self.linear(torch.cat([left, right], 1)))
model = Model()
optimizer = torch.optim.Adam(model.parameters())
def step(number):
    fold = Fold()
    def tree(leaves):
        return fold.add("leaf", leaves) if leaves == 1 else fold.add("node", tree(leaves // 2), tree(leaves - leaves // 2))
    (result,) = fold.apply(model, [[tree(leaves) for leaves in range(1, 2 + number % 7)]])
    optimizer.zero_grad()
    result.sum().backward()
    optimizer.step()
""",
    "each": """
import torch
from torch import nn
from autobatch.torch import batch, each
cell = nn.GRUCell(8, 8)
def decode(length):
    state = torch.ones(1, 8)
    for _ in range(length):
        state = cell(state, state)
        if float(state.sum()) > 9.0:
            break
    return state
def step(number):
    with torch.no_grad(), batch(threads=1):
        each(decode, range(1, 2 + number % 5))
""",
}

NEEDS = {"batch": "torch", "fold": "torch", "each": "greenlet"}

MEASURE = """
import gc, os, sys
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
steps, sizes = int(sys.argv[1]), []
for number in range(steps):
    step(number)
    if number + 1 in (steps // 3, steps):
        gc.collect()
        sizes.append(resident())
print(*sizes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system has no /proc")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_memory_is_flat(name):
    if name in NEEDS and not importlib.util.find_spec(NEEDS[name]):
        pytest.skip(f"{NEEDS[name]} is not installed")
    steps = os.environ.get("AUTOBATCH_LONG_RUN", "1500")
    program = PROGRAMS[name] + MEASURE
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, steps], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    third, whole = map(int, done.stdout.split())
    grown = whole - third
    print(f"{name}: {third >> 10} KiB after a third of {steps} steps, {grown >> 10} KiB more at the end")
    assert grown < 2 << 20, f"{grown} bytes more between {int(steps) // 3} and {steps} steps"
