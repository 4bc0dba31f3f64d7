//! Module texts of products of many rows: tiles gather operands in group memory.

use super::{BLOCK_HEAD, LoadWidth, PART, Products, word};
use std::fmt::Write as _;
use std::ops::Range;

/// Bytes of group memory of a tile, below the smallest limit of all devices.
const GROUP_MEMORY: u32 = 12 << 10;

/// The column of sum `j` of a thread in its tile: neighbours in a word, words sixteen apart.
const COLUMN: &str = "(j / BROAD) * 16u * BROAD + right * BROAD + j % BROAD";

impl Products {
    /// The hole `shape` of tiles.
    pub(in crate::module) fn shape(&self) -> String {
        let (high, wide) = self.extents();
        let band = wide * self.groups.iter().copied().max().unwrap_or(1);
        let deep = self.deep();
        let (down, across) = (self.tile.down(), self.across());
        let (tall, broad) = (word(down), word(across));
        format!(
            "const HIGH: u32 = {high}u;\nconst WIDE: u32 = {wide}u;\nconst DOWN: u32 = {down}u;\n\
             const ACROSS: u32 = {across}u;\nconst DEEP: u32 = {deep}u;\n\
             const TALL: u32 = {tall}u;\nconst BROAD: u32 = {broad}u;\n\n\
             var<workgroup> xs: array<{}, {}>;\nvar<workgroup> ws: array<{}, {}>;\n",
            vector(tall),
            high * deep / tall,
            vector(broad),
            band * deep / broad,
        )
    }

    /// Columns of the operand in group memory.
    pub(super) fn deep(&self) -> u32 {
        let (high, wide) = self.extents();
        let band = wide * self.groups.iter().copied().max().unwrap_or(1);
        let bytes = |deep: u32| (high + band) * deep * 4 + high * 4;
        if bytes(16) <= GROUP_MEMORY { 16 } else { 8 }
    }

    /// Elements of a thread, in each group.
    fn per_thread(&self) -> u32 {
        self.tile.down() * self.across()
    }

    /// One line per element of a thread, for these sums.
    fn lines(&self, sums: Range<u32>, line: impl Fn(u32, u32, u32) -> String) -> String {
        let (down, across) = (self.tile.down(), self.across());
        let mut text = String::new();
        for sum in sums {
            for element in 0..down * across {
                text.push_str(&line(sum, element / across, element % across));
                text.push('\n');
            }
        }
        text
    }

    /// The numbers of `k` and of columns of a weight that a thread gathers at once: whole words of group memory.
    pub(super) fn at_once(&self) -> (u32, u32) {
        match self.load {
            LoadWidth::One => (1, word(self.across())),
            LoadWidth::Columns => (1, 4),
            LoadWidth::Depth => (4, word(self.across())),
        }
    }

    /// The hole `body` of tiles.
    pub(super) fn tiled(&self) -> String {
        let mut text = format!("    var kept: array<f32, {}>;\n", self.all() * self.per_thread());
        for (number, sums) in self.each() {
            text += &self.starts(number, sums.clone());
            text += &self.part_head(number, sums.len() as u32);
            text += &self.gather_rows();
            text += &self.gather_weights(number, sums.len() as u32);
            text += &self.multiply(sums);
        }
        text += &self.call_epilogue();
        text
    }

    /// Sets the sums of a product to their initial values.
    fn starts(&self, number: u32, sums: Range<u32>) -> String {
        let each = self.per_thread();
        let mut text = format!(
            "    let b{number} = r({at}u);\n\
             \x20   if r(b{number} + 1u) != 0u {{\n\
             \x20       for (var at = 0u; at < {count}u; at++) {{\n\
             \x20           let g = at / (DOWN * ACROSS);\n\
             \x20           let row = min(first_row + down + (at / ACROSS) % DOWN, rows - 1u);\n\
             \x20           let j = at % ACROSS;\n\
             \x20           let column = min(first_column + {COLUMN}, columns - 1u);\n\
             \x20           let start = r(b{number} + {BLOCK_HEAD}u + g) + column;\n\
             \x20           kept[{before}u + at] = sum_start(b{number}, segment.first + row / each, row % each, start);\n\
             \x20       }}\n\
             \x20   }}\n",
            at = 3 + number,
            count = sums.len() as u32 * each,
            before = sums.start * each,
        );
        text += &self.lines(sums, |s, i, j| {
            format!("    var s{s}_{i}_{j} = kept[{}];", s * each + i * self.across() + j)
        });
        text
    }

