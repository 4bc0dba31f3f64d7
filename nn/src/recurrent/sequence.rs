//! [`Sequence`]: what layers over sequences have in common, so that they nest.

use super::{Gru, GruOptions, Lstm, LstmOptions, Rnn, RnnOptions};
use autobatch_ir::{Graph, ModuleBuilder, Value};

/// A layer from a sequence of values to one as long. [`Bidirectional`](super::Bidirectional) and
/// [`Stacked`](super::Stacked) take any, and are some.
pub trait Sequence: Copy {
    /// What the constructor may be asked for.
    type Options: Default;

    /// Declares the layer's parameters and traces its cells.
    #[track_caller]
    fn build(m: &mut ModuleBuilder, name: &str, input: usize, width: usize, options: &Self::Options) -> Self;

    /// How wide an input is.
    fn input_width(&self) -> usize;

    /// How wide an output is.
    fn output_width(&self) -> usize;

    /// The output at each input.
    #[track_caller]
    fn outputs<'g>(&self, g: &'g Graph, xs: &[Value<'g>]) -> Vec<Value<'g>>;

    /// The output that has seen every input.
    #[track_caller]
    fn summary<'g>(&self, g: &'g Graph, xs: &[Value<'g>]) -> Value<'g>;
}

macro_rules! sequences {
    ($($layer:ident $options:ident;)*) => {$(
        impl Sequence for $layer {
            type Options = $options;

            #[track_caller]
            fn build(
                m: &mut ModuleBuilder,
                name: &str,
                input: usize,
                width: usize,
                options: &$options,
            ) -> Self {
                Self::with(m, name, input, width, options)
            }

            fn input_width(&self) -> usize {
                self.input()
            }

            fn output_width(&self) -> usize {
                self.width()
            }

            #[track_caller]
            fn outputs<'g>(&self, g: &'g Graph, xs: &[Value<'g>]) -> Vec<Value<'g>> {
                self.run(g, xs)
            }

            #[track_caller]
            fn summary<'g>(&self, g: &'g Graph, xs: &[Value<'g>]) -> Value<'g> {
                self.last(g, xs)
            }
        }
    )*};
}

sequences! {
    Rnn RnnOptions;
    Lstm LstmOptions;
    Gru GruOptions;
}
