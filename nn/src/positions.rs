//! [`Positions`]: position vectors for the elements of a sequence.

use crate::any_cell::vector;
use crate::values::Values;
use autobatch_ir::{Cell, Graph, INDEX, Init, ModuleBuilder, Value};
use std::borrow::Borrow;
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
            Kind::Sinusoidal => x + g.input(&sinusoid(place, self.width)),
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
    let angle = |number: usize| place as f64 / 10000f64.powf((number - number % 2) as f64 / width as f64);
    let wave = |number: usize| match number % 2 {
        0 => angle(number).sin(),
        _ => angle(number).cos(),
    };
    (0..width).map(|number| wave(number) as f32).collect()
}
