//! The messages of ranks: numbers, texts and arrays, one after the other.

use autobatch_distributed::GroupError;

/// A message that grows.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends floats or other words, with their number. The bits of floats stay the same.
    pub(super) fn words<T: bytemuck::Pod>(&mut self, words: &[T]) {
        const { assert!(size_of::<T>() == 4) };
        self.number(words.len() as u64);
        self.0.extend_from_slice(bytemuck::cast_slice(words));
    }

    /// Appends another message.
    pub(super) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The part of a message that was not read yet. Reads behind the end, and texts that are none, are errors.
#[derive(Debug)]
pub(super) struct Unread<'a> {
    bytes: &'a [u8],
    /// The sender.
    rank: usize,
}

impl<'a> Unread<'a> {
    pub(super) fn new(bytes: &'a [u8], rank: usize) -> Self {
        Self { bytes, rank }
    }

    fn malformed(&self) -> GroupError {
        GroupError::Malformed { rank: self.rank }
    }

    fn take(&mut self, count: Option<usize>) -> Result<&'a [u8], GroupError> {
        count.and_then(|count| self.bytes.split_off(..count)).ok_or_else(|| self.malformed())
    }

    pub(super) fn number(&mut self) -> Result<u64, GroupError> {
        let bytes = self.take(Some(8))?;
        bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| self.malformed())
    }

    pub(super) fn text(&mut self) -> Result<String, GroupError> {
        let length = usize::try_from(self.number()?).ok();
        let text = self.take(length)?.to_vec();
        String::from_utf8(text).map_err(|_| self.malformed())
    }

    pub(super) fn words<T: bytemuck::Pod>(&mut self) -> Result<Vec<T>, GroupError> {
        const { assert!(size_of::<T>() == 4) };
        let bytes = usize::try_from(self.number()?).ok().and_then(|count| count.checked_mul(4));
        Ok(bytemuck::pod_collect_to_vec(self.take(bytes)?))
    }

    /// Reads several things, given their number first.
    pub(super) fn several<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, GroupError>,
    ) -> Result<Vec<T>, GroupError> {
        (0..self.number()?).map(|_| read(self)).collect()
    }

    /// Checks that all was read.
    pub(super) fn end(self) -> Result<(), GroupError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, a text and rows, as they were read to the end.
    type Parts = (u64, String, Vec<Vec<f32>>);

    fn read(bytes: &[u8]) -> Result<Parts, GroupError> {
        let mut unread = Unread::new(bytes, 3);
        let parts = (unread.number()?, unread.text()?, unread.several(Unread::words)?);
        unread.end().map(|()| parts)
    }

    #[test]
    fn parts_survive_a_message_and_cut_or_long_ones_are_refused() {
        let rows = vec![vec![1.5_f32, -2.0], Vec::new(), vec![f32::INFINITY]];
        let mut message = Message::default();
        message.number(7);
        message.text("grün");
        message.number(rows.len() as u64);
        rows.iter().for_each(|row| message.words(row));
        let bytes = message.bytes();
        assert_eq!(read(bytes), Ok((7, "grün".to_owned(), rows)));
        let refused = Err(GroupError::Malformed { rank: 3 });
        assert!((0..bytes.len()).all(|end| read(&bytes[..end]) == refused));
        assert_eq!(read(&[bytes, &[0]].concat()), refused);
        assert_eq!(read(&[0xff; 64]), refused);
    }
}
