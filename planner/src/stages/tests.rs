//! Tests of the table of stages.

use super::STAGES;
use std::path::Path;

#[test]
fn each_stage_has_the_name_of_its_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for stage in STAGES {
        assert!(folder.join(stage.name).join("mod.rs").exists(), "no folder has the name {}", stage.name);
    }
}
