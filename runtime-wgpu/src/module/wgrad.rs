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

    /// Words of each operand that a thread loads at a time: one for every sixteenth row.
    const fn words(self) -> u32 {
        self.deep() / 16
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
            "const EACH: u32 = {each}u;\nconst OWN: u32 = {}u;\nconst EDGE: u32 = {}u;\n\
             const DEEP: u32 = {}u;\nconst WORDS: u32 = {}u;\n\n\
             var<workgroup> xs: array<vec{each}<f32>, {words}>;\nvar<workgroup> ys: array<vec{each}<f32>, {words}>;\n",
            each * each,
            16 * each,
            self.deep(),
            self.words(),
            words = 16 * self.deep(),
        )
    }

    /// One line per element of a thread.
    fn lines(self, line: impl Fn(u32, u32) -> String) -> String {
        let each = self.each();
        (0..each).flat_map(|i| (0..each).map(move |j| (i, j))).map(|(i, j)| line(i, j)).collect()
    }

    /// The holes of the template.
    pub(super) fn holes(self) -> [(&'static str, String); 5] {
        let each = self.each();
        let element = |i, j| each * i + j;
        let word = |word: u32, of: &str| {
            let elements: Vec<String> =
                (0..each).map(|i| format!("{of}_next[{}]", each * word + i)).collect();
            format!(
                "                {of}s[local + {}u] = vec{each}<f32>({});\n",
                256 * word,
                elements.join(", ")
            )
        };
        let puts = (0..self.words()).map(|number| word(number, "x") + &word(number, "y")).collect();
        [
            ("shape", self.shape()),
            ("starts", self.lines(|i, j| format!("    var s{i}_{j} = kept[{}];\n", element(i, j)))),
            ("puts", puts),
            (
                "chains",
                self.lines(|i, j| {
                    format!("                        s{i}_{j} = mad(x[{i}], y[{j}], s{i}_{j});\n")
                }),
            ),
            ("stores", self.lines(|i, j| format!("    kept[{}] = s{i}_{j};\n", element(i, j)))),
        ]
    }
}
