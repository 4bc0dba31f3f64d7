//! Texts of products: the sums of all groups, and a tail that takes them.
//!
//! A *group* is a stretch of columns of a product as wide as its tail. What computes column `j` of one
//! group computes column `j` of all of them, so that a cell whose gates lie side by side in one product, or
//! in several, is one dispatch: the tail finds all gates of an element in one thread.

use std::fmt::Write as _;

/// Groups of all products of a dispatch at most: each is a sum, or sixteen, in the registers of a thread.
pub const MOST_GROUPS: usize = 8;
/// Words of a block before its groups, and of a part.
pub const BLOCK_HEAD: u32 = 7;
/// Words of a part of a product.
pub const PART: u32 = 9;
/// Bytes of group memory that a tile may take: what devices of the least limits have, with room to spare.
const GROUP_MEMORY: u32 = 12 << 10;

/// How products are cut among threads. All of them compute every sum as one chain in ascending `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tile {
    /// A thread an element.
    Few,
    /// Tiles of 16 rows.
    Rows16,
    /// Tiles of 64 rows.
    Rows64,
    /// Tiles of 128 rows.
    Rows128,
}

impl Tile {
    /// Every tile.
    pub const ALL: [Self; 4] = [Self::Few, Self::Rows16, Self::Rows64, Self::Rows128];

    /// The tile for so many rows and columns.
    #[must_use]
    pub const fn of(rows: u64, columns: u64) -> Self {
        match rows {
            0..16 => Self::Few,
            _ if columns < 4 => Self::Few,
            16..64 => Self::Rows16,
            64..1024 => Self::Rows64,
            _ => Self::Rows128,
        }
    }

    /// Rows of a thread.
    const fn down(self) -> u32 {
        match self {
            Self::Few | Self::Rows16 => 1,
            Self::Rows64 => 4,
            Self::Rows128 => 8,
        }
    }
}

/// Products of one width, and the tail that takes their sums.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Products {
    /// How they are cut among threads.
    pub tile: Tile,
    /// Whether a weight is stored in halves of words.
    pub packed: bool,
    /// The groups of each product.
    pub groups: Vec<u32>,
    /// The body of `tail(lane, element, s0, s1, ..)`, which takes a sum a group.
    pub tail: String,
}

impl Products {
    /// Groups of all products.
    fn all(&self) -> u32 {
        self.groups.iter().sum::<u32>().max(1)
    }

    /// Columns of a thread, of each group.
    fn across(&self) -> u32 {
        let most = if self.tile == Tile::Rows128 { 8 } else { 4 };
        (most / self.all()).max(1)
    }

    /// Rows of a tile, and columns of each group.
    fn extents(&self) -> (u32, u32) {
        (16 * self.tile.down(), 16 * self.across())
    }

    /// How many groups play so many threads; of tiles, so many rows of so many columns.
    pub(super) fn workgroups(&self, threads: u64, columns: u64) -> u64 {
        let (high, wide) = self.extents();
        match self.tile {
            Tile::Few => threads.div_ceil(super::GROUP),
            _ => threads.div_ceil(u64::from(high)) * columns.div_ceil(u64::from(wide)),
        }
    }

    /// The hole `tail`.
    pub(super) fn tail_text(&self) -> String {
        let sums: String = (0..self.all()).map(|sum| format!(", s{sum}: f32")).collect();
        format!("fn tail(lane: u32, element: u32{sums}) {{\n{}}}\n", self.tail)
    }

    /// The hole `body`.
    pub(super) fn body(&self) -> String {
        match self.tile {
            Tile::Few => self.few(),
            _ => self.tiled(),
        }
    }

