//! The errands: whole tasks of a user, as scripts.

use crate::mask::masked;
use crate::shell::Scratch;
use crate::{files, root};

/// Runs an errand and compares its transcript with the snapshot beside it.
fn errand(name: &str) {
    let transcript =
        Scratch::new(&format!("errand-{name}")).run(&["-e", "-v"], &format!("tests/errands/{name}.sh"));
    insta::with_settings!({ snapshot_path => root().join("tests/errands/snapshots"), prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, masked(&transcript));
    });
}

/// Whether `gpu` can be executed. A missing GPU fails if `AUTOBATCH_REQUIRE_GPU` is set.
fn has_gpu() -> bool {
    let devices = Scratch::new("errand-devices").run(&["-c"], "autobatch devices | grep -c ^gpu: || true");
    let found = devices.trim() != "0";
    let required = std::env::var("AUTOBATCH_REQUIRE_GPU").is_ok_and(|value| value == "1");
    assert!(
        found || !required || !cfg!(feature = "gpu"),
        "AUTOBATCH_REQUIRE_GPU is set and no GPU was found"
    );
    found
}

#[test]
fn a_saved_plan_executes_on_a_gpu() {
    match has_gpu() {
        true => errand("gpu"),
        false => eprintln!("skipped: this build or machine has no GPU"),
    }
}

macro_rules! errands {
    ($($test:ident $name:literal)*) => {
        $(
            #[test]
            fn $test() {
                errand($name);
            }
        )*

        #[test]
        fn every_script_is_an_errand() {
            let names = [$($name),*];
            for path in files(&root().join("tests/errands"), "sh") {
                let name = path.file_stem().and_then(|stem| stem.to_str()).expect("names of errands are UTF-8");
                assert!(names.contains(&name) || name == "gpu", "no test runs {name}");
            }
        }
    };
}

errands! {
    a_crate_of_its_own_declares_and_trains_a_cell "own_cell"
    explain_says_why_two_nodes_are_in_different_batches "why"
    policies_are_compared_on_a_dumped_graph "policies"
    two_plans_are_compared "diff"
    an_interrupted_training_resumes_with_equal_bits "resume"
    a_saved_plan_executes "execute"
    every_verb_rejects_broken_files "broken"
}
