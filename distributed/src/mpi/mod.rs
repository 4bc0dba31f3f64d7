//! [`Mpi`]: a group of the processes that `mpirun` starts.
//!
//! Every operation is a non-blocking one that this rank polls. So a rank that waits leaves its core to others, and asks them for
//! [signs of life](crate::pulse): it waits for a rank that works, and ends all ranks with one message when one is silent for the
//! limit. Connecting and closing cannot be polled; a [thread](guard) watches over them. A rank that dies is noticed by `mpirun`,
//! which ends the others.

mod guard;

use crate::group::{Bucket, BucketWork, Group, GroupError};
use crate::pulse::{Finding, Peer, Pulse, Vigil};
use ::mpi::Threading;
use ::mpi::datatype::{Partition, PartitionMut};
use ::mpi::environment::{Universe, processor_name};
use ::mpi::request::{Request, Scope, scope};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::*;
use guard::Guard;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The variable with the number of seconds that a rank waits for a sign of life of another one; 0 waits forever.
const LIMIT: &str = "AUTOBATCH_RANK_TIMEOUT";
/// The default number of seconds.
const DEFAULT_LIMIT: u64 = 25;
/// The variable with the number of seconds within which all ranks must connect; 0 waits forever. Ranks cannot ask each other
/// before they are connected.
const START_LIMIT: &str = "AUTOBATCH_START_TIMEOUT";
/// The default number of seconds.
const DEFAULT_START_LIMIT: u64 = 60;
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
    #[error("{variable} is {found:?}; expected a number of seconds, such as 25, or 0 to wait forever")]
    Limit {
        /// The name of the variable.
        variable: &'static str,
        /// Its value.
        found: String,
    },
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
    world: Arc<World>,
    rank: usize,
    size: usize,
}

/// The connection to the other ranks.
struct World {
    /// `None` while the connection closes.
    universe: Option<Universe>,
    rank: usize,
    limit: Option<Duration>,
    pulse: Arc<Pulse>,
    peers: Arc<[Option<Peer>]>,
}

impl World {
    fn communicator(&self) -> SimpleCommunicator {
        self.universe.as_ref().expect("the connection is open until the last clone is dropped").world()
    }

    /// The watch over the other ranks during a wait; `None` without a limit.
    fn vigil(&self, missed: bool) -> Option<Vigil> {
        let new = |limit| Vigil::new(&self.pulse, &self.peers, self.rank, limit, missed);
        self.limit.filter(|_| self.peers.len() > 1).map(new)
    }

    /// The message about a rank that is silent.
    fn silent(&self, rank: usize) -> String {
        let seconds = self.limit.unwrap_or_default().as_secs();
        format!(
            "rank {rank} gave no sign of life to rank {} for {seconds} s; all ranks end now. Look for a stopped process or a broken network, or raise {LIMIT}",
            self.rank
        )
    }
}

impl Drop for World {
    /// Closes the connection, for which all ranks wait.
    fn drop(&mut self) {
        let guard = self.vigil(false).map(|mut vigil| {
            let messages: Vec<String> = (0..self.peers.len()).map(|rank| self.silent(rank)).collect();
            Guard::watch(move || match vigil.look() {
                Finding::Dead { rank } => Some(messages[rank].clone()),
                Finding::Waits | Finding::Note(_) => None,
            })
        });
        drop(self.universe.take());
        drop(guard);
    }
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
    /// The process is connected already, or `AUTOBATCH_RANK_TIMEOUT` or `AUTOBATCH_START_TIMEOUT` is no number.
    pub fn start() -> Result<Self, MpiError> {
        let (seconds, longest) =
            (seconds_of(LIMIT, DEFAULT_LIMIT)?, seconds_of(START_LIMIT, DEFAULT_START_LIMIT)?);
        let start = Instant::now();
        let guard = (longest > 0).then(|| {
            Guard::watch(move || {
                let late = start.elapsed().as_secs() >= longest;
                late.then(|| format!("the ranks were not connected after {longest} s. Look for a stopped process or a broken network, or raise {START_LIMIT}"))
            })
        });
        let (universe, _) =
            ::mpi::initialize_with_threading(Threading::Serialized).ok_or(MpiError::Running)?;
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        let pulse = Arc::new(if size > 1 { Pulse::start() } else { Pulse::mute() });
        // If several ranks miss one, the first of them reports it and ends the others before they do.
        let limit = (seconds > 0).then(|| Duration::from_secs(seconds + rank.min(4) as u64));
        let here = processor_name().unwrap_or_default();
        let connect =
            |peers| World { universe: Some(universe), rank, limit, pulse: Arc::clone(&pulse), peers };
        let mut group = Self { world: Arc::new(connect(Arc::from([]))), rank, size };
        let addresses = group.all_gather(&pulse.address(&here)).unwrap_or_default();
        if let Some(world) = Arc::get_mut(&mut group.world) {
            world.peers = addresses.iter().map(|address| Peer::of(address, &here)).collect();
        }
        drop(guard);
        Ok(group)
    }

