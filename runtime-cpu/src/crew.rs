//! Threads that execute the parts of one job after the other.
//!
//! The calling thread leads: it posts a job, takes parts itself, and returns when all parts are executed. The others follow: they
//! wait for jobs without giving up their cores, because a job may take a few microseconds and waking a thread takes tens. After
//! [`PATIENCE`] without a part a follower sleeps until the leader wakes it. A follower that is late takes no part, and no job waits
//! for it: a job ends when the parts that were taken are executed, and the crew ends with its last job. A follower that starts later,
//! because its thread was busy, finds nothing to do.

use rayon::ThreadPool;
use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a follower waits for a part before it sleeps, and the leader for the last parts before it offers its core.
const PATIENCE: Duration = Duration::from_micros(100);
/// Pauses between two readings of the clock.
const PAUSES: u32 = 32;

/// A job: it is called with the number of a thread, and with the number of each part once.
type Job<'j> = &'j (dyn Fn(usize, usize) + Sync + 'j);

/// The threads, as their leader sees them.
pub(crate) struct Crew<'c> {
    threads: usize,
    others: Option<Others<'c>>,
}

impl Crew<'_> {
    /// No thread but the calling one.
    pub(crate) fn alone() -> Self {
        Crew { threads: 1, others: None }
    }

    /// Calls a function with a crew of some threads: the calling one, and others of the pool until the function returns.
    pub(crate) fn with<R>(
        pool: Option<&ThreadPool>,
        threads: usize,
        lead: impl FnOnce(&mut Crew<'_>) -> R,
    ) -> R {
        let Some(pool) = pool.filter(|_| threads > 1) else { return lead(&mut Crew::alone()) };
        lead(&mut Crew { threads, others: Some(Others { pool, posted: None }) })
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Executes the parts of a job on all threads that are there. The job is called with the number of a thread, on which no other
    /// call runs at that time, and the number of a part.
    ///
    /// A job of one part runs on the calling thread. `wakes` tells that others are worth waking.
    pub(crate) fn each(&mut self, parts: usize, wakes: bool, job: Job<'_>) {
        let (Some(others), 2..) = (&mut self.others, parts) else {
            return (0..parts).for_each(|part| job(0, part));
        };
        others.start(self.threads).execute(u32::try_from(parts).expect("a job has few parts"), wakes, job);
    }

    /// Calls a function with each item, on all threads.
    pub(crate) fn each_of<T: Send>(&mut self, items: impl Iterator<Item = T>, work: impl Fn(T) + Sync) {
        let items: Vec<Mutex<Option<T>>> = items.map(|item| Mutex::new(Some(item))).collect();
        self.each(items.len(), true, &|_, part| {
            let item = lock(&items[part]).take();
            item.into_iter().for_each(&work);
        });
    }
}

/// The threads that follow.
struct Others<'c> {
    pool: &'c ThreadPool,
    /// Where they find their jobs. They start before the first.
    posted: Option<Arc<Posted>>,
}

impl Others<'_> {
    /// Starts the followers, if they have not started.
    fn start(&mut self, threads: usize) -> &Posted {
        self.posted.get_or_insert_with(|| {
            let posted = Arc::new(Posted::default());
            let first = Arc::clone(&posted);
            self.pool.spawn(move || first.lead_in(1, threads));
            posted
        })
    }
}

impl Drop for Others<'_> {
    /// Ends the work of all followers, also if the leader panics.
    fn drop(&mut self) {
        if let Some(posted) = &self.posted {
            posted.ended.store(true, Ordering::SeqCst);
            posted.wake();
        }
    }
}

