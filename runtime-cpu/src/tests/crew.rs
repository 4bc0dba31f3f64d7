//! Tests of crews.

use super::{Crew, lock};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

/// Jobs of a test.
const JOBS: usize = if cfg!(miri) { 20 } else { 2000 };

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started")
}

#[test]
fn every_part_is_executed_once_and_no_thread_twice_at_a_time() {
    for threads in 1..=4 {
        let pool = pool(threads);
        let busy: Vec<Mutex<()>> = (0..threads).map(|_| Mutex::new(())).collect();
        Crew::with(Some(&pool), threads, |crew| {
            assert_eq!(crew.threads(), threads);
            for job in 0..JOBS {
                let parts: Vec<AtomicUsize> = (0..job % 9).map(|_| AtomicUsize::new(0)).collect();
                crew.each(parts.len(), job % 3 == 0, &|thread, part| {
                    let _own = busy[thread].try_lock().expect("the thread executes nothing else");
                    parts[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(parts.iter().all(|part| part.load(Ordering::Relaxed) == 1), "job {job}");
            }
        });
    }
}

#[test]
fn items_are_mutable_and_borrowed() {
    let pool = pool(3);
    let mut squares = vec![0; 100];
    Crew::with(Some(&pool), 3, |crew| {
        crew.each_of(squares.iter_mut().enumerate(), |(number, square)| *square = number * number);
    });
    assert!(squares.iter().enumerate().all(|(number, &square)| square == number * number));
}

#[test]
fn one_thread_executes_all_parts_in_order() {
    for mut crew in [Crew::alone(), Crew::alone()] {
        let parts = Mutex::new(Vec::new());
        crew.each(5, true, &|thread, part| lock(&parts).push((thread, part)));
        assert_eq!(*lock(&parts), [0, 1, 2, 3, 4].map(|part| (0, part)));
    }
    assert_eq!(Crew::with(None, 4, |crew| crew.threads()), 1);
}

#[test]
fn sleeping_threads_wake_for_a_job() {
    const THREADS: usize = 3;
    let pool = pool(THREADS);
    Crew::with(Some(&pool), THREADS, |crew| {
        for _ in 0..3 {
            // The first job starts the threads. Each part waits for the others, so each runs on a thread of its own.
            let all = Barrier::new(THREADS);
            crew.each(THREADS, true, &|_, _| {
                all.wait();
            });
            let others = crew.others.as_ref().expect("a crew of three has others");
            let posted = others.posted.as_ref().expect("the others have started");
            while posted.asleep.load(Ordering::SeqCst) < THREADS - 1 {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn a_crew_ends_while_the_thread_of_its_follower_is_busy() {
    let pool = pool(1);
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            pool.install(|| {
                start.wait();
                end.wait();
            });
        });
        start.wait();
        let executed = AtomicUsize::new(0);
        Crew::with(Some(&pool), 2, |crew| {
            crew.each(5, true, &|thread, _| {
                assert_eq!(thread, 0);
                executed.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(executed.into_inner(), 5);
        end.wait();
    });
    // The follower has found the end of its crew, and its thread serves another.
    let all = Barrier::new(2);
    Crew::with(Some(&pool), 2, |crew| {
        crew.each(2, true, &|_, _| {
            all.wait();
        });
    });
}

#[test]
fn a_part_that_panics_ends_the_crew_with_its_panic() {
    let pool = pool(3);
    for failing in 0..6 {
        let executed = AtomicUsize::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            Crew::with(Some(&pool), 3, |crew| {
                crew.each(6, true, &|_, part| {
                    assert_ne!(part, failing, "this part fails");
                    executed.fetch_add(1, Ordering::Relaxed);
                });
            });
        }));
        let panic = outcome.expect_err("the panic reaches the caller");
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("this part fails")));
        assert!(executed.into_inner() < 6);
    }
    // The pool serves the next crew.
    Crew::with(Some(&pool), 3, |crew| crew.each(3, true, &|_, _| ()));
}
