//! Runs commands in a scratch folder with the program of this build.

use crate::root;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A new folder with a copy of `docs/files`.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder. Folders of earlier runs are removed.
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages").join(name);
        // The folder does not exist in the first run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder is writable");
        for entry in std::fs::read_dir(root().join("docs/files")).expect("docs/files exists") {
            let path = entry.expect("entries of a folder are readable").path();
            let name = path.file_name().expect("an entry of a folder has a name");
            std::fs::copy(&path, folder.join(name)).expect("files of docs/files can be copied");
        }
        Self(folder)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.0.join(name), content).expect("the target folder is writable");
    }

    /// Runs a script of bash. Returns both output streams in their order, and the exit code if it is not 0.
    ///
    /// The script sees `autobatch` as a command, the root of the repository as `$AUTOBATCH`, and no other variable of
    /// autobatch. Paths of the repository are replaced by the names of these variables.
    pub(crate) fn run(&self, options: &[&str], script: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_autobatch"));
        let folder = program.parent().expect("the program lies in a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bash = Command::new("bash");
        bash.args(["-c", "exec bash \"$@\" 2>&1", "bash"]).args(options);
        match options.contains(&"-c") {
            true => bash.arg(script),
            false => bash.arg(root().join(script)),
        };
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AUTOBATCH")) {
            bash.env_remove(name);
        }
        bash.env("PATH", format!("{}:{path}", folder.display()))
            .env("AUTOBATCH", root())
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("errands"))
            .env("CARGO_TERM_COLOR", "never")
            .current_dir(&self.0)
            .stdin(Stdio::null());
        let output = bash.output().expect("bash is installed");
        let printed = String::from_utf8(output.stdout).expect("commands print UTF-8");
        let scratch = self.0.to_str().expect("the path of the target folder is UTF-8");
        let root = root().to_str().expect("the path of the repository is UTF-8");
        let printed: String =
            printed.lines().filter(|line| !is_progress(line)).flat_map(|line| [line, "\n"]).collect();
        let mut printed = printed.replace(scratch, ".").replace(root, "$AUTOBATCH");
        match output.status.code() {
            Some(0) => {}
            code => {
                if !printed.is_empty() && !printed.ends_with('\n') {
                    printed.push('\n');
                }
                printed.push_str(
                    &code.map_or("[ended by a signal]\n".to_owned(), |code| format!("[exit {code}]\n")),
                );
            }
        }
        printed
    }
}

/// Whether a line reports progress, as slow machines print it: `run 3/7  round 3`.
fn is_progress(line: &str) -> bool {
    let is_count = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let parts = line.split_whitespace().nth(1).and_then(|word| word.split_once('/'));
    parts.is_some_and(|(done, all)| is_count(done) && is_count(all))
}
