//! Module texts of products: the sums of all groups, and the epilogue that reads them. A *group* is a range of columns
//! of a product that is as wide as its epilogue. The thread that computes column `j` of one group computes column `j`
//! of all groups. A cell whose gates are column ranges of one product, or separate products, is therefore one dispatch:
//! a thread holds all gates of an element.

mod few;
mod tiles;

/// Maximum number of groups of all products of a dispatch. Each takes one register of a thread, or sixteen.
pub const MAX_GROUPS: usize = 8;
/// Words of a block before its groups.
pub const BLOCK_HEAD: u32 = 7;
/// Words of a part of a block.
pub const PART: u32 = 9;
/// The number of `k` whose operands a thread of few rows loads before it multiplies them.
const TOGETHER: u32 = 8;
/// Number of thread groups that keeps a device busy.
const MANY_GROUPS: u64 = 64;

/// The distribution of products over threads. In every case a sum is one chain of multiply-adds in ascending `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tile {
    /// One element per thread.
    Few,
    /// Four neighbouring elements per thread, whose weights are read together.
    Four,
    /// Tiles of 16 rows.
    Rows16,
    /// Tiles of 64 rows.
    Rows64,
    /// Tiles of 128 rows.
    Rows128,
}

impl Tile {
    /// Every tile.
    pub const ALL: [Self; 5] = [Self::Few, Self::Four, Self::Rows16, Self::Rows64, Self::Rows128];

    /// The tile for this many rows and columns. Few rows spend their time reading weights. Four elements per thread take a
    /// quarter of the reads; they are used if all weights allow it and enough threads remain (16,384 elements). Otherwise
    /// the threads of a tile read together, although it is not full: on an NVIDIA H200 a tile takes a third to two thirds
    /// of the time of one element per thread.
    #[must_use]
    pub const fn of(rows: u64, columns: u64, load: LoadWidth) -> Self {
        let fours = matches!(load, LoadWidth::Columns) && columns.is_multiple_of(4);
        match rows {
            0..16 if fours && rows * columns >= 4 * MANY_GROUPS * super::GROUP => Self::Four,
            0..16 if columns < 16 => Self::Few,
            _ if columns < 4 => Self::Few,
            0..64 => Self::Rows16,
            64..1024 => Self::Rows64,
            _ => Self::Rows128,
        }
    }

    /// The load width of its threads, given the width that the weights allow. A thread with one element cannot use
    /// other columns; a thread with four always reads four columns.
    #[must_use]
    pub const fn load(self, most: LoadWidth) -> LoadWidth {
        match (self, most) {
            (Self::Four, _) => LoadWidth::Columns,
            (Self::Few, LoadWidth::Columns) => LoadWidth::One,
            _ => most,
        }
    }

    /// Rows of a tile; of other distributions, rows of a thread.
    #[must_use]
    pub const fn rows(self) -> u32 {
        match self {
            Self::Few | Self::Four => 1,
            Self::Rows16 | Self::Rows64 | Self::Rows128 => 16 * self.down(),
        }
    }

    const fn down(self) -> u32 {
        match self {
            Self::Few | Self::Four | Self::Rows16 => 1,
            Self::Rows64 => 4,
            Self::Rows128 => 8,
        }
    }
}

/// The elements of a weight that one load reads. A branch at run time would save one pipeline per model, but no
/// dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoadWidth {
    /// One element.
    One,
    /// Four columns, from a multiple of four on.
    Columns,
    /// Four `k`, from a multiple of four on.
    Depth,
}

impl LoadWidth {
    /// Every width.
    pub const ALL: [Self; 3] = [Self::One, Self::Columns, Self::Depth];

    /// The width that a weight allows, given its first element, its row length and the first columns of its groups.
    #[must_use]
    pub fn of(
        first: u32,
        stored_width: u32,
        transposed: bool,
        mut groups: impl Iterator<Item = u32>,
    ) -> Self {
        if !first.is_multiple_of(4) || !stored_width.is_multiple_of(4) {
            Self::One
        } else if transposed {
            Self::Depth
        } else if groups.all(|start| start.is_multiple_of(4)) {
            Self::Columns
        } else {
            Self::One
        }
    }
}

/// Products of equal width, and the epilogue that reads their sums.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Products {
    /// Their distribution over threads.
    pub tile: Tile,
    /// The load width of every weight.
    pub load: LoadWidth,
    /// True if a weight is stored in 16 bits.
    pub packed: bool,
    /// The number of groups of each product.
    pub groups: Vec<u32>,
    /// The body of `epilogue(lane, element, s0, s1, ..)`, which gets one sum per group.
    pub epilogue: String,
}

impl Products {
    /// Groups of all products.
    fn all(&self) -> u32 {
        self.groups.iter().sum::<u32>().max(1)
    }

