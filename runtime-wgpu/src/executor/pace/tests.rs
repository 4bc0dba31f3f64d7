//! Tests of the length of submissions.

use super::*;

#[test]
fn submissions_grow_with_the_measured_speed_but_not_at_once() {
    let mut pace = Pace::default();
    let (long, short) = (Duration::from_secs(2), Duration::from_millis(2));
    pace.learn(long, short);
    assert_eq!(pace.longest, DEFAULT_DISPATCH_TIME.mul_f64(GROWTH), "a thousand times as fast");
    pace.learn(long, short);
    let speed = long.as_secs_f64() / short.as_secs_f64();
    assert!(
        (pace.longest.as_secs_f64() - WANTED.as_secs_f64() * speed.min(32.0 * GROWTH)).abs() < 60.0,
        "{pace:?}"
    );
    let fast = pace;
    pace.learn(SHORTEST / 2, Duration::from_secs(9));
    assert_eq!(pace, fast, "a short run measures no speed");
    pace.learn(long, long);
    assert_eq!(pace, Pace::default(), "as slow as the slowest device");
    pace.learn(long, Duration::MAX);
    assert_eq!(pace, Pace::default());
    pace.learn(Duration::MAX, Duration::ZERO);
    assert_eq!(pace.longest, DEFAULT_DISPATCH_TIME.mul_f64(GROWTH));
}
