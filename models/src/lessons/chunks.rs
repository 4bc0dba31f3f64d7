//! [`Chunks`]: cuts an input of any size into chunks of whole instances, which are predicted one by one in bounded memory.

use std::io::{self, BufRead, Error, ErrorKind, Read};

/// The bytes of the longest line, and of a chunk before it ends early.
const MAX_BYTES: usize = 64 << 20;

/// The extent of an instance in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// A line. Blank lines lie between instances.
    Lines,
    /// The lines between blank ones.
    Blocks,
    /// Two lines or three: the second or the third is `-`, or has words with a colon.
    Lattices,
    /// The file has no bounds between instances that its text shows.
    Whole,
}

/// Some instances of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The lines before them.
    pub lines_before: usize,
    /// The instances before them.
    pub instances_before: usize,
    /// The number of instances; `None` if the text does not show it.
    pub instances: Option<usize>,
}

/// The chunks of an input.
#[derive(Debug)]
pub struct Chunks<R> {
    reader: R,
    units: Units,
    /// The instances of a chunk, at most.
    most: usize,
    lines: usize,
    instances: usize,
    has_ended: bool,
}

impl<R: BufRead> Chunks<R> {
    /// Cuts an input into chunks of at most `most` instances, at least one.
    pub fn new(reader: R, units: Units, most: usize) -> Self {
        Self { reader, units, most: most.max(1), lines: 0, instances: 0, has_ended: false }
    }

    /// Reads a line behind the bytes so far. Returns its length, 0 at the end.
    fn line(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let read = (&mut self.reader).take(MAX_BYTES as u64 + 1).read_until(b'\n', bytes)?;
        if read > MAX_BYTES {
            let message = format!(
                "line {} is longer than {} MiB; expected a line of text",
                self.lines + 1,
                MAX_BYTES >> 20
            );
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        self.lines += usize::from(read > 0);
        Ok(read)
    }

    /// The next chunk, which has an instance, or `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, or a line is too long.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        if self.has_ended {
            return Ok(None);
        }
        let mut chunk =
            Chunk { lines_before: self.lines, instances_before: self.instances, ..Chunk::default() };
        if self.units == Units::Whole {
            self.has_ended = true;
            self.reader.read_to_end(&mut chunk.bytes)?;
            return Ok(Some(chunk));
        }
        let (mut count, mut lines_of_unit) = (0, 0);
        loop {
            let start = chunk.bytes.len();
            if self.line(&mut chunk.bytes)? == 0 {
                self.has_ended = true;
                count += usize::from(lines_of_unit > 0);
                break;
            }
            let line = chunk.bytes[start..].trim_ascii();
            let is_blank = line.is_empty();
            lines_of_unit += usize::from(!is_blank);
            let ends = lines_of_unit > 0
                && match self.units {
                    Units::Lines => true,
                    Units::Blocks => is_blank,
                    Units::Lattices => {
                        lines_of_unit == 3 || lines_of_unit == 2 && (line == b"-" || line.contains(&b':'))
                    }
                    Units::Whole => false,
                };
            if ends {
                (count, lines_of_unit) = (count + 1, 0);
                if count == self.most || chunk.bytes.len() >= MAX_BYTES {
                    break;
                }
            }
        }
        self.instances += count;
        chunk.instances = Some(count);
        Ok((count > 0).then_some(chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, units: Units, most: usize) -> Vec<(String, usize, usize, Option<usize>)> {
        let mut chunks = Chunks::new(text.as_bytes(), units, most);
        let mut all = Vec::new();
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            let text = String::from_utf8(chunk.bytes).unwrap();
            all.push((text, chunk.lines_before, chunk.instances_before, chunk.instances));
        }
        assert_eq!(chunks.next_chunk().unwrap(), None);
        all
    }

    #[test]
    fn chunks_are_the_input_cut_between_instances() {
        let lines = "a\n\nb\r\n  \nc\nd";
        for most in 1..6 {
            let all = cut(lines, Units::Lines, most);
            assert_eq!(all.iter().map(|(text, ..)| &**text).collect::<String>(), lines);
            assert_eq!(all.iter().filter_map(|(.., count)| *count).sum::<usize>(), 4);
        }
        let all = cut(lines, Units::Lines, 2);
        assert_eq!(all, [("a\n\nb\r\n".to_owned(), 0, 0, Some(2)), ("  \nc\nd".to_owned(), 3, 2, Some(2))]);
        let blocks = "\n# one\n1\ta\n2\tb\n\n\n1\tc\n\n1\td\n";
        let all = cut(blocks, Units::Blocks, 1);
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!((&*all[1].0, all[1].1, all[1].2), ("\n1\tc\n\n", 5, 1));
        let lattices = "a b\n0-1:ab\n\nc : d\nS S S\n-\ne f\n-\n";
        let all = cut(lattices, Units::Lattices, 1);
        assert_eq!(
            all.iter().map(|(text, ..)| &**text).collect::<Vec<_>>(),
            ["a b\n0-1:ab\n", "\nc : d\nS S S\n-\n", "e f\n-\n"]
        );
        assert_eq!(cut(lattices, Units::Whole, 1).len(), 1);
        for units in [Units::Lines, Units::Blocks, Units::Lattices] {
            assert!(cut("", units, 3).is_empty() && cut("\n \n\n", units, 3).is_empty());
        }
    }

    #[test]
    fn a_line_without_an_end_is_an_error_and_no_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let error = Chunks::new(endless, Units::Lines, 10).next_chunk().unwrap_err().to_string();
        assert_eq!(error, "line 1 is longer than 64 MiB; expected a line of text");
    }
}
