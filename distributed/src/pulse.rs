//! Signs of life: a thread of each rank answers questions, so the other ranks tell one that works for long from one that is
//! stopped or dead.
//!
//! A rank that has waited for a second asks all others, over TCP: each answers with the number of operations of the group that it has
//! begun. While ranks come in time, there are no questions. A stopped process does not answer, though its system accepts the connection.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a rank gives another one to answer.
const ANSWER: Duration = Duration::from_secs(1);
/// The time in which an asking program must send the token. A silent program delays the others by no more.
const QUESTION: Duration = Duration::from_millis(200);
/// The time after which a waiting rank says for whom it waits, and the time until it says so again.
const NOTE: Duration = Duration::from_secs(60);

/// The word that a question begins with. Programs that connect by accident get no answer.
type Token = [u8; 16];

/// The thread of this rank that answers.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// The port and the token of the answering thread; `None` where this system gives no port.
    answering: Option<(u16, Token)>,
    begun: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
}

impl Pulse {
    /// Starts to answer.
    pub(crate) fn start() -> Self {
        let (begun, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut token = Token::default();
        for part in token.chunks_exact_mut(8) {
            part.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
        }
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
            let port = listener.local_addr().ok()?.port();
            let (begun, ends) = (Arc::clone(&begun), Arc::clone(&ends));
            thread::Builder::new().spawn(move || answer(&listener, token, &begun, &ends)).ok()?;
            Some((port, token))
        };
        Self { answering: listen(), begun, ends }
    }

    /// Answers nothing: for a rank that is alone.
    #[cfg(feature = "mpi")]
    pub(crate) fn mute() -> Self {
        Self { answering: None, begun: Arc::default(), ends: Arc::default() }
    }

    /// Counts an operation of the group.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// The message from which the other ranks make a [`Peer`].
    pub(crate) fn address(&self, host: &str) -> Vec<u8> {
        let Some((port, token)) = self.answering else { return Vec::new() };
        [&token[..], &port.to_le_bytes(), host.as_bytes()].concat()
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some((port, _)) = self.answering {
            // The thread wakes, and sees that it ends.
            let _ = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), ANSWER);
        }
    }
}

/// Answers questions until the rank ends.
fn answer(listener: &TcpListener, token: Token, begun: &AtomicU64, ends: &AtomicBool) {
    for stream in listener.incoming() {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        let mut asked = Token::default();
        let is_question = stream.set_read_timeout(Some(QUESTION)).is_ok()
            && stream.read_exact(&mut asked).is_ok()
            && asked == token;
        if is_question {
            // A rank that no longer listens needs no answer.
            let _ = stream.write_all(&begun.load(Ordering::Relaxed).to_le_bytes());
        }
    }
}

/// The answer of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It has begun this number of operations.
    Works(u64),
    /// No process listens at its port.
    Ended,
    /// Nothing.
    Silence,
    /// No connection to its port was ever made.
    Unreachable,
}

/// Another rank, to ask.
#[derive(Debug)]
pub(crate) struct Peer {
    host: String,
    port: u16,
    token: Token,
    is_here: bool,
    /// The address; `None` if the name has none, or no connection to it was ever made.
    address: OnceLock<Option<SocketAddr>>,
}

impl Peer {
    /// Reads the message of [`Pulse::address`] on a machine; `None` if the rank does not answer, or for a malformed message.
    pub(crate) fn of(message: &[u8], here: &str) -> Option<Self> {
        let (token, rest) = message.split_first_chunk::<16>()?;
        let (port, host) = rest.split_first_chunk::<2>()?;
        let host = String::from_utf8(host.to_vec()).ok()?;
        let is_here = host == here;
        Some(Self { host, port: u16::from_le_bytes(*port), token: *token, is_here, address: OnceLock::new() })
    }

