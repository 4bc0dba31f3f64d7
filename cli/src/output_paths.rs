//! Checks of output paths, made before the work that produces the output.
//!
//! An output must not overwrite an input or another output, and its path must be writable.

use crate::failure::Failure;
use autobatch_ir::files;
use std::path::{Path, PathBuf};

/// Rejects an output that is the same file as an input or as another output.
pub(crate) fn check_distinct(outputs: &[&str], inputs: &[&str]) -> Result<(), Failure> {
    for (number, output) in outputs.iter().enumerate() {
        let is_same = |other: &&str| is_same_file(output, other);
        if inputs.iter().any(is_same) {
            let message = format!("{output} is both an input and an output");
            return Err(Failure::usage(message).help("name another file for the output"));
        }
        if outputs[..number].iter().any(is_same) {
            let message = format!("two outputs have the same path {output}");
            return Err(Failure::usage(message).help("name another file for one of them"));
        }
    }
    Ok(())
}

fn is_same_file(one: &str, other: &str) -> bool {
    one != "-" && other != "-" && resolved(one) == resolved(other)
}

/// The path with all links resolved. If the file does not exist, its folder is resolved.
fn resolved(path: &str) -> PathBuf {
    let path = Path::new(path);
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// Rejects a path that cannot be written. The check neither changes nor creates the file.
pub(crate) fn check_writable(path: &str) -> Result<(), Failure> {
    match path {
        "-" => Ok(()),
        _ => files::writable(Path::new(path)).map_err(|error| Failure::output(path, &error)),
    }
}

/// Rejects a path whose file cannot be replaced atomically.
pub(crate) fn check_replaceable(path: &str) -> Result<(), Failure> {
    files::replaceable(Path::new(path)).map_err(|error| Failure::output(path, &error))
}

/// Creates the folder of a file.
pub(crate) fn make_folder(path: &str) -> Result<(), Failure> {
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(|error| Failure::output(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_after_links_are_resolved() {
        let folder = std::env::temp_dir().join(format!("autobatch-paths-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in")).unwrap();
        std::fs::write(folder.join("x.json"), "{}").unwrap();
        let name = |path: &str| folder.join(path).to_string_lossy().into_owned();
        let (plain, indirect) = (name("x.json"), name("in/../x.json"));
        assert!(check_distinct(&[&indirect], &[&plain]).unwrap_err().message.contains("both an input"));
        assert!(
            check_distinct(&[&name("y"), &name("in/../y")], &[]).unwrap_err().message.contains("two outputs")
        );
        check_distinct(&[&name("y"), &name("in/y"), "-"], &[&plain, "-"]).unwrap();
        check_writable(&plain).unwrap();
        check_writable(&name("in/y")).unwrap();
        assert_eq!(std::fs::read(&plain).unwrap(), b"{}");
        assert!(!folder.join("in/y").exists());
        for unwritable in [name("in"), name("none/y"), name("x.json/y")] {
            assert_eq!(check_writable(&unwritable).unwrap_err().code(), 4, "{unwritable}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
