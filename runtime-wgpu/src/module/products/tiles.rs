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
        let starts = self.lines(sums.clone(), |s, i, j| {
            format!("    var s{s}_{i}_{j} = kept[{}];", s * each + i * self.across() + j)
        });
        let gathers = [self.operand_gathers(), self.weight_gathers(number, groups)].concat();
        let all = |text: fn(&Gather) -> &str| gathers.iter().map(text).collect::<String>();
        let mut operands = String::new();
        for at in 0..self.tile.down() / tall {
            let _ = writeln!(
                operands,
                "                        let x{at} = xs[(k * HIGH + down) / TALL + {at}u];"
            );
        }
        for (group, s) in sums.clone().enumerate() {
            for at in 0..self.across() / broad {
                let place = format!("(k * {band} + {group}u * WIDE) / BROAD + right + {}u", 16 * at);
                let _ = writeln!(operands, "                        let w{s}_{at} = ws[{place}];");
            }
        }
        let chains = self.lines(sums.clone(), |s, i, j| {
            let x = part(&format!("x{}", i / tall), tall, i);
            let w = part(&format!("w{s}_{}", j / broad), broad, j);
            format!("                        s{s}_{i}_{j} = mad({x}, {w}, s{s}_{i}_{j});")
        });
        let numbers = [
            ("product", number),
            ("at", 3 + number),
            ("count", groups * each),
            ("before", sums.start * each),
            ("head", BLOCK_HEAD),
            ("parts", BLOCK_HEAD + groups),
            ("part", PART),
        ];
        let numbers = numbers.map(|(name, number)| (name, number.to_string()));
        let (places, loads, stores) =
            (all(|gather| &gather.place), all(|gather| &gather.load), all(|gather| &gather.store));
        let holes = [
            ("starts", starts),
            ("places", places),
            ("stores", stores),
            ("loads", loads),
            ("operands", operands),
            ("chains", chains),
        ];
        fragment(TILE_PRODUCT, &numbers, &holes)
    }

    /// The words of the operand that a thread gathers.
    fn operand_gathers(&self) -> Vec<Gather> {
        let (tall, deep) = (word(self.tile.down()), self.deep());
        let words = deep * self.extents().0 / tall;
        let gather = |number: u32| {
            let guard = guard(number, words);
            let rows = (0..tall).map(|i| format!("starts[x{number}_row + {i}u]"));
            let rows: String =
                rows.zip(0..).map(|(row, i)| format!("        let x{number}_at{i} = {row};\n")).collect();
            let loaded = filled(tall, |i| format!("ldf(x{number}_at{i} + k1 + min(x{number}_k, last))"));
            Gather {
                place: format!(
                    "        let x{number}_place = local + {}u;\n\
                     \x20       let x{number}_k = x{number}_place % DEEP;\n\
                     \x20       let x{number}_row = TALL * min(x{number}_place / DEEP, HIGH / TALL - 1u);\n\
                     {rows}\
                     \x20       var x{number}_next: {};\n",
                    THREADS * number,
                    vector(tall)
                ),
                load: format!("                x{number}_next = {loaded};\n"),
                store: format!(
                    "                {guard}xs[(x{number}_k * HIGH + x{number}_row) / TALL] = x{number}_next;{}\n",
                    closed(&guard)
                ),
            }
        };
        (0..words.div_ceil(THREADS)).map(gather).collect()
    }

    /// The words of the weight of a product that a thread gathers.
    fn weight_gathers(&self, product: u32, groups: u32) -> Vec<Gather> {
        let broad = word(self.across());
        let (ks, columns) = self.at_once();
        let band = groups * self.extents().1;
        let (along, across) = (self.deep() / ks, band / columns);
        let words = along * across;
        let gather = |number: u32| {
            let n = format!("w{number}");
            let by_rows = [format!("{n}_place / {across}u"), format!("{n}_place % {across}u")];
            let by_columns = [format!("{n}_place % {along}u"), format!("{n}_place / {along}u")];
            let [k, c] = match self.load {
                LoadWidth::One => std::array::from_fn(|axis| {
                    format!("select({}, {}, step == 1u)", by_rows[axis], by_columns[axis])
                }),
                LoadWidth::Columns => by_rows,
                LoadWidth::Depth => by_columns,
            };
            let mut place = format!(
                "        let {n}_place = min(local + {}u, {}u);\n\
                 \x20       let {n}_k = {ks}u * ({k});\n\
                 \x20       let {n}_c = {columns}u * ({c});\n\
                 \x20       let {n}_column = first_column + {n}_c % WIDE;\n\
                 \x20       let {n}_begin = r(at + 5u) + r(b{product} + {BLOCK_HEAD}u + {n}_c / WIDE) * next;\n",
                THREADS * number,
                words - 1,
            );
            let column = |i: u32| format!("min({n}_column + {i}u, columns - 1u) * next");
            let at = |column: &str| {
                format!("{n}_begin + {column} + (k1 + min({n}_k, last / {ks}u * {ks}u)) * step")
            };
            let to = |at: &str| format!("ws[({n}_k * {band}u + {n}_c) / BROAD{at}]");
            let guard = guard(number, words);
            // The registers: their type, what they load, and the words that they fill.
            let (registers, stored): (Pairs, Pairs) = match self.load {
                LoadWidth::One => (
                    vec![(vector(broad), filled(broad, |i| self.weight(&at(&column(i)))))],
                    vec![(to(""), format!("{n}_0"))],
                ),
                LoadWidth::Columns => (
                    vec![(
                        vector(4),
                        self.weights(&at(&format!("min({n}_column, (columns - 1u) / 4u * 4u)"))),
                    )],
                    (0..4 / broad)
                        .map(|part| {
                            let elements = filled(broad, |i| format!("{n}_0[{}]", part * broad + i));
                            (to(&format!(" + {part}u")), elements)
                        })
                        .collect(),
                ),
                LoadWidth::Depth => (
                    (0..broad).map(|i| (vector(4), self.weights(&at(&column(i))))).collect(),
                    (0..4)
                        .map(|k| {
                            let elements = filled(broad, |i| format!("{n}_{i}[{k}]"));
                            (to(&format!(" + {k}u * {band}u / BROAD")), elements)
                        })
                        .collect(),
                ),
            };
            let mut load = String::new();
            for (register, (ty, value)) in registers.iter().enumerate() {
                let _ = writeln!(place, "        var {n}_{register}: {ty};");
                let _ = writeln!(load, "                {n}_{register} = {value};");
            }
            let stores: Vec<String> = stored.iter().map(|(to, value)| format!("{to} = {value};")).collect();
            let store = format!("                {guard}{}{}\n", stores.join(" "), closed(&guard));
            Gather { place, load, store }
        };
        (0..words.div_ceil(THREADS)).map(gather).collect()
    }
}

/// Pieces of text that belong together.
type Pairs = Vec<(String, String)>;

/// Threads of a tile.
const THREADS: u32 = 256;

/// A word of group memory that a thread fills for each tile: its place, the loads from the arena or the parameters, and
/// the stores into group memory.
#[derive(Clone)]
struct Gather {
    place: String,
    load: String,
    store: String,
}

/// The condition of a store, if some threads have no word of this number.
fn guard(number: u32, words: u32) -> String {
    if words >= THREADS * (number + 1) {
        return String::new();
    }
    format!("if local < {}u {{ ", words - THREADS * number)
}

fn closed(guard: &str) -> &'static str {
    if guard.is_empty() { "" } else { " }" }
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
