"""The states of recurrent builders."""


class RNNState:
    """The states of all layers after some inputs. It never changes."""

    __slots__ = ("builder", "states", "before", "started")

    def __init__(self, builder, states, before=None, started=True):
        self.builder, self.states, self.before, self.started = builder, states, before, started

    def add_input(self, x):
        """Returns the state after one more input."""
        return RNNState(self.builder, self.builder.add(self.states, x), self)

    def add_inputs(self, xs):
        """Returns the states after each input."""
        states, state = [], self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

    def transduce(self, xs):
        """Returns the outputs after each input."""
        states, outputs = self.states, []
        for x in xs:
            states = self.builder.add(states, x)
            outputs.append(states[-1][0])
        return outputs

    def output(self):
        """Returns the output of the last layer, or None before the first input."""
        return self.states[-1][0] if self.started else None

    def h(self):
        """Returns the output of each layer."""
        return tuple(states[0] for states in self.states)

    def s(self):
        """Returns all vectors of the state: all `c`, then all `h`."""
        if len(self.states[0]) == 1:
            return self.h()
        return tuple(states[1] for states in self.states) + self.h()

    def set_h(self, es=None):
        """Returns the state with other outputs."""
        return RNNState(self.builder, [[h, *states[1:]] for h, states in zip(es, self.states)], self)

    def set_s(self, es=None):
        """Returns the state with other vectors."""
        return RNNState(self.builder, self.builder.states_of(list(es)), self)

    def prev(self):
        """Returns the state before the last input."""
        return self.before

    def b(self):
        """Returns the builder."""
        return self.builder


class StackedRNNState:
    """Several states that feed one another."""

    def __init__(self, states, prev=None):
        self.states, self.before = list(states), prev

    def add_input(self, x):
        """Returns the states after one more input."""
        after = []
        for state in self.states:
            after.append(state.add_input(x))
            x = after[-1].output()
        return StackedRNNState(after, self)

    def add_inputs(self, xs):
        """Returns the states after each input."""
        states, state = [], self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

    def output(self):
        """Returns the output of the last state."""
        return self.states[-1].output()

    def prev(self):
        """Returns the states before the last input."""
        return self.before

    def h(self):
        """Returns the outputs of each state."""
        return [state.h() for state in self.states]

    def s(self):
        """Returns the vectors of each state."""
        return [state.s() for state in self.states]
