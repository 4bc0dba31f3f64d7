"""Programs with the structure of DyNet's examples. They run under DyNet and under its drop-in without a change.

    python bench/peers/dynet_examples.py PROGRAM [--steps 20] [--drop-in]

Without `--drop-in` the program imports the real DyNet with automatic batching. The output is one line of JSON: the
losses and the seconds of each step. `dynet_table.py` runs both in turns.
"""

import argparse
import json
import sys
import time

import numpy as np

ARGUMENTS = argparse.ArgumentParser()
ARGUMENTS.add_argument("program")
ARGUMENTS.add_argument("--steps", type=int, default=20)
ARGUMENTS.add_argument("--drop-in", action="store_true")


def load(drop_in):
    """Imports one of the two libraries under the name of DyNet."""
    if drop_in:
        import autobatch.dynet

        autobatch.dynet.install()
    import dynet_config

    dynet_config.set(random_seed=7, autobatch=1, mem=2048)
    import dynet

    return dynet


def equal_weights(collection, seed=3):
    """Gives every parameter the same numbers in both libraries."""
    random = np.random.default_rng(seed)
    for parameter in collection.parameters_list():
        parameter.set_value(random.uniform(-0.1, 0.1, parameter.shape()))
    for table in collection.lookup_parameters_list():
        table.init_from_array(random.uniform(-0.1, 0.1, table.shape()))


def sentences(random, count, low, high, words):
    """Draws sentences of word numbers."""
    return [random.integers(0, words, random.integers(low, high)).tolist() for _ in range(count)]


def tagger(dy, random, characters=False):
    """A bidirectional LSTM tagger, one sentence for each update."""
    words, tags, hidden = 2000, 17, 50
    pc = dy.ParameterCollection()
    trainer = dy.AdamTrainer(pc)
    embed, letters = pc.add_lookup_parameters((words, 128)), pc.add_lookup_parameters((60, 20))
    layers = [dy.LSTMBuilder(1, width, hidden, pc) for width in (128, 128)]
    spelling = [dy.LSTMBuilder(1, 20, 64, pc) for _ in range(2)]
    up, down = pc.add_parameters((32, 2 * hidden)), pc.add_parameters((tags, 32))
    equal_weights(pc)
    spelled = [random.integers(0, 60, random.integers(2, 10)).tolist() for _ in range(words)]

    def word(number):
        if not characters or number % 4:
            return embed[number]
        rows = [letters[letter] for letter in spelled[number]]
        forward, backward = (builder.initial_state() for builder in spelling)
        return dy.concatenate([forward.transduce(rows)[-1], backward.transduce(reversed(rows))[-1]])

    for sentence in sentences(random, 10_000, 8, 30, words):
        dy.renew_cg()
        inputs = [word(number) for number in sentence]
        forward, backward = (builder.initial_state() for builder in layers)
        ahead = [state.output() for state in forward.add_inputs(inputs)]
        back = [state.output() for state in backward.add_inputs(reversed(inputs))]
        losses = []
        for number, one, other in zip(sentence, ahead, reversed(back)):
            scores = down * dy.tanh(up * dy.concatenate([one, other]))
            losses.append(dy.pickneglogsoftmax(scores, number % tags))
        loss = dy.esum(losses)
        yield loss.scalar_value()
        loss.backward()
        trainer.update()


def character_tagger(dy, random):
    """The tagger that spells rare words."""
    return tagger(dy, random, characters=True)