    /// Asks the rank. A rank that cannot be reached the first time is not asked again: a network that swallows connections would
    /// keep this rank waiting.
    fn ask(&self) -> Answer {
        let mut first = None;
        let address = self.address.get_or_init(|| {
            let address = match self.is_here {
                true => SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)),
                false => (&*self.host, self.port).to_socket_addrs().ok()?.find(SocketAddr::is_ipv4)?,
            };
            let stream = TcpStream::connect_timeout(&address, ANSWER);
            let is_reached = match &stream {
                Ok(_) => true,
                Err(error) => error.kind() == ErrorKind::ConnectionRefused,
            };
            first = Some(stream);
            is_reached.then_some(address)
        });
        let Some(address) = address else { return Answer::Unreachable };
        let mut stream = match first.unwrap_or_else(|| TcpStream::connect_timeout(address, ANSWER)) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Answer::Ended,
            Err(_) => return Answer::Silence,
        };
        let mut begun = [0; 8];
        let answered = stream.set_read_timeout(Some(ANSWER)).is_ok()
            && stream.write_all(&self.token).is_ok()
            && stream.read_exact(&mut begun).is_ok();
        if answered { Answer::Works(u64::from_le_bytes(begun)) } else { Answer::Silence }
    }
}

/// The findings of a look at the other ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The wait goes on.
    Waits,
    /// The wait goes on, and somebody should hear that it does.
    Note(String),
    /// This rank has given no sign of life for the limit.
    Dead { rank: usize },
}

/// The other ranks, as one that waits for them knows them.
#[derive(Debug)]
pub(crate) struct Vigil {
    pulse: Arc<Pulse>,
    /// All ranks; `None` for those that cannot be asked.
    peers: Arc<[Option<Peer>]>,
    rank: usize,
    limit: Duration,
    /// Whether a rank that has ended or cannot be reached is dead; at the end of a program it is not.
    missed: bool,
    silent_since: Vec<Option<Instant>>,
    start: Instant,
    round: Round,
    next_look: Instant,
    next_note: Instant,
}

/// The questions of a rank to all ranks, one after the other.
#[derive(Debug, Default)]
struct Round {
    /// The number of ranks that were asked.
    asked: usize,
    /// The ranks that have begun fewer operations.
    behind: Vec<usize>,
    /// Whether a rank before this one waits too.
    has_first: bool,
}

impl Vigil {
    /// Begins a wait of `rank`. A rank that is silent for the limit is dead, and so is one that has ended or that no connection
    /// reaches, if it is `missed`.
    pub(crate) fn new(
        pulse: &Arc<Pulse>,
        peers: &Arc<[Option<Peer>]>,
        rank: usize,
        limit: Duration,
        missed: bool,
    ) -> Self {
        let start = Instant::now();
        Self {
            pulse: Arc::clone(pulse),
            peers: Arc::clone(peers),
            rank,
            limit,
            missed,
            silent_since: vec![None; peers.len()],
            start,
            round: Round::default(),
            next_look: start + interval(limit),
            next_note: start + NOTE,
        }
    }

    /// Asks the next rank, if the last question was long enough ago.
    pub(crate) fn look(&mut self) -> Finding {
        if Instant::now() < self.next_look {
            return Finding::Waits;
        }
        let (own, asked) = (self.pulse.begun.load(Ordering::Relaxed), self.round.asked);
        self.round.asked += 1;
        let Some(peer) = self.peers.get(asked) else { return self.end_round() };
        let answer = if asked == self.rank {
            Answer::Works(own)
        } else {
            peer.as_ref().map_or(Answer::Unreachable, Peer::ask)
        };
        let now = Instant::now();
        // Questions to all ranks take an interval.
        self.next_look = now + interval(self.limit) / self.peers.len() as u32;
        match answer {
            Answer::Works(begun) => {
                self.silent_since[asked] = None;
                // The first of the ranks that wait speaks for them.
                self.round.has_first |= asked < self.rank && begun >= own;
                self.round.behind.extend((begun < own).then_some(asked));
            }
            Answer::Ended | Answer::Unreachable if !self.missed => self.silent_since[asked] = None,
            Answer::Ended | Answer::Unreachable | Answer::Silence => {
                let since = *self.silent_since[asked].get_or_insert(now);
                if now.duration_since(since) >= self.limit {
                    return Finding::Dead { rank: asked };
                }
            }
        }
        Finding::Waits
    }

