//! The same agreement on OpenGL, in a process of its own because environment variables select the interface. `apt-get
//! install libegl1 libgl1-mesa-dri` installs it in software. Without it the test reports that it is skipped;
//! `AUTOBATCH_REQUIRE_GL=1` makes that a failure.

use crate::common::skipped;
use std::process::Command;

/// The smallest test each of values, gradients, updates and training.
const TESTS: [&str; 6] = [
    "agreement::small_graphs_agree_with_the_reference",
    "gradients::small_graphs_have_the_gradients_of_the_naive_executor",
    "updates::every_optimiser_has_the_bits_of_the_naive_executor_with_exact_arithmetic",
    "updates::rows_without_a_lookup_do_not_change",
    "training::a_resumed_run_has_the_bits_of_an_uninterrupted_one",
    "faults::a_lost_device_is_an_error_and_the_next_run_reopens_it",
];

#[test]
fn opengl_agrees_too() {
    let own = std::env::current_exe().expect("the test has a file");
    let output = Command::new(own)
        .args(["--exact", "--nocapture", "--test-threads", "1"])
        .args(TESTS)
        .env("WGPU_BACKEND", "gl")
        .env("EGL_PLATFORM", "surfaceless")
        .env("AUTOBATCH_REQUIRE_GPU", "0")
        .output()
        .expect("the test starts");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    assert!(said[0].contains(&format!("{} passed", TESTS.len())), "{}", said[0]);
    if said[1].contains("SKIPPED") {
        let required = std::env::var_os("AUTOBATCH_REQUIRE_GL").is_some_and(|value| value == "1");
        assert!(!required, "AUTOBATCH_REQUIRE_GL is 1: {}", said[1]);
        skipped("there is no OpenGL adapter");
    }
}
