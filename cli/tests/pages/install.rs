//! Installs the command as the guide says.

use crate::root;
use std::path::Path;
use std::process::Command;

/// Runs with `AUTOBATCH_TEST=long` only, because it compiles everything once more, optimised.
#[test]
fn the_command_installs_from_the_checkout_and_runs() {
    if std::env::var_os("AUTOBATCH_TEST").is_none_or(|tier| tier != "long") {
        eprintln!("skipped: AUTOBATCH_TEST=long installs the command");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    let mut install = Command::new(env!("CARGO"));
    install.args(["install", "--locked", "--force", "--path", "cli", "--root"]).arg(&folder);
    // A folder of its own, so that nothing built earlier is reused.
    install.env("CARGO_TARGET_DIR", folder.join("target")).current_dir(root());
    let installed = install.output().expect("cargo starts");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let graph = folder.join("names.abg");
    let emit = Command::new(folder.join("bin/autobatch")).args(["emit", "names", "-o"]).arg(&graph).output();
    let emit = emit.expect("the installed command starts");
    assert!(emit.status.success() && graph.exists(), "{}", String::from_utf8_lossy(&emit.stderr));
    // The build takes more than a gigabyte.
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