/// The job that the threads execute.
#[derive(Default)]
struct Posted {
    /// Points to the [`Job`] of the leader. It lives until all its parts that were taken are executed.
    job: AtomicPtr<()>,
    /// The number of parts of the job, and in the lower half the next of them. A thread takes a part by adding one.
    parts: Line<AtomicU64>,
    /// The number of executed parts of the job.
    executed: Line<AtomicUsize>,
    /// The panic of a part. The leader goes on with it when the job ends.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    ended: AtomicBool,
    /// The number of followers that sleep.
    asleep: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

/// A value with cache lines of its own, because several threads write it.
#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

impl Posted {
    /// Starts the next two followers, which start two more each, because starting a thread takes microseconds; then follows.
    fn lead_in(self: Arc<Self>, thread: usize, threads: usize) {
        for next in [2 * thread, 2 * thread + 1] {
            if next < threads {
                let posted = Arc::clone(&self);
                rayon::spawn(move || posted.lead_in(next, threads));
            }
        }
        self.follow(thread);
    }

    fn follow(&self, thread: usize) {
        let mut wait = Wait::default();
        loop {
            if let Some(part) = self.take() {
                self.part(thread, part);
                wait = Wait::default();
            } else if self.ended.load(Ordering::Acquire) {
                return;
            } else if wait.is_over() {
                self.sleep();
                wait = Wait::default();
            }
        }
    }

    /// Takes the next part, if one is left.
    fn take(&self) -> Option<usize> {
        let halves = |parts: u64| ((parts >> 32) as usize, parts as u32 as usize);
        let (parts, next) = halves(self.parts.0.load(Ordering::Acquire));
        if next >= parts {
            return None;
        }
        // Another thread may have taken it since, or the leader have posted another job.
        let (parts, part) = halves(self.parts.0.fetch_add(1, Ordering::AcqRel));
        (part < parts).then_some(part)
    }

    /// Executes a part that was taken, and keeps its panic for the leader.
    fn part(&self, thread: usize, part: usize) {
        let job = self.job.load(Ordering::Relaxed).cast::<Job<'_>>();
        // SAFETY: the job was posted before the part could be taken, and the leader keeps it until the part is executed.
        let job = unsafe { *job };
        // The leader goes on with the panic, so no code sees what the part left behind.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(thread, part))) {
            lock(&self.panic).get_or_insert(panic);
        }
        self.executed.0.fetch_add(1, Ordering::Release);
    }

    /// Executes all parts of a job of the leader.
    fn execute(&self, parts: u32, wakes: bool, job: Job<'_>) {
        self.job.store(ptr::from_ref(&job).cast_mut().cast(), Ordering::Relaxed);
        self.executed.0.store(0, Ordering::Relaxed);
        self.parts.0.store(u64::from(parts) << 32, Ordering::SeqCst);
        if wakes {
            self.wake();
        }
        while let Some(part) = self.take() {
            self.part(0, part);
        }
        self.withdraw();
        let panic = lock(&self.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Withdraws the job, and waits for the parts that were taken: no thread has a part of it when this returns.
    fn withdraw(&self) {
        let parts = self.parts.0.swap(0, Ordering::SeqCst);
        let taken = (parts >> 32).min(u64::from(parts as u32)) as usize;
        let mut wait = Wait::default();
        while self.executed.0.load(Ordering::Acquire) < taken {
            if wait.is_over() {
                std::thread::yield_now();
            }
        }
    }

    /// Sleeps until the leader wakes all.
    fn sleep(&self) {
        let lock = lock(&self.sleep);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let parts = self.parts.0.load(Ordering::SeqCst);
        let has_parts = u64::from(parts as u32) < parts >> 32;
        if !has_parts && !self.ended.load(Ordering::SeqCst) {
            drop(self.wake.wait(lock));
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes all followers.
    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            // A thread that is about to sleep holds the lock.
            drop(lock(&self.sleep));
            self.wake.notify_all();
        }
    }
}

/// A wait that pauses the core for moments.
#[derive(Default)]
struct Wait {
    pauses: u32,
    since: Option<Instant>,
}

impl Wait {
    /// Pauses for a moment; true after [`PATIENCE`].
    fn is_over(&mut self) -> bool {
        spin_loop();
        self.pauses = self.pauses.wrapping_add(1);
        if !self.pauses.is_multiple_of(PAUSES) {
            return false;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() > PATIENCE
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "tests/crew.rs"]
mod tests;