    /// Ends all ranks with an exit code. Ranks that wait for this one would otherwise wait until their limit.
    pub fn abort(&self, code: i32) -> ! {
        self.world.communicator().abort(code)
    }

    /// Polls an operation until it is complete.
    fn wait<'a, D: ?Sized, S: Scope<'a>>(&self, mut request: Request<'a, D, S>) {
        let (mut vigil, mut polls) = (None, 0_u32);
        loop {
            request = match request.test() {
                Ok(_) => return,
                Err(pending) => pending,
            };
            polls = polls.saturating_add(1);
            if polls <= EAGER_POLLS {
                std::thread::yield_now();
                continue;
            }
            std::thread::sleep(PAUSE);
            let Some(vigil) = vigil.get_or_insert_with(|| self.world.vigil(true)) else { continue };
            match vigil.look() {
                Finding::Waits => {}
                Finding::Note(note) => say(&note),
                Finding::Dead { rank } => {
                    say(&format!("error: {}", self.world.silent(rank)));
                    self.abort(1);
                }
            }
        }
    }
}

/// The seconds that a variable of the environment gives.
fn seconds_of(variable: &'static str, default: u64) -> Result<u64, MpiError> {
    match std::env::var(variable) {
        Ok(found) if !found.is_empty() => found.parse().map_err(|_| MpiError::Limit { variable, found }),
        _ => Ok(default),
    }
}

/// Prints a line. Errors of printing change nothing in what follows.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The same bytes. Empty ones get an address of a variable: that of an empty slice may be 1, which Open MPI takes for
/// `MPI_IN_PLACE`.
fn addressed(bytes: &[u8]) -> &[u8] {
    static NOTHING: [u8; 1] = [0];
    if bytes.is_empty() { &NOTHING[..0] } else { bytes }
}

/// A buffer of this many bytes, whose address is that of memory even if it is empty; see [`addressed`].
fn buffer(bytes: usize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(bytes.max(1));
    buffer.resize(bytes, 0);
    buffer
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
        self.world.pulse.begin();
        let world = self.world.communicator();
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
                let send = addressed(&bytes[within(bytes.len())]);
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

    fn gather(&mut self, root: usize, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.world.pulse.begin();
        let world = self.world.communicator();
        let (is_root, own) = (self.rank == root, bytes.len() as u64);
        let mut lengths = vec![0_u64; self.size];
        scope(|scope| self.wait(world.immediate_all_gather_into(scope, &own, &mut lengths[..])));
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        let mut all: Vec<Vec<u8>> = if is_root { vec![Vec::new(); self.size] } else { Vec::new() };
        for start in (0..longest).step_by(CHUNK) {
            let within = |length: usize| start.min(length)..(start + CHUNK).min(length);
            let mut send_counts = vec![0; self.size];
            send_counts[root] = within(bytes.len()).len();
            let of_rank = |&length: &u64| if is_root { within(length as usize).len() } else { 0 };
            let counts: Vec<usize> = lengths.iter().map(of_rank).collect();
            let starts = offsets(&counts);
            let mut received = buffer(counts.iter().sum());
            {
                let (own, places) = (addressed(&bytes[within(bytes.len())]), offsets(&send_counts));
                let send = Partition::new(own, narrow(&send_counts), narrow(&places));
                let mut parts = PartitionMut::new(&mut received[..], narrow(&counts), narrow(&starts));
                scope(|scope| {
                    self.wait(world.immediate_all_to_all_varcount_into(scope, &send, &mut parts));
                });
            }
            for ((all, start), count) in all.iter_mut().zip(starts).zip(counts) {
                all.extend_from_slice(&received[start..start + count]);
            }
        }
        Ok(all)
    }

    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError> {
        self.world.pulse.begin();
        let world = self.world.communicator();
        if let Some(first) = buckets.first_mut() {
            work.fill(0, first);
        }
        // While the slices of one bucket arrive, this rank fills the next one and adds the previous one, and the sums before it
        // go out.
        for round in 0..buckets.len() + 2 {
            let (mut leaving, mut adding, mut arriving, mut filling) = (None, None, None, None);
            for (number, bucket) in buckets.iter_mut().enumerate() {
                match (number + 2).checked_sub(round) {
                    Some(0) => leaving = Some(bucket),
                    Some(1) => adding = Some(bucket),
                    Some(2) => arriving = Some(bucket),
                    Some(3) => filling = Some(bucket),
                    _ => {}
                }
            }
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
                if let Some(bucket) = filling {
                    work.fill(round + 1, bucket);
                }
                if let Some(bucket) = adding {
                    work.add(&bucket.receive, &mut bucket.own);
                }
                arrive.into_iter().for_each(|request| self.wait(request));
                leave.into_iter().for_each(|request| self.wait(request));
            });
        }
        Ok(())
    }
}
