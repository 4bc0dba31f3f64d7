//! An allocator that counts per thread, because the tests of one process run at the same time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// An allocator that counts the bytes and the allocations of each thread. A test binary installs it:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: autobatch_testing::hostile::Counting = autobatch_testing::hostile::Counting;
/// ```
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static TRAFFIC: Cell<Traffic> = const { Cell::new(Traffic { blocks: 0, bytes: 0, freed: 0 }) };
    static CAP: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// The memory traffic of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Blocks that were allocated, or moved to grow.
    pub blocks: usize,
    /// The bytes of these blocks. A moved block counts its growth.
    pub bytes: usize,
    /// Freed blocks.
    pub freed: usize,
}

/// Limits the bytes that this thread holds. A larger allocation fails, which ends the process unless the code handles it.
pub fn cap(bytes: usize) {
    CAP.set(isize::try_from(bytes).unwrap_or(isize::MAX));
}

/// Returns whether this thread may hold this many more bytes.
fn admits(bytes: isize) -> bool {
    let held = HELD.try_with(Cell::get).unwrap_or(0);
    CAP.try_with(Cell::get).map_or(true, |cap| held.saturating_add(bytes) <= cap)
}

fn count(bytes: isize, blocks: usize, freed: usize) {
    // The counters of an ending thread may be gone. The allocator ignores memory that the thread frees then.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
        let _ = TRAFFIC.try_with(|traffic| {
            let before = traffic.get();
            let bytes = before.bytes + bytes.max(0) as usize;
            traffic.set(Traffic { blocks: before.blocks + blocks, bytes, freed: before.freed + freed });
        });
    });
}

// SAFETY: a call above the cap returns null, which reports a failed allocation and leaves the block as it is. Every other call
// is forwarded to the system allocator with the same arguments, and its result is returned unchanged. The counters are thread-local cells, which never allocate and have no
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !admits(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize, 1, 0);
        // SAFETY: the caller upholds the contract of `alloc`, which is the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize), 0, 1);
        // SAFETY: `alloc` above, and so the system allocator, returned `block` for this layout.
        unsafe { System.dealloc(block, layout) }
    }

    // Large blocks grow by remapping pages, so a growing block counts once.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = size as isize - layout.size() as isize;
        if more > 0 && !admits(more) {
            return std::ptr::null_mut();
        }
        count(more, 1, 0);
        // SAFETY: the system allocator returned `block` for this layout; the caller upholds the other conditions.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Returns the number of allocations of this thread.
pub fn allocations() -> usize {
    TRAFFIC.get().blocks
}

/// Runs `make`. Returns its result and the memory traffic of the thread during the run.
pub fn counted<T>(make: impl FnOnce() -> T) -> (T, Traffic) {
    let before = TRAFFIC.get();
    let result = make();
    let Traffic { blocks, bytes, freed } = TRAFFIC.get();
    let (blocks, bytes, freed) = (blocks - before.blocks, bytes - before.bytes, freed - before.freed);
    (result, Traffic { blocks, bytes, freed })
}

/// Returns the number of bytes that this thread holds. It is negative if the thread freed the memory of others.
pub fn held() -> isize {
    HELD.get()
}

/// Runs `make`. Returns its result and the peak of the additional bytes that the thread held during the run.
pub fn measured<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = make();
    (result, (PEAK.get() - before).max(0) as usize)
}
