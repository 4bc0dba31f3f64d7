"""Compares a step of autobatch-bench with PyTorch, on the same instances and the same weights.

    autobatch-bench b --data FILE --dump DIR          # random weights, outputs, gradients
    python compare_with_torch.py b --data FILE --dump DIR

FILE contains instances in the format that the scripts of the other systems write with --dump-data. This
script implements the models a second time, one instance at a time, with torch.nn.functional only. Its
exit code is 1 if the error of an output is above 1e-4, or that of a gradient above 1e-4 of the largest
element.
"""
import argparse, json, math, pathlib, struct, sys
import numpy as np, torch
import torch.nn.functional as F


def load(path):
    """Reads a safetensors file of f32 arrays."""
    raw = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack('<Q', raw[:8])
    head, body = json.loads(raw[8:8 + size]), raw[8 + size:]
    arrays = {}
    for name, entry in head.items():
        if name == '__metadata__': continue
        assert entry['dtype'] == 'F32', (name, entry['dtype'])
        first, last = entry['data_offsets']
        arrays[name] = np.frombuffer(body[first:last], '<f4').reshape(entry['shape']).copy()
    return arrays


def linear(p, name, x):
    y = x @ p[name + '.w']
    return y + p[name + '.b'] if name + '.b' in p else y


def lstm(p, name, xs, state=None):
    """Returns all states (h, c) of an LSTM with gates i f g o."""
    width = p[name + '.b'].shape[0] // 4
    h, c = state or (torch.zeros(width), torch.zeros(width))
    states = []
    for x in xs:
        i, f, g, o = (torch.cat([x, h]) @ p[name + '.w'] + p[name + '.b']).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append((h, c))
    return states


def tree(t, leaf, node):
    """Evaluates nested lists of two elements bottom up."""
    if isinstance(t, int): return leaf(t)
    return node(tree(t[0], leaf, node), tree(t[1], leaf, node))


MASK, GOLDEN = (1 << 64) - 1, 0x9e3779b97f4a7c15


def splitmix(state):
    """Returns the output of SplitMix64 for a state."""
    z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb & MASK
    return z ^ (z >> 31)


def image(seed, number):
    """Returns the random pixels and class of an image. A file of images contains only the seed."""
    state = seed ^ splitmix((number ^ 0x6a09e667f3bcc908) + GOLDEN & MASK)
    draws = [splitmix(state + k * GOLDEN & MASK) for k in range(1, 28 * 28 + 2)]
    return torch.tensor([draw >> 40 for draw in draws[:-1]], dtype=torch.float32) / (1 << 24), draws[-1] * 10 >> 64


def mnist(p, data):
    for number in range(data['examples']):
        x, y = image(data['seed'], number)
        h = linear(p, 'mnist.0', x).relu()
        scores = linear(p, 'mnist.2', linear(p, 'mnist.1', h).relu())
        yield [scores], F.cross_entropy(scores, torch.tensor(y))


def spinn(p, data):
    for t, label in zip(data['trees'], data['labels']):
        def node(left, right):
            a, i, l, r, o = (torch.cat([left[0], right[0]]) @ p['node.w'] + p['node.b']).chunk(5)
            c = a.tanh() * i.sigmoid() + l.sigmoid() * left[1] + r.sigmoid() * right[1]
            return o.sigmoid() * c.tanh(), c
        root, _ = tree(t, lambda w: (p['words'][w], torch.zeros(p['words'].shape[1])), node)
        scores = linear(p, 'out', root)
        yield [scores], F.cross_entropy(scores, torch.tensor(label))


def similarity(p, data):
    width = p['node.uf'].shape[1]
    def encode(t):
        below = [[] for _ in t['parent']]
        for n in range(len(t['parent']) - 1, -1, -1):
            x = p['words'][t['words'][n]]
            i, o, u = (x @ p['node.wx'] + p['node.b']).chunk(3)
            f = x @ p['node.wf'] + p['node.bf']
            kids = below[n][::-1]
            if kids:
                i, o, u = (torch.cat([i, o, u]) + sum(h for h, _ in kids) @ p['node.u']).chunk(3)
            c = i.sigmoid() * u.tanh()
            for h, m in kids: c = c + (f + h @ p['node.uf']).sigmoid() * m
            state = (o.sigmoid() * c.tanh(), c)
            if t['parent'][n] < 0: return c
            below[t['parent'][n]].append(state)
    for l, r, s in data['pairs']:
        a, b = encode(l), encode(r)
        out = linear(p, 'out', linear(p, 'both', torch.cat([a * b, (a - b).abs()])).sigmoid()).log_softmax(0)
        wanted, low = torch.zeros(5), math.floor(s)
        if low == s: wanted[low - 1] = 1
        else: wanted[low - 1], wanted[low] = low + 1 - s, s - low
        yield [out], F.kl_div(out, wanted, reduction='sum')


