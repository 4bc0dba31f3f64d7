//! [`unroll`]: runs any cell as a recurrence.

use autobatch_ir::{Arg, Cell, Graph, IntoArg, Value};

/// The states after each input. The first port of the cell takes the input and the other ports take the
/// cell's own results: `[x, s_1 .. s_n] -> [s_1 .. s_n]`. Inputs are values or bound indices, so a cell
/// may look up its own words. Other numbers of ports and results do not compile.
#[track_caller]
#[must_use]
pub fn unroll<'g, const PORTS: usize, const STATES: usize, X: IntoArg<'g>>(
    g: &'g Graph,
    cell: Cell<PORTS, STATES>,
    start: [Value<'g>; STATES],
    xs: impl IntoIterator<Item = X>,
) -> Vec<[Value<'g>; STATES]> {
    const { assert!(PORTS == STATES + 1, "the cell takes an input and its own results") };
    let mut state = start;
    let mut states = Vec::new();
    for x in xs {
        let x = x.into_arg();
        let args: [Arg<'g>; PORTS] =
            std::array::from_fn(|port| if port == 0 { x } else { Arg::Value(state[port - 1]) });
        state = g.call(cell, args);
        states.push(state);
    }
    states
}