def treelstm(dy, random):
    """A binary Tree-LSTM with a label at the root, 25 trees for each update."""
    words, width, classes = 2000, 100, 5
    pc = dy.ParameterCollection()
    trainer = dy.AdamTrainer(pc)
    embed = pc.add_lookup_parameters((words, width))
    gates = [[pc.add_parameters((width, width)), pc.add_parameters((width, width)), pc.add_parameters(width)]
             for _ in range(5)]
    leaf = [(pc.add_parameters((width, width)), pc.add_parameters(width)) for _ in range(3)]
    out = pc.add_parameters((classes, width))
    equal_weights(pc)

    def tree(size):
        if size == 1:
            return int(random.integers(0, words))
        left = int(random.integers(1, size))
        return tree(left), tree(size - left)

    def encode(node):
        if isinstance(node, int):
            x = embed[node]
            i, o, u = (dy.affine_transform([b, w, x]) for w, b in leaf)
            c = dy.cmult(dy.logistic(i), dy.tanh(u))
            return dy.cmult(dy.logistic(o), dy.tanh(c)), c
        (left, left_c), (right, right_c) = encode(node[0]), encode(node[1])
        i, f, g, o, u = (dy.affine_transform([b, wl, left, wr, right]) for wl, wr, b in gates)
        c = dy.cmult(dy.logistic(i), dy.tanh(u)) + dy.cmult(dy.logistic(f), left_c) + dy.cmult(dy.logistic(g), right_c)
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    while True:
        dy.renew_cg()
        trees = [(tree(int(random.integers(5, 30))), int(random.integers(0, classes))) for _ in range(25)]
        loss = dy.esum([dy.pickneglogsoftmax(out * encode(root)[0], label) for root, label in trees])
        loss.backward()
        yield loss.value()
        trainer.update()


def rnnlm(dy, random):
    """An LSTM language model, one sentence for each update."""
    words, width = 1000, 128
    pc = dy.ParameterCollection()
    trainer = dy.SimpleSGDTrainer(pc, 0.1)
    embed, builder = pc.add_lookup_parameters((words, 64)), dy.LSTMBuilder(1, 64, width, pc)
    w, b = pc.add_parameters((words, width)), pc.add_parameters(words)
    equal_weights(pc)
    for sentence in sentences(random, 10_000, 10, 40, words):
        dy.renew_cg()
        state, losses = builder.initial_state(), []
        for word, following in zip(sentence, sentence[1:]):
            state = state.add_input(embed[word])
            losses.append(dy.pickneglogsoftmax(w * state.output() + b, following))
        loss = dy.esum(losses)
        yield loss.value()
        loss.backward()
        trainer.update()


def rnnlm_batch(dy, random):
    """The language model with minibatches of 32 sentences of one length."""
    words, width, together = 1000, 128, 32
    pc = dy.ParameterCollection()
    trainer = dy.SimpleSGDTrainer(pc, 0.1)
    embed, builder = pc.add_lookup_parameters((words, 64)), dy.LSTMBuilder(1, 64, width, pc)
    w, b = pc.add_parameters((words, width)), pc.add_parameters(words)
    equal_weights(pc)
    while True:
        dy.renew_cg()
        batch = random.integers(0, words, (int(random.integers(8, 16)), together))
        state, losses = builder.initial_state(), []
        for now, following in zip(batch, batch[1:]):
            state = state.add_input(dy.lookup_batch(embed, now.tolist()))
            losses.append(dy.pickneglogsoftmax_batch(w * state.output() + b, following.tolist()))
        loss = dy.sum_batches(dy.esum(losses)) / together
        yield loss.value()
        loss.backward()
        trainer.update()


def attention(dy, random):
    """Translates sentences of letters: a bidirectional encoder, and a decoder that attends to its states."""
    letters, width, state, hidden = 30, 32, 32, 16
    pc = dy.ParameterCollection()
    trainer = dy.SimpleSGDTrainer(pc)
    embed, reply = pc.add_lookup_parameters((letters, width)), pc.add_lookup_parameters((letters, width))
    ahead, back = (dy.LSTMBuilder(1, width, state, pc) for _ in range(2))
    decoder = dy.LSTMBuilder(1, 2 * state + width, state, pc)
    of_words, of_state = pc.add_parameters((hidden, 2 * state)), pc.add_parameters((hidden, 2 * state))
    score = pc.add_parameters((1, hidden))
    out, bias = pc.add_parameters((letters, state)), pc.add_parameters((letters))
    equal_weights(pc)
    for sentence in sentences(random, 10_000, 4, 12, letters - 1):
        dy.renew_cg()
        inputs = [embed[letter] for letter in sentence]
        forward = ahead.initial_state().transduce(inputs)
        backward = reversed(back.initial_state().transduce(reversed(inputs)))
        columns = dy.concatenate_cols([dy.concatenate(list(pair)) for pair in zip(forward, backward)])
        keys = of_words * columns
        last, losses = reply[letters - 1], []
        at = decoder.initial_state().add_input(dy.concatenate([dy.vecInput(2 * state), last]))
        for letter in [*reversed(sentence), letters - 1]:
            query = of_state * dy.concatenate(list(at.s()))
            weights = dy.softmax(dy.transpose(score * dy.tanh(dy.colwise_add(keys, query))))
            at = at.add_input(dy.concatenate([columns * weights, last]))
            probabilities = dy.softmax(out * at.output() + bias)
            losses.append(-dy.log(dy.pick(probabilities, letter)))
            last = reply[letter]
        loss = dy.esum(losses)
        yield loss.value()
        loss.backward()
        trainer.update()


