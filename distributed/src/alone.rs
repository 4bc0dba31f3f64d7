//! [`Alone`]: a group of one rank.

use crate::group::{Bucket, BucketWork, Group, GroupError};

/// A process that works alone: a group of one rank, which sends nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alone;

impl Group for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        Ok(vec![bytes.to_vec()])
    }

    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError> {
        for (number, bucket) in buckets.iter_mut().enumerate() {
            work.fill(number, bucket);
            let Bucket { send, own, whole, .. } = bucket;
            work.add(send, own);
            whole.copy_from_slice(own);
        }
        Ok(())
    }
}
