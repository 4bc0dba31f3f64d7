//! Tests of reads and writes, on systems with links and permissions.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("autobatch-files-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder of the system exists");
    folder
}

#[test]
fn links_stay_and_other_kinds_of_entries_are_left_alone() {
    let folder = folder("links");
    let [file, link, ahead] = ["file", "link", "ahead"].map(|name| folder.join(name));
    replace(&file, b"one").unwrap();
    symlink("link", folder.join("twice")).unwrap();
    symlink(&file, &link).unwrap();
    for (write, bytes) in [(replace as fn(&Path, &[u8]) -> Result<()>, b"two"), (write, b"six")] {
        write(&folder.join("twice"), bytes).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    // A link to a missing file leads to the new file.
    symlink("missing", &ahead).unwrap();
    writable(&ahead).unwrap();
    assert!(!folder.join("missing").exists());
    write(&ahead, b"three").unwrap();
    replaceable(&ahead).unwrap();
    assert!(std::fs::symlink_metadata(&ahead).unwrap().is_symlink());
    assert_eq!(std::fs::read(folder.join("missing")).unwrap(), b"three");
    symlink("round", folder.join("round")).unwrap();
    assert!(write(&folder.join("round"), b"four").unwrap_err().to_string().contains("form a cycle"));
    assert_eq!(replace(&folder, b"four").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(write(&folder, b"four").is_err() && writable(&folder).is_err());
    let socket = folder.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(replace(&socket, b"five").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(replaceable(&socket).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(!std::fs::metadata(&socket).unwrap().is_file());
    // No temporary file remains.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 7);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn permissions_are_preserved_and_long_names_are_supported() {
    let folder = folder("modes");
    let file = folder.join("f".repeat(255));
    write(&file, b"one").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    write(&file, b"two").unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read(&file).unwrap(), b"two");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn temporary_files_of_killed_writers_are_removed_by_the_next_write() {
    let folder = folder("abandoned");
    let file = folder.join("file");
    let [abandoned, written, of_another, foreign, named] = [
        ".file.77-0.partial",
        ".file.77-1.partial",
        ".other.77-0.partial",
        ".file.x-0.partial",
        "a.7-1.partial",
    ]
    .map(|name| folder.join(name));
    for path in [&abandoned, &written, &of_another, &foreign, &named] {
        std::fs::write(path, b"a part").unwrap();
    }
    let lock = File::open(&written).unwrap();
    lock.lock().unwrap();
    replace(&file, b"whole").unwrap();
    assert!(!abandoned.exists() && written.exists() && !of_another.exists());
    drop(lock);
    replace(&file, b"again").unwrap();
    assert!(!written.exists() && foreign.exists() && named.exists(), "other names are not those of writers");
    assert_eq!(std::fs::read(&file).unwrap(), b"again");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn endless_streams_are_read_to_a_limit() {
    for endless in ["/dev/zero", "/dev/urandom"].map(Path::new).into_iter().filter(|path| path.exists()) {
        let error = read(endless).expect_err("the stream has no end");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(
            error.to_string().contains("only the first 16777216 bytes are read, and there are more"),
            "{error}"
        );
    }
    let folder = folder("reads");
    let file = folder.join("file");
    write(&file, b"twelve bytes").unwrap();
    assert_eq!(read(&file).unwrap(), b"twelve bytes");
    assert_eq!(read_text_at_most(&file, 12).unwrap(), "twelve bytes");
    assert_eq!(read_at_most(&file, 11).unwrap_err().kind(), ErrorKind::FileTooLarge);
    let opened = Opened::open(&file).unwrap();
    assert_eq!((opened.head(), opened.length()), (&b"twelve bytes"[..], Some(12)));
    assert_eq!(opened.read(12).unwrap(), b"twelve bytes");
    // A sparse file larger than memory.
    File::create(&file).unwrap().set_len(1 << 62).ok();
    if std::fs::metadata(&file).unwrap().len() > 1 << 60 {
        assert_eq!(read(&file).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
    let (pipe, mut end) = std::io::pipe().unwrap();
    let stream = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe)));
    end.write_all(b"through a pipe").unwrap();
    drop(end);
    if stream.exists() {
        assert_eq!(read(&stream).unwrap(), b"through a pipe");
    }
    assert!(read(&folder).is_err() && read(&folder.join("none")).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn streams_receive_bytes_and_are_never_replaced() {
    let null = Path::new("/dev/null");
    write(null, b"nothing").unwrap();
    assert!(!std::fs::metadata(null).unwrap().is_file());
    assert_eq!(replace(null, b"nothing").unwrap_err().kind(), ErrorKind::InvalidInput);
    if Path::new("/proc/self/fd").is_dir() {
        let folder = folder("streams");
        let open = File::create(folder.join("file")).unwrap();
        let stream = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open)));
        write(&stream, b"seven").unwrap();
        // The open file has the new content; no other file took its name.
        assert_eq!(open.metadata().unwrap().len(), 5);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
