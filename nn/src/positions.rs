//! [`Positions`]: position vectors for the elements of a sequence.

use crate::any_cell::vector;
use crate::values::Values;
use autobatch_ir::{Cell, Graph, INDEX, Init, ModuleBuilder, Value};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::panic::Location;

/// Adds a position vector to each element of a sequence: learned, or of sines and cosines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    kind: Kind,
    width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `x i -> x + table[i]`
    Learned {
        cell: Cell<2, 1>,
        longest: usize,
    },
    Sinusoidal,
}

impl Positions {
    /// A table `name: [longest, width]` of learned vectors, initially uniform in `-0.1..0.1`. Longer sequences are an error.
    #[track_caller]
    pub fn learned(m: &mut ModuleBuilder, name: &str, longest: usize, width: usize) -> Self {
        let table = m.table(name, [longest, width], Init::Uniform(0.1));
        let ports = [vector(width), INDEX];
        let cell = m.cell(&format!("{name}.add"), ports, |_, [x, place]| [x + table.row(place)]);
        Self { kind: Kind::Learned { cell, longest }, width }
    }

    /// Sines and cosines of decreasing frequencies (Vaswani et al. 2017), for any length: see [`sinusoid`].
    #[must_use]
    pub const fn sinusoidal(width: usize) -> Self {
        Self { kind: Kind::Sinusoidal, width }
    }

    /// Each element with its position vector added.
    #[track_caller]
    #[must_use]
    pub fn add<'g>(&self, g: &'g Graph, xs: impl Values<'g>) -> Vec<Value<'g>> {
        let mut placed = Vec::new();
        for (place, x) in xs.into_iter().enumerate() {
            placed.push(self.add_at(g, *x.borrow(), place));
        }
        placed
    }

    /// One element with the vector of position `place` (from 0) added.
    #[track_caller]
    #[must_use]
    pub fn add_at<'g>(&self, g: &'g Graph, x: Value<'g>, place: usize) -> Value<'g> {
        match self.kind {
            Kind::Sinusoidal => {
                let wave = WAVES.with_borrow_mut(|waves| waves.row(place, self.width));
                x + g.input(&wave)
            }
            Kind::Learned { cell, longest } if place < longest => {
                let [x] = g.call(cell, (x, place as u32));
                x
            }
            Kind::Learned { longest, .. } => {
                let message = format!("there are {longest} positions, found position {place}");
                let help = "declare more positions, or use sinusoidal ones";
                g.refuse("positions", &message, help, Location::caller())
            }
        }
    }
}

/// Element `2i` is `sin(place / 10000^(2i / width))` and element `2i + 1` its cosine.
#[must_use]
pub fn sinusoid(place: usize, width: usize) -> Vec<f32> {
    let mut row = Vec::with_capacity(width);
    for number in (0..width).step_by(2) {
        let angle = place as f64 / 10000f64.powf(number as f64 / width as f64);
        row.push(angle.sin() as f32);
        row.push(angle.cos() as f32);
    }
    row.truncate(width);
    row
}

/// The largest number of elements that a [`Waves`] keeps, 4 MiB.
const KEPT: usize = 1 << 20;

/// The [`sinusoid`]s of one width, which all sequences share. Computing one takes longer than a layer of an encoder.
#[derive(Default)]
struct Waves {
    width: usize,
    /// The rows of the first positions.
    rows: Vec<f32>,
}

thread_local! {
    /// The rows of the width that this thread used last.
    static WAVES: RefCell<Waves> = RefCell::default();
}

impl Waves {
    /// The row of a position.
    fn row(&mut self, place: usize, width: usize) -> Vec<f32> {
        if self.width != width {
            *self = Self { width, rows: Vec::new() };
        }
        if width == 0 || place >= KEPT / width {
            return sinusoid(place, width);
        }
        for place in self.rows.len() / width..=place {
            self.rows.extend(sinusoid(place, width));
        }
        self.rows[place * width..(place + 1) * width].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_rows_equal_computed_ones() {
        let mut waves = Waves::default();
        for (place, width) in
            [(0, 6), (9, 6), (3, 6), (2, 5), (40, 1), (7, 0), (KEPT, 6), (1, 6), (1, KEPT + 1)]
        {
            let kept = waves.row(place, width);
            assert_eq!(kept, sinusoid(place, width), "{place} of {width}");
            assert!(waves.rows.len() <= KEPT);
        }
    }

    #[test]
    fn waves_are_sines_and_cosines() {
        let angle = 3.0 / 10000f64.powf(2.0 / 5.0);
        let expected =
            [3f64.sin(), 3f64.cos(), angle.sin(), angle.cos(), (3.0 / 10000f64.powf(4.0 / 5.0)).sin()];
        assert_eq!(sinusoid(3, 5), expected.map(|wave| wave as f32));
    }
}
