//! [`CharCnn`]: a convolution over characters and the maximum over places.

use crate::activation::Activation;
use crate::any_cell::{AnyCell, vector};
use autobatch_ir::{Graph, Init, ModuleBuilder, Value};
use std::borrow::Borrow;

/// `y = max over t of act([x_{t-k} .. x_t .. x_{t+l}] · W + b)` with windows of `window`
/// characters, `k = (window - 1) / 2` of them before the middle one; what a window sees beyond the
/// word is zeros. One window a character; a word of no characters gives zeros.
///
/// A window is a product with several parts, so nothing is copied together; the maximum is over a
/// list, so words of all lengths share their batches. Parameters: `name.w: [window * input,
/// filters]`, its rows the window's characters in order, and `name.b: [filters]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharCnn {
    cell: AnyCell<1>,
    input: usize,
    window: usize,
    filters: usize,
}

impl CharCnn {
    /// Filters over windows of up to 9 characters.
    #[track_caller]
    pub fn new(
        m: &mut ModuleBuilder,
        name: &str,
        input: usize,
        window: usize,
        filters: usize,
        activation: Activation,
    ) -> Self {
        activation.check(m, name);
        let rows = input.saturating_mul(window);
        let w = m.param(&format!("{name}.w"), [rows, filters], Init::Glorot(1.0));
        let b = m.param(&format!("{name}.b"), [filters], Init::ZEROS);
        let ports = vec![vector(input); window.min(crate::any_cell::MOST_PORTS + 1)];
        let cell = AnyCell::trace(m, name, &ports, |g, ports| [activation.on(g.affine(ports, w, Some(b)))]);
        Self { cell, input, window: ports.len(), filters }
    }

    /// The filters' maxima over a word.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, g: &'g Graph, chars: impl IntoIterator<Item = impl Borrow<Value<'g>>>) -> Value<'g> {
        let chars: Vec<Value<'g>> = chars.into_iter().map(|x| *x.borrow()).collect();
        if chars.is_empty() {
            return g.zeros([self.filters]);
        }
        let before = self.window.saturating_sub(1) / 2;
        let after = self.window.saturating_sub(1) - before;
        let beyond = g.zeros([self.input]);
        let mut padded = vec![beyond; before];
        padded.extend(&chars);
        padded.extend(std::iter::repeat_n(beyond, after));
        let mut found = Vec::with_capacity(chars.len());
        for window in padded.windows(self.window.max(1)) {
            let [features] = self.cell.call(g, window);
            found.push(features);
        }
        g.list(found).max()
    }

    /// How wide a character's vector is.
    #[must_use]
    pub const fn input(&self) -> usize {
        self.input
    }

    /// How wide the result is.
    #[must_use]
    pub const fn filters(&self) -> usize {
        self.filters
    }
}