    /// The hole `shape` of tiles.
    pub(super) fn shape(&self) -> String {
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

    /// Columns of the operand in the memory of a group.
    fn deep(&self) -> u32 {
        let (high, wide) = self.extents();
        let band = wide * self.groups.iter().copied().max().unwrap_or(1);
        let bytes = |deep: u32| (high + band) * deep * 4 + high * 4;
        if bytes(16) <= GROUP_MEMORY { 16 } else { 8 }
    }

    /// How many rounds the loops of a thread take with this record, those of [`body`](Self::body).
    pub(crate) fn rounds(&self, record: &[u32]) -> u64 {
        let (down, across) = (u64::from(self.tile.down()), u64::from(self.across()));
        let (high, wide) = self.extents();
        let deep = self.deep();
        let mut rounds = match self.tile {
            Tile::Few => 0,
            _ => down * (across + 2) + 1,
        };
        for (number, &groups) in self.groups.iter().enumerate() {
            let block = record[3 + number] as usize;
            rounds += match self.tile {
                Tile::Few => u64::from(groups) + 2,
                _ => u64::from(groups) * down * across + 2,
            };
            // What is gathered for `deep` columns, and the columns.
            let gathered = |words: u32| u64::from(words.div_ceil(256)) + 1;
            let (tall, broad) = (word(self.tile.down()), word(self.across()));
            let each = gathered(deep * high / tall) + gathered(deep * groups * wide / broad) + 1;
            for part in 0..record[block] {
                let at = block + (BLOCK_HEAD + groups + PART * part) as usize;
                let width = u64::from(record[at + 4]);
                rounds += match self.tile {
                    Tile::Few => width + 2,
                    _ => width + width.div_ceil(deep.into()) * (each + 1) + 2,
                };
            }
        }
        rounds
    }

    /// The column of sum `j` of a thread, in its tile: neighbours in a word, words sixteen apart.
    const COLUMN: &str = "(j / BROAD) * 16u * BROAD + right * BROAD + j % BROAD";

    /// What reads an element of the weight of the part at `at`.
    fn weight(&self, place: &str) -> String {
        if self.packed { format!("stored(r(at + 8u), {place})") } else { format!("paramf({place})") }
    }

    /// The products, each with the numbers of its sums.
    fn each(&self) -> impl Iterator<Item = (u32, std::ops::Range<u32>)> + '_ {
        let mut next = 0;
        self.groups.iter().zip(0..).map(move |(&groups, number)| {
            next += groups;
            (number, next - groups..next)
        })
    }

    fn few(&self) -> String {
        let mut text = String::new();
        for (number, sums) in self.each() {
            let parts = BLOCK_HEAD + sums.len() as u32;
            let _ = writeln!(text, "    let b{number} = r({}u);", 3 + number);
            let _ = write!(
                text,
                "    var starts{number}: array<f32, {groups}>;\n\
                 \x20   for (var g = 0u; g < {groups}u; g++) {{\n\
                 \x20       let c = r(b{number} + {BLOCK_HEAD}u + g) + column;\n\
                 \x20       starts{number}[g] = sum_start(b{number}, lane, row, c);\n\
                 \x20   }}\n",
                groups = sums.len(),
            );
            for (group, sum) in sums.clone().enumerate() {
                let at = BLOCK_HEAD + group as u32;
                let _ = writeln!(text, "    let c{sum} = r(b{number} + {at}u) + column;");
                let _ = writeln!(text, "    var s{sum} = starts{number}[{group}];");
            }
            let _ = write!(
                text,
                "    for (var part = 0u; part < r(b{number}); part++) {{\n\
                 \x20       let at = b{number} + {parts}u + {PART}u * part;\n\
                 \x20       let width = r(at + 4u);\n\
                 \x20       let x_at = row_of(at, lane) + row * width;\n\
                 \x20       let step = r(at + 6u);\n"
            );
            for sum in sums.clone() {
                let _ = writeln!(text, "        var w{sum} = r(at + 5u) + c{sum} * r(at + 7u);");
            }
            text.push_str("        for (var k = 0u; k < width; k++) {\n            let x = ldf(x_at + k);\n");
            for sum in sums {
                let weight = self.weight(&format!("w{sum}"));
                let _ = writeln!(text, "            s{sum} = mad(x, {weight}, s{sum});");
                let _ = writeln!(text, "            w{sum} = w{sum} + step;");
            }
            text.push_str("        }\n    }\n");
        }
        let sums: String = (0..self.all()).map(|sum| format!(", s{sum}")).collect();
        let _ = writeln!(text, "    tail(lane, element{sums});");
        text
    }

    /// A line for every sum that a thread has of these.
    fn lines(&self, sums: std::ops::Range<u32>, line: impl Fn(u32, u32, u32) -> String) -> String {
        let (down, across) = (self.tile.down(), self.across());
        let mut text = String::new();
        for sum in sums {
            for row in 0..down {
                for column in 0..across {
                    text.push_str(&line(sum, row, column));
                    text.push('\n');
                }
            }
        }
        text
    }

