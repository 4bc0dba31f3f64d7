//! [`Embedding`]: one row of a table per word.

use autobatch_ir::{Arg, Graph, Init, IntoArg, ModuleBuilder, Table, Value};
use std::sync::Arc;

/// A table `[rows, width]` named `name`, with initial values uniform in `-0.1..0.1`.
///
/// A model of one instance needs no padding. For data with padding, declare the padding index:
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::Embedding;
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let words = Embedding::new(&mut m, "words", 100, 8).padding(0);
/// let g = Graph::new(&m.build()?);
/// let sentence = [17, 4, 0, 0].map(|word| words.lookup(&g, word)); // two rows of the table, and zeros twice
/// # g.output("last", sentence[3]);
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Embedding {
    table: Table,
    rows: usize,
    width: usize,
    padding: Option<u32>,
}

impl Embedding {
    /// A table with this number of rows.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, rows: usize, width: usize) -> Self {
        Self::with_options(m, name, rows, width, Init::Uniform(0.1))
    }

    /// A table with the given initialiser.
    #[track_caller]
    pub fn with_options(m: &mut ModuleBuilder, name: &str, rows: usize, width: usize, init: Init) -> Self {
        Self { table: m.table(name, [rows, width], init), rows, width, padding: None }
    }

    /// A table with these initial rows (pretrained vectors, for example), concatenated.
    #[track_caller]
    pub fn from_rows(m: &mut ModuleBuilder, name: &str, width: usize, values: Arc<[f32]>) -> Self {
        let rows = values.len().checked_div(width).unwrap_or(0);
        Self::with_options(m, name, rows, width, Init::Values(values))
    }

    /// The same table with a padding index. [`lookup`](Self::lookup) and [`row`](Self::row) give zeros for it
    /// and no gradient to its row. [`scores`](Self::scores) treat the row like all others.
    #[must_use]
    pub const fn padding(self, index: u32) -> Self {
        Self { padding: Some(index), ..self }
    }

    /// The row at a bound index or an index value.
    #[track_caller]
    #[must_use]
    pub fn lookup<'g>(&self, g: &'g Graph, index: impl IntoArg<'g>) -> Value<'g> {
        match (index.into_arg(), self.padding) {
            (Arg::Index(index), Some(padding)) if index == padding => g.zeros([self.width]),
            (Arg::Value(index), Some(_)) => self.row(index),
            (index, _) => self.table.lookup(g, index),
        }
    }

    /// The row at an index value: inside cells, or after an argmax.
    #[track_caller]
    #[must_use]
    pub fn row<'g>(&self, index: Value<'g>) -> Value<'g> {
        let Some(padding) = self.padding else { return self.table.row(index) };
        let (g, is_padding) = (index.graph(), index.equal(padding as f32));
        is_padding.select(g.zeros([self.width]), self.table.row(index))
    }

    /// `x · tableᵀ`: the score of every row, for an output layer that shares the table.
    #[track_caller]
    #[must_use]
    pub fn scores<'g>(&self, x: Value<'g>) -> Value<'g> {
        x.affine_transposed(self.table.as_param(), None)
    }

    /// The loss of a row under the scores of all rows, `-log_softmax(table · x)[label]`, without a score in memory: for an
    /// output layer of 10^4 rows and more that shares the table.
    #[track_caller]
    #[must_use]
    pub fn label_loss<'g>(&self, x: Value<'g>, label: impl IntoArg<'g>) -> Value<'g> {
        x.label_loss(self.table.as_param(), label)
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> Table {
        self.table
    }

    /// The number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The width of a row.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}
