//! Fuzz targets for everything that comes from outside, and for every path from a graph to its values.
//!
//! A [`Target`] draws inputs by mutating valid samples, and checks one input at a time. Three programs run the same targets:
//! * the tests of this crate, for a few seconds each;
//! * `volume`, for any number of cases, with counts and a state file;
//! * libFuzzer, with feedback from covered code, through the files in `fuzz_targets/`.
//!
//! Each case asserts its memory and its processor time against a [`Budget`](autobatch_testing::hostile::Budget). A program
//! installs [`Counting`](autobatch_testing::hostile::Counting) to count memory.

#![forbid(unsafe_code)]

mod counts;
mod effort;
mod expected;
mod machine;
mod setting;
mod subjects;
mod target;

#[doc(hidden)]
#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys;

pub use counts::{Counts, Tally};
pub use setting::{POLICIES, Setting};
pub use subjects::targets;
pub use target::{Bench, Case, Subject, Target};

/// Makes a program of libFuzzer from the target with this name.
#[cfg(feature = "libfuzzer")]
#[macro_export]
macro_rules! libfuzzer {
    ($name:literal) => {
        thread_local! {
            static BENCH: std::cell::RefCell<$crate::Bench> = {
                let target = $crate::targets().into_iter().find(|target| target.name == $name);
                std::cell::RefCell::new($crate::Bench::new(target.expect("the file has the name of a target")))
            };
        }

        #[global_allocator]
        static ALLOCATOR: autobatch_testing::hostile::Counting = autobatch_testing::hostile::Counting;

        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| BENCH.with_borrow_mut(|bench| bench.fuzz(input)));
    };
}
