//! A process that is killed while it writes checkpoints leaves an intact checkpoint.

use crate::model::{bits, data, file, train, trainer};
use autobatch::prelude::*;
use autobatch::random::Random;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable with the child's output file. Without it the child's test returns immediately.
const CHILD: &str = "AUTOBATCH_TEST_CHILD_WRITES";
const STEPS_AN_EPOCH: u64 = 2;

/// Trains and saves until the parent kills the process.
#[test]
fn the_child_trains_and_saves_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let items = data(1, 32);
    let (model, mut trainer) = trainer(1);
    for epoch in 0..100_000 {
        train(&model, &mut trainer, &items, epoch..epoch + 1);
        trainer.set_progress(Progress { epoch: epoch + 1, batches: 0 });
        trainer.save(&path).unwrap();
    }
}

/// Starts the child, waits for its first checkpoint, and kills it after `delay`.
fn killed_after(path: &Path, delay: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["killed::the_child_trains_and_saves_until_it_is_killed", "--exact"])
        .env(CHILD, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut written = None;
    while written.is_none_or(|at: Instant| at.elapsed() < delay) {
        assert!(start.elapsed() < Duration::from_secs(120), "the child writes no checkpoint");
        if written.is_none() && path.exists() {
            written = Some(Instant::now());
        }
        std::thread::yield_now();
    }
    // On Unix this is SIGKILL: no destructor and no flush runs.
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_killed_at_a_random_moment_resumes_with_the_bits_of_an_uninterrupted_run() {
    let path = file("killed.safetensors");
    let items = data(1, 32);
    let mut random = Random::new(11);
    let mut epochs = 0;
    for round in 0..6 {
        let _ = std::fs::remove_file(&path);
        killed_after(&path, Duration::from_micros(random.below(30_000)));
        let (model, mut resumed) = trainer(1);
        resumed.load(&path).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let Progress { epoch, batches } = resumed.progress();
        assert_eq!((resumed.steps(), batches), (epoch * STEPS_AN_EPOCH, 0), "round {round}");
        epochs = epochs.max(epoch);
        train(&model, &mut resumed, &items, epoch..epoch + 2);
        let (model, mut whole) = trainer(1);
        train(&model, &mut whole, &items, 0..epoch + 2);
        assert_eq!(bits(&resumed), bits(&whole), "round {round}, killed in epoch {epoch}");
    }
    assert!(epochs > 0);
}
