//! Measuring: the ranks of a group divide the items, and each receives the results of all.

use crate::error::Result;
use crate::row::Row;
use crate::session::{Together, in_parts};
use crate::train::error::TrainError;
use crate::train::trainer::Trainer;
use crate::train::trainer::sharded::message::{Message, Unread};
use autobatch_ir::{Graph, Value};

/// The graphs of a rank between two exchanges, so that it prepares one while it executes another.
const BETWEEN: usize = 4;

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
        let mut results = Message::default();
        let own =
            Together::from(items[start(rank)..start(rank + 1)].iter().copied(), part, first + start(rank));
        let executed = in_parts(session, emitter, own, emit, |_, rows| {
            results.number(rows.len() as u64);
            rows.iter().for_each(|row| results.words(row));
        });
        let mut message = Message::default();
        message.text(&executed.as_ref().err().map(ToString::to_string).unwrap_or_default());
        if executed.is_ok() {
            message.append(&results);
        }
        let all = sharding.with_group(|group| group.all_gather(message.bytes()))?;
        executed?;
        let mut unread: Vec<Unread<'_>> =
            all.iter().enumerate().map(|(rank, bytes)| Unread::new(bytes, rank)).collect();
        for (rank, unread) in unread.iter_mut().enumerate() {
            let message = unread.text()?;
            if !message.is_empty() {
                return Err(TrainError::OtherRank { rank, message }.into());
            }
        }
        for (rank, mut unread) in unread.into_iter().enumerate() {
            for &item in &items[start(rank)..start(rank + 1)] {
                let rows: Vec<Vec<f32>> = unread.several(Unread::words)?;
                let rows: Vec<&Row> = rows.iter().map(|row| Row::new(row)).collect();
                read(item, &rows);
            }
            unread.end()?;
        }
        Ok(())
    }
}
