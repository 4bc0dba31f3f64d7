"""Trainers: an update rule for the parameters of a collection."""

import sys

import autobatch.optim as optim

from ._engine import ENGINE


class Trainer:
    """What all trainers share: the learning rate, clipping to a norm of 5, and sparse updates of tables."""

    def __init__(self, m, learning_rate):
        self.collection = m
        self.learning_rate = float(learning_rate)
        # A native optimiser has a positive rate. The factor of the schedule makes it zero.
        self.base_rate = self.learning_rate or 1.0
        self.threshold, self.sparse, self.updates = 5.0, True, 0
        self.reset()

    def reset(self):
        """Gives the native optimiser with its states up."""
        if ENGINE.optimizer is self:
            ENGINE.native().exchange(self.native_state)
            ENGINE.optimizer = None
        self.native_state = self.native_owner = None
        self.set_schedule_needed = True

    def rule(self, options):
        """Returns the native optimiser."""
        raise NotImplementedError

    def optimizer(self):
        """Returns the native optimiser with the options of all rules."""
        decay = self.collection.weight_decay
        return self.rule({
            "clip_norm": self.threshold if self.threshold > 0 else None,
            "sparse_rows": self.sparse,
            "decoupled_weight_decay": decay / self.base_rate if decay else None,
        })

    def factor(self, _update):
        """The learning rate relative to that of the native optimiser."""
        return self.learning_rate / self.base_rate

    def update(self):
        """Updates the parameters with the waiting gradients."""
        ENGINE.update(self)
        self.updates += 1

    def update_epoch(self, r=1.0):
        """Does nothing, as in DyNet."""
        print("Trainer.update_epoch has no effect; set trainer.learning_rate", file=sys.stderr)

    def restart(self, learning_rate=None):
        """Forgets the states of the rule."""
        if learning_rate is not None:
            self.learning_rate = float(learning_rate)
        self.reset()

    def status(self):
        """Prints the learning rate and the number of updates."""
        print(f"[lr={self.learning_rate:g} updates={self.updates}]", file=sys.stderr, end=" ")

    def set_sparse_updates(self, su):
        """Sets whether an update changes only the rows that the minibatch read."""
        self.sparse = bool(su)
        self.reset()

    def set_clip_threshold(self, thr):
        """Sets the largest norm of the gradients; 0 turns clipping off."""
        if float(thr) != self.threshold:
            self.threshold = float(thr)
            self.reset()

    def get_clip_threshold(self):
        """Returns the largest norm of the gradients."""
        return self.threshold

    def set_learning_rate(self, value):
        """Sets the learning rate."""
        self.learning_rate = float(value)

    def whoami(self):
        """Returns the name of the rule."""
        return type(self).__name__


class SimpleSGDTrainer(Trainer):
    """Stochastic gradient descent."""

    def __init__(self, m, learning_rate=0.1):
        super().__init__(m, learning_rate)

    def rule(self, options):
        return optim.Sgd(self.base_rate, **options)


class CyclicalSGDTrainer(SimpleSGDTrainer):
    """Gradient descent whose learning rate moves between two bounds."""

    def __init__(self, m, learning_rate_min=0.01, learning_rate_max=0.1, step_size=2000, gamma=1.0):
        super().__init__(m, learning_rate_min)
        self.low, self.high, self.step, self.gamma, self.count = learning_rate_min, learning_rate_max, step_size, gamma, 0

    def update(self):
        super().update()
        cycle = int(1 + self.count / (2 * self.step))
        x = abs(self.count / self.step - 2 * cycle + 1)
        part = max(0.0, 1 - x) * self.gamma**self.count
        self.learning_rate = self.low + (self.high - self.low) * part
        self.count += 1


class MomentumSGDTrainer(Trainer):
    """Gradient descent with momentum."""

    def __init__(self, m, learning_rate=0.01, mom=0.9):
        super().__init__(m, learning_rate)
        self.momentum = mom

    def rule(self, options):
        return optim.Momentum(self.base_rate, self.momentum, **options)


class AdagradTrainer(Trainer):
    """Adagrad."""

    def __init__(self, m, learning_rate=0.1, eps=1e-20):
        super().__init__(m, learning_rate)
        self.eps = eps

    def rule(self, options):
        return optim.Adagrad(self.base_rate, self.eps, eps_under_root=True, **options)


class AdadeltaTrainer(Trainer):
    """Adadelta."""

    def __init__(self, m, eps=1e-6, rho=0.95):
        super().__init__(m, 1.0)
        self.eps, self.rho = eps, rho

    def rule(self, options):
        return optim.Adadelta(1.0, self.rho, self.eps, **options)


class RMSPropTrainer(Trainer):
    """RMSProp."""

    def __init__(self, m, learning_rate=0.001, eps=1e-8, rho=0.9):
        super().__init__(m, learning_rate)
        self.eps, self.rho = eps, rho

    def rule(self, options):
        return optim.RmsProp(self.base_rate, self.rho, self.eps, eps_under_root=True, **options)


class AdamTrainer(Trainer):
    """Adam."""

    native = staticmethod(optim.Adam)

    def __init__(self, m, alpha=0.001, beta_1=0.9, beta_2=0.999, eps=1e-8):
        super().__init__(m, alpha)
        self.betas, self.eps = (beta_1, beta_2), eps

    def rule(self, options):
        return self.native(self.base_rate, self.betas, self.eps, eps_uncorrected=True, **options)


class AmsgradTrainer(AdamTrainer):
    """AMSGrad."""

    native = staticmethod(optim.AmsGrad)
