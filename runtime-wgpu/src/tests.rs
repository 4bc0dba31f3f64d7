//! Devices for the tests of this crate.

use crate::{Gpu, Options};

impl Gpu {
    /// Opens a device for a test, which is skipped without an adapter, or fails if `AUTOBATCH_REQUIRE_GPU` is 1.
    #[allow(clippy::print_stderr, reason = "a skipped test says so")]
    pub(crate) fn of_tests(options: Options) -> Option<Self> {
        match Self::open(options) {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                let required = std::env::var_os("AUTOBATCH_REQUIRE_GPU").is_some_and(|value| value == "1");
                assert!(!required, "AUTOBATCH_REQUIRE_GPU is 1: {error}");
                eprintln!("skipped: {error}");
                None
            }
        }
    }
}
