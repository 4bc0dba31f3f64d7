//! [`MvRnn`]: each node has a vector and a matrix that is applied to its sibling.

use crate::any_cell::{matrix, vector};
use autobatch_ir::{Cell, Graph, Init, ModuleBuilder, Value};

/// The matrix-vector recursive network (Socher et al. 2012). A node over `(a, A)` and `(b, B)`:
/// ```text
/// p = tanh([B a ; A b] · W + bias)        P = Wm [A ; B]
/// ```
/// where `B a` is the matrix-vector product and `Wm [A ; B] = Wm1 A + Wm2 B`. Values hold the
/// **transposed** matrices, since a product with a parameter takes rows: `B a` is the row `a · Bᵀ`,
/// and `Pᵀ = [Aᵀ Bᵀ] · name.wm`, one product of `width` rows.
///
/// Parameters: `name.w: [2 width, width]`, `name.b: [width]`, `name.wm: [2 width, width]`, the
/// transpose of `Wm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MvRnn {
    cell: Cell<4, 2>,
    width: usize,
}

impl MvRnn {
    /// A layer with Glorot's weights and a zero bias.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        Self::with_options(m, name, width, &Init::Glorot(1.0))
    }

    /// A layer with the given initialiser.
    #[track_caller]
    pub fn with_options(m: &mut ModuleBuilder, name: &str, width: usize, init: &Init) -> Self {
        let rows = width.saturating_mul(2);
        let w = m.param(&format!("{name}.w"), [rows, width], init.clone());
        let b = m.param(&format!("{name}.b"), [width], Init::ZEROS);
        let wm = m.param(&format!("{name}.wm"), [rows, width], init.clone());
        let (v, mv) = (vector(width), matrix(&[width, width]));
        let cell = m.cell(name, [v, mv, v, mv], |g, [a, at, b_, bt]| {
            let p = g.affine([a.matmul(bt), b_.matmul(at)], w, Some(b)).tanh();
            [p, g.affine([at, bt], wm, None)]
        });
        Self { cell, width }
    }

    /// A leaf with a vector and a matrix. The matrix is one row of `width * width` elements,
    /// transposed, as a table stores it.
    #[track_caller]
    #[must_use]
    pub fn leaf<'g>(&self, vector: Value<'g>, matrix: Value<'g>) -> [Value<'g>; 2] {
        [vector, matrix.reshape([self.width, self.width])]
    }

    /// The vector and the transposed matrix of a node over two such pairs.
    #[track_caller]
    #[must_use]
    pub fn node<'g>(&self, g: &'g Graph, left: [Value<'g>; 2], right: [Value<'g>; 2]) -> [Value<'g>; 2] {
        let ([a, at], [b, bt]) = (left, right);
        g.call(self.cell, [a, at, b, bt])
    }

    /// The width of a node's vector.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }
}
