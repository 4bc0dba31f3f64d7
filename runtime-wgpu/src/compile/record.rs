//! Records: the words that a template reads.

/// The address of rows: base, row, stride, width, as `access.wgsl` describes.
pub(super) type RowAddress = [u32; 4];

/// The stride of rows whose numbers are in a table.
pub(super) const GATHERED: u32 = u32::MAX;
/// The mark of lists that share ranges of numbers.
pub(super) const SHARED: u32 = u32::MAX - 1;

/// Initial capacity. Few records exceed it.
const CAPACITY: usize = 96;

/// The words that a template reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record(Vec<u32>);

impl Record {
    pub(super) fn new(words: &[u32]) -> Self {
        let mut record = Vec::with_capacity(CAPACITY.max(words.len()));
        record.extend_from_slice(words);
        Self(record)
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn push(&mut self, word: u32) -> &mut Self {
        self.0.push(word);
        self
    }

    pub(super) fn all(&mut self, words: &[u32]) -> &mut Self {
        self.0.extend_from_slice(words);
        self
    }

    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Sets a word that becomes known later.
    pub(super) fn set(&mut self, at: u32, word: u32) {
        self.0[at as usize] = word;
    }
}
