//! Texts of products on matrix units: the blocks of a subgroup, and what takes their sums.
//!
//! A unit multiplies squares of halves and adds to squares of floats. Terms are gathered into memory by dispatches
//! before and sums are taken by one behind, so that no thread reads what another one of its dispatch wrote: naga
//! declares the Vulkan memory model for such modules without availability on barriers, and in that model the
//! memory of a group would be in no order.

use super::products::BLOCK_HEAD;
use std::fmt::Write as _;

/// Terms and columns are padded to a multiple of it, so that every row of a square begins at whole 16 bytes.
pub const PADDED: u32 = 16;
/// What a module of matrix units begins with. Its threads go alike through a subgroup, which is what units ask for;
/// naga wants it of the whole group, unless it is told not to look.
pub(super) const ENABLED: &str =
    "enable f16;\nenable wgpu_cooperative_matrix;\ndiagnostic(off, derivative_uniformity);\n\n";

/// What products are made of on matrix units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Squares {
    /// Rows and columns of a square: 8 or 16.
    pub size: u32,
    /// Whether a number is the sum of two halves rather than one half.
    pub pairs: bool,
}

impl Squares {
    /// Pieces of a row of terms: of pairs, upper by upper, upper by lower, lower by upper. What lower by lower would
    /// add is less than what is rounded.
    #[must_use]
    pub const fn pieces(self) -> u32 {
        if self.pairs { 3 } else { 1 }
    }
}

/// Blocks of squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Blocks {
    /// Rows and columns of a square: 8 or 16.
    pub size: u32,
    /// Squares of a block, down.
    down: u32,
}

impl Blocks {
    /// Squares of a block, across.
    const ACROSS: u32 = 4;

    /// The blocks for so many rows, of squares of this size. Every sum is the same chain in all of them.
    #[must_use]
    pub const fn of(size: u32, rows: u64) -> Self {
        // Sixteen squares of 8, or eight of 16: as many sums as registers hold with what they are made of.
        let most = if size == 8 { 4 } else { 2 };
        Self { size, down: if rows <= size as u64 { 1 } else { most } }
    }

    /// The largest blocks of squares of this size.
    #[must_use]
    pub const fn largest(size: u32) -> Self {
        Self::of(size, u64::MAX)
    }

    /// Rows of a block.
    #[must_use]
    pub const fn high(self) -> u32 {
        self.down * self.size
    }

    /// Columns of a block.
    #[must_use]
    pub const fn wide(self) -> u32 {
        Self::ACROSS * self.size
    }

    /// How many groups execute so many rows of so many columns, two blocks down and across each.
    pub(super) fn workgroups(self, rows: u64, columns: u64) -> u64 {
        rows.div_ceil(2 * u64::from(self.high())) * columns.div_ceil(2 * u64::from(self.wide()))
    }

    /// The hole `shape`.
    pub(super) fn shape(self) -> String {
        let Self { size, down } = self;
        format!(
            "const SIZE: u32 = {size}u;\nconst DOWN: u32 = {down}u;\nconst ACROSS: u32 = {}u;\n",
            Self::ACROSS
        )
    }

    /// The hole `body`.
    pub(super) fn body(self) -> String {
        let Self { size, down } = self;
        let of = |role: &str, scalar: &str| format!("coop_mat{size}x{size}<{scalar}, {role}>");
        let (a, b, c) = (of("A", "f16"), of("B", "f16"), of("C", "f32"));
        let squares = || (0..down).flat_map(|i| (0..Self::ACROSS).map(move |j| (i, j)));
        let mut text = String::new();
        for (i, j) in squares() {
            let _ = writeln!(text, "            var s{i}_{j} = {c}();");
        }
        text.push_str("            for (var k = 0u; k < depth; k = k + SIZE) {\n");
        for i in 0..down {
            let at = format!("x + {}u * depth + k", i * size);
            let _ = writeln!(text, "                let x{i} = coopLoadT<{a}>(&terms[{at}], depth);");
        }
        for j in 0..Self::ACROSS {
            let at = format!("w + k * columns + {}u", j * size);
            let _ = writeln!(text, "                let w{j} = coopLoadT<{b}>(&terms[{at}], columns);");
        }
        for (i, j) in squares() {
            let _ = writeln!(text, "                s{i}_{j} = coopMultiplyAdd(x{i}, w{j}, s{i}_{j});");
        }
        text.push_str("            }\n");
        // naga 30 forgets to make what is computed within the call of a store.
        for (i, j) in squares() {
            let at = format!("to + {}u * columns + {}u", i * size, j * size);
            let _ = writeln!(text, "            let to{i}_{j} = {at};");
            let _ = writeln!(text, "            coopStoreT(s{i}_{j}, &sums[to{i}_{j}], columns);");
        }
        text
    }

    /// How many rounds the loops of a thread take with this record.
    pub(crate) fn rounds(self, record: &[u32]) -> u64 {
        4 * (u64::from(record[1] / self.size) + 2) + 1
    }
}

/// What takes the sums of products on matrix units.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sums {
    /// The groups of each product.
    pub groups: Vec<u32>,
    /// The body of `tail(lane, element, s0, s1, ..)`, which takes a sum a group.
    pub tail: String,
}

impl Sums {
    /// The hole `tail`.
    pub(super) fn tail_text(&self) -> String {
        super::products::tail_text(self.groups.iter().sum(), &self.tail)
    }

    /// The hole `body`.
    pub(super) fn body(&self) -> String {
        let mut text = String::new();
        let mut sum = 0;
        for (number, &groups) in self.groups.iter().enumerate() {
            let behind = BLOCK_HEAD + groups;
            let _ = write!(
                text,
                "    let b{number} = r({}u);\n\
                 \x20   let at{number} = r(b{number} + {behind}u) + column\n\
                 \x20       + ((lane - execute.first) * r(2u) + row) * r(b{number} + {behind}u + 1u);\n",
                3 + number,
            );
            for group in 0..groups {
                let _ = write!(
                    text,
                    "    let s{sum} = sums[at{number} + {group}u * r(1u)]\n\
                     \x20       + sum_start(b{number}, lane, row, r(b{number} + {}u) + column);\n",
                    BLOCK_HEAD + group,
                );
                sum += 1;
            }
        }
        let sums: String = (0..sum).map(|sum| format!(", s{sum}")).collect();
        let _ = writeln!(text, "    tail(lane, element{sums});");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_take_blocks_of_one_square_and_all_rows_are_in_a_block() {
        for size in [8, 16] {
            assert_eq!(Blocks::of(size, u64::from(size)).high(), size);
            assert!(Blocks::of(size, u64::from(size) + 1).high() > size);
            for blocks in [Blocks::of(size, 1), Blocks::largest(size)] {
                assert!(blocks.wide().is_multiple_of(PADDED) && blocks.high().is_multiple_of(size));
                let (high, wide) = (u64::from(blocks.high()), u64::from(blocks.wide()));
                assert_eq!(blocks.workgroups(2 * high, 2 * wide), 1);
                assert_eq!(blocks.workgroups(2 * high + 1, 2 * wide + 1), 4);
            }
        }
    }
}
