//! Records: the words that a template reads, and places of rows in them.

/// Where rows are: base, row, stride, width, as `access.wgsl` says.
pub(super) type Spot = [u32; 4];

/// The stride of rows that a table names.
pub(super) const TABLED: u32 = u32::MAX;

/// Words that few records exceed.
const MOST_WORDS: usize = 96;

/// The words that a template reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record(Vec<u32>);

impl Record {
    pub(super) fn new(words: &[u32]) -> Self {
        let mut record = Vec::with_capacity(MOST_WORDS.max(words.len()));
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

    /// Sets a word that is known late only.
    pub(super) fn set(&mut self, at: u32, word: u32) {
        self.0[at as usize] = word;
    }
}
