//! Gradients of weights over shards: a chain for each shard, and the chains added in the tree of the shards.
//!
//! The rows of a node of the tree are packed together, as those of one chain. Each register tile then makes the sums of all
//! shards before the next tile, so they stay in the L1 cache.
//!
//! **Bits.** A chain is that of [`WeightGrad`], from zero. The sum of a node is that of its left child plus that of its right
//! child.

use super::error::{KernelError, reaches, same_size};
use super::isa::compiled_per_isa;
use super::kernel_set::{KernelSet, MAX_PANEL, MAX_ROWS, MIN_PANEL};
use super::memory::Scratch;
use super::rows::RowsMut;
use super::runs::check_runs;
use super::tile::{Tile, TileFn};
use super::wgrad::{SHARDS_ROWS, WeightGrad};
use autobatch_ir::numeric::tree;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// The gradient of a weight over a node of the tree of shards.
#[derive(Clone, Copy, Debug)]
pub struct ShardedWeightGrad<'a> {
    /// The rows of all shards of the node. Each shard has a chain from zero, so `accumulate` is false.
    pub sum: WeightGrad<'a>,
    /// The number of rows of each shard.
    pub shards: &'a [usize],
    /// True if the sum of the node is added to the contents of the result, else it replaces them.
    pub adds: bool,
}

impl ShardedWeightGrad<'_> {
    /// The maximum number of rows of all shards together.
    pub const MOST_ROWS: usize = SHARDS_ROWS;
    /// The maximum number of shards, so that a tile needs few slots.
    pub const MOST_SHARDS: usize = 256;

    /// Computes the sum of the node into `out`.
    ///
    /// # Errors
    /// As [`WeightGrad::run`]; or if there is no shard, or the shards have too many rows or not those of the sum.
    pub fn run(&self, out: RowsMut<'_>, scratch: &mut Scratch) -> Result<(), KernelError> {
        let Self { sum, shards, adds } = *self;
        sum.isa.required()?;
        let count = check_runs("rows of x", sum.x, sum.k)?;
        same_size("rows of dy", count, check_runs("rows of dy", sum.dy, sum.n)?)?;
        reaches("rows of shards", Some(count), Self::MOST_ROWS)?;
        same_size("rows of shards", count, shards.iter().fold(0, |sum, &rows| sum.saturating_add(rows)))?;
        reaches("shards", Some(1), shards.len())?;
        reaches("shards", Some(shards.len()), Self::MOST_SHARDS)?;
        if sum.k == 0 || sum.n == 0 {
            return Ok(());
        }
        out.check("result rows", sum.k, sum.n)?;
        let shards = Shards { rows: shards, adds, add: add_tile(sum.isa) };
        // SAFETY: the checks above proved what `WeightGrad::run` checks, and that the shards have the rows of one block.
        unsafe { WeightGrad { accumulate: false, ..sum }.run_stripes(Some(&shards), &out, scratch, None) };
        Ok(())
    }
}

/// The slots of a tile: one for each level of the tree, and one if the sum is added to the result.
const TILE_SLOTS: usize = ShardedWeightGrad::MOST_SHARDS.ilog2() as usize + 1;
/// The floats of a tile.
const TILE_FLOATS: usize = MAX_ROWS * MAX_PANEL;

/// The shards of a block of rows.
pub(super) struct Shards<'a> {
    /// The number of rows of each.
    rows: &'a [usize],
    /// True if the sum is added to the contents of the result.
    adds: bool,
    add: unsafe fn(from: *const f32, to: *mut f32, stride: usize, shape: [usize; 2]),
}

/// A tile whose sum is a tree of shards.
pub(super) struct TileOfShards<'a> {
    pub(super) kernels: &'a KernelSet,
    pub(super) shards: &'a Shards<'a>,
    /// The tile of all rows.
    pub(super) tile: Tile,
    pub(super) function: TileFn,
    pub(super) height: usize,
}

/// The memory of a sum: its first element, and floats from one row to the next.
#[derive(Clone, Copy)]
struct Place {
    first: *mut f32,
    stride: usize,
}

