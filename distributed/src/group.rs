//! [`Group`]: the operations on all ranks together.

use std::fmt;

/// The reason why an operation on all ranks failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A rank ended while others wait for it.
    #[error(
        "rank {rank} ended while rank {waiting} waited for it; find its error above and start all ranks again"
    )]
    Ended {
        /// The rank that ended.
        rank: usize,
        /// The rank that waited.
        waiting: usize,
    },
    /// Ranks were started with different programs, options or data.
    #[error(
        "rank {rank} disagrees with rank 0 on {subject}: rank 0 has {expected}, rank {rank} has {found}; start all ranks with equal programs, options and data"
    )]
    Disagreement {
        /// The first rank that differs.
        rank: usize,
        /// The subject of the statement.
        subject: String,
        /// The statement of rank 0.
        expected: String,
        /// The statement of the other rank.
        found: String,
    },
    /// A rank could not compute its gradient.
    #[error("rank {rank}: {message}")]
    Failed {
        /// The first rank that failed.
        rank: usize,
        /// Its message.
        message: String,
    },
    /// A message has another form than this version writes.
    #[error("a message of rank {rank} is malformed; start the same version of the program on all ranks")]
    Malformed {
        /// The rank that sent it.
        rank: usize,
    },
}

impl fmt::Debug for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The work of a rank on the buckets of an exchange.
pub trait BucketWork {
    /// Computes a bucket's slices to send. Called once for each bucket, in their order.
    fn fill(&mut self, number: usize, bucket: &mut Bucket);

    /// Adds the received slices of a bucket, and writes their sum.
    fn add(&mut self, received: &[f32], sum: &mut [f32]);
}

/// A part of the dense gradient that the ranks reduce together: each rank adds one slice of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bucket {
    /// The slices of this rank's nodes, first for rank 0. A slice holds the nodes one after the other.
    pub send: Vec<f32>,
    /// The number of floats for each rank.
    pub send_counts: Vec<usize>,
    /// The slices of this rank, first from rank 0.
    pub receive: Vec<f32>,
    /// The number of floats from each rank.
    pub receive_counts: Vec<usize>,
    /// The sum of this rank's slice.
    pub own: Vec<f32>,
    /// The sums of all slices.
    pub whole: Vec<f32>,
    /// The number of floats in the slice of each rank.
    pub whole_counts: Vec<usize>,
}

/// Ranks that work together. All ranks call the same operations in the same order; each operation waits for all ranks.
pub trait Group: fmt::Debug + Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Sends bytes to all ranks. Returns the bytes of all ranks by their number.
    ///
    /// # Errors
    /// A rank ended.
    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError>;

    /// Sends bytes to the rank `root`. It gets the bytes of all ranks by their number; the others get none.
    ///
    /// # Errors
    /// A rank ended.
    fn gather(&mut self, root: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        let all = self.all_gather(bytes)?;
        Ok(if self.rank() == root { all } else { Vec::new() })
    }

    /// Exchanges every bucket: fills it, sends each rank its slice, adds the received slices, and sends the sum to all ranks.
    /// Implementations may exchange a bucket while they fill or add another one.
    ///
    /// # Errors
    /// A rank ended.
    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError>;

    /// Waits for all ranks.
    ///
    /// # Errors
    /// A rank ended.
    fn barrier(&mut self) -> Result<(), GroupError> {
        self.all_gather(&[]).map(|_| ())
    }

    /// Returns the bytes of the rank `root`. The other ranks pass no bytes.
    ///
    /// # Errors
    /// A rank ended.
    fn broadcast(&mut self, root: usize, bytes: &[u8]) -> Result<Vec<u8>, GroupError> {
        let own = if self.rank() == root { bytes } else { &[] };
        Ok(self.all_gather(own)?.swap_remove(root))
    }
}