def crf_scores(dy, random):
    """A bidirectional LSTM with scores of tags, and a table of transitions, for `crf` and `viterbi`."""
    words, tags, hidden = 2000, 6, 50
    pc = dy.ParameterCollection()
    embed, transitions = pc.add_lookup_parameters((words, 100)), pc.add_lookup_parameters((tags, tags))
    layers = [dy.LSTMBuilder(1, 100, hidden, pc) for _ in range(2)]
    out, bias = pc.add_parameters((tags, 2 * hidden)), pc.add_parameters(tags)
    equal_weights(pc)

    def score(sentence):
        dy.renew_cg()
        inputs = [embed[number] for number in sentence]
        ahead = layers[0].initial_state().transduce(inputs)
        back = layers[1].initial_state().transduce(reversed(inputs))
        return [out * dy.concatenate([one, other]) + bias for one, other in zip(ahead, reversed(back))]

    return pc, transitions, tags, sentences(random, 10_000, 10, 30, words), score


def crf(dy, random):
    """A tagger with a CRF whose forward algorithm reads each value that it sums, as nagisa's does."""
    pc, transitions, tags, drawn, score = crf_scores(dy, random)
    trainer = dy.SimpleSGDTrainer(pc, 0.05)

    def log_sum_exp(scores):
        largest = dy.pick(scores, int(np.argmax(scores.npvalue())))
        return largest + dy.log(dy.sum_elems(dy.exp(scores - dy.concatenate([largest] * tags))))

    for sentence in drawn:
        observed = score(sentence)
        sums, gold, last = dy.inputVector([0.0] * tags), dy.scalarInput(0), 0
        for number, scores in zip(sentence, observed):
            sums = dy.concatenate([
                log_sum_exp(sums + transitions[tag] + dy.concatenate([dy.pick(scores, tag)] * tags))
                for tag in range(tags)
            ])
            gold = gold + dy.pick(transitions[number % tags], last) + dy.pick(scores, number % tags)
            last = number % tags
        loss = log_sum_exp(sums) - gold
        yield loss.value()
        loss.backward()
        trainer.update()


def viterbi(dy, random):
    """Decodes with the scores of `crf`: each step reads the scores of all paths to each tag."""
    _, transitions, tags, drawn, score = crf_scores(dy, random)
    for sentence in drawn:
        observed = score(sentence)
        best = dy.inputVector([0.0] * tags)
        for scores in observed:
            paths = [best + transitions[tag] for tag in range(tags)]
            best = dy.concatenate([dy.pick(path, int(np.argmax(path.npvalue()))) for path in paths]) + scores
        yield float(np.max(best.npvalue()))


PROGRAMS = {
    "tagger": tagger, "character_tagger": character_tagger, "treelstm": treelstm, "rnnlm": rnnlm,
    "rnnlm_batch": rnnlm_batch, "attention": attention, "crf": crf, "viterbi": viterbi,
}


def main():
    """Runs one program."""
    arguments = ARGUMENTS.parse_args()
    sys.argv = sys.argv[:1]
    dy = load(arguments.drop_in)
    steps = PROGRAMS[arguments.program](dy, np.random.default_rng(11))
    losses, seconds = [], []
    for _ in range(arguments.steps):
        start = time.process_time()
        losses.append(float(next(steps)))
        seconds.append(time.process_time() - start)
    print(json.dumps({"losses": losses, "seconds": seconds}))


if __name__ == "__main__":
    main()