    /// Columns per thread, in each group.
    fn across(&self) -> u32 {
        let most = if self.tile == Tile::Rows128 { 8 } else { 4 };
        (most / self.all()).max(1)
    }

    /// Rows of a tile, and columns of each group.
    fn extents(&self) -> (u32, u32) {
        (16 * self.tile.down(), 16 * self.across())
    }

    /// The number of groups for `threads` threads; of tiles, for `threads` rows of `columns` columns.
    pub(super) fn workgroups(&self, threads: u64, columns: u64) -> u64 {
        let (high, wide) = self.extents();
        match self.tile {
            Tile::Few | Tile::Four => threads.div_ceil(super::GROUP),
            _ => threads.div_ceil(u64::from(high)) * columns.div_ceil(u64::from(wide)),
        }
    }

    /// The hole `epilogue`.
    pub(super) fn epilogue_text(&self) -> String {
        let sums: String = (0..self.all()).map(|sum| format!(", s{sum}: f32")).collect();
        format!("fn epilogue(lane: u32, element: u32{sums}) {{\n{}}}\n", self.epilogue)
    }

    /// The hole `body`.
    pub(super) fn body(&self) -> String {
        match self.tile {
            Tile::Few | Tile::Four => self.few(),
            _ => self.tiled(),
        }
    }

    /// The hole `call`: the call of the epilogue.
    pub(super) fn call(&self) -> String {
        match self.tile {
            Tile::Few | Tile::Four => self.few_call(),
            _ => self.tile_call(),
        }
    }

    /// The loop iterations of a thread for this record, in the loops of [`body`](Self::body).
    pub(crate) fn iterations(&self, record: &[u32]) -> u64 {
        let (down, across) = (u64::from(self.tile.down()), u64::from(self.across()));
        let deep = self.deep();
        let mut iterations = match self.tile {
            Tile::Few => 0,
            Tile::Four => 5,
            _ => down * (across + 2) + 1,
        };
        for (number, &groups) in self.groups.iter().enumerate() {
            iterations += match self.tile {
                Tile::Few => u64::from(groups) + 2,
                Tile::Four => 4 * u64::from(groups) + 2,
                _ => u64::from(groups) * down * across + 2,
            };
            for width in widths(record, number, groups) {
                iterations += match self.tile {
                    Tile::Few | Tile::Four => turns_of_few(width) + 3,
                    _ => width + 2 * width.div_ceil(deep.into()) + 4,
                };
            }
        }
        iterations
    }

    /// The lengths of the sums that a record describes.
    pub(crate) fn depth(&self, record: &[u32]) -> Depth {
        let mut depth = Depth::default();
        for (number, &groups) in self.groups.iter().enumerate() {
            for width in widths(record, number, groups) {
                depth.operands += width;
                depth.terms += width * u64::from(groups);
                depth.waits += match self.tile {
                    Tile::Few | Tile::Four => turns_of_few(width),
                    Tile::Rows16 | Tile::Rows64 | Tile::Rows128 => width.div_ceil(self.deep().into()) + 1,
                };
            }
        }
        depth
    }

    /// The expression of an element of a weight. `at` is the part in the generated code.
    fn weight(&self, place: &str) -> String {
        if self.packed { format!("stored(r(at + 8u), {place})") } else { format!("paramf({place})") }
    }

    /// The expression of four neighbours.
    fn weights(&self, place: &str) -> String {
        if self.packed { format!("stored4(r(at + 8u), {place})") } else { format!("paramf4({place})") }
    }

    /// The products, each with the numbers of its sums.
    fn each(&self) -> impl Iterator<Item = (u32, std::ops::Range<u32>)> + '_ {
        let mut next = 0;
        self.groups.iter().zip(0..).map(move |(&groups, number)| {
            next += groups;
            (number, next - groups..next)
        })
    }
}

/// The widths of the operands of a product of a record, which has this many groups.
fn widths(record: &[u32], product: usize, groups: u32) -> impl Iterator<Item = u64> + '_ {
    let block = record[3 + product] as usize;
    let at = move |part: u32| block + (BLOCK_HEAD + groups + PART * part) as usize;
    (0..record[block]).map(move |part| u64::from(record[at(part) + 4]))
}

/// The turns of a thread of few rows over an operand: several `k` at a time, then single ones.
const fn turns_of_few(width: u64) -> u64 {
    let together = TOGETHER as u64;
    width / together + width % together
}

/// The lengths of the sums of a dispatch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Depth {
    /// The elements of all operands of a row.
    pub(crate) operands: u64,
    /// The terms of the sums of all groups of a column.
    pub(crate) terms: u64,
    /// How often a thread waits for operands and weights.
    pub(crate) waits: u64,
}

/// Neighbours per word of group memory.
const fn word(neighbours: u32) -> u32 {
    if neighbours < 4 { neighbours } else { 4 }
}

#[cfg(test)]
mod tests;
