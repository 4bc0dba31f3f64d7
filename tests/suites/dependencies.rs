//! Rules for dependencies: allowed licences, and one version of each crate.

use autobatch_tests::dependencies::{Package, packages, permits, refused_licences, unexplained_duplicates};
use autobatch_tests::tidy;

/// Licences that require only a copy of their text. `deny.toml` has the same list.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates in several versions, with the reason. `deny.toml` has the same list.
const DUPLICATES: &[(&str, &str)] = &[
    ("foldhash", "the hashers of the versions of hashbrown"),
    (
        "hashbrown",
        "petgraph wants 0.15 itself and another through indexmap, safetensors wants 0.16; none is on a hot path",
    ),
    ("syn", "macro crates move from 2 to 3 one by one; it is used while compiling only"),
];

#[track_caller]
fn clean(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

fn package(name: &str, version: &str, licence: Option<&str>) -> Package {
    Package { name: name.to_owned(), version: version.to_owned(), licence: licence.map(str::to_owned) }
}

#[test]
fn every_licence_is_allowed() {
    clean(refused_licences(&packages(), ALLOWED));
}

#[test]
fn every_duplicate_crate_has_a_reason() {
    clean(unexplained_duplicates(&packages(), DUPLICATES));
}

#[test]
fn an_unknown_licence_is_rejected() {
    let licences =
        [Some("GPL-3.0-only"), None, Some("MIT OR"), Some("MIT AND SSPL-1.0"), Some("MIT/GPL-2.0")];
    let packages: Vec<Package> =
        licences.iter().map(|licence| package("strange", "1.0.0", *licence)).collect();
    assert_eq!(refused_licences(&packages, ALLOWED).len(), 4, "the last offers MIT");
}

#[test]
fn two_versions_without_a_reason_are_found() {
    let packages = ["1.0.0", "2.0.0"].map(|version| package("twice", version, None));
    assert_eq!(unexplained_duplicates(&packages, DUPLICATES).len(), 1);
    assert_eq!(unexplained_duplicates(&packages, &[("twice", "it is moving")]).len(), 0);
}

#[test]
fn licence_expressions_are_parsed() {
    for (expression, met) in [
        ("MIT", true),
        ("MIT OR GPL-3.0", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0 OR Zlib", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
        ("GPL-2.0 WITH Classpath-exception-2.0", false),
    ] {
        assert_eq!(permits(expression, ALLOWED), Ok(met), "{expression}");
    }
    for broken in ["", "MIT OR", "(MIT", "MIT Zlib", "AND MIT", "MIT WITH"] {
        assert!(permits(broken, ALLOWED).is_err(), "{broken:?}");
    }
}

#[test]
fn the_file_for_cargo_deny_has_the_same_lists() {
    let text = std::fs::read_to_string(tidy::root().join("deny.toml")).expect("deny.toml exists at the root");
    let missing: Vec<&&str> =
        ALLOWED.iter().filter(|licence| !text.contains(&format!("\"{licence}\""))).collect();
    assert!(missing.is_empty(), "deny.toml does not allow {missing:?}");
    for (name, reason) in DUPLICATES {
        let line = format!("{{ crate = \"{name}\", reason = \"{reason}\" }}");
        assert!(text.contains(&line), "deny.toml must have the line {line}");
    }
    assert!(text.contains("RUSTSEC-2025-0141"), "deny.toml has an exception for bincode");
}

#[test]
fn bincode_is_pinned_and_used_by_the_codec_alone() {
    let root = std::fs::read_to_string(tidy::root().join("Cargo.toml")).expect("the root has a manifest");
    assert!(root.contains("bincode = { version = \"=2.0.1\""), "later versions of bincode are empty");
    let users: Vec<String> = tidy::manifests()
        .into_iter()
        .filter(|manifest| manifest.dependencies.iter().any(|name| name == "bincode"))
        .map(|manifest| manifest.name)
        .collect();
    assert_eq!(users, ["autobatch-ir"], "only the codec of ir writes and reads files");
    let strays: Vec<String> = tidy::sources()
        .into_iter()
        .filter(|source| source.is_rust() && source.path.starts_with("ir/") && !source.path.contains("codec"))
        .filter(|source| source.text.contains("bincode::"))
        .map(|source| source.path)
        .collect();
    assert!(strays.is_empty(), "only the codec may name bincode: {strays:?}");
}
