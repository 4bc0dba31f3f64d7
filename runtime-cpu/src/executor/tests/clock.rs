//! Tests of the conversion of ticks to time.

use crate::executor::clock::Clock;
use std::time::{Duration, Instant};

#[test]
fn times_are_ordered_and_never_exceed_the_elapsed_time() {
    let outer = Instant::now();
    let clock = Clock::start();
    let ticks: Vec<_> = (0..1000).map(|_| clock.now()).collect();
    let time = clock.stop();
    let elapsed = outer.elapsed();
    let times: Vec<Duration> = ticks.into_iter().map(time).collect();
    assert!(times.is_sorted(), "{times:?}");
    let last = times[times.len() - 1];
    assert!(last > Duration::ZERO && last <= elapsed, "{last:?} of {elapsed:?}");
}
