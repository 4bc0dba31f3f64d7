//! Module texts of weight gradients.

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
        if rows < 16 && columns < 16 {
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

    /// Rows of both operands in group memory, which is 8 KiB for each of them.
    pub(crate) const fn deep(self) -> u32 {
        match self {
            Self::Element => 1,
            Self::Two => 32,
            Self::Four => 16,
        }
    }

    /// Tiles of a block of this size.
    pub(super) const fn tiles(self, rows: u64, columns: u64) -> u64 {
        let edge = 16 * self.each() as u64;
        rows.div_ceil(edge) * columns.div_ceil(edge)
    }

    /// The hole `shape`.
    fn shape(self) -> String {
        let each = self.each();
        format!(
            "const EACH: u32 = {each}u;\nconst EDGE: u32 = {}u;\nconst DEEP: u32 = {}u;\n\n\
             var<workgroup> xs: array<vec{each}<f32>, {words}>;\nvar<workgroup> ys: array<vec{each}<f32>, {words}>;\n",
            16 * each,
            self.deep(),
            words = 16 * self.deep(),
        )
    }

    /// One line per element of a thread.
    fn lines(self, line: impl Fn(u32, u32) -> String) -> String {
        let each = self.each();
        (0..each).flat_map(|i| (0..each).map(move |j| (i, j))).map(|(i, j)| line(i, j)).collect()
    }

    /// The holes of the template.
    pub(super) fn holes(self) -> [(&'static str, String); 7] {
        let row = |i| format!("first_k + EACH * down + {i}u");
        let column = |j| format!("first_n + EACH * right + {j}u");
        let starts = self.lines(|i, j| {
            let at = format!("min({}, depth - 1u) * r(3u) + min({}, columns - 1u)", row(i), column(j));
            format!("    var s{i}_{j} = ldf(r(2u) + {at});\n")
        });
        // A thread holds a word of each operand for every sixteenth row. Rows past the last one, and elements past an edge, are
        // loaded again, and their results are dropped.
        let words = |text: &dyn Fn(u32) -> String| (0..self.deep() / 16).map(text).collect::<String>();
        let each = self.each();
        let nexts = words(&|word| {
            format!("        var x{word}_next: vec{each}<f32>;\n        var y{word}_next: vec{each}<f32>;\n")
        });
        let vector = |row: &str, axis: &str| {
            let element = |i| format!("ldf({row} + min({axis}_at + {i}u, {axis}_end))");
            let elements: Vec<String> = (0..each).map(element).collect();
            format!("vec{each}<f32>({})", elements.join(", "))
        };
        let loads = words(&|word| {
            let (row, x, y) = (format!("row{word}"), format!("x{word}"), format!("y{word}"));
            let (in_x, in_y) = (vector(&x, "k"), vector(&y, "n"));
            format!(
                "                let {row} = min(next + {}u, rows - 1u);\n\
                 \x20               let {x} = row_of(at + 2u, {row} / each) + ({row} % each) * depth;\n\
                 \x20               let {y} = row_of(at + 6u, {row} / each) + ({row} % each) * columns;\n\
                 \x20               {x}_next = {in_x};\n\
                 \x20               {y}_next = {in_y};\n",
                16 * word
            )
        });
        let puts = words(&|word| {
            let at = 256 * word;
            format!(
                "            xs[local + {at}u] = x{word}_next;\n            ys[local + {at}u] = y{word}_next;\n"
            )
        });
        let chains =
            self.lines(|i, j| format!("                    s{i}_{j} = mad(x[{i}], y[{j}], s{i}_{j});\n"));
        let stores = self.lines(|i, j| {
            let (row, column) = (row(i), column(j));
            format!(
                "    if {row} < depth && {column} < columns {{\n\
                 \x20       stf(r(2u) + ({row}) * r(3u) + {column}, s{i}_{j});\n\
                 \x20   }}\n"
            )
        });
        [
            ("shape", self.shape()),
            ("starts", starts),
            ("nexts", nexts),
            ("loads", loads),
            ("puts", puts),
            ("chains", chains),
            ("stores", stores),
        ]
    }
}
