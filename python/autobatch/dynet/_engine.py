"""The engine behind the module: one set of parameters, one native trainer, and the current graph.

A native module is closed once a trainer uses it, and DyNet declares parameters at any time. The engine therefore
builds the native module at the first use of a graph, and builds it again with the current values when a parameter
was added since.
"""

import sys
import weakref

import autobatch as ab

from .config import Defaults


class Engine:
    """The parameters of all collections, the native trainer that holds their values, and the current graph."""

    def __init__(self):
        self.stored = []
        self.cells = []
        self.trainer = None
        self.graph = None
        self.version = 0
        self.optimizer = None
        self.waiting = False
        self.drop_speculation()
        self.followed = set()
        self.last_read, self.serial = (-1, None), set()
        self.computed = []

    def rebind(self, expression, elements):
        """Replaces the numbers of an input. Everything that was computed is computed again when it is read."""
        self.reject_speculation()
        self.trainer.rebind(expression.v, elements)
        for known in self.computed:
            known.array = None
        self.computed, self.last_read, expression.array = [], (-1, None), None

    def add(self, parameter):
        """Adds a parameter; the next graph sees it."""
        self.stored.append(weakref.ref(parameter))
        self.close()

    def add_cell(self, cell):
        """Adds an object whose `trace(module)` declares a cell."""
        self.cells.append(weakref.ref(cell))
        self.close()

    def close(self):
        """Reads the values back and gives the native trainer up."""
        if self.trainer is None:
            return
        for parameter in self.live(self.stored):
            parameter.detach()
        self.renew()
        self.trainer, self.optimizer, self.waiting = None, None, False

    @staticmethod
    def live(references):
        """Returns the objects that still exist, and forgets the others."""
        objects = [found for found in (reference() for reference in references) if found is not None]
        references[:] = [weakref.ref(found) for found in objects]
        return objects

    def native(self):
        """Returns the native trainer, which is built at the first use."""
        if self.trainer is None:
            module = ab.Module("dynet")
            parameters = self.live(self.stored)
            for number, parameter in enumerate(parameters):
                parameter.declare(module, f"p{number}")
            if not parameters:
                module.param("unused", 1)
            for cell in self.live(self.cells):
                cell.trace(module)
            # DyNet updates parameters without a gradient too: they move by their momentum.
            options = {"threads": 1, "seed": Defaults.seed, "update_unused": True}
            self.trainer = ab.Trainer(module, ab.optim.Sgd(1.0), **options)
        return self.trainer

    def open(self):
        """Returns the current graph, which functions such as `autobatch.input` emit into."""
        if self.graph is None:
            self.graph = self.native().graph()
            self.graph.__enter__()
        return self.graph

    def renew(self):
        """Starts a new graph."""
        self.reject_speculation()
        if self.graph is not None:
            self.graph.__exit__()
            self.graph = None
        self.version += 1
        self.last_read = (-1, None)
        self.computed = []

    def compute(self, expressions):
        """Computes what is not computed yet, and keeps the arrays in the expressions."""
        trainer = self.native()
        unknown = [expression for expression in expressions if expression.array is None]
        self.computed.extend(unknown)
        missing = [expression for expression in unknown if not expression.compute_small(trainer)]
        if missing:
            self.execute(missing)

    def execute(self, expressions):
        """Computes expressions with a plan."""
        line = self.line()
        if len(expressions) == 1 and self.speculate(expressions[0], line):
            return
        arrays = self.trainer.evaluate([expression.v for expression in expressions], self.is_serial(line))
        for expression, array in zip(expressions, arrays):
            expression.array = array

    def is_serial(self, line):
        """Returns whether another read of the same graph that needs a plan followed a read of this line, now or earlier.

        A program that reads several expressions of a graph is likely to read those that no other expression uses. One
        plan computes all of them.
        """
        last, self.last_read = self.last_read, (self.version, line)
        if last[0] == self.version:
            self.serial.update((last[1], line))
        return line in self.serial

    # A training loop often reads a loss and then differentiates it. The first time, this computes the forward pass
    # twice. From then on a read on the same line of the program executes both passes at once.

    def drop_speculation(self):
        """Forgets the last reads: the line of each, and its expression, whose number no other one may get."""
        self.reads, self.ahead = {}, None

    def speculate(self, expression, line):
        """Executes both passes if the program differentiated what this line read before."""
        self.reads[id(expression)] = (line, expression)
        if line not in self.followed or self.waiting or expression.v.shape != ():
            return False
        loss, _ = self.trainer.backward(expression.v)
        expression.array = loss
        self.ahead = (expression, line)
        return True

    @staticmethod
    def line():
        """Returns the innermost line of the program outside of this package."""
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
            frame = frame.f_back
        return frame.f_code, frame.f_lineno

    def reject_speculation(self):
        """Discards gradients that the program did not ask for."""
        if self.ahead is not None:
            self.followed.discard(self.ahead[1])
            self.trainer.discard_gradients()
        self.drop_speculation()

    def backward(self, expression):
        """Adds the gradients of a scalar to those that wait for an update."""
        if self.ahead is not None and self.ahead[0] is expression:
            self.drop_speculation()
            self.waiting = True
            return
        line, _ = self.reads.get(id(expression), (None, None))
        self.reject_speculation()
        if line is not None:
            self.followed.add(line)
        loss, _ = self.trainer.backward(expression.v)
        self.waiting = True
        if expression.array is None:
            expression.array = loss
            self.computed.append(expression)

    def gradient_of(self, loss, value):
        """Returns the gradient of a value. It executes both passes again, beside the waiting gradients."""
        _, (gradient,) = self.trainer.backward(loss.v, [value.v])
        self.trainer.discard_gradients()
        if self.waiting:
            self.trainer.backward(loss.v)
        return gradient

    def update(self, trainer):
        """Updates the parameters with the optimiser of a trainer."""
        self.drop_speculation() if self.ahead is None else self.reject_speculation()
        native = self.native()
        if not any(stored.is_updated() for stored in trainer.collection.all()):
            # DyNet updates nothing, and forgets the gradients.
            native.discard_gradients()
            self.waiting = False
            return
        if trainer.native_state is None or trainer.native_owner is not native:
            names = {stored.key for stored in trainer.collection.all() if stored.is_updated()}
            trainer.native_state, trainer.native_owner = native.set_aside(trainer.optimizer(), names), native
            trainer.set_schedule_needed = True
        if self.optimizer is not trainer:
            if self.optimizer is not None:
                native.exchange(self.optimizer.native_state)
            native.exchange(trainer.native_state)
            self.optimizer = trainer
            trainer.set_schedule_needed = True
        if trainer.set_schedule_needed:
            native.set_schedule(trainer.factor)
            trainer.set_schedule_needed = False
        self.waiting = False
        try:
            native.update()
        except ab.TrainError as error:
            if "expected finite gradients" in str(error):
                raise RuntimeError(f"Magnitude of gradient is bad: {error}") from error
            raise


ENGINE = Engine()
