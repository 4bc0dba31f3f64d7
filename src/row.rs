//! [`Row`] and [`RowBuf`]: the elements of one value, borrowed and owned.

use autobatch_ir::types::DType;
use std::ops::Deref;

/// The elements of one value: a slice with the usual operations on scores. In the memory of a session, an integer or
/// truth value has its bits as elements; [`words`](Row::words) returns the numbers.
#[derive(Debug, bytemuck::TransparentWrapper)]
#[repr(transparent)]
pub struct Row([f32]);

impl Row {
    pub(crate) fn new(elements: &[f32]) -> &Self {
        bytemuck::TransparentWrapper::wrap_ref(elements)
    }

    /// Returns the index of the largest element, the first among equals.
    #[must_use]
    pub fn argmax(&self) -> usize {
        autobatch_ir::numeric::row::argmax(&self.0) as usize
    }

    /// Returns the indices of the `k` largest elements, descending.
    #[must_use]
    pub fn top_k(&self, k: usize) -> Vec<usize> {
        let mut indices = vec![0; k.min(self.0.len())];
        autobatch_ir::numeric::row::top_k(&self.0, &mut indices);
        indices.into_iter().map(|index| index as usize).collect()
    }

    /// Returns a copy that may outlive the run.
    #[must_use]
    pub fn to_buf(&self) -> RowBuf {
        RowBuf { elements: self.0.to_vec(), dtype: DType::F32 }
    }

    /// Returns the elements of an integer or truth value.
    #[must_use]
    pub fn words(&self) -> Vec<u32> {
        self.0.iter().map(|x| x.to_bits()).collect()
    }
}

impl Deref for Row {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

/// The elements of one value, owned, as predictions return them. The elements of an integer or truth value are its
/// numbers, rounded to `f32`; [`words`](RowBuf::words) of integers below 2^24 are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBuf {
    elements: Vec<f32>,
    dtype: DType,
}

impl RowBuf {
    /// Copies a row of a value of this type from the memory of a session.
    pub(crate) fn of(row: &Row, dtype: DType) -> Self {
        Self { elements: row.iter().map(|&element| dtype.number(element)).collect(), dtype }
    }

    /// Returns the elements of an integer or truth value.
    #[must_use]
    pub fn words(&self) -> Vec<u32> {
        let word = |x: &f32| match self.dtype {
            DType::U32 | DType::Bool => *x as u32,
            DType::I32 => *x as i32 as u32,
            DType::F32 | DType::F16 | DType::BF16 => x.to_bits(),
        };
        self.elements.iter().map(word).collect()
    }

    /// Returns the elements.
    #[must_use]
    pub fn into_vec(self) -> Vec<f32> {
        self.elements
    }
}

impl Deref for RowBuf {
    type Target = Row;
    fn deref(&self) -> &Row {
        Row::new(&self.elements)
    }
}
