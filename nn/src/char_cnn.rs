//! [`CharCnn`]: a convolution over characters with a maximum over positions.

use crate::activation::Activation;
use crate::any_cell::{AnyCell, vector};
use crate::values::Values;
use autobatch_ir::{Graph, Init, ModuleBuilder, Value};

/// `y = max over t of act([x_{t-k} .. x_t .. x_{t+l}] · W + b)` with windows of `window`
/// characters, `k = (window - 1) / 2` of them before the middle one. Positions outside the word are
/// zeros. There is one window per character; an empty word gives zeros.
///
/// A window is a product with several parts, so characters are not copied together. The maximum is
/// over a list, so words of all lengths share a batch. Parameters: `name.w: [window * input,
/// filters]`, whose rows follow the characters of the window, and `name.b: [filters]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharCnn {
    cell: AnyCell<1>,
    input: usize,
    window: usize,
    filters: usize,
}

impl CharCnn {
    /// Filters over windows of at most 9 characters.
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
        let ports = vec![vector(input); window.min(crate::any_cell::MAX_PORTS + 1)];
        let cell = AnyCell::trace(m, name, &ports, |g, ports| [activation.on(g.affine(ports, w, Some(b)))]);
        Self { cell, input, window: ports.len(), filters }
    }

    /// The maximum of each filter over a word.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, g: &'g Graph, chars: impl Values<'g>) -> Value<'g> {
        let chars = chars.into_vec();
        if chars.is_empty() {
            return g.zeros([self.filters]);
        }
        let before = self.window.saturating_sub(1) / 2;
        let after = self.window.saturating_sub(1) - before;
        let beyond = g.zeros([self.input]);
        let mut padded = vec![beyond; before];
        padded.extend(&chars);
        padded.extend(std::iter::repeat_n(beyond, after));
        let mut features = Vec::with_capacity(chars.len());
        for window in padded.windows(self.window.max(1)) {
            let [feature] = self.cell.call(g, window);
            features.push(feature);
        }
        g.list(features).max()
    }

    /// The width of a character's vector.
    #[must_use]
    pub const fn input(&self) -> usize {
        self.input
    }

    /// The width of the result.
    #[must_use]
    pub const fn filters(&self) -> usize {
        self.filters
    }
}
