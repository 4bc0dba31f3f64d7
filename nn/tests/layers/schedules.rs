//! Learning-rate schedules.

use autobatch_nn::optim::Schedule;

#[track_caller]
fn follows(schedule: &Schedule, expected: &[(u64, f64)]) {
    for &(t, expected) in expected {
        let found = schedule.factor(t);
        assert!((found - expected).abs() < 1e-12, "{schedule:?} at {t}: {found} for {expected}");
    }
}

#[test]
fn constant_and_custom_schedules_return_their_factors() {
    follows(&Schedule::Constant, &[(0, 1.0), (u64::MAX, 1.0)]);
    follows(&Schedule::custom(|t| 1.0 / (1.0 + t as f64)), &[(0, 1.0), (3, 0.25)]);
}

#[test]
fn steps_multiply_after_every_interval() {
    follows(&Schedule::step(10, 0.5), &[(0, 1.0), (9, 1.0), (10, 0.5), (19, 0.5), (20, 0.25)]);
    follows(&Schedule::step(0, 0.5), &[(0, 1.0), (1, 0.5)]);
}

#[test]
fn a_cosine_decreases_to_its_low() {
    let root = 0.5f64.sqrt();
    let at = |x: f64| 0.1 + 0.9 * (1.0 + x) / 2.0;
    let expected = [(0, 1.0), (25, at(root)), (50, 0.55), (75, at(-root)), (100, 0.1), (5000, 0.1)];
    follows(&Schedule::cosine(100, 0.1), &expected);
}

#[test]
fn a_line_decreases_evenly_to_its_low() {
    follows(&Schedule::linear(4, 0.0), &[(0, 1.0), (1, 0.75), (3, 0.25), (4, 0.0), (9, 0.0)]);
    follows(&Schedule::linear(0, 0.5), &[(0, 1.0), (1, 0.5)]);
}

#[test]
fn cycles_repeat_without_end() {
    let expected = [(0, 0.2), (1, 0.6), (2, 1.0), (3, 0.6), (4, 0.2), (6, 1.0), (400, 0.2)];
    follows(&Schedule::cyclical(2, 0.2), &expected);
    follows(&Schedule::cyclical(0, 0.2), &[(0, 0.2), (1, 1.0), (2, 0.2)]);
    let half = 1 << 63;
    follows(
        &Schedule::cyclical(half, 0.5),
        &[(0, 0.5), (half / 2, 0.75), (half, 1.0), (half + half / 2, 0.75)],
    );
    follows(&Schedule::cyclical(u64::MAX, 0.5), &[(0, 0.5), (u64::MAX, 1.0)]);
}

#[test]
fn a_warm_up_leads_into_the_next_schedule() {
    let schedule = Schedule::warm_up(4, Schedule::step(3, 0.1));
    follows(&schedule, &[(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0), (6, 1.0), (7, 0.1)]);
    follows(&Schedule::warm_up(0, Schedule::Constant), &[(0, 1.0)]);
}
