//! An allocator that counts, thread by thread: tests of one process run beside each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// An allocator that counts what each thread holds and how often it asks. A test binary installs it:
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
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: isize, calls: usize) {
    // While a thread ends its counters may be gone; what it frees then is not of interest.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
        let _ = CALLS.try_with(|count| count.set(count.get() + calls));
    });
}

// SAFETY: every call is passed on to the system's allocator with the same arguments and its answer
// is returned unchanged; counting touches thread-local cells, which never allocate and have no
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize), 0);
        // SAFETY: `block` came from `alloc` above, which is the system allocator's, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    // Large blocks grow by remapping pages, so a growing block counts once.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize, 1);
        // SAFETY: `block` came from the system allocator with this layout; the caller keeps the rest.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Counts the allocations of this thread.
pub fn allocations() -> usize {
    CALLS.get()
}

/// The bytes that this thread holds; below zero where it freed what others made.
pub fn held() -> isize {
    HELD.get()
}

/// A result, and how many bytes more than before were held at the worst while it was made.
pub fn measured<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = make();
    (result, (PEAK.get() - before).max(0) as usize)
}

/// The memory limit of reading this many bytes.
pub fn limit(bytes: usize) -> usize {
    16 * bytes + (1 << 20)
}
