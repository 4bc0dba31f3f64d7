//! [`Simulated`]: one rank, among others that do not exist.

use crate::group::{Bucket, BucketWork, Group, GroupError};

/// Rank 0 of a group whose other ranks send what it sends. It computes what a rank among any number computes, on one machine and
/// without a network, so a model of the network can add the rest. Sums are those of equal ranks: the work is right, and the numbers
/// are not those of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simulated {
    ranks: usize,
}

impl Simulated {
    /// Rank 0 of this many ranks, and at least one.
    #[must_use]
    pub fn among(ranks: usize) -> Self {
        Self { ranks: ranks.max(1) }
    }
}

/// Fills floats with copies of others; of the last copy, what fits.
fn fill(floats: &mut [f32], with: &[f32]) {
    for part in floats.chunks_mut(with.len().max(1)) {
        part.copy_from_slice(&with[..part.len()]);
    }
}

impl Group for Simulated {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.ranks
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        Ok(vec![bytes.to_vec(); self.ranks])
    }

    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError> {
        for (number, bucket) in buckets.iter_mut().enumerate() {
            work.fill(number, bucket);
            let own = bucket.send_counts.first().copied().unwrap_or(0);
            fill(&mut bucket.receive, &bucket.send[..own]);
            work.add(&bucket.receive, &mut bucket.own);
            fill(&mut bucket.whole, &bucket.own);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buckets, Gradient, GradientShape, Observed, Rows, reduce, tree};

    #[test]
    fn a_simulated_rank_does_the_work_of_a_real_one() {
        let shape = GradientShape { dense: 1001, widths: vec![1] };
        for ranks in [2, 4, 8] {
            let rows = Rows { numbers: vec![3], values: vec![0.5] };
            let own = vec![Gradient { dense: vec![1.0; shape.dense], tables: vec![rows] }];
            assert_eq!(own.len(), tree::cover(ranks, tree::leaves_of(0, ranks, ranks)).len());
            let (mut group, record) = Observed::new(Simulated::among(ranks));
            let mut sum = Gradient::default();
            reduce(&mut group, ranks, &mut own.clone(), &shape, &mut Buckets::default(), &mut sum)
                .expect("all ranks are equal");
            assert_eq!(sum.dense, vec![ranks as f32; shape.dense]);
            assert_eq!(sum.tables[0].values, [ranks as f32 / 2.0]);
            let operations = record.take();
            assert_eq!((operations.len(), record.take().len()), (2, 0));
            let [exchange, tables] = &operations[..] else { panic!("two operations") };
            assert_eq!(exchange.buckets.len(), 1);
            assert_eq!(exchange.buckets[0].whole, 4 * shape.dense);
            assert_eq!(tables.received, ranks * tables.sent);
            assert!(exchange.work() <= exchange.time);
        }
    }
}