def tagger(p, data):
    for words, tags in zip(data['words'], data['tags']):
        xs = [p['words'][w] for w in words]
        forward = [h for h, _ in lstm(p, 'context.fw', xs)]
        backward = [h for h, _ in lstm(p, 'context.bw', xs[::-1])][::-1]
        out = [linear(p, 'out', linear(p, 'hidden', torch.cat(pair)).tanh()) for pair in zip(forward, backward)]
        yield out, sum(F.cross_entropy(s, torch.tensor(t)) for s, t in zip(out, tags))


def names(p, data):
    letters = p['lstm.w'].shape[0] - p['lstm.w'].shape[1] // 4
    for chars, label in zip(data['chars'], data['labels']):
        xs = [F.one_hot(torch.tensor(c), letters).float() for c in chars]
        out = linear(p, 'out', lstm(p, 'lstm', xs)[-1][0]).log_softmax(0)
        yield [out], -out[label]


def acceptor(p, data):
    for words, label in zip(data['words'], data['labels']):
        out = linear(p, 'out', lstm(p, 'lstm', [p['words'][w] for w in words])[-1][0])
        yield [out], F.cross_entropy(out, torch.tensor(label))


def tree_rnn(p, data):
    for t, label in zip(data['trees'], data['labels']):
        node = lambda left, right: (torch.cat([left, right]) @ p['node.w']).tanh()
        out = linear(p, 'out', tree(t, lambda w: p['words'][w], node))
        yield [out], F.cross_entropy(out, torch.tensor(label))


def parser(p, data):
    width = p['stack.b'].shape[0] // 4
    start = (torch.zeros(width), torch.zeros(width))
    for words, actions in zip(data['words'], data['actions']):
        xs = [p['words'][w] for w in words]
        buffer = [start] + lstm(p, 'buffer', xs[::-1])
        stack, phrases, history, shifted, out, loss = [start], [], start, 0, [], 0
        for a in actions:
            seen = torch.cat([stack[-1][0], buffer[len(xs) - shifted][0], history[0]])
            out.append(linear(p, 'next', linear(p, 'features', seen).tanh()))
            loss = loss + F.cross_entropy(out[-1], torch.tensor(a))
            if a == 0:
                phrase, shifted = xs[shifted], shifted + 1
            else:
                right, left = phrases.pop(), phrases.pop()
                stack = stack[:-2]
                phrase = linear(p, 'phrase', torch.cat([left, right] if a == 1 else [right, left])).tanh()
            phrases.append(phrase)
            stack.append(lstm(p, 'stack', [phrase], stack[-1])[0])
            history = lstm(p, 'history', [p['actions'][a]], history)[0]
        yield out, loss


MODELS = dict(a=mnist, b=spinn, c=similarity, d=tagger, e=names, f1=acceptor, f2=tree_rnn, g=parser)


def main():
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument('model', choices=MODELS)
    cli.add_argument('--data', required=True)
    cli.add_argument('--dump', required=True)
    args = cli.parse_args()
    dump = pathlib.Path(args.dump)
    p = {name: torch.from_numpy(value).requires_grad_() for name, value in load(dump / 'weights.safetensors').items()}
    outputs, losses = [], []
    for out, loss in MODELS[args.model](p, json.load(open(args.data))):
        outputs += [o.detach() for o in out]
        losses.append(loss)
    ours, theirs = np.fromfile(dump / 'outputs.f32', '<f4'), torch.cat(outputs).numpy()
    if ours.shape != theirs.shape: sys.exit(f'autobatch has {len(ours)} outputs, PyTorch has {len(theirs)}')
    worst = {'outputs': float(np.abs(ours - theirs).max())}
    gradients = dump / 'gradients.safetensors'
    if gradients.exists():
        (sum(losses) / len(losses)).backward()
        for name, value in load(gradients).items():
            theirs = p[name].grad.numpy()
            worst['d ' + name] = float(np.abs(value - theirs).max() / max(np.abs(theirs).max(), 1e-30))
    for name, off in worst.items(): print(f'{args.model} {name:<24} maximum error {off:.1e}')
    sys.exit(any(not off <= 1e-4 for off in worst.values()))


main()
