//! Attention of many queries over lists of rows, and its reverse.
//!
//! **Bits.** `ir::numeric::list` defines the results. A score is one chain over the elements of a key. The weights are the
//! softmax of the row of scores. An element of a result is one chain over the list. Scores of different keys are
//! independent, and so are queries and elements of results, so registers hold [`tiles`] of them.
//!
//! Neighbouring lanes mostly read one list, or each the list of the lane before with one item more or less. A block of lanes
//! reads the longest of their lists: its rows are packed once, transposed, for all lanes that follow. Scores beyond the end of a
//! lane's own list are computed and not used. Strided beyond it are never multiplied, because a product with 0 may be NaN.

mod reverse;
mod tiles;

pub(crate) use reverse::{AttentionGradient, AttentionPull};
pub(super) use reverse::{GradientFn, PullFn, gradients, pull};
pub(crate) use tiles::{Strided, StridedMut};

use super::isa::Isa;
use super::kernel_set::KernelSet;
use super::lanes::Lanes;
use autobatch_ir::numeric::list::READER_NUMBERS;
use autobatch_ir::plan::List;
use tiles::{MAX_BLOCK, PACKED, Packed, chains, softmax};

/// The queries of some lanes, the rows that they attend to, and the results.
pub(crate) struct Attention<'l, 'a> {
    /// A row per lane.
    pub(crate) query: Strided,
    /// Keys and values, which lists name.
    pub(crate) keys: Strided,
    pub(crate) values: Strided,
    /// The keys and the values of each lane, equally many.
    pub(crate) lists: &'l [[List<'a>; 2]],
    pub(crate) scale: f32,
    /// A row per lane.
    pub(crate) out: StridedMut,
}

/// Scratch space of the stages of a step, which grows to the rows of the longest lists.
#[derive(Debug, Default)]
pub(crate) struct AttentionSpace {
    stages: Vec<PackedRows>,
    /// One row of scores and one of slopes for each lane of a block.
    rows: [Vec<f32>; 2],
}

/// The rows of the lists that a stage reads.
#[derive(Debug, Default)]
struct PackedRows {
    /// The keys and the values of a list, or the queries and the gradients of its readers.
    packed: [Packed; 2],
    /// The numbers of readers, each of all readers of a list.
    numbers: [Vec<f32>; READER_NUMBERS],
}

/// The lists whose rows a stage has packed, by side. They stay packed from one call to the next, because no row that a
/// step reads changes before its end. A step begins with none.
pub(crate) type PackedLists<'a> = [Option<List<'a>>; 2];

/// The space of one stage.
pub(crate) struct StageSpace<'s, 'a> {
    stage: &'s mut PackedRows,
    rows: &'s mut [Vec<f32>; 2],
    lists: &'s mut PackedLists<'a>,
}

impl AttentionSpace {
    /// The space of the attention stage `number` of a step. The caller gives the lists that this stage has packed for the same
    /// fields, and nothing else.
    pub(crate) fn stage<'s, 'a>(
        &'s mut self,
        number: usize,
        lists: &'s mut PackedLists<'a>,
    ) -> StageSpace<'s, 'a> {
        if self.stages.len() <= number {
            self.stages.resize_with(number + 1, PackedRows::default);
        }
        StageSpace { stage: &mut self.stages[number], rows: &mut self.rows, lists }
    }

    /// The bytes of the rows that a stage packs, given the length of its longest list and the floats of a row.
    pub(crate) fn packed_bytes(length: usize, packed_width: usize) -> u64 {
        Self::bytes(length, packed_width + READER_NUMBERS)
    }

    /// The bytes that all stages share, given the length of the longest list.
    pub(crate) fn shared_bytes(length: usize) -> u64 {
        Self::bytes(length, 2 * MAX_BLOCK)
    }

    fn bytes(length: usize, width: usize) -> u64 {
        let rows = length.next_multiple_of(PACKED) as u64;
        rows.saturating_mul(width as u64).saturating_mul(size_of::<f32>() as u64)
    }
}

/// # Safety
/// The instruction set of the function is available. The queries and the rows of the lists exist, and the results are
/// writable and overlap none of them. The lists of the space are packed.
pub(super) type AttentionFn = for<'a> unsafe fn(&Attention<'_, 'a>, StageSpace<'_, 'a>);

/// Computes the attention of each lane.
///
/// # Safety
/// As for [`AttentionFn`], and `isa` is available.
pub(crate) unsafe fn attend_unchecked<'a>(
    isa: Isa,
    attention: &Attention<'_, 'a>,
    space: StageSpace<'_, 'a>,
) {
    // SAFETY: the caller guarantees the rows and the instruction set.
    unsafe { (KernelSet::of(isa).attention)(attention, space) }
}

