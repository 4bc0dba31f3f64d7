//! Measuring: the ranks of a group divide the items, and each receives the results of all.

use crate::error::Result;
use crate::row::Row;
use crate::session::{Together, in_parts};
use crate::train::error::TrainError;
use crate::train::trainer::Trainer;
use autobatch_distributed::GroupError;
use autobatch_ir::{Graph, Value};

/// The graphs of a rank between two exchanges, so that it prepares one while it executes another.
const BETWEEN: usize = 4;

/// The first byte of a message with results.
const RESULTS: u8 = 0;
/// The first byte of a message with an error.
const ERROR: u8 = 1;

/// Appends the rows of an item to a message.
fn push(message: &mut Vec<u8>, rows: &[&Row]) {
    message.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    for row in rows {
        message.extend_from_slice(&(row.len() as u32).to_le_bytes());
        message.extend_from_slice(bytemuck::cast_slice(row));
    }
}

/// Takes the rows of an item from the front of a message.
fn take(message: &mut &[u8]) -> Option<Vec<Vec<f32>>> {
    let number =
        |message: &mut &[u8]| Some(u32::from_le_bytes(*message.split_off(..4)?.first_chunk()?) as usize);
    let count = number(message)?;
    let mut rows = Vec::new();
    for _ in 0..count {
        let bytes = number(message)?.checked_mul(4)?;
        rows.push(bytemuck::pod_collect_to_vec(message.split_off(..bytes)?));
    }
    Some(rows)
}

impl Trainer {
    /// Computes values of every item without noise, as [`Session::run_in_parts`](crate::Session::run_in_parts). The ranks of a
    /// [group](Self::group) divide the items: each executes some of them, and `read` receives all, in order, on every rank. All
    /// ranks call it with the same items.
    ///
    /// # Errors
    /// As [`Session::run`](crate::Session::run); all ranks then fail.
    pub fn run_in_parts<I: Copy + Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        part: usize,
        emit: impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync,
        mut read: impl FnMut(I, &[&Row]),
    ) -> Result<()> {
        let ranks = self.sharding.as_ref().map_or(1, |sharding| sharding.rank_of_ranks().1);
        let measured = if ranks == 1 {
            let Self { session, emitter, .. } = self;
            in_parts(session, emitter, Together::new(items, part), &emit, read)
        } else {
            let block = part.max(1).saturating_mul(BETWEEN);
            let mut blocks = Together::new(items, block.saturating_mul(ranks));
            blocks.try_for_each(|(first, items)| self.divided(first, &items, part, &emit, &mut read))
        };
        self.handle_device_loss(measured)
    }

    /// Executes this rank's share of some items, from item `first` on, and reads the results of all.
    fn divided<I: Copy + Send>(
        &mut self,
        first: usize,
        items: &[I],
        part: usize,
        emit: &(impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync),
        read: &mut impl FnMut(I, &[&Row]),
    ) -> Result<()> {
        let Self { session, emitter, sharding, .. } = self;
        let Some(sharding) = sharding else { return Ok(()) };
        let (rank, ranks) = sharding.rank_of_ranks();
        let start = |rank: usize| items.len() * rank / ranks;
        let mut message = vec![RESULTS];
        let own =
            Together::from(items[start(rank)..start(rank + 1)].iter().copied(), part, first + start(rank));
        let executed = in_parts(session, emitter, own, emit, |_, rows| push(&mut message, rows));
        if let Err(error) = &executed {
            message = [&[ERROR], error.to_string().as_bytes()].concat();
        }
        let all = sharding.with_group(|group| group.all_gather(&message))?;
        executed?;
        for (rank, message) in all.iter().enumerate() {
            if let Some((&ERROR, text)) = message.split_first() {
                let message = String::from_utf8_lossy(text).into_owned();
                return Err(TrainError::OtherRank { rank, message }.into());
            }
        }
        for (rank, message) in all.iter().enumerate() {
            let mut left = message.get(1..).unwrap_or_default();
            for &item in &items[start(rank)..start(rank + 1)] {
                let rows = take(&mut left).ok_or(GroupError::Malformed { rank })?;
                let rows: Vec<&Row> = rows.iter().map(|row| Row::new(row)).collect();
                read(item, &rows);
            }
            if !left.is_empty() {
                return Err(GroupError::Malformed { rank }.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_a_message_and_cut_ones_are_refused() {
        let rows = [vec![1.5, -2.0], Vec::new(), vec![f32::INFINITY]];
        let mut message = Vec::new();
        push(&mut message, &rows.each_ref().map(|row| Row::new(row)));
        push(&mut message, &[]);
        let mut left = &message[..];
        assert_eq!(take(&mut left).as_deref(), Some(&rows[..]));
        assert_eq!((take(&mut left), left.len()), (Some(Vec::new()), 0));
        assert!((0..message.len() - 4).all(|end| take(&mut &message[..end]).is_none()));
        assert_eq!(take(&mut &[0xff; 40][..]), None);
    }
}