    /// Opens the loops over parts and over blocks of `k`.
    fn part_head(&self, number: u32, groups: u32) -> String {
        format!(
            "    for (var part = 0u; part < r(b{number}); part++) {{\n\
             \x20       let at = b{number} + {parts}u + {PART}u * part;\n\
             \x20       let width = r(at + 4u);\n\
             \x20       let step = r(at + 6u);\n\
             \x20       workgroupBarrier();\n\
             \x20       if local < HIGH {{\n\
             \x20           let row = min(first_row + local, rows - 1u);\n\
             \x20           starts[local] = row_of(at, segment.first + row / each) + (row % each) * width;\n\
             \x20       }}\n\
             \x20       workgroupBarrier();\n\
             \x20       for (var k0 = 0u; k0 < width; k0 = k0 + DEEP) {{\n\
             \x20           let deep = min(DEEP, width - k0);\n",
            parts = BLOCK_HEAD + groups,
        )
    }

    /// Gathers DEEP columns of the operand. Neighbouring threads read along a row.
    fn gather_rows(&self) -> String {
        format!(
            "            for (var place = local; place < DEEP * HIGH / TALL; place = place + 256u) {{\n\
             \x20               let k = place % DEEP;\n\
             \x20               let row = TALL * (place / DEEP);\n\
             \x20               if k < deep {{\n\
             \x20                   xs[(k * HIGH + row) / TALL] = {tall};\n\
             \x20               }}\n\
             \x20           }}\n",
            tall = filled(word(self.tile.down()), |i| format!("ldf(starts[row + {i}u] + k0 + k)")),
        )
    }

    /// Gathers DEEP rows of the groups' columns of the weight. Elements past the last column or the last `k` lie in the
    /// same stored row, and their results are dropped.
    fn gather_weights(&self, number: u32, groups: u32) -> String {
        let band = format!("({groups}u * WIDE)");
        let (ks, columns) = self.at_once();
        let (along, across) = (format!("(DEEP / {ks}u)"), format!("({band} / {columns}u)"));
        // Neighbouring threads read along a row of the weight as it is stored.
        let (k, c) = match self.load {
            LoadWidth::One => (
                format!("select(place / {across}, place % {along}, step == 1u)"),
                format!("select(place % {across}, place / {along}, step == 1u)"),
            ),
            LoadWidth::Columns => (format!("place / {across}"), format!("place % {across}")),
            LoadWidth::Depth => (format!("place % {along}"), format!("place / {along}")),
        };
        let mut text = format!(
            "            for (var place = local; place < {along} * {across}; place = place + 256u) {{\n\
             \x20               let k = {ks}u * ({k});\n\
             \x20               let c = {columns}u * ({c});\n\
             \x20               if k < deep {{\n\
             \x20                   let column = first_column + c % WIDE;\n\
             \x20                   let next = r(at + 7u);\n\
             \x20                   let begin = r(at + 5u) + r(b{number} + {BLOCK_HEAD}u + c / WIDE) * next + (k0 + k) * step;\n\
             \x20                   let word = (k * {band} + c) / BROAD;\n"
        );
        for line in self.weight_loads(&band) {
            let _ = writeln!(text, "                    {line};");
        }
        text.push_str("                }\n            }\n");
        text
    }

