//! Module texts of weight gradients.

use std::fmt::Write as _;

/// Rows of both operands in group memory.
const DEEP: u32 = 16;
/// Number of tiles that keeps a device busy.
const MANY_TILES: u64 = 64;

/// The distribution of the gradient of a weight over threads. An element is one chain of multiply-adds over the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WgradTile {
    /// One element per thread.
    Element,
    /// Tiles of 32 by 32 elements, two by two per thread.
    Two,
    /// Tiles of 64 by 64 elements, four by four per thread.
    Four,
}

impl WgradTile {
    /// Every variant.
    pub const ALL: [Self; 3] = [Self::Element, Self::Two, Self::Four];

    /// The variant for a block of this size.
    #[must_use]
    pub const fn of(rows: u64, columns: u64) -> Self {
        if rows < 16 || columns < 16 {
            Self::Element
        } else if Self::Four.tiles(rows, columns) < MANY_TILES {
            Self::Two
        } else {
            Self::Four
        }
    }

    /// Rows and columns of a thread.
    const fn each(self) -> u32 {
        match self {
            Self::Element => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Tiles of a block of this size.
    pub(super) const fn tiles(self, rows: u64, columns: u64) -> u64 {
        let edge = 16 * self.each() as u64;
        rows.div_ceil(edge) * columns.div_ceil(edge)
    }

    /// The hole `shape`.
    pub(super) fn shape(self) -> String {
        let each = self.each();
        format!(
            "const EACH: u32 = {each}u;\nconst EDGE: u32 = {}u;\nconst DEEP: u32 = {DEEP}u;\n\n\
             var<workgroup> xs: array<vec{each}<f32>, {words}>;\nvar<workgroup> ys: array<vec{each}<f32>, {words}>;\n",
            16 * each,
            words = 16 * DEEP,
        )
    }

    /// One line per element of a thread.
    fn lines(self, line: impl Fn(u32, u32) -> String) -> String {
        let each = self.each();
        (0..each).flat_map(|i| (0..each).map(move |j| (i, j))).map(|(i, j)| line(i, j)).collect()
    }

    /// The hole `body`.
    pub(super) fn body(self) -> String {
        // A group has as many threads as an operand has words in group memory, so each thread loads one word of both.
        // Threads past an edge load the last row or column again, and their results are dropped.
        let vector = |row: &str, axis: &str| -> String {
            let element = |i| format!("ldf({row} + min({axis}_at + {i}u, {axis}_end))");
            (0..self.each()).map(element).collect::<Vec<_>>().join(", ")
        };
        let element = |i: u32, j: u32| {
            let at = format!(
                "r(2u) + min(first_k + EACH * down + {i}u, depth - 1u) * r(3u) + min(first_n + EACH * right + {j}u, columns - 1u)"
            );
            format!("    var s{i}_{j} = ldf({at});\n")
        };
        let chain =
            self.lines(|i, j| format!("                    s{i}_{j} = mad(x[{i}], y[{j}], s{i}_{j});\n"));
        let mut text = self.lines(element);
        let _ = write!(
            text,
            "    let k_at = first_k + EACH * right;\n\
             \x20   let n_at = first_n + EACH * right;\n\
             \x20   let k_end = depth - 1u;\n\
             \x20   let n_end = columns - 1u;\n\
             \x20   for (var part = 0u; part < r(4u); part++) {{\n\
             \x20       let at = 5u + 10u * part;\n\
             \x20       let each = r(at + 1u);\n\
             \x20       let rows = r(at) * each;\n\
             \x20       for (var first = 0u; first < rows; first = first + DEEP) {{\n\
             \x20           // The memory may still be read.\n\
             \x20           workgroupBarrier();\n\
             \x20           let mine = first + down;\n\
             \x20           if mine < rows {{\n\
             \x20               let x = row_of(at + 2u, mine / each) + (mine % each) * depth;\n\
             \x20               let y = row_of(at + 6u, mine / each) + (mine % each) * columns;\n\
             \x20               xs[local] = vec{each}<f32>({x});\n\
             \x20               ys[local] = vec{each}<f32>({y});\n\
             \x20           }}\n\
             \x20           workgroupBarrier();\n\
             \x20           if first + DEEP <= rows {{\n\
             \x20               // Its length is known, so compilers may unroll it.\n\
             \x20               for (var q = 0u; q < DEEP; q++) {{\n\
             \x20                   let x = xs[q * 16u + down];\n\
             \x20                   let y = ys[q * 16u + right];\n\
             {chain}\
             \x20               }}\n\
             \x20           }} else {{\n\
             \x20               for (var q = 0u; q < rows - first; q++) {{\n\
             \x20                   let x = xs[q * 16u + down];\n\
             \x20                   let y = ys[q * 16u + right];\n\
             {chain}\
             \x20               }}\n\
             \x20           }}\n\
             \x20       }}\n\
             \x20   }}\n",
            each = self.each(),
            x = vector("x", "k"),
            y = vector("y", "n"),
        );
        text += &self.lines(|i, j| {
            format!(
                "    if first_k + EACH * down + {i}u < depth && first_n + EACH * right + {j}u < columns {{\n\
                 \x20       stf(r(2u) + (first_k + EACH * down + {i}u) * r(3u) + first_n + EACH * right + {j}u, s{i}_{j});\n\
                 \x20   }}\n"
            )
        });
        text
    }
}