    /// Ends a round of questions. Returns a note for whom this rank waits, if it is time.
    fn end_round(&mut self) -> Finding {
        let Round { behind, has_first, .. } = std::mem::take(&mut self.round);
        let now = Instant::now();
        if now < self.next_note || has_first || behind.is_empty() {
            return Finding::Waits;
        }
        self.next_note = now + NOTE;
        let ranks: Vec<String> = behind.iter().take(8).map(usize::to_string).collect();
        Finding::Note(format!(
            "note: rank {} has waited {} s for rank {}{}, which works",
            self.rank,
            self.start.elapsed().as_secs(),
            ranks.join(", "),
            if behind.len() > 8 { " and others" } else { "" },
        ))
    }
}

/// The time between two looks.
fn interval(limit: Duration) -> Duration {
    (limit / 4).min(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(pulse: &Pulse) -> Option<Peer> {
        Peer::of(&pulse.address("here"), "here")
    }

    #[test]
    fn a_rank_answers_with_its_operations_until_it_ends() {
        let pulse = Pulse::start();
        let peer = peer(&pulse).expect("loopback gives a port");
        assert_eq!(peer.ask(), Answer::Works(0));
        pulse.begin();
        pulse.begin();
        assert_eq!(peer.ask(), Answer::Works(2));
        drop(pulse);
        // The system closes the port when the thread ends.
        let ended = (0..500).any(|_| {
            thread::yield_now();
            peer.ask() == Answer::Ended
        });
        assert!(ended);
    }

    #[test]
    fn questions_without_the_token_get_no_answer() {
        let pulse = Pulse::start();
        let mut peer = peer(&pulse).expect("loopback gives a port");
        peer.token[3] ^= 1;
        assert_eq!(peer.ask(), Answer::Silence);
        assert!(Peer::of(&[0; 17], "here").is_none() && Peer::of(b"", "here").is_none());
    }

    #[test]
    fn a_silent_rank_is_dead_after_the_limit_and_a_slow_one_is_not() {
        let (own, slow) = (Arc::new(Pulse::start()), Pulse::start());
        own.begin();
        // As of a stopped process: the system accepts connections, and there is no answer.
        let stopped = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback gives a port");
        let port = stopped.local_addr().expect("it is bound").port();
        let silent = [&[0_u8; 16][..], &port.to_le_bytes(), b"here"].concat();
        let peers: Arc<[Option<Peer>]> = Arc::from([peer(&own), peer(&slow)]);
        let mut vigil = Vigil::new(&own, &peers, 0, Duration::from_millis(40), true);
        let mut rounds = 0;
        while rounds < 4 || vigil.round.asked > 0 {
            vigil.next_look = Instant::now();
            rounds += usize::from(vigil.round.asked == peers.len());
            assert_eq!(vigil.look(), Finding::Waits);
        }
        vigil.next_note = Instant::now();
        let note = loop {
            match vigil.look() {
                Finding::Waits => {}
                found => break found,
            }
        };
        assert!(
            matches!(&note, Finding::Note(text) if text.ends_with("s for rank 1, which works")),
            "{note:?}"
        );
        let peers = Arc::from([peer(&own), peer(&slow), Peer::of(&silent, "here")]);
        let mut vigil = Vigil::new(&own, &peers, 0, Duration::from_millis(40), true);
        let found = loop {
            match vigil.look() {
                Finding::Waits => {}
                found => break found,
            }
        };
        assert_eq!(found, Finding::Dead { rank: 2 });
    }

    #[test]
    fn a_rank_that_no_connection_reaches_is_missed_only_before_the_end() {
        let own = Arc::new(Pulse::start());
        let look = |missed: bool| {
            let peers: Arc<[Option<Peer>]> = Arc::from([peer(&own), None]);
            let mut vigil = Vigil::new(&own, &peers, 0, Duration::ZERO, missed);
            (0..8).map(|_| vigil.look()).find(|found| *found != Finding::Waits)
        };
        assert_eq!((look(true), look(false)), (Some(Finding::Dead { rank: 1 }), None));
    }
}