impl TileOfShards<'_> {
    /// # Safety
    /// The operands were packed for the tile, the result exists, and the shards have the rows of the block.
    pub(super) unsafe fn run(&self) {
        let mut slots = MaybeUninit::<[f32; TILE_SLOTS * TILE_FLOATS]>::uninit();
        let slots = slots.as_mut_ptr().cast::<f32>();
        let Tile { out, out_stride, column, .. } = self.tile;
        let result = Place { first: out.wrapping_add(column), stride: out_stride };
        let all = 0..self.shards.rows.len();
        // SAFETY: as for this function; the tree has at most as many levels as there are slots but one.
        unsafe { self.node(all, 0, result, self.shards.adds, slots) };
    }

    /// Writes the sum of a node whose rows begin at `first` to a place, or adds it. Returns the end of its rows.
    ///
    /// # Safety
    /// As for [`run`](Self::run); `slots` has a tile for the node if it is added, and one for each level below.
    unsafe fn node(&self, node: Range<usize>, first: usize, to: Place, adds: bool, slots: *mut f32) -> usize {
        if node.len() == 1 {
            let rows = self.shards.rows[node.start];
            // SAFETY: as for this function.
            unsafe { self.leaf(first..first + rows, to, adds) };
            return first + rows;
        }
        if adds {
            let own = Place { first: slots, stride: MAX_PANEL };
            // SAFETY: as for this function.
            unsafe {
                let end = self.node(node, first, own, false, slots.add(TILE_FLOATS));
                self.add(own, to);
                return end;
            }
        }
        let middle = tree::middle(&node);
        // SAFETY: as for this function.
        unsafe {
            let first = self.node(node.start..middle, first, to, false, slots);
            self.node(middle..node.end, first, to, true, slots)
        }
    }

    /// Writes the chains over some rows to a place, or adds their ends.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn leaf(&self, rows: Range<usize>, to: Place, adds: bool) {
        let mut start = [ptr::null::<f32>(); MAX_ROWS];
        if adds {
            for (i, start) in start.iter_mut().enumerate().take(self.height) {
                *start = to.first.wrapping_add(i * to.stride);
            }
        }
        let tile = Tile {
            a: self.tile.a.wrapping_add(rows.start * self.kernels.step),
            b: self.tile.b.wrapping_add(rows.start * self.kernels.panel),
            k: rows.len(),
            start: start.as_ptr(),
            adds_start: adds,
            out: to.first,
            out_stride: to.stride,
            column: 0,
            ..self.tile
        };
        // SAFETY: as for this function.
        unsafe { (self.function)(&tile) };
    }

    /// Adds one sum to another.
    ///
    /// # Safety
    /// Both have the elements of the tile, and `from` has the stride of a slot.
    unsafe fn add(&self, from: Place, to: Place) {
        // SAFETY: as for this function.
        unsafe { (self.shards.add)(from.first, to.first, to.stride, [self.height, self.tile.columns]) };
    }
}

compiled_per_isa! {
    /// Returns the function that adds the elements of a tile in a slot to those at a place.
    fn add_tile -> unsafe fn(from: *const f32, to: *mut f32, stride: usize, shape: [usize; 2]) = add_rows
}

/// # Safety
/// Both sides have the elements of the shape.
#[inline(always)]
unsafe fn add_rows(from: *const f32, to: *mut f32, stride: usize, [height, width]: [usize; 2]) {
    for row in 0..height {
        let (from, to) = (from.wrapping_add(row * MAX_PANEL), to.wrapping_add(row * stride));
        // SAFETY: as for this function.
        unsafe {
            match width {
                MAX_PANEL => add_row::<MAX_PANEL>(from, to),
                MIN_PANEL => add_row::<MIN_PANEL>(from, to),
                _ => (0..width).for_each(|column| *to.add(column) += *from.add(column)),
            }
        }
    }
}

/// Adds a row of constant length, which compiles to a few vectors.
///
/// # Safety
/// Both places have `WIDTH` floats.
#[inline(always)]
unsafe fn add_row<const WIDTH: usize>(from: *const f32, to: *mut f32) {
    // SAFETY: as for this function.
    unsafe {
        let (right, left) = (*from.cast::<[f32; WIDTH]>(), *to.cast::<[f32; WIDTH]>());
        *to.cast::<[f32; WIDTH]>() = std::array::from_fn(|column| left[column] + right[column]);
    }
}
