//! [`Mpi`]: a group of the processes that `mpirun` starts.
//!
//! Every operation is a non-blocking one that this rank polls. So a rank that waits leaves its core to others, and notices
//! that another rank does not come: after a limit it ends all ranks with one message. A rank that dies is noticed by
//! `mpirun`, which ends the others.

use crate::group::{Bucket, Group, GroupError};
use ::mpi::Threading;
use ::mpi::datatype::{Partition, PartitionMut};
use ::mpi::environment::Universe;
use ::mpi::request::{Request, Scope, scope};
use ::mpi::traits::*;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The variable with the number of seconds that a rank waits for others; 0 waits forever.
const LIMIT: &str = "AUTOBATCH_RANK_TIMEOUT";
/// The default number of seconds. It must exceed the longest difference between the steps of two ranks.
const DEFAULT_LIMIT: u64 = 25;
/// The number of bytes of one rank in one message. Counts and offsets of MPI are 32 bits wide.
const CHUNK: usize = 1 << 20;
/// The number of polls before a waiting rank sleeps between them.
const EAGER_POLLS: u32 = 64;
/// The pause between two later polls.
const PAUSE: Duration = Duration::from_micros(20);

/// The reason why MPI did not start.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// The process has a group already.
    #[error("MPI runs in this process already; make one group and keep it")]
    Running,
    /// The limit on waiting is no number.
    #[error("{LIMIT} is {0:?}; expected a number of seconds, such as 25, or 0 to wait forever")]
    Limit(String),
}

impl fmt::Debug for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A rank of the processes that `mpirun` started together. A process that was started alone is a group of one rank. Clones
/// share the connection, which closes with the last of them.
#[derive(Clone)]
pub struct Mpi {
    universe: Arc<Universe>,
    limit: Option<Duration>,
    rank: usize,
    size: usize,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Mpi {
    /// Connects this process with the others. A process connects once.
    ///
    /// # Errors
    /// The process is connected already, or `AUTOBATCH_RANK_TIMEOUT` is no number.
    pub fn start() -> Result<Self, MpiError> {
        let seconds = match std::env::var(LIMIT) {
            Ok(text) if !text.is_empty() => text.parse().map_err(|_| MpiError::Limit(text))?,
            _ => DEFAULT_LIMIT,
        };
        let (universe, _) =
            ::mpi::initialize_with_threading(Threading::Serialized).ok_or(MpiError::Running)?;
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        // If several ranks wait for one, the first of them reports it and ends the others before they do.
        let limit = (seconds > 0).then(|| Duration::from_secs(seconds + rank.min(4) as u64));
        Ok(Self { universe: Arc::new(universe), limit, rank, size })
    }

    /// The same group, which waits for other ranks without a limit: for the start and the end of a program, where some ranks
    /// read or compute much longer than others.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { limit: None, ..self.clone() }
    }

    /// Ends all ranks with an exit code. Ranks that wait for this one would otherwise wait until their limit.
    pub fn abort(&self, code: i32) -> ! {
        self.universe.world().abort(code)
    }

    /// Polls an operation until it is complete.
    fn wait<'a, D: ?Sized, S: Scope<'a>>(&self, mut request: Request<'a, D, S>) {
        let (start, mut polls) = (Instant::now(), 0_u32);
        loop {
            request = match request.test() {
                Ok(_) => return,
                Err(pending) => pending,
            };
            polls = polls.saturating_add(1);
            match polls > EAGER_POLLS {
                true => std::thread::sleep(PAUSE),
                false => std::thread::yield_now(),
            }
            if self.limit.is_some_and(|limit| start.elapsed() > limit) {
                self.abort_late();
            }
        }
    }

    /// Reports that a rank does not come, and ends all ranks.
    fn abort_late(&self) -> ! {
        let (rank, seconds) = (self.rank, self.limit.unwrap_or_default().as_secs());
        // The process ends now, so an error of printing cannot be reported.
        let _ = writeln!(
            std::io::stderr(),
            "error: rank {rank} waited {seconds} s for the other ranks, and one does not come; all ranks end now. Look for a stopped process, or raise {LIMIT} if a step takes that long"
        );
        self.abort(1)
    }
}

/// Counts or offsets as MPI takes them.
fn narrow(counts: &[usize]) -> Vec<i32> {
    counts.iter().map(|&count| i32::try_from(count).unwrap_or(i32::MAX)).collect()
}

/// The offset of each part.
fn offsets(counts: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let next = |count: &usize| {
        end += count;
        end - count
    };
    counts.iter().map(next).collect()
}

impl Group for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        let world = self.universe.world();
        let mut lengths = vec![0_u64; self.size];
        let own = bytes.len() as u64;
        scope(|scope| self.wait(world.immediate_all_gather_into(scope, &own, &mut lengths[..])));
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        let mut all: Vec<Vec<u8>> =
            lengths.iter().map(|&length| Vec::with_capacity(length as usize)).collect();
        for start in (0..longest).step_by(CHUNK) {
            let within = |length: usize| start.min(length)..(start + CHUNK).min(length);
            let counts: Vec<usize> = lengths.iter().map(|&length| within(length as usize).len()).collect();
            let mut received = vec![0_u8; counts.iter().sum()];
            let starts = offsets(&counts);
            {
                let mut parts = PartitionMut::new(&mut received[..], narrow(&counts), narrow(&starts));
                let send = &bytes[within(bytes.len())];
                scope(|scope| {
                    self.wait(world.immediate_all_gather_varcount_into(scope, send, &mut parts));
                });
            }
            for ((all, start), count) in all.iter_mut().zip(starts).zip(counts) {
                all.extend_from_slice(&received[start..start + count]);
            }
        }
        Ok(all)
    }

    fn exchange(
        &mut self,
        buckets: &mut [Bucket],
        sum: &mut dyn FnMut(&[f32], &mut [f32]),
    ) -> Result<(), GroupError> {
        let world = self.universe.world();
        // While the slices of one bucket arrive, this rank adds the previous one, and the sums before it go out.
        for round in 0..buckets.len() + 2 {
            let (before, rest) = buckets.split_at_mut(round.min(buckets.len()));
            let (older, adding) = before.split_at_mut((round.max(1) - 1).min(before.len()));
            let arriving = rest.first_mut();
            let adding = adding.first_mut();
            let leaving = (round >= 2).then(|| older.get_mut(round - 2)).flatten();
            let mut arrive = arriving.map(|bucket| {
                let send = Partition::new(
                    &bucket.send[..],
                    narrow(&bucket.send_counts),
                    narrow(&offsets(&bucket.send_counts)),
                );
                let receive = PartitionMut::new(
                    &mut bucket.receive[..],
                    narrow(&bucket.receive_counts),
                    narrow(&offsets(&bucket.receive_counts)),
                );
                (send, receive)
            });
            let mut leave = leaving.map(|bucket| {
                let counts = &bucket.whole_counts;
                let whole =
                    PartitionMut::new(&mut bucket.whole[..], narrow(counts), narrow(&offsets(counts)));
                (&bucket.own[..], whole)
            });
            scope(|scope| {
                let arrive = arrive
                    .as_mut()
                    .map(|(send, receive)| world.immediate_all_to_all_varcount_into(scope, &*send, receive));
                let leave = leave
                    .as_mut()
                    .map(|(own, whole)| world.immediate_all_gather_varcount_into(scope, *own, whole));
                if let Some(bucket) = adding {
                    sum(&bucket.receive, &mut bucket.own);
                }
                arrive.into_iter().for_each(|request| self.wait(request));
                leave.into_iter().for_each(|request| self.wait(request));
            });
        }
        Ok(())
    }
}
