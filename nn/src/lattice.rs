//! [`LatticeLstm`]: a character LSTM with additional paths for dictionary words.

use crate::any_cell::vector;
use autobatch_ir::{Cell, Graph, Init, ModuleBuilder, Value, list};
use std::panic::Location;

/// The lattice LSTM (Zhang & Yang 2018). Every character takes a step. A word from character `b` to a
/// later character `e` adds a path from the memory of `b` to `e`. The new memory of `e` is a weighted
/// sum over the character and all words that end there. With `h_b`, `c_b` the state
/// *after* character `b`:
/// ```text
/// word       [i f u] = xw · W + h_b · U + b             gates i, f, u
///            c_w = sigmoid(f) * c_b + sigmoid(i) * tanh(u)
///            l_w = sigmoid(x_e · V + c_w · V' + bl)
/// character  [i o u] = x · W + h · U + b                gates i, o, u
///            no word ends here:  c' = (1 - sigmoid(i)) * c + sigmoid(i) * tanh(u)
///            else: c' is the sum of (tanh(u), c_1, .., c_k), weighted by the elementwise
///                  softmax over (sigmoid(i), l_1, .., l_k)
///            h' = sigmoid(o) * tanh(c')
/// ```
/// The words that end at a character form a list, so characters with any number of words share a
/// batch. Parameters: `name.char.w: [char + width, 3 width]`, `name.char.b`,
/// `name.word.w: [word + width, 3 width]`, `name.word.b`, `name.link.w: [char + width, width]`,
/// `name.link.b`. States are `[h, c]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatticeLstm {
    plain: Cell<3, 2>,
    open: Cell<2, 3>,
    word: Cell<4, 2>,
    merge: Cell<3, 2>,
    width: usize,
}

/// A word of a lattice, for [`LatticeLstm::run`].
#[derive(Clone, Copy, Debug)]
pub struct LatticeWord<'g> {
    /// The index of its first character.
    pub first: usize,
    /// The index of its last character; it follows the first.
    pub last: usize,
    /// Its vector.
    pub x: Value<'g>,
}

impl LatticeLstm {
    /// A layer over character vectors of width `chars` and word vectors of width `words`.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, chars: usize, words: usize, width: usize) -> Self {
        Self::with_options(m, name, chars, words, width, &Init::Glorot(1.0))
    }

    /// A layer with the given initialiser.
    #[track_caller]
    pub fn with_options(
        m: &mut ModuleBuilder,
        name: &str,
        chars: usize,
        words: usize,
        width: usize,
        init: &Init,
    ) -> Self {
        let three = width.saturating_mul(3);
        let [char_rows, word_rows] = [chars, words].map(|inputs| inputs.saturating_add(width));
        let w = m.param(&format!("{name}.char.w"), [char_rows, three], init.clone());
        let b = m.param(&format!("{name}.char.b"), [three], Init::ZEROS);
        let word_w = m.param(&format!("{name}.word.w"), [word_rows, three], init.clone());
        let word_b = m.param(&format!("{name}.word.b"), [three], Init::ZEROS);
        let link_w = m.param(&format!("{name}.link.w"), [char_rows, width], init.clone());
        let link_b = m.param(&format!("{name}.link.b"), [width], Init::ZEROS);
        let (x, xw, v) = (vector(chars), vector(words), vector(width));
        let plain = m.cell(&format!("{name}.char"), [x, v, v], |g, [x, h, c]| {
            let [i, o, u] = g.affine([x, h], w, Some(b)).split();
            let i = i.sigmoid();
            let c = (1.0 - i) * c + i * u.tanh();
            [o.sigmoid() * c.tanh(), c]
        });
        let open = m.cell(&format!("{name}.open"), [x, v], |g, [x, h]| {
            let [i, o, u] = g.affine([x, h], w, Some(b)).split();
            [i.sigmoid(), o.sigmoid(), u.tanh()]
        });
        let word = m.cell(&format!("{name}.word"), [xw, v, v, x], |g, [xw, h, c, end]| {
            let [i, f, u] = g.affine([xw, h], word_w, Some(word_b)).split();
            let c = f.sigmoid() * c + i.sigmoid() * u.tanh();
            [g.affine([end, c], link_w, Some(link_b)).sigmoid(), c]
        });
        let merge = m.cell(&format!("{name}.merge"), [v, list(v), list(v)], |g, [o, scores, memories]| {
            let c = g.softmax_sum(scores, memories);
            [o * c.tanh(), c]
        });
        Self { plain, open, word, merge, width }
    }

    /// The state before the first character: zeros.
    #[track_caller]
    #[must_use]
    pub fn start<'g>(&self, g: &'g Graph) -> [Value<'g>; 2] {
        [g.zeros([self.width]); 2]
    }

    /// The gate and memory `[l_w, c_w]` of a word that ends at the character with vector `end`;
    /// `from` is the state after the word's first character.
    #[track_caller]
    #[must_use]
    pub fn word<'g>(
        &self,
        g: &'g Graph,
        x: Value<'g>,
        from: [Value<'g>; 2],
        end: Value<'g>,
    ) -> [Value<'g>; 2] {
        g.call(self.word, [x, from[0], from[1], end])
    }

    /// The state after a character, given the state before it and the results of [`word`](Self::word)
    /// for the words that end at it.
    #[track_caller]
    #[must_use]
    pub fn char<'g>(
        &self,
        g: &'g Graph,
        x: Value<'g>,
        before: [Value<'g>; 2],
        words: &[[Value<'g>; 2]],
    ) -> [Value<'g>; 2] {
        let [h, c] = before;
        if words.is_empty() {
            return g.call(self.plain, [x, h, c]);
        }
        let [i, o, u] = g.call(self.open, [x, h]);
        let scores = g.list([i].iter().chain(words.iter().map(|[score, _]| score)));
        let memories = g.list([u].iter().chain(words.iter().map(|[_, memory]| memory)));
        g.call(self.merge, [o, scores, memories])
    }

    /// The states after each character of a sentence with these words, in any order. The sum at a
    /// character adds its words in the given order.
    #[track_caller]
    #[must_use]
    pub fn run<'g>(
        &self,
        g: &'g Graph,
        chars: &[Value<'g>],
        words: &[LatticeWord<'g>],
    ) -> Vec<[Value<'g>; 2]> {
        let mut ending: Vec<Vec<LatticeWord<'g>>> = vec![Vec::new(); chars.len()];
        for &word in words {
            match ending.get_mut(word.last) {
                Some(here) if word.first < word.last => here.push(word),
                _ => {
                    let (first, last, count) = (word.first, word.last, chars.len());
                    let message = format!("a word from {first} to {last} does not fit {count} characters");
                    let help = "a word must begin before it ends, and end at a character of the sentence";
                    return vec![[g.refuse("lattice", &message, help, Location::caller()); 2]; count];
                }
            }
        }
        let mut state = self.start(g);
        let mut states: Vec<[Value<'g>; 2]> = Vec::with_capacity(chars.len());
        for (&x, here) in chars.iter().zip(&ending) {
            let mut paths = Vec::with_capacity(here.len());
            for word in here {
                paths.push(self.word(g, word.x, states[word.first], x));
            }
            state = self.char(g, x, state, &paths);
            states.push(state);
        }
        states
    }

    /// The width of `h` and `c`.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}
