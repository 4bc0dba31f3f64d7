"""DyNet with automatic batching: the recursion builds one computation graph of all trees.

    python dynet_program.py trees.json --mode train
"""
import numpy as np

import instances
import timing

# DyNet reads its settings while it is imported.
args = timing.arguments(__doc__)
import dynet_config

dynet_config.set(mem="2048", autobatch=1, random_seed=1)
import dynet as dy


class TreeLstm:
    """Binary Tree-LSTM with a classifier of the root."""

    def __init__(self, collection, hidden):
        self.hidden = hidden
        classes = instances.CLASSES
        shapes = [(5 * hidden, hidden), (5 * hidden, hidden), (5 * hidden,), (classes, hidden), (classes,)]
        self.words = collection.add_lookup_parameters((instances.WORDS, hidden))
        self.parameters = [collection.add_parameters(shape) for shape in shapes]
        self.left, self.right, self.bias, self.out, self.out_bias = self.parameters

    def fill(self, number):
        """Sets every weight to the number."""
        self.words.init_from_array(np.full(self.words.shape(), number))
        for parameter in self.parameters:
            parameter.set_value(np.full(parameter.shape(), number))

    def encode(self, tree, zero):
        if isinstance(tree, int):
            return self.words[tree], zero
        (left_h, left_c), (right_h, right_c) = (self.encode(child, zero) for child in tree)
        gates = dy.affine_transform([self.bias, self.left, left_h, self.right, right_h])
        width = self.hidden
        a, i, left, right, o = (dy.pick_range(gates, part * width, (part + 1) * width) for part in range(5))
        c = dy.cmult(dy.tanh(a), dy.logistic(i))
        c = c + dy.cmult(dy.logistic(left), left_c) + dy.cmult(dy.logistic(right), right_c)
        return dy.cmult(dy.logistic(o), dy.tanh(c)), c

    def scores(self, trees):
        zero = dy.zeros(self.hidden)
        return [dy.affine_transform([self.out_bias, self.out, self.encode(tree, zero)[0]]) for tree in trees]


def main():
    # A model needs its collection as long as it is used.
    constants = dy.ParameterCollection()
    constant = TreeLstm(constants, args.hidden)
    constant.fill(timing.CHECKSUM_WEIGHT)
    dy.renew_cg()
    checksum = dy.sum_elems(dy.esum(constant.scores(args.trees))).value()
    collection = dy.ParameterCollection()
    model = TreeLstm(collection, args.hidden)
    trainer = dy.AdamTrainer(collection, alpha=timing.LEARNING_RATE)

    def infer():
        dy.renew_cg()
        scores = model.scores(args.trees)
        dy.forward(scores)
        scores[-1].npvalue()

    def train():
        dy.renew_cg()
        losses = [dy.pickneglogsoftmax(score, label) for score, label in zip(model.scores(args.trees), args.labels)]
        loss = dy.esum(losses) / len(losses)
        loss.forward()
        loss.backward()
        trainer.update()

    timing.measure(train if args.mode == "train" else infer, args.seconds, checksum)


if __name__ == "__main__":
    main()
