//! [`Threads`]: a group whose ranks are threads of one process.

use crate::group::{Bucket, BucketWork, Group, GroupError};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A rank of a group within one process. Each rank belongs to one thread.
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    /// The channel to each rank.
    to: Vec<Sender<Vec<u8>>>,
    /// The channel from each rank.
    from: Vec<Receiver<Vec<u8>>>,
}

impl Threads {
    /// Makes a group of this many ranks, and at least one.
    ///
    /// ```
    /// use autobatch_distributed::{Group, Threads};
    ///
    /// std::thread::scope(|scope| {
    ///     for mut rank in Threads::group(3) {
    ///         scope.spawn(move || {
    ///             let all = rank.all_gather(&[rank.rank() as u8]).expect("no rank ends early");
    ///             assert_eq!(all.concat(), [0, 1, 2]);
    ///         });
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn group(ranks: usize) -> Vec<Self> {
        let ranks = ranks.max(1);
        let mut group: Vec<Self> =
            (0..ranks).map(|rank| Self { rank, to: Vec::new(), from: Vec::new() }).collect();
        for from in 0..ranks {
            for to in 0..ranks {
                let (sender, receiver) = channel();
                group[from].to.push(sender);
                group[to].from.push(receiver);
            }
        }
        group
    }

    /// Sends one message to each rank and returns the messages of all ranks.
    fn swap(&self, messages: impl Iterator<Item = Vec<u8>>) -> Result<Vec<Vec<u8>>, GroupError> {
        let waiting = self.rank;
        for (rank, (to, message)) in self.to.iter().zip(messages).enumerate() {
            to.send(message).map_err(|_| GroupError::Ended { rank, waiting })?;
        }
        let receive = |(rank, from): (usize, &Receiver<Vec<u8>>)| {
            from.recv().map_err(|_| GroupError::Ended { rank, waiting })
        };
        self.from.iter().enumerate().map(receive).collect()
    }
}

impl Group for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.swap((0..self.size()).map(|_| bytes.to_vec()))
    }

    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError> {
        for (number, bucket) in buckets.iter_mut().enumerate() {
            work.fill(number, bucket);
            let mut start = 0;
            let slices = bucket.send_counts.iter().map(|count| {
                let slice = &bucket.send[start..start + count];
                start += count;
                bytemuck::cast_slice(slice).to_vec()
            });
            let received = self.swap(slices)?;
            fill(&mut bucket.receive, &received);
            work.add(&bucket.receive, &mut bucket.own);
            let own: &[u8] = bytemuck::cast_slice(&bucket.own);
            let sums = self.swap((0..self.size()).map(|_| own.to_vec()))?;
            fill(&mut bucket.whole, &sums);
        }
        Ok(())
    }
}

/// Copies messages of floats one after the other.
fn fill(floats: &mut [f32], messages: &[Vec<u8>]) {
    let bytes = messages.iter().flatten();
    bytemuck::cast_slice_mut(floats).iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_ends_is_reported_to_the_waiting_ones() {
        let mut group = Threads::group(2);
        drop(group.pop());
        let error = group[0].barrier().expect_err("rank 1 has ended");
        assert_eq!(error, GroupError::Ended { rank: 1, waiting: 0 });
    }

    #[test]
    fn broadcasts_come_from_the_root() {
        std::thread::scope(|scope| {
            for mut rank in Threads::group(3) {
                scope.spawn(move || {
                    let number = rank.rank();
                    assert_eq!(rank.broadcast(1, &[number as u8; 2]), Ok(vec![1, 1]));
                    assert_eq!(rank.barrier(), Ok(()));
                });
            }
        });
    }
}
