//! Module texts of products of many rows: tiles gather operands in group memory.

use super::{BLOCK_HEAD, LoadWidth, PART, Products, word};
use autobatch_shaders::{TILE_PRODUCT, fragment};
use std::fmt::Write as _;
use std::ops::Range;

/// Bytes of group memory of a tile, below the smallest limit of all devices.
const GROUP_MEMORY: u32 = 12 << 10;

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

    /// The hole `body` of tiles: the sums of all products, then their copies for the epilogue.
    pub(super) fn tiled(&self) -> String {
        let each = self.per_thread();
        let products: String = self.each().map(|(number, sums)| self.product(number, sums)).collect();
        let kept = self.lines(0..self.all(), |s, i, j| {
            format!("    kept[{}] = s{s}_{i}_{j};", s * each + i * self.across() + j)
        });
        format!("    var kept: array<f32, {}>;\n{products}{kept}", self.all() * each)
    }

    /// The hole `call` of tiles.
    pub(super) fn tile_call(&self) -> String {
        let kept = |sum| format!(", kept[{}u + i * ACROSS + j]", sum * self.per_thread());
        let kept: String = (0..self.all()).map(kept).collect();
        format!("                    epilogue(lane, element{kept});\n")
    }

    /// The sums of a product.
    fn product(&self, number: u32, sums: Range<u32>) -> String {
        let (groups, each) = (sums.len() as u32, self.per_thread());
        let (tall, broad) = (word(self.tile.down()), word(self.across()));
        let band = format!("({groups}u * WIDE)");
        let (ks, columns) = self.at_once();
        let (along, across) = (format!("(DEEP / {ks}u)"), format!("({band} / {columns}u)"));
        let (by_rows, by_columns) = (
            [format!("place / {across}"), format!("place % {across}")],
            [format!("place % {along}"), format!("place / {along}")],
        );
        let [k, c] = match self.load {
            LoadWidth::One => std::array::from_fn(|axis| {
                let (first, second) = (&by_rows[axis], &by_columns[axis]);
                format!("select({first}, {second}, step == 1u)")
            }),
            LoadWidth::Columns => by_rows,
            LoadWidth::Depth => by_columns,
        };
        let starts = self.lines(sums.clone(), |s, i, j| {
            format!("    var s{s}_{i}_{j} = kept[{}];", s * each + i * self.across() + j)
        });
        let weights = self
            .weight_loads(&band)
            .iter()
            .fold(String::new(), |text, line| text + &format!("                    {line};\n"));
        let mut operands = String::new();
        for at in 0..self.tile.down() / tall {
            let _ = writeln!(operands, "                let x{at} = xs[(k * HIGH + down) / TALL + {at}u];");
        }
        for (group, s) in sums.clone().enumerate() {
            for at in 0..self.across() / broad {
                let place = format!("(k * {band} + {group}u * WIDE) / BROAD + right + {}u", 16 * at);
                let _ = writeln!(operands, "                let w{s}_{at} = ws[{place}];");
            }
        }
        let chains = self.lines(sums.clone(), |s, i, j| {
            let x = part(&format!("x{}", i / tall), tall, i);
            let w = part(&format!("w{s}_{}", j / broad), broad, j);
            format!("                s{s}_{i}_{j} = mad({x}, {w}, s{s}_{i}_{j});")
        });
        let numbers = [
            ("product", number),
            ("at", 3 + number),
            ("count", groups * each),
            ("before", sums.start * each),
            ("head", BLOCK_HEAD),
            ("parts", BLOCK_HEAD + groups),
            ("part", PART),
            ("ks", ks),
            ("columns", columns),
        ];
        let numbers = numbers.map(|(name, number)| (name, number.to_string()));
        let tall = filled(tall, |i| format!("ldf(starts[row + {i}u] + k0 + k)"));
        let words =
            [("tall", tall), ("along", along), ("across", across), ("band", band), ("k", k), ("c", c)];
        let holes = [("starts", starts), ("weights", weights), ("operands", operands), ("chains", chains)];
        fragment(TILE_PRODUCT, &[&numbers[..], &words].concat(), &holes)
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
