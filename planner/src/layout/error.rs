//! What can be wrong with a layout problem or a layout.

use super::SlabId;
use std::fmt;

/// Why a slab or batch was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Row numbers and table offsets are 31 bits wide.
    TooLarge,
    /// The slot names a slab that was not added.
    UnknownSlab {
        /// The name.
        slab: SlabId,
        /// How many slabs there are.
        slabs: u32,
    },
    /// The slot names a row beyond its slab.
    UnknownRow {
        /// The slab.
        slab: SlabId,
        /// The row named.
        row: u32,
        /// The slab's rows.
        rows: u32,
    },
    /// A slot has not one row per lane.
    LaneCount {
        /// The slot, counted inside the batch.
        slot: u32,
        /// Rows it names.
        found: u32,
        /// Lanes of the batch.
        expected: u32,
    },
    /// Two lanes write one row.
    WrittenTwice {
        /// The slab.
        slab: SlabId,
        /// The row.
        row: u32,
    },
    /// A layout fails the independent check; the text names the broken promise.
    Broken(&'static str),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::TooLarge => {
                write!(f, "layout: expected fewer than 2^31 rows and slot entries; plan a smaller batch")
            }
            LayoutError::UnknownSlab { slab, slabs } => {
                write!(f, "layout: found slab {slab}, expected one of {slabs}; add the slab first")
            }
            LayoutError::UnknownRow { slab, row, rows } => {
                write!(f, "layout: found row {row} of {slab}, expected a row below {rows}")
            }
            LayoutError::LaneCount { slot, found, expected } => {
                write!(f, "layout: slot {slot} has {found} rows, expected one for each of {expected} lanes")
            }
            LayoutError::WrittenTwice { slab, row } => {
                write!(
                    f,
                    "layout: row {row} of {slab} is written twice, expected one writer; give each value its own row"
                )
            }
            LayoutError::Broken(promise) => {
                write!(f, "layout: expected {promise}; use the batch order")
            }
        }
    }
}

impl std::error::Error for LayoutError {}
