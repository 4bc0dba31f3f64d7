//! Where outputs go: over nothing that is read, over no other output, and where they can be written before there is anything
//! to write.

use crate::failure::Failure;
use autobatch_ir::files;
use std::path::{Path, PathBuf};

/// Refuses an output that is a file to be read, or another output.
pub(crate) fn apart(outputs: &[&str], inputs: &[&str]) -> Result<(), Failure> {
    for (number, output) in outputs.iter().enumerate() {
        let is_same = |other: &&str| leads_to_the_same(output, other);
        if inputs.iter().any(is_same) {
            let message = format!("{output} is to be read, and would be written over");
            return Err(Failure::usage(message).help("name another file for the output"));
        }
        if outputs[..number].iter().any(is_same) {
            let message = format!("{output} is named for two outputs, of which one would be lost");
            return Err(Failure::usage(message).help("name another file for one of them"));
        }
    }
    Ok(())
}

fn leads_to_the_same(one: &str, other: &str) -> bool {
    one != "-" && other != "-" && file_behind(one) == file_behind(other)
}

/// The file that a path leads to, through links, as far as there is one.
fn file_behind(path: &str) -> PathBuf {
    let path = Path::new(path);
    let in_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// Refuses a file that cannot be written, before the work that ends in it. What is there stays as it is, and nothing is left
/// where nothing was.
pub(crate) fn writable(path: &str) -> Result<(), Failure> {
    match path {
        "-" => Ok(()),
        _ => files::writable(Path::new(path)).map_err(|error| Failure::output(path, &error)),
    }
}

/// The same for a file that is to be whole at every moment.
pub(crate) fn replaceable(path: &str) -> Result<(), Failure> {
    files::replaceable(Path::new(path)).map_err(|error| Failure::output(path, &error))
}

/// Makes the folder that a file is to lie in.
pub(crate) fn make_folder(path: &str) -> Result<(), Failure> {
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(|error| Failure::output(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_inputs_are_told_apart_by_the_files_behind_their_paths() {
        let folder = std::env::temp_dir().join(format!("autobatch-places-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in")).unwrap();
        std::fs::write(folder.join("x.json"), "{}").unwrap();
        let name = |path: &str| folder.join(path).to_string_lossy().into_owned();
        let (plain, winding) = (name("x.json"), name("in/../x.json"));
        assert!(apart(&[&winding], &[&plain]).unwrap_err().message.contains("to be read"));
        assert!(apart(&[&name("y"), &name("in/../y")], &[]).unwrap_err().message.contains("two outputs"));
        apart(&[&name("y"), &name("in/y"), "-"], &[&plain, "-"]).unwrap();
        writable(&plain).unwrap();
        writable(&name("in/y")).unwrap();
        assert_eq!(std::fs::read(&plain).unwrap(), b"{}");
        assert!(!folder.join("in/y").exists());
        for nowhere in [name("in"), name("none/y"), name("x.json/y")] {
            assert_eq!(writable(&nowhere).unwrap_err().code(), 4, "{nowhere}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
