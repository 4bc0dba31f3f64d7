//! Cache-line-aligned float buffers, and the scratch space of a thread.

use super::label_loss::LabelGradientSpace;
use super::pack::PackedWeights;
use bytemuck::{Pod, Zeroable};

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; Line::FLOATS]);

impl Line {
    const FLOATS: usize = 16;
}

/// A zeroed buffer of floats aligned to 64 bytes.
#[derive(Clone, Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
}

impl Aligned {
    /// Allocates at least `floats` zeros, or returns `None` if the allocation fails.
    pub(super) fn zeroed(floats: usize) -> Option<Self> {
        let count = floats.div_ceil(Line::FLOATS);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line::zeroed());
        Some(Aligned { lines })
    }

    /// Grows to at least `floats` floats; new floats are zero. Returns `None` if the allocation fails.
    pub(crate) fn fit(&mut self, floats: usize) -> Option<()> {
        let count = floats.div_ceil(Line::FLOATS);
        if count > self.lines.len() {
            self.lines.try_reserve_exact(count - self.lines.len()).ok()?;
            self.lines.resize(count, Line::zeroed());
        }
        Some(())
    }

    /// Like [`fit`](Self::fit), but a reallocation doubles the capacity.
    pub(crate) fn fit_growing(&mut self, floats: usize) -> Option<()> {
        let more = floats.div_ceil(Line::FLOATS).saturating_sub(self.lines.len());
        self.lines.try_reserve(more).ok()?;
        self.fit(floats)
    }

    pub(crate) fn floats(&self) -> &[f32] {
        bytemuck::cast_slice(&self.lines)
    }

    pub(crate) fn floats_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

/// Scratch space in which kernels gather and pack operand rows.
///
/// Use one per thread for all calls. It grows to the largest call's need: about one MiB plus the largest value that was
/// packed. Its contents carry no meaning between calls.
#[derive(Default)]
pub struct Scratch {
    buffer: Aligned,
    /// Memory for the packed right matrix of a product of two values.
    pub(super) packed: Option<PackedWeights>,
    /// Memory of the gradient of labels' rows.
    pub(super) labels: LabelGradientSpace,
}

impl Scratch {
    /// Empty space.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `floats` floats of unspecified value. Callers request sizes bounded by constants.
    pub(super) fn floats(&mut self, floats: usize) -> &mut [f32] {
        let lines = floats.div_ceil(Line::FLOATS);
        if self.buffer.lines.len() < lines {
            self.buffer.lines.resize(lines, Line::zeroed());
        }
        &mut self.buffer.floats_mut()[..floats]
    }
}

/// Prefetches a cache line to the L1 cache where the machine supports it.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch accesses no memory, so any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
