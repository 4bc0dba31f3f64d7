//! Malformed and hostile plans, as text and as bytes: an error or a plan, never a panic, and never
//! more memory than sixteen times the input and a mebibyte.

mod binary;
#[path = "../../../tests/hostile/mod.rs"]
mod hostile;
mod text;

use std::path::Path;

/// The committed plans.
fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/plans");
    let entries = std::fs::read_dir(folder).expect("the corpus is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "plan"));
    assert!(files.len() > 8, "the corpus is there");
    files.iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect()
}
