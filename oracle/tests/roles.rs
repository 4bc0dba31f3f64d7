//! Roles of kernels in reverse: the proof refuses wrong ones, the verifier refuses plans without them.

use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use autobatch_oracle::check::{Wanted, check};
use std::path::Path;

fn read(extension: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/handwritten/tree");
    std::fs::read_to_string(path.with_extension(extension)).expect("the example is there")
}

/// The message for the handwritten plan of two trees with `from` changed to `to`.
fn refused(from: &str, to: &str) -> String {
    let text = read("plan");
    assert!(text.contains(from), "{from}");
    let plan = Plan::from_text(text.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{error}"));
    let plan = match plan.verify() {
        Ok(plan) => plan,
        Err(errors) => return errors.to_string(),
    };
    let graph = GraphData::from_text(read("graph")).expect("the example parses");
    let proof = check(&plan, &graph, Wanted { values: &[], training: true });
    proof.expect_err("a role is wrong").to_string()
}

#[test]
fn a_wrong_role_is_a_disagreement() {
    for (from, to, message) in [
        (
            "operand 1, operand 3",
            "operand 3, operand 1",
            "step f6: the kernel declares port 2 as operand 3, but lane 0",
        ),
        (
            "saved 0, saved 1",
            "saved 1, saved 0",
            "step f6: the kernel declares port 5 as saved 1, but lane 0",
        ),
        ("saved 3, saved 4", "saved 3, saved 9", "the kernel declares port 9 as saved 9"),
        ("gradient 0, gradient 1", "gradient 0, gradient 0", "the kernel declares port 1 as gradient 0"),
        ("result 1, saved 0", "result 0, saved 0", "the kernel declares port 4 as result 0"),
        ("-> to 0, to 1, to 2", "-> to 1, to 0, to 2", "result 0 is not what its role says"),
        ("-> to 0, to 1, to 2", "-> to 7, to 1, to 2", "result 0 is not what its role says"),
        ("to 3, part", "to 3, seed", "result 4 is not what its role says"),
        ("-> to 0, to 1, to 2", "-> to 0, part, to 2", "declares port"),
        ("reverse gradient 0 -> part", "reverse gradient 0 -> to 0", "result 0 is not what its role says"),
        ("reverse -> seed", "reverse -> part", "declares port 0 as gradient 0"),
    ] {
        let found = refused(from, to);
        assert!(found.contains(message), "{from} changed to {to} gives\n{found}\nwithout {message:?}");
    }
}

#[test]
fn a_reverse_without_roles_breaks_a_rule() {
    let found = refused("  reverse -> seed\n", "");
    assert!(found.contains("P36 step f4 (k3 seed): its kernel must declare roles, because"), "{found}");
    let found = refused("  reverse gradient 0 -> part\n", "");
    assert!(
        found.contains("P36 step f8 (k6 leaf_reverse): its kernel must declare roles, because"),
        "{found}"
    );
    let found = refused("reverse gradient 0 -> part", "reverse gradient 0 -> part, part");
    let message = "P36 kernel k6 (leaf_reverse): it must declare a role for each of 1 ports and 1 results, found 1 and 2";
    assert!(found.contains(message), "{found}");
}
