//! [`Sequence`]: what layers over sequences have in common, so that they nest.

use super::{Bidirectional, Gru, GruOptions, Lstm, LstmOptions, Rnn, RnnOptions, Stacked};
use autobatch_ir::{Graph, ModuleBuilder, Value};

/// A layer from a sequence of values to one as long. [`Bidirectional`] and [`Stacked`] take any, and are
/// some.
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

/// Makes layers sequences by methods of their own: generics, layer, options, and what `with` takes behind them.
macro_rules! sequences {
    ($([$($generics:tt)*] $layer:ty, $options:ty $(, $more:expr)*;)*) => {$(
        impl<$($generics)*> Sequence for $layer {
            type Options = $options;

            #[track_caller]
            fn build(
                m: &mut ModuleBuilder,
                name: &str,
                input: usize,
                width: usize,
                options: &$options,
            ) -> Self {
                Self::with(m, name, input, width, options $(, $more)*)
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
    [] Rnn, RnnOptions;
    [] Lstm, LstmOptions;
    [] Gru, GruOptions;
    [R: Sequence] Bidirectional<R>, R::Options;
    [R: Sequence, const LAYERS: usize] Stacked<R, LAYERS>, R::Options, 0.0;
}
