//! Cache-line-aligned float buffers, and the scratch space of a thread.

use super::label_loss::LabelGradientSpace;
use super::pack::PackedWeights;
use std::ops::Range;

/// A zeroed buffer of floats aligned to 64 bytes.
#[derive(Default)]
pub(crate) struct Aligned {
    /// The floats, behind some that are not aligned, and before zeros that they may grow into. Memory of a larger alignment would
    /// be zeroed by hand, which touches all pages.
    memory: Vec<f32>,
    start: usize,
    floats: usize,
}

impl Aligned {
    /// The floats of a cache line.
    pub(crate) const LINE: usize = 16;

    /// Allocates at least `floats` zeros, in whole cache lines, or returns `None` if the allocation fails. Pages without writes take
    /// no memory.
    pub(crate) fn zeroed(floats: usize) -> Option<Self> {
        if floats == 0 {
            return Some(Self::default());
        }
        let floats = floats.checked_next_multiple_of(Self::LINE)?;
        let mut memory: Vec<f32> =
            bytemuck::allocation::try_zeroed_vec(floats.checked_add(Self::LINE)?).ok()?;
        advise_huge_pages(&mut memory);
        // An address of floats is a multiple of their size.
        let beyond = memory.as_ptr().addr() / size_of::<f32>() % Self::LINE;
        let start = (Self::LINE - beyond) % Self::LINE;
        Some(Self { memory, start, floats })
    }

    /// Grows to at least `floats` floats; new floats are zero. Returns `None` if the allocation fails.
    pub(crate) fn fit(&mut self, floats: usize) -> Option<()> {
        self.fit_reserving(floats, floats)
    }

    /// Like [`fit`](Self::fit), but a reallocation doubles the space to grow into.
    pub(crate) fn fit_growing(&mut self, floats: usize) -> Option<()> {
        self.fit_reserving(floats, floats.max(self.floats.saturating_mul(2)))
    }

    fn fit_reserving(&mut self, floats: usize, reserved: usize) -> Option<()> {
        if floats > self.floats {
            let floats = floats.checked_next_multiple_of(Self::LINE)?;
            if self.memory.len().saturating_sub(self.start) < floats {
                let mut larger = Self::zeroed(reserved)?;
                larger.floats_mut()[..self.floats].copy_from_slice(self.floats());
                *self = larger;
            }
            self.floats = floats;
        }
        Some(())
    }

    pub(crate) fn floats(&self) -> &[f32] {
        &self.memory[self.start..self.start + self.floats]
    }

    pub(crate) fn floats_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..self.start + self.floats]
    }
}

/// The bytes of memory from which huge pages are worth asking for: two of them, so that one lies within.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE: usize = 4 << 20;

/// Asks for huge pages in large memory before its first write. The rows of a list lie far apart, and with small pages each of them
/// costs a walk through the page tables.
fn advise_huge_pages(memory: &mut [f32]) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if size_of_val(memory) >= HUGE {
        const PAGE: usize = 4096;
        let bytes = size_of_val(memory) - PAGE;
        let start = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the range lies within the memory. The advice changes no contents, and a kernel that does not follow it, or
        // has larger pages, reports an error that has no effect.
        unsafe { libc::madvise(start.add(start.align_offset(PAGE)).cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    let _ = memory;
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
    /// The rows of gradients whose panels lie in the buffer.
    pub(super) gradient_rows: Option<GradientRows>,
}

/// Some rows and columns of gradients, by numbers of the caller. Sums with equal numbers, one after the other, have equal rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GradientRows {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Scratch {
    /// Empty space.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets which rows of gradients it holds. The caller numbers others from now on.
    pub(crate) fn forget_gradient_rows(&mut self) {
        self.gradient_rows = None;
    }

    /// Returns `floats` floats of unspecified value. Callers request sizes bounded by constants.
    pub(super) fn floats(&mut self, floats: usize) -> &mut [f32] {
        self.gradient_rows = None;
        if self.buffer.floats < floats {
            self.buffer = Aligned::zeroed(floats).expect("space of a size that constants bound");
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
