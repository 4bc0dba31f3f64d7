//! [`Observed`]: a group that keeps a record of its operations.

use crate::group::{Bucket, BucketWork, Group, GroupError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An operation, as a rank saw it.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its start.
    pub start: Instant,
    /// Its time, with the work on buckets.
    pub time: Duration,
    /// The bytes that this rank sent, to all ranks alike or to each its part.
    pub sent: usize,
    /// The bytes that this rank received from all ranks, itself included.
    pub received: usize,
    /// The buckets of an exchange; none of other operations.
    pub buckets: Vec<BucketTimes>,
}

impl Operation {
    /// The time of the work on buckets.
    #[must_use]
    pub fn work(&self) -> Duration {
        self.buckets.iter().map(|bucket| bucket.fill + bucket.add).sum()
    }
}

/// The times and sizes of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketTimes {
    /// The time of filling it.
    pub fill: Duration,
    /// The time of adding it.
    pub add: Duration,
    /// The bytes of the slices that this rank sent, its own included.
    pub sent: usize,
    /// The bytes of the slices that this rank received, its own included.
    pub received: usize,
    /// The bytes of the sum.
    pub whole: usize,
}

/// The record of an [`Observed`] group. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<Vec<Operation>>>);

impl Record {
    /// Takes the operations since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, operation: Operation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }
}

/// A group that keeps a record of its operations. It grows until [`Record::take`] empties it.
#[derive(Debug)]
pub struct Observed<G> {
    group: G,
    record: Record,
}

impl<G: Group> Observed<G> {
    /// Observes a group. Returns the record too.
    pub fn new(group: G) -> (Self, Record) {
        let record = Record::default();
        (Self { group, record: record.clone() }, record)
    }

    /// Makes an operation without buckets.
    fn gathering(
        &mut self,
        sent: usize,
        work: impl FnOnce(&mut G) -> Result<Vec<Vec<u8>>, GroupError>,
    ) -> Result<Vec<Vec<u8>>, GroupError> {
        let start = Instant::now();
        let all = work(&mut self.group)?;
        let received = all.iter().map(Vec::len).sum();
        let time = start.elapsed();
        self.record.push(Operation { start, time, sent, received, buckets: Vec::new() });
        Ok(all)
    }
}

impl<G: Group> Group for Observed<G> {
    fn rank(&self) -> usize {
        self.group.rank()
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.gathering(bytes.len(), |group| group.all_gather(bytes))
    }

    fn gather(&mut self, root: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.gathering(bytes.len(), |group| group.gather(root, bytes))
    }

    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError> {
        let start = Instant::now();
        let mut timed = Timed { work, buckets: vec![BucketTimes::default(); buckets.len()], added: 0 };
        self.group.exchange(buckets, &mut timed)?;
        let time = start.elapsed();
        let mut times = timed.buckets;
        for (times, bucket) in times.iter_mut().zip(buckets.iter()) {
            let bytes = |floats: &[f32]| size_of_val(floats);
            (times.sent, times.received) = (bytes(&bucket.send), bytes(&bucket.receive));
            times.whole = bytes(&bucket.whole);
        }
        let sent = times.iter().map(|bucket| bucket.sent).sum();
        let received = times.iter().map(|bucket| bucket.received + bucket.whole).sum();
        self.record.push(Operation { start, time, sent, received, buckets: times });
        Ok(())
    }
}

/// The work on buckets, with its times. Groups add buckets in their order.
struct Timed<'a> {
    work: &'a mut dyn BucketWork,
    buckets: Vec<BucketTimes>,
    added: usize,
}

impl BucketWork for Timed<'_> {
    fn fill(&mut self, number: usize, bucket: &mut Bucket) {
        let start = Instant::now();
        self.work.fill(number, bucket);
        self.buckets[number].fill = start.elapsed();
    }

    fn add(&mut self, received: &[f32], sum: &mut [f32]) {
        let start = Instant::now();
        self.work.add(received, sum);
        self.buckets[self.added].add = start.elapsed();
        self.added += 1;
    }
}
