//! Texts of products: the sums of all groups, and a epilogue that takes them.
//!
//! A *group* is a stretch of columns of a product as wide as its epilogue. What computes column `j` of one
//! group computes column `j` of all of them, so that a cell whose gates lie side by side in one product, or
//! in several, is one dispatch: the epilogue finds all gates of an element in one thread.

mod few;
mod tiles;

/// Groups of all products of a dispatch at most: each is a sum, or sixteen, in the registers of a thread.
pub const MAX_GROUPS: usize = 8;
/// Words of a block before its groups, and of a part.
pub const BLOCK_HEAD: u32 = 7;
/// Words of a part of a product.
pub const PART: u32 = 9;
/// Groups of threads from which there are enough of them to keep a device busy.
const MANY_GROUPS: u64 = 64;

/// How products are cut among threads. All of them compute every sum as one chain in ascending `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tile {
    /// A thread an element.
    Few,
    /// A thread four neighbouring elements, whose weights it reads at once.
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

    /// The tile for so many rows and columns. Few rows are all reading of weights: a thread has four elements of
    /// them, a quarter of the reads for as many words, if that leaves threads enough (16,384 elements) and every
    /// weight can be read so.
    #[must_use]
    pub const fn of(rows: u64, columns: u64, load: LoadWidth) -> Self {
        let fours = matches!(load, LoadWidth::Columns) && columns.is_multiple_of(4);
        match rows {
            0..16 if fours && rows * columns >= 4 * MANY_GROUPS * super::GROUP => Self::Four,
            0..16 => Self::Few,
            _ if columns < 4 => Self::Few,
            16..64 => Self::Rows16,
            64..1024 => Self::Rows64,
            _ => Self::Rows128,
        }
    }

    /// What its threads read at once of weights of which so much may be: a thread with one element has no use
    /// for other columns, one with four reads nothing else.
    #[must_use]
    pub const fn load(self, most: LoadWidth) -> LoadWidth {
        match (self, most) {
            (Self::Four, _) => LoadWidth::Columns,
            (Self::Few, LoadWidth::Columns) => LoadWidth::One,
            _ => most,
        }
    }

    /// Rows of a thread.
    const fn down(self) -> u32 {
        match self {
            Self::Few | Self::Four | Self::Rows16 => 1,
            Self::Rows64 => 4,
            Self::Rows128 => 8,
        }
    }
}

/// What may be read of a weight at once. It is known when a plan is compiled and part of the module: a branch on a
/// word of the record would save a pipeline a model, and no dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoadWidth {
    /// An element.
    One,
    /// Four columns, from any multiple of four on.
    Columns,
    /// Four `k`, from any multiple of four on.
    Depth,
}

impl LoadWidth {
    /// Every load.
    pub const ALL: [Self; 3] = [Self::One, Self::Columns, Self::Depth];

    /// Of a weight whose first element has this number, and whose stored rows are so long, with groups at these
    /// columns.
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

/// Products of one width, and the epilogue that takes their sums.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Products {
    /// How they are cut among threads.
    pub tile: Tile,
    /// What is read of every weight at once.
    pub load: LoadWidth,
    /// Whether a weight is stored in halves of words.
    pub packed: bool,
    /// The groups of each product.
    pub groups: Vec<u32>,
    /// The body of `epilogue(lane, element, s0, s1, ..)`, which takes a sum a group.
    pub epilogue: String,
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

    /// How many groups execute so many threads; of tiles, so many rows of so many columns.
    pub(super) fn workgroups(&self, threads: u64, columns: u64) -> u64 {
        let (high, wide) = self.extents();
        match self.tile {
            Tile::Few | Tile::Four => threads.div_ceil(super::GROUP),
            _ => threads.div_ceil(u64::from(high)) * columns.div_ceil(u64::from(wide)),
        }
    }

    /// The hole `epilogue`.
    pub(super) fn epilogue_text(&self) -> String {
        epilogue_text(self.all(), &self.epilogue)
    }

    /// The hole `body`.
    pub(super) fn body(&self) -> String {
        match self.tile {
            Tile::Few => self.few(),
            Tile::Four => self.four(),
            _ => self.tiled(),
        }
    }

    /// How many rounds the loops of a thread take with this record, those of [`body`](Self::body).
    pub(crate) fn iterations(&self, record: &[u32]) -> u64 {
        let (down, across) = (u64::from(self.tile.down()), u64::from(self.across()));
        let (high, wide) = self.extents();
        let deep = self.deep();
        let mut iterations = match self.tile {
            Tile::Few => 0,
            Tile::Four => 5,
            _ => down * (across + 2) + 1,
        };
        for (number, &groups) in self.groups.iter().enumerate() {
            let block = record[3 + number] as usize;
            iterations += match self.tile {
                Tile::Few => u64::from(groups) + 2,
                Tile::Four => 4 * u64::from(groups) + 2,
                _ => u64::from(groups) * down * across + 2,
            };
            // What is gathered for `deep` columns, and the columns.
            let gathered = |words: u32| u64::from(words.div_ceil(256)) + 1;
            let (tall, (ks, columns)) = (word(self.tile.down()), self.at_once());
            let each = gathered(deep * high / tall) + gathered(deep / ks * groups * wide / columns) + 1;
            for part in 0..record[block] {
                let at = block + (BLOCK_HEAD + groups + PART * part) as usize;
                let width = u64::from(record[at + 4]);
                iterations += match self.tile {
                    Tile::Few if self.load == LoadWidth::Depth => width / 4 + width % 4 + 3,
                    Tile::Few | Tile::Four => width + 2,
                    _ => width + width.div_ceil(deep.into()) * (each + 1) + 2,
                };
            }
        }
        iterations
    }

    /// What reads an element of the weight of the part at `at`.
    fn weight(&self, place: &str) -> String {
        if self.packed { format!("stored(r(at + 8u), {place})") } else { format!("paramf({place})") }
    }

    /// What reads four neighbours.
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

/// A function that takes so many sums.
pub(super) fn epilogue_text(sums: u32, body: &str) -> String {
    let sums: String = (0..sums).map(|sum| format!(", s{sum}: f32")).collect();
    format!("fn epilogue(lane: u32, element: u32{sums}) {{\n{body}}}\n")
}

/// How many of so many neighbours a word of the group's memory holds.
const fn word(neighbours: u32) -> u32 {
    if neighbours < 4 { neighbours } else { 4 }
}

#[cfg(test)]
mod tests;
