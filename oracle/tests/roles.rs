//! Roles of kernels in reverse: the proof refuses wrong ones, the verifier refuses plans without them.

use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::Plan;
use autobatch_oracle::check::{Wanted, check};
use std::path::Path;

fn read(name: &str, extension: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/handwritten").join(name);
    std::fs::read_to_string(path.with_extension(extension)).expect("the example is there")
}

/// The message for the handwritten plan of two trees with `from` changed to `to`.
fn refused(from: &str, to: &str) -> String {
    refused_in("tree", from, to)
}

/// The message for a handwritten plan with `from` changed to `to`.
fn refused_in(name: &str, from: &str, to: &str) -> String {
    let text = read(name, "plan");
    assert!(text.contains(from), "{from}");
    let text = text.replacen(from, to, 1);
    let verify = |text: &str| {
        let plan = Plan::from_text(text).unwrap_or_else(|error| panic!("{error}"));
        plan.verify().map_err(|errors| errors.to_string())
    };
    // A change of rows changes the certificate. The verifier names the numbers that it demands.
    let plan = verify(&text).or_else(|errors| {
        let demanded = errors.lines().find_map(|line| line.split_once("P27 the certificate: "));
        let numbers = demanded.map_or("", |found| found.1).split("; ");
        let corrected = numbers.fold(text.clone(), |text, number| {
            let Some((name, (wanted, found))) = number
                .split_once(" must be ")
                .and_then(|(name, rest)| Some((name, rest.split_once(", found ")?)))
            else {
                return text;
            };
            let at = text.rfind(&format!("{name} {found}")).expect("the certificate has the number");
            [&text[..at], &format!("{name} {wanted}"), &text[at + name.len() + 1 + found.len()..]].concat()
        });
        verify(&corrected)
    });
    let plan = match plan {
        Ok(plan) => plan,
        Err(errors) => return errors,
    };
    let graph = GraphData::from_text(read(name, "graph")).expect("the example parses");
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

#[test]
fn a_step_that_pulls_something_else_is_a_disagreement() {
    for (from, to, message) in [
        // A reader is missing, is another, or is there twice.
        ("[0 all x3|1 all x1]", "[1 all x3|1 all x1]", "declares port 2 as readers 1, but lane 0 (n5)"),
        ("[0 all x3|1 all x1]", "[0 all x3|0 1 all x1]", "declares port 2 as readers 1, but lane 3 (n9)"),
        ("[0 all x3|1 all x1]", "[0 0 all x3|1 all x1]", "declares port 2 as readers 1, but lane 0 (n5)"),
        (
            "[0 all x3|1 all x1] = n5 x3 n9",
            "[0 all x3|1 all x1] = n9 x3 n5",
            "declares port 2 as readers 1, but lane 0 (n9)",
        ),
        // A key or a value belongs to another list, or one is pulled for twice.
        (
            "<- s1.v[0..4] s1.v[0..4] group",
            "<- s1.v{3 1 2 0} s1.v[0..4] group",
            "declares port 2 as readers 1, but lane 0 (n5)",
        ),
        (
            "<- s1.v[0..4] s1.v[0..4] group",
            "<- s1.v{0 0 2 3} s1.v{0 0 2 3} group",
            "declares port 2 as readers 1, but lane 1 (n5)",
        ),
        ("readers 1 ->", "readers 0 ->", "declares port 2 as readers 0, but lane 0 (n5)"),
        // The stage computes another chain, or gives results other roles.
        (
            "pull %3, %4 = attend{scale=0.5}",
            "pull %3, %4 = attend{scale=0.25}",
            "result 0 is not what its role says",
        ),
        (
            "pull %3, %4 = attend{scale=0.5} %0, %1",
            "pull %3, %4 = attend{scale=0.5} %1, %0",
            "result 0 is not what its role says",
        ),
        ("-> to 1, to 1 use 1", "-> to 1 use 1, to 1", "result 0 is not what its role says"),
        ("-> to 1, to 1 use 1", "-> to 1, to 1", "result 1 is not what its role says"),
        ("-> to 1, to 1 use 1", "-> to 1, to 0", "result 1 is not what its role says"),
        ("-> to 0, part", "-> to 0, to 1", "result 1 is not what its role says"),
        // The gradient of an item leaves out a contribution.
        ("seg s6.d[0 4|1 5|2 6|3 7]", "seg s6.d[0 4|1 5|2 6|3]", "declares port 0 as gradient 0, but lane 3"),
        (
            "seg s6.d[0 4|1 5|2 6|3 7]",
            "seg s6.d[4 0|1 5|2 6|3 7]",
            "declares port 0 as gradient 0, but lane 0",
        ),
    ] {
        let found = refused_in("attention", from, to);
        assert!(found.contains(message), "{from} changed to {to} gives\n{found}\nwithout {message:?}");
    }
}

#[test]
fn the_reverse_of_attention_fits_its_lists() {
    for (from, to, message) in [
        (
            "unattend %4, %5 = attend{scale=0.5} %1",
            "unattend %4, %5 = attend{scale=0.5} %1[0]",
            "must be a port of lists of 1 floats",
        ),
        ("unattend %4, %5 =", "unattend %5, %4 =", "a view must have 2 floats, found 7 elements of f32"),
        (
            "unattend %4, %5 =",
            "unattend %4, %5[0..6] =",
            "a view must have 7 floats, found 6 elements of f32",
        ),
        ("pull %3, %4 =", "pull %3[0], %4 =", "a view must have 2 floats, found 1 elements of f32"),
        ("%0, %1 by %2", "%0, %1[0] by %2", "must be a port of lists of 6 floats, found list f32[7]"),
        ("%0, %1 by %2", "%0, %1 by %1", "register 1 must be a port of lists of 7 floats, found f32[2]"),
    ] {
        let found = refused_in("attention", from, to);
        assert!(
            found.contains("P38") && found.contains(message),
            "{from} changed to {to} gives\n{found}\nwithout {message:?}"
        );
    }
}
