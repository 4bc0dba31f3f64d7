//! The same agreement on OpenGL, in a process of its own, because the interface is chosen by the
//! environment: `apt-get install libegl1 libgl1-mesa-dri` has it in software. Where there is none the test
//! says that it was skipped; `AUTOBATCH_REQUIRE_GL=1` makes that a failure.

use crate::common::skipped;
use std::process::Command;

/// Values, gradients, updates and a whole training, each at its smallest.
const TESTS: [&str; 6] = [
    "agreement::small_graphs_agree_with_the_reference",
    "gradients::small_graphs_have_the_gradients_of_the_naive_executor",
    "updates::every_optimiser_has_the_bits_of_the_naive_executor_on_exact_arithmetic",
    "updates::rows_that_no_lookup_named_stay_as_they_are",
    "training::a_run_resumed_on_a_gpu_has_the_bits_of_an_uninterrupted_one",
    "faults::a_lost_device_is_an_error_and_the_next_run_opens_it_again",
];

#[test]
fn opengl_agrees_as_well() {
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
