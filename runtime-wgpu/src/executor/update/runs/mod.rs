//! The locations of the elements of an array, buffer by buffer, and the stretches in which several arrays stay in one
//! buffer each.

use super::super::split_array::SplitArray;

/// Elements of an array that one buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) buffer: usize,
    /// The offset from the number of an element to its word, modulo 2^32. For states: from the number of its tile's
    /// first word.
    pub(super) base: u32,
    pub(super) end: u64,
}

/// The segments of an array.
pub(super) type BufferRun = Vec<Segment>;

/// The segments of `words` words of a split array, from `at` on.
pub(super) fn run_of(array: &SplitArray, at: u64, words: u64) -> BufferRun {
    let mut run = BufferRun::new();
    let mut done = 0;
    while done < words {
        let (buffer, offset) = ((at + done) / array.size, (at + done) % array.size);
        let end = words.min(done + array.size - offset);
        run.push(Segment { buffer: buffer as usize, base: (offset as u32).wrapping_sub(done as u32), end });
        done = end;
    }
    run
}

/// Elements whose gradient, parameter and states lie in one buffer each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The buffers of gradient, parameter and states.
    pub(super) buffers: [usize; 3],
    pub(super) bases: [u32; 3],
    pub(super) first: u64,
    pub(super) end: u64,
}

/// The stretches of an array of `elements` elements. Empty runs are ignored.
pub(super) fn stretches(elements: u64, runs: [&BufferRun; 3]) -> Vec<Stretch> {
    let mut all = Vec::new();
    let mut first = 0;
    while first < elements {
        let mut stretch = Stretch { buffers: [0; 3], bases: [0; 3], first, end: elements };
        for (role, run) in runs.iter().enumerate() {
            if let Some(segment) = run.iter().find(|segment| segment.end > first) {
                stretch.buffers[role] = segment.buffer;
                stretch.bases[role] = segment.base;
                stretch.end = stretch.end.min(segment.end);
            }
        }
        first = stretch.end;
        all.push(stretch);
    }
    all
}

#[cfg(test)]
mod tests;