    fn tiled(&self) -> String {
        let each = self.tile.down() * self.across();
        let mut text = format!("    var kept: array<f32, {}>;\n", self.all() * each);
        for (number, sums) in self.each() {
            let first = sums.start;
            let groups = sums.len() as u32;
            let parts = BLOCK_HEAD + groups;
            let _ = writeln!(text, "    let b{number} = r({}u);", 3 + number);
            let _ = write!(
                text,
                "    if r(b{number} + 1u) != 0u {{\n\
                 \x20       for (var at = 0u; at < {count}u; at++) {{\n\
                 \x20           let g = at / (DOWN * ACROSS);\n\
                 \x20           let row = min(first_row + down + (at / ACROSS) % DOWN, rows - 1u);\n\
                 \x20           let j = at % ACROSS;\n\
                 \x20           let column = min(first_column + {column}, columns - 1u);\n\
                 \x20           let start = r(b{number} + {BLOCK_HEAD}u + g) + column;\n\
                 \x20           kept[{before}u + at] = sum_start(b{number}, play.first + row / each, row % each, start);\n\
                 \x20       }}\n\
                 \x20   }}\n",
                column = Self::COLUMN,
                count = groups * each,
                before = first * each,
            );
            text += &self.lines(sums.clone(), |s, i, j| {
                let at = s * each + i * self.across() + j;
                format!("    var s{s}_{i}_{j} = kept[{at}];")
            });
            let _ = write!(
                text,
                "    for (var part = 0u; part < r(b{number}); part++) {{\n\
                 \x20       let at = b{number} + {parts}u + {PART}u * part;\n\
                 \x20       let width = r(at + 4u);\n\
                 \x20       let step = r(at + 6u);\n\
                 \x20       workgroupBarrier();\n\
                 \x20       if local < HIGH {{\n\
                 \x20           let row = min(first_row + local, rows - 1u);\n\
                 \x20           starts[local] = row_of(at, play.first + row / each) + (row % each) * width;\n\
                 \x20       }}\n\
                 \x20       workgroupBarrier();\n\
                 \x20       for (var k0 = 0u; k0 < width; k0 = k0 + DEEP) {{\n\
                 \x20           let deep = min(DEEP, width - k0);\n\
                 \x20           for (var place = local; place < DEEP * HIGH / TALL; place = place + 256u) {{\n\
                 \x20               // Neighbours read along a row of the operand.\n\
                 \x20               let k = place % DEEP;\n\
                 \x20               let row = TALL * (place / DEEP);\n\
                 \x20               if k < deep {{\n\
                 \x20                   xs[(k * HIGH + row) / TALL] = {tall};\n\
                 \x20               }}\n\
                 \x20           }}\n\
                 \x20           for (var place = local; place < DEEP * {band} / BROAD; place = place + 256u) {{\n\
                 \x20               // They read along a row of the weight as it is stored.\n\
                 \x20               let along = step == 1u;\n\
                 \x20               let k = select(place / ({band} / BROAD), place % DEEP, along);\n\
                 \x20               let c = BROAD * select(place % ({band} / BROAD), place / DEEP, along);\n\
                 \x20               if k < deep {{\n\
                 \x20                   let start = r(b{number} + {BLOCK_HEAD}u + c / WIDE);\n\
                 \x20                   let column = first_column + c % WIDE;\n\
                 \x20                   let next = r(at + 7u);\n\
                 \x20                   let begin = r(at + 5u) + start * next + (k0 + k) * step;\n\
                 \x20                   ws[(k * {band} + c) / BROAD] = {broad};\n\
                 \x20               }}\n\
                 \x20           }}\n\
                 \x20           workgroupBarrier();\n\
                 \x20           for (var k = 0u; k < deep; k++) {{\n",
                band = format_args!("({groups}u * WIDE)"),
                tall = filled(word(self.tile.down()), |i| format!("ldf(starts[row + {i}u] + k0 + k)")),
                broad = filled(word(self.across()), |i| {
                    self.weight(&format!("begin + min(column + {i}u, columns - 1u) * next"))
                }),
            );
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
        }
        self.tails(&mut text);
        text
    }

    /// The calls of the tail, a loop over the sums of a thread: its text is there once.
    fn tails(&self, text: &mut String) {
        let each = self.tile.down() * self.across();
        *text += &self.lines(0..self.all(), |s, i, j| {
            format!("    kept[{}] = s{s}_{i}_{j};", s * each + i * self.across() + j)
        });
        let kept = |sum| format!(", kept[{}u + i * ACROSS + j]", sum * each);
        let kept: String = (0..self.all()).map(kept).collect();
        let _ = write!(
            text,
            "    for (var i = 0u; i < DOWN; i++) {{\n\
             \x20       let row = first_row + down + i;\n\
             \x20       if row < rows {{\n\
             \x20           let lane = play.first + row / each;\n\
             \x20           for (var j = 0u; j < ACROSS; j++) {{\n\
             \x20               let column = first_column + {column};\n\
             \x20               if column < columns {{\n\
             \x20                   tail(lane, (row % each) * columns + column{kept});\n\
             \x20               }}\n\
             \x20           }}\n\
             \x20       }}\n\
             \x20   }}\n",
            column = Self::COLUMN,
        );
    }
}

/// How many of so many neighbours a word of the group's memory holds.
const fn word(neighbours: u32) -> u32 {
    if neighbours < 4 { neighbours } else { 4 }
}

/// The type of a word of so many elements.
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