    /// The statements that load words of a weight into group memory.
    fn weight_loads(&self, band: &str) -> Vec<String> {
        let broad = word(self.across());
        let column = |i| format!("begin + min(column + {i}u, columns - 1u) * next");
        match self.load {
            LoadWidth::One => vec![format!("ws[word] = {}", filled(broad, |i| self.weight(&column(i))))],
            LoadWidth::Columns => {
                let four = self.weights("begin + min(column, (columns - 1u) / 4u * 4u)");
                let store = |at: u32| {
                    let elements = filled(broad, |i| format!("four[{}]", at * broad + i));
                    format!("ws[word + {at}u] = {elements}")
                };
                [format!("let four = {four}")].into_iter().chain((0..4 / broad).map(store)).collect()
            }
            LoadWidth::Depth => {
                let load = |i| format!("let four{i} = {}", self.weights(&column(i)));
                let store = |k: u32| {
                    let elements = filled(broad, |i| format!("four{i}[{k}]"));
                    format!("ws[word + {k}u * {band} / BROAD] = {elements}")
                };
                (0..broad).map(load).chain((0..4).map(store)).collect()
            }
        }
    }

    /// Adds the products of the gathered operands, and closes the loops over blocks of `k` and parts.
    fn multiply(&self, sums: Range<u32>) -> String {
        let groups = sums.len();
        let mut text =
            "            workgroupBarrier();\n            for (var k = 0u; k < deep; k++) {\n".to_owned();
        let (tall, broad) = (word(self.tile.down()), word(self.across()));
        for at in 0..self.tile.down() / tall {
            let _ = writeln!(text, "                let x{at} = xs[(k * HIGH + down) / TALL + {at}u];");
        }
        for (group, s) in sums.clone().enumerate() {
            for at in 0..self.across() / broad {
                let place =
                    format!("(k * ({groups}u * WIDE) + {group}u * WIDE) / BROAD + right + {}u", 16 * at);
                let _ = writeln!(text, "                let w{s}_{at} = ws[{place}];");
            }
        }
        text += &self.lines(sums, |s, i, j| {
            let x = part(&format!("x{}", i / tall), tall, i);
            let w = part(&format!("w{s}_{}", j / broad), broad, j);
            format!("                s{s}_{i}_{j} = mad({x}, {w}, s{s}_{i}_{j});")
        });
        text.push_str("            }\n            workgroupBarrier();\n        }\n    }\n");
        text
    }

    /// Calls the epilogue in a loop over the elements of a thread, so that its text occurs once.
    fn call_epilogue(&self) -> String {
        let each = self.per_thread();
        let mut text = self.lines(0..self.all(), |s, i, j| {
            format!("    kept[{}] = s{s}_{i}_{j};", s * each + i * self.across() + j)
        });
        let kept = |sum| format!(", kept[{}u + i * ACROSS + j]", sum * each);
        let kept: String = (0..self.all()).map(kept).collect();
        let _ = write!(
            text,
            "    for (var i = 0u; i < DOWN; i++) {{\n\
             \x20       let row = first_row + down + i;\n\
             \x20       if row < rows {{\n\
             \x20           let lane = segment.first + row / each;\n\
             \x20           for (var j = 0u; j < ACROSS; j++) {{\n\
             \x20               let column = first_column + {COLUMN};\n\
             \x20               if column < columns {{\n\
             \x20                   epilogue(lane, (row % each) * columns + column{kept});\n\
             \x20               }}\n\
             \x20           }}\n\
             \x20       }}\n\
             \x20   }}\n",
        );
        text
    }
}

/// The type of a word of this many elements.
fn vector(elements: u32) -> String {
    if elements == 1 { "f32".to_owned() } else { format!("vec{elements}<f32>") }
}

/// A word of these elements.
fn filled(elements: u32, element: impl Fn(u32) -> String) -> String {
    let all: Vec<String> = (0..elements).map(element).collect();
    format!("{}({})", vector(elements), all.join(", "))
}

/// An element of a word.
fn part(name: &str, elements: u32, at: u32) -> String {
    if elements == 1 { name.to_owned() } else { format!("{name}[{}]", at % elements) }
}
