//! [`Sequence`]: the common interface of layers over sequences, which lets them nest.

use super::{Bidirectional, Gru, GruOptions, Lstm, LstmOptions, Rnn, RnnOptions, Stacked};
use autobatch_ir::{Graph, ModuleBuilder, Value};

/// A layer that maps a sequence of values to one of the same length. [`Bidirectional`] and [`Stacked`]
/// implement it and take any layer that does.
pub trait Sequence: Copy {
    /// The options of the constructor.
    type Options: Default;

    /// Declares the layer's parameters and traces its cells.
    #[track_caller]
    fn build(m: &mut ModuleBuilder, name: &str, input: usize, width: usize, options: &Self::Options) -> Self;

    /// The width of an input.
    fn input_width(&self) -> usize;

    /// The width of an output.
    fn output_width(&self) -> usize;

    /// The output at each input.
    #[track_caller]
    fn outputs<'g>(&self, g: &'g Graph, xs: &[Value<'g>]) -> Vec<Value<'g>>;

    /// The output after all inputs.
    #[track_caller]
    fn summary<'g>(&self, g: &'g Graph, xs: &[Value<'g>]) -> Value<'g>;
}

/// Implements [`Sequence`] by inherent methods: generics, layer, options, and further arguments of `with_options`.
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
                Self::with_options(m, name, input, width, options $(, $more)*)
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
