//! Streams arrays through a fused update kernel: whole, by rows, or with repacking of weights.

use super::weight_cache::Repacking;
use crate::crew::Crew;
use crate::kernels::fused_update::{FusedKernel, FusedScratch, Port};
use autobatch_ir::types::Shape;
use std::ops::Range;

/// Elements below which threads do not split an array: about 30 µs of one core.
const SPLIT_ELEMENTS: usize = 1 << 15;
/// Elements that are repacked while they are in cache. Long rows need more: packing works on whole panels of rows.
const PACKED_ELEMENTS: usize = 1 << 12;
/// Rows are repacked in multiples of this number.
const PACKED_ROWS: usize = 32;
/// A fused kernel with its arrays.
#[derive(Clone, Copy)]
pub(super) struct Stream<'a> {
    pub(super) fused: &'a FusedKernel,
    pub(super) ports: &'a [Port],
    pub(super) targets: &'a [*mut f32],
}

// SAFETY: threads execute disjoint elements.
unsafe impl Send for Stream<'_> {}
// SAFETY: as above.
unsafe impl Sync for Stream<'_> {}

impl Stream<'_> {
    /// Updates a range of elements, split among the threads.
    ///
    /// # Safety
    /// As for [`FusedKernel::execute`].
    pub(super) unsafe fn execute(
        self,
        elements: Range<usize>,
        crew: &mut Crew<'_>,
        scratch: &mut [FusedScratch],
    ) {
        let count = elements.len();
        let parts = parts(count, crew.threads());
        if let [first, ..] = scratch
            && parts == 1
        {
            // SAFETY: as for this function.
            return unsafe { self.part(elements, first) };
        }
        let at = |number: usize| elements.start + count * number / parts;
        let parts = scratch[..parts].iter_mut().enumerate();
        // SAFETY: as for this function; threads execute disjoint elements.
        crew.each_of(parts, |(number, scratch)| unsafe { self.part(at(number)..at(number + 1), scratch) });
    }

    /// Updates some rows of a table, one run of neighbouring rows at a time.
    ///
    /// # Safety
    /// As for [`FusedKernel::execute`], for all elements of the shape.
    pub(super) unsafe fn execute_rows(
        self,
        shape: Shape,
        rows: &[u32],
        crew: &mut Crew<'_>,
        scratch: &mut [FusedScratch],
    ) {
        let width = shape.elements() / shape.dims()[0] as usize;
        for run in rows.chunk_by(|a, b| a + 1 == *b) {
            let start = run[0] as usize * width;
            // SAFETY: as for this function.
            unsafe { self.execute(start..start + run.len() * width, crew, scratch) };
        }
    }

    /// Updates all elements of a matrix and repacks its new values, a few rows at a time.
    ///
    /// # Safety
    /// As for [`FusedKernel::execute`], for all elements of the shape.
    pub(super) unsafe fn execute_packing(
        self,
        shape: Shape,
        target: usize,
        packed: &mut Repacking<'_>,
        scratch: &mut FusedScratch,
    ) {
        let (all, columns) = (shape.elements(), shape.width());
        let each = (PACKED_ELEMENTS / columns).max(1).next_multiple_of(PACKED_ROWS);
        let mut done = 0;
        for first in (0..shape.rows()).step_by(each) {
            let rows = first..shape.rows().min(first + each);
            let end = (rows.end * columns).next_multiple_of(FusedKernel::BLOCK).min(all);
            // SAFETY: as for this function; no one writes the values while they are packed.
            let values = unsafe {
                self.part(done..end, scratch);
                std::slice::from_raw_parts(self.targets[target].cast_const(), all)
            };
            done = end;
            packed.pack(rows, values);
        }
    }

    /// # Safety
    /// As for [`FusedKernel::execute`].
    unsafe fn part(self, elements: Range<usize>, scratch: &mut FusedScratch) {
        // SAFETY: as for this function.
        unsafe { self.fused.execute(elements, self.ports, self.targets, scratch) };
    }
}

/// The number of threads that split an array.
pub(super) fn parts(elements: usize, threads: usize) -> usize {
    (elements / SPLIT_ELEMENTS + 1).min(threads)
}
