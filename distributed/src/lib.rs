//! Groups of ranks that sum gradients in one fixed order.
//!
//! A minibatch is cut into shards. Each shard has a gradient, and all gradients are added in a [binary tree](tree) whose
//! shape depends on the number of shards alone. A rank computes consecutive shards and adds the nodes of the tree that it
//! owns. [`reduce`] exchanges the sums of these nodes and adds the rest of the tree. So the bits of the sum depend neither
//! on the number of ranks nor on the timing. Collective sums of MPI libraries choose their order by size and topology,
//! so this crate uses MPI only to move bytes.
//!
//! A [`Group`] connects the ranks: [`Alone`] is one process with one rank, [`Threads`] are ranks in one process, and
//! `Mpi` (feature `mpi`) are the processes that `mpirun` starts. [`Observed`] keeps a record of the operations of a group, and
//! [`Simulated`] is one rank among others that do not exist.

#![forbid(unsafe_code)]

mod agreement;
mod alone;
mod gradient;
mod group;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
mod observed;
#[cfg(any(feature = "mpi", test))]
mod pulse;
mod reduce;
mod simulated;
mod threads;

#[cfg(feature = "mpi")]
pub use self::mpi::{Mpi, MpiError};
pub use agreement::{Statement, agree};
pub use alone::Alone;
/// The tree in which gradients are added.
pub use autobatch_ir::numeric::tree;
pub use gradient::{Gradient, GradientShape, Rows};
pub use group::{Bucket, BucketWork, Group, GroupError};
pub use launch::Launch;
pub use observed::{BucketTimes, Observed, Operation, Record};
pub use reduce::{Buckets, Nodes, reduce};
pub use simulated::Simulated;
pub use threads::Threads;
