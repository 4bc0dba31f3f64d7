//! Where the elements of an array are: in one buffer after the other, and what several arrays share.

use super::super::cut::Cut;

/// Elements of an array that lie in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The buffer.
    pub(super) buffer: usize,
    /// What is added to the number of an element to find its word, modulo 2^32; of states to the number of
    /// its tile's first word.
    pub(super) base: u32,
    /// The element behind the last.
    pub(super) end: u64,
}

/// An array, piece by piece.
pub(super) type Run = Vec<Piece>;

/// The run of so many words of an array that is cut into buffers.
pub(super) fn run_of(cut: &Cut, at: u64, words: u64) -> Run {
    let mut run = Run::new();
    let mut done = 0;
    while done < words {
        let (buffer, offset) = ((at + done) / cut.size, (at + done) % cut.size);
        let end = words.min(done + cut.size - offset);
        run.push(Piece { buffer: buffer as usize, base: (offset as u32).wrapping_sub(done as u32), end });
        done = end;
    }
    run
}

/// Elements whose gradient, parameter and states lie in one buffer each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The buffers of gradient, parameter and states.
    pub(super) buffers: [usize; 3],
    /// The bases of the three.
    pub(super) bases: [u32; 3],
    /// The first element.
    pub(super) first: u64,
    /// The one behind the last.
    pub(super) end: u64,
}

/// The stretches of an array of so many elements; a run that is empty is not looked at.
pub(super) fn stretches(elements: u64, runs: [&Run; 3]) -> Vec<Stretch> {
    let mut all = Vec::new();
    let mut first = 0;
    while first < elements {
        let mut stretch = Stretch { buffers: [0; 3], bases: [0; 3], first, end: elements };
        for (role, run) in runs.iter().enumerate() {
            if let Some(piece) = run.iter().find(|piece| piece.end > first) {
                stretch.buffers[role] = piece.buffer;
                stretch.bases[role] = piece.base;
                stretch.end = stretch.end.min(piece.end);
            }
        }
        first = stretch.end;
        all.push(stretch);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(buffer: usize, end: u64) -> Piece {
        Piece { buffer, base: buffer as u32, end }
    }

    #[test]
    fn stretches_end_where_any_of_the_arrays_changes_its_buffer() {
        let (gradient, param) = (vec![piece(3, 10), piece(4, 30)], vec![piece(0, 20), piece(1, 30)]);
        let found = stretches(30, [&gradient, &param, &Vec::new()]);
        let ends: Vec<(u64, u64, [usize; 3])> =
            found.iter().map(|stretch| (stretch.first, stretch.end, stretch.buffers)).collect();
        assert_eq!(ends, [(0, 10, [3, 0, 0]), (10, 20, [4, 0, 0]), (20, 30, [4, 1, 0])]);
    }
}
