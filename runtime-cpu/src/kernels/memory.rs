//! Float buffers that begin at a cache line, and the scratch space of a thread.

use super::pack::PackedWeights;
use bytemuck::{Pod, Zeroable};

/// One cache line.
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
    /// At least `floats` zeros, or `None` if memory cannot be had.
    pub(super) fn zeroed(floats: usize) -> Option<Self> {
        let count = floats.div_ceil(Line::FLOATS);
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line::zeroed());
        Some(Aligned { lines })
    }

    /// Grows to at least `floats` floats, new ones zero; `None` if memory cannot be had.
    pub(crate) fn fit(&mut self, floats: usize) -> Option<()> {
        let count = floats.div_ceil(Line::FLOATS);
        if count > self.lines.len() {
            self.lines.try_reserve_exact(count - self.lines.len()).ok()?;
            self.lines.resize(count, Line::zeroed());
        }
        Some(())
    }

    /// As [`fit`](Self::fit), with room for as much again where all must move: what grows row by row moves seldom.
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

/// Space in which kernels gather and pack operand rows. Keep one for each thread and pass it to every call: it grows to what the largest call
/// needs, at most about one MiB and the largest value that was packed, and holds nothing between calls.
#[derive(Default)]
pub struct Scratch {
    buffer: Aligned,
    /// The right matrix of a product of two values, packed.
    pub(super) packed: Option<PackedWeights>,
}

impl Scratch {
    /// Empty space.
    pub fn new() -> Self {
        Self::default()
    }

    /// `floats` floats whose values mean nothing. Callers ask for sizes bounded by constants.
    pub(super) fn floats(&mut self, floats: usize) -> &mut [f32] {
        let lines = floats.div_ceil(Line::FLOATS);
        if self.buffer.lines.len() < lines {
            self.buffer.lines.resize(lines, Line::zeroed());
        }
        &mut self.buffer.floats_mut()[..floats]
    }
}

/// Brings a line to the first-level cache, if the machine has a way to ask for it.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: asking touches no memory, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_a_cache_line_and_an_absurd_size_is_refused() {
        let buffer = Aligned::zeroed(33).expect("132 bytes can be had");
        assert_eq!(buffer.floats().as_ptr() as usize % 64, 0);
        assert!(buffer.floats().len() >= 33 && buffer.floats().iter().all(|x| *x == 0.0));
        assert!(Aligned::zeroed(usize::MAX / 4).is_none());
    }

    #[test]
    fn scratch_grows_and_never_shrinks() {
        let mut scratch = Scratch::new();
        assert_eq!(scratch.floats(100).len(), 100);
        let before = scratch.floats(5).as_ptr();
        assert_eq!(scratch.floats(90).as_ptr(), before);
    }
}
