//! [`Sequences`]: sequences of vectors in one padded array, as in other libraries, and [`Packed`], the form
//! without padding.
//!
//! A model takes one sequence at a time, so padding is removed first; it is never multiplied, masked or summed.

use autobatch_ir::{Graph, Value};
use std::fmt;

/// Sequences of different lengths in one array, padded to the maximum length.
///
/// ```
/// use autobatch_nn::Sequences;
///
/// // Two sequences of vectors of two numbers: three steps, and one step with two steps of padding.
/// let padded = [1., 2., 3., 4., 5., 6., 7., 8., 0., 0., 0., 0.];
/// let sequences = Sequences::from_ntc(&padded, [2, 3, 2], &[3, 1])?;
/// let second: Vec<&[f32]> = sequences.rows(1).collect();
/// assert_eq!(second, [[7., 8.]]);
/// assert_eq!(sequences.packed().batch_sizes, [2, 1, 1]);
/// # Ok::<(), autobatch_nn::SequencesError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    data: &'a [f32],
    lengths: &'a [usize],
    width: usize,
    /// The distances between two steps of a sequence and between two sequences, in vectors.
    strides: [usize; 2],
}

/// Why an array does not fit its extents and lengths.
#[derive(Clone, PartialEq, Eq)]
pub enum SequencesError {
    /// The number of elements differs from the product of the extents.
    Elements {
        /// The product of the extents; `None` if it overflows.
        expected: Option<usize>,
        /// The number of elements of the array.
        found: usize,
    },
    /// The number of lengths differs from the number of sequences.
    Lengths {
        /// The number of sequences.
        expected: usize,
        /// The number of lengths.
        found: usize,
    },
    /// A length exceeds the number of steps.
    TooLong {
        /// The index of the sequence.
        sequence: usize,
        /// Its length.
        length: usize,
        /// The number of steps of the array.
        steps: usize,
    },
}

impl fmt::Display for SequencesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elements { expected: Some(expected), found } => {
                write!(f, "the extents give {expected} elements, the array has {found}")
            }
            Self::Elements { expected: None, found } => {
                write!(f, "the product of the extents overflows, the array has {found} elements")
            }
            Self::Lengths { expected, found } => {
                write!(
                    f,
                    "the array holds {expected} sequences, found {found} lengths; give one length for each"
                )
            }
            Self::TooLong { sequence, length, steps } => {
                write!(f, "sequence {sequence} has length {length}, the array holds {steps} steps")
            }
        }
    }
}

impl std::error::Error for SequencesError {}

autobatch_ir::debug_as_display!(SequencesError);

impl<'a> Sequences<'a> {
    /// Sequences in an array with the extents `[steps, sequences, width]`: time first in PyTorch, `TNC` in
    /// MXNet.
    ///
    /// # Errors
    /// If array, extents and lengths do not fit each other.
    pub fn from_tnc(
        data: &'a [f32],
        [steps, sequences, width]: [usize; 3],
        lengths: &'a [usize],
    ) -> Result<Self, SequencesError> {
        Self::new(data, lengths, [steps, sequences, width], [sequences, 1])
    }

    /// Sequences in an array with the extents `[sequences, steps, width]`: batch first, `NTC`.
    ///
    /// # Errors
    /// As [`from_tnc`](Self::from_tnc).
    pub fn from_ntc(
        data: &'a [f32],
        [sequences, steps, width]: [usize; 3],
        lengths: &'a [usize],
    ) -> Result<Self, SequencesError> {
        Self::new(data, lengths, [steps, sequences, width], [1, steps])
    }

    fn new(
        data: &'a [f32],
        lengths: &'a [usize],
        [steps, sequences, width]: [usize; 3],
        strides: [usize; 2],
    ) -> Result<Self, SequencesError> {
        let expected = steps.checked_mul(sequences).and_then(|vectors| vectors.checked_mul(width));
        if expected != Some(data.len()) {
            return Err(SequencesError::Elements { expected, found: data.len() });
        }
        if lengths.len() != sequences {
            return Err(SequencesError::Lengths { expected: sequences, found: lengths.len() });
        }
        match lengths.iter().position(|&length| length > steps) {
            Some(sequence) => Err(SequencesError::TooLong { sequence, length: lengths[sequence], steps }),
            None => Ok(Self { data, lengths, width, strides }),
        }
    }

    /// The number of sequences.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no sequences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The vectors of a sequence.
    ///
    /// # Panics
    /// If `sequence` is not below [`len`](Self::len).
    pub fn rows(
        &self,
        sequence: usize,
    ) -> impl ExactSizeIterator<Item = &'a [f32]> + DoubleEndedIterator + use<'a> {
        let Self { data, width, strides: [step, next], .. } = *self;
        (0..self.lengths[sequence]).map(move |time| {
            let at = (time * step + sequence * next) * width;
            &data[at..at + width]
        })
    }

    /// The vectors of a sequence as inputs of a graph, for a layer's `run` or [`unroll`](crate::unroll).
    ///
    /// # Panics
    /// If `sequence` is not below [`len`](Self::len).
    #[track_caller]
    #[must_use]
    pub fn inputs<'g>(&self, g: &'g Graph, sequence: usize) -> Vec<Value<'g>> {
        let mut values = Vec::with_capacity(self.lengths[sequence]);
        for row in self.rows(sequence) {
            values.push(g.input(row));
        }
        values
    }

    /// The sequences without padding, sorted by decreasing length, step by step.
    #[must_use]
    pub fn packed(&self) -> Packed {
        let mut sorted: Vec<usize> = (0..self.len()).collect();
        sorted.sort_by_key(|&sequence| std::cmp::Reverse(self.lengths[sequence]));
        let mut unsorted = vec![0; sorted.len()];
        for (place, &sequence) in sorted.iter().enumerate() {
            unsorted[sequence] = place;
        }
        let steps = sorted.first().map_or(0, |&longest| self.lengths[longest]);
        let (mut data, mut batch_sizes) = (Vec::new(), Vec::with_capacity(steps));
        for time in 0..steps {
            let active = sorted.partition_point(|&sequence| self.lengths[sequence] > time);
            sorted[..active].iter().filter_map(|&sequence| self.rows(sequence).nth(time)).for_each(|row| {
                data.extend_from_slice(row);
            });
            batch_sizes.push(active);
        }
        Packed { data, batch_sizes, sorted, unsorted }
    }
}

/// Sequences without padding, step by step: the fields of PyTorch's `PackedSequence`. The batches of a recurrence over
/// [`Sequences::inputs`] have these sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// The first vectors of all sequences, then the second vectors of all that have two or more,
    /// and so on.
    pub data: Vec<f32>,
    /// For each step, the number of sequences that have it.
    pub batch_sizes: Vec<usize>,
    /// The sequence at each position of the sorted order.
    pub sorted: Vec<usize>,
    /// The position of each sequence in the sorted order.
    pub unsorted: Vec<usize>,
}