/// Calls a function of a constant number of lanes, at most `BLOCK` of the caller.
macro_rules! by_lanes {
    ($count:expr, |$lanes:ident| $call:expr) => {
        by_lanes!($count, $lanes, $call, 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    };
    ($count:expr, $lanes:ident, $call:expr, $($number:literal)+) => {
        match $count {
            $($number => {
                const $lanes: usize = $number;
                if const { $lanes <= BLOCK } { $call }
            },)+
            _ => {}
        }
    };
}
use by_lanes;

/// The body of every [`AttentionFn`].
///
/// # Safety
/// As for [`AttentionFn`].
#[inline(always)]
pub(super) unsafe fn run<'a, L: Lanes, const BLOCK: usize>(
    a: &Attention<'_, 'a>,
    mut space: StageSpace<'_, 'a>,
) {
    let mut first = 0;
    while first < a.lists.len() {
        let (count, longest) = block_of::<BLOCK>(&a.lists[first..]);
        let known = known_rows(&mut space.lists[0], longest[0]);
        // SAFETY: as for this function; the lanes exist, and the keys of the longest list are packed.
        unsafe {
            space.stage.packed[0].pack::<L>(a.keys, longest[0], known);
            by_lanes!(count, |Q| block::<L, Q>(a, first, longest, &mut space));
        }
        first += count;
    }
}

/// How many rows of a list are packed, given the packed list, which becomes the longer of the two.
#[inline(always)]
fn known_rows<'a>(packed: &mut Option<List<'a>>, list: List<'a>) -> usize {
    let known = match *packed {
        Some(packed) if packed.begins(list) => packed.len(),
        Some(packed) if list.begins(packed) => list.len(),
        _ => 0,
    };
    if known < list.len() {
        *packed = Some(list);
    }
    known
}

/// How many of the first lanes form a block, and the longest of their lists, with which all others begin.
#[inline(always)]
fn block_of<'a, const BLOCK: usize>(lists: &[[List<'a>; 2]]) -> (usize, [List<'a>; 2]) {
    let begins =
        |[keys, values]: [List<'a>; 2], of: [List<'a>; 2]| keys.begins(of[0]) && values.begins(of[1]);
    let mut longest = lists[0];
    let mut count = 1;
    while let Some(&next) = lists.get(count).filter(|_| count < 2 * BLOCK) {
        if begins(longest, next) {
            longest = next;
        } else if !begins(next, longest) {
            break;
        }
        count += 1;
    }
    count = balanced::<BLOCK>(count);
    longest = lists[0];
    for &next in &lists[1..count] {
        if next[0].len() > longest[0].len() {
            longest = next;
        }
    }
    (count, longest)
}

/// The size of the first of the smallest number of nearly equal blocks, given the lanes that one block could have if it had no
/// limit, up to twice the limit.
#[inline(always)]
fn balanced<const BLOCK: usize>(lanes: usize) -> usize {
    if lanes <= BLOCK || lanes >= 2 * BLOCK { lanes.min(BLOCK) } else { lanes.div_ceil(2) }
}

/// Space for some rows of a length.
#[inline(always)]
fn rows_of(space: &mut Vec<f32>, rows: usize, length: usize) -> StridedMut {
    let stride = length.next_multiple_of(PACKED);
    if space.len() < rows * stride {
        space.resize(rows * stride, 0.0);
    }
    StridedMut { base: space.as_mut_ptr(), stride }
}

/// The attention of some lanes, from `first` on, which begin the longest list.
///
/// # Safety
/// As for [`AttentionFn`]; the lanes exist, and the keys of the longest list are packed.
#[inline(always)]
unsafe fn block<L: Lanes, const Q: usize>(
    a: &Attention<'_, '_>,
    first: usize,
    [keys, values]: [List<'_>; 2],
    space: &mut StageSpace<'_, '_>,
) {
    let (packed, scores) = (&space.stage.packed[0], &mut space.rows[0]);
    let to = rows_of(scores, Q, keys.len());
    let mut ranges = [(0, 0); Q];
    for (lane, range) in (first..).zip(&mut ranges) {
        range.1 = a.lists[lane][0].len();
    }
    // SAFETY: the keys are packed, the rows of scores are as long as the longest list; lanes and values exist.
    unsafe {
        packed.products::<L, Q>(a.query.after(first), 0..keys.len(), a.scale, to);
        for (weights, &(_, length)) in scores.chunks_exact_mut(to.stride.max(1)).zip(&ranges) {
            softmax(weights, length);
        }
        let out = StridedMut { base: a.out.row(first), ..a.out };
        chains::<L, Q>(values, a.values, to.base.cast_const(), to.stride, &ranges, out);
    }
}
