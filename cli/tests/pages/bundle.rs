//! The bundle that reports on the GPU of another machine, in a bare folder, without PATH.

use crate::root;
use std::process::Command;

/// Variables that choose the driver of the tests.
const DRIVER: [&str; 5] =
    ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "WGPU_BACKEND", "EGL_PLATFORM", "AUTOBATCH_REQUIRE_GPU"];

#[test]
fn the_bundle_reports_from_a_bare_folder_without_a_path() {
    if !cfg!(all(feature = "gpu", target_os = "linux")) {
        eprintln!("SKIPPED: the bundle is for Linux, and this build has no GPU support");
        return;
    }
    let place = std::env::temp_dir().join(format!("autobatch-bundle-{}", std::process::id()));
    let (bundle, bare) = (place.join("bundle"), place.join("bare"));
    std::fs::create_dir_all(&bare).expect("a folder to write to");
    let made = Command::new("bash")
        .arg(root().join("bench/gpu/bundle.sh"))
        .args(["--program", env!("CARGO_BIN_EXE_autobatch")])
        .arg(&bundle)
        .output()
        .expect("there is a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // A folder of something else stays as it is.
    std::fs::write(bare.join("kept"), "kept").expect("a file to write to");
    let refused = Command::new("bash")
        .arg(root().join("bench/gpu/bundle.sh"))
        .args(["--program", env!("CARGO_BIN_EXE_autobatch"), "bare"])
        .current_dir(&place)
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("is no bundle"), "{said}");
    std::fs::remove_file(bare.join("kept")).expect("it is still there");
    let mut command = Command::new(bundle.join("report.sh"));
    let variables = DRIVER.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    command.env_clear().env("PATH", "").envs(variables).current_dir(&bare);
    let output = command.output().expect("the script starts without PATH");
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(bare.join("gpu-report.json"));
    let report: serde_json::Value = serde_json::from_str(&written.expect(&said)).expect("JSON");
    std::fs::remove_dir_all(&place).expect("it was made here");
    let has_findings = report["findings"].as_array().is_some_and(|findings| !findings.is_empty());
    assert_eq!(output.status.code(), Some(i32::from(has_findings)), "{printed}{said}");
    if report["complete"] == true {
        assert!(
            report["sections"]["steps"]["steps"].as_array().is_some_and(|steps| steps.len() > 10),
            "{printed}"
        );
        assert!(printed.contains("treelstm") && said.contains("growing plan"), "{printed}{said}");
        return;
    }
    let required = std::env::var_os("AUTOBATCH_REQUIRE_GPU").is_some_and(|value| value == "1");
    assert!(!required, "AUTOBATCH_REQUIRE_GPU is 1: {printed}");
    assert!(printed.contains("install a Vulkan"), "{printed}");
}
