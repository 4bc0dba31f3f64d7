//! The model of a network: a latency for each message, and a bandwidth for its bytes.

use crate::failure::Failure;
use autobatch::distributed::{Bucket, BucketTimes, BucketWork, Group, Operation};
use std::time::{Duration, Instant};

/// The number of small messages whose median is the latency.
const SMALL: usize = 200;
/// The number of exchanges whose median gives the bandwidth.
const LARGE: usize = 9;
/// The buckets of such an exchange, and the floats of each: those of training.
const BUCKETS: usize = 8;
const FLOATS: usize = 1 << 18;

/// A network between ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Network {
    /// The time of a message without bytes, in seconds.
    pub(super) latency: f64,
    /// Bytes in a second.
    pub(super) bandwidth: f64,
}

impl Network {
    /// Measures the network between the two ranks of a group. Both call it.
    pub(super) fn measure(group: &mut dyn Group) -> Result<Self, Failure> {
        let failed = |error| Failure::from(autobatch::Error::from(error));
        let mut times = Vec::with_capacity(SMALL);
        for _ in 0..SMALL {
            let start = Instant::now();
            group.all_gather(&[0; 8]).map_err(failed)?;
            times.push(start.elapsed());
        }
        // The ranks exchange the lengths, then the bytes.
        let latency = median(&mut times).as_secs_f64() / 2.0;
        let half = FLOATS / 2;
        let bucket = Bucket {
            send: vec![1.0; FLOATS],
            send_counts: vec![half; 2],
            receive: vec![0.0; FLOATS],
            receive_counts: vec![half; 2],
            own: vec![0.0; half],
            whole: vec![0.0; FLOATS],
            whole_counts: vec![half; 2],
        };
        let mut buckets = vec![bucket; BUCKETS];
        let mut times = Vec::with_capacity(LARGE);
        for _ in 0..LARGE {
            let start = Instant::now();
            group.exchange(&mut buckets, &mut NoWork).map_err(failed)?;
            times.push(start.elapsed());
        }
        // Each bucket passes as half of its floats in, and half of its sum out.
        let bytes = (BUCKETS * 2 * half * size_of::<f32>()) as f64;
        let waits = 2.0 * latency * BUCKETS as f64;
        let time = (median(&mut times).as_secs_f64() - waits).max(1e-9);
        Ok(Self { latency, bandwidth: bytes / time })
    }

    /// The time of messages that are sent one after the other, with these bytes in all.
    fn time(self, messages: f64, bytes: f64) -> f64 {
        messages * self.latency + bytes / self.bandwidth
    }

    /// The time of an operation on a number of ranks, with the work on its buckets. Exchanges overlap with the work on the bucket
    /// behind and the one before. A gather passes along a tree; an exchange costs a latency for each other rank.
    pub(super) fn with_work(self, operation: &Operation, ranks: usize) -> f64 {
        let depth = f64::from(ranks.next_power_of_two().trailing_zeros());
        let Operation { sent, received, buckets, .. } = operation;
        if buckets.is_empty() {
            return self.time(2.0 * depth, received.saturating_sub(*sent) as f64);
        }
        let others = (ranks - 1) as f64;
        let share = others / ranks as f64;
        let arriving = |bucket: &BucketTimes| self.time(others, bucket.received as f64 * share);
        let leaving = |bucket: &BucketTimes| self.time(depth, bucket.whole as f64 * share);
        let first = buckets[0].fill.as_secs_f64();
        let rounds = (0..buckets.len() + 2).map(|round| {
            let behind = |by: usize| round.checked_sub(by).and_then(|number| buckets.get(number));
            let network = buckets.get(round).map_or(0.0, arriving) + behind(2).map_or(0.0, leaving);
            let fill = buckets.get(round + 1).map_or(Duration::ZERO, |bucket| bucket.fill);
            let add = behind(1).map_or(Duration::ZERO, |bucket| bucket.add);
            network.max((fill + add).as_secs_f64())
        });
        first + rounds.sum::<f64>()
    }
}

/// The median of some times.
pub(super) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// No work on buckets.
struct NoWork;

impl BucketWork for NoWork {
    fn fill(&mut self, _: usize, _: &mut Bucket) {}

    fn add(&mut self, _: &[f32], _: &mut [f32]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(sent: usize, received: usize, buckets: Vec<BucketTimes>) -> Operation {
        Operation { start: Instant::now(), time: Duration::ZERO, sent, received, buckets }
    }

    #[test]
    fn messages_cost_latencies_and_bytes() {
        let network = Network { latency: 1e-3, bandwidth: 1e6 };
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
        near(network.with_work(&operation(100, 800, Vec::new()), 8), 6e-3 + 700e-6);
        let bucket = BucketTimes { sent: 4000, received: 4000, whole: 4000, ..BucketTimes::default() };
        near(network.with_work(&operation(0, 0, vec![bucket]), 4), 3e-3 + 3e-3 + 2e-3 + 3e-3);
        // Work hides behind messages, and messages behind work.
        let work = |ms: u64| BucketTimes { fill: Duration::from_millis(ms), ..bucket };
        let two = |ms: u64| network.with_work(&operation(0, 0, vec![work(1), work(ms)]), 4);
        near(two(5), two(0));
        near(two(50), two(0) + 44e-3);
    }
}
