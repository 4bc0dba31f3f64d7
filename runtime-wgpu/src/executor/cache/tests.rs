//! Tests of the pipeline cache file.

use super::*;
use crate::options::Options;

#[test]
fn only_an_intact_file_is_read() {
    let folder = std::env::temp_dir().join(format!("autobatch-pipelines-{}", std::process::id()));
    let path = folder.join("file");
    assert_eq!(read(&path), None);
    write(&path, b"data of a driver").expect("a folder to write to");
    assert_eq!(read(&path).as_deref(), Some(b"data of a driver".as_slice()));
    let whole = fs::read(&path).expect("there");
    for at in [0, 9, 20, HEAD, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).expect("a file to write to");
        assert_eq!(read(&path), None, "byte {at} was changed");
    }
    for len in [0, 5, HEAD, whole.len() - 1] {
        fs::write(&path, &whole[..len]).expect("a file to write to");
        assert_eq!(read(&path), None, "truncated to {len}");
    }
    fs::remove_dir_all(&folder).expect("it was made here");
}

#[cfg(unix)]
#[test]
fn endless_files_are_ignored_and_replaced() {
    let folder = std::env::temp_dir().join(format!("autobatch-endless-pipelines-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder to write to");
    let path = folder.join("file");
    std::os::unix::fs::symlink("/dev/zero", &path).expect("a link to write");
    assert_eq!(read(&path), None);
    // Writing replaces the link.
    write(&path, b"data of a driver").expect("a folder to write to");
    assert_eq!(read(&path).as_deref(), Some(b"data of a driver".as_slice()));
    fs::File::create(&path).and_then(|file| file.set_len(MAX_BYTES + 1)).expect("a file to write to");
    assert_eq!(read(&path), None, "larger than the maximum");
    fs::remove_file(&path).expect("it was written here");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(read(&path), None, "a pipe without a writer");
    }
    fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn data_of_another_adapter_is_silently_ignored() {
    let folder = std::env::temp_dir().join(format!("autobatch-other-pipelines-{}", std::process::id()));
    let pipelines = PipelineCacheDir::Folder(folder.clone());
    let Some(gpu) = Gpu::of_tests(Options { pipelines, ..Options::default() }) else { return };
    let mut file = PipelineFile::open(&gpu);
    let Some(path) = file.path.clone() else { return };
    file.save(1);
    let own = read(&path).expect("it was written");
    // wgpu's head: eight bytes of magic, its version, the size of an address, the backend, the adapter.
    for at in [16, 17, 24] {
        let mut other = own.clone();
        other[at] ^= 1;
        write(&path, &other).expect("a folder to write to");
        assert!(PipelineFile::open(&gpu).cache().is_some(), "byte {at} was changed");
        gpu.take_error().expect("no error is reported");
    }
    fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn concurrent_writes_leave_one_intact_file() {
    let folder = std::env::temp_dir().join(format!("autobatch-many-pipelines-{}", std::process::id()));
    let path = folder.join("file");
    std::thread::scope(|scope| {
        for length in 1..9usize {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..50 {
                    write(path, &vec![length as u8; length << 12]).expect("a folder to write to");
                    let found = read(path).expect("a whole file at every moment");
                    assert!(found.len() == usize::from(found[0]) << 12);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(&folder).expect("it was made here").count(), 1);
    fs::remove_dir_all(&folder).expect("it was made here");
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let folder = std::env::temp_dir().join(format!("autobatch-no-pipelines-{}", std::process::id()));
    let path = folder.join("file");
    fs::create_dir_all(path.join("taken")).expect("a folder to write to");
    assert!(write(&path, b"data of a driver").is_err());
    assert_eq!(fs::read_dir(&folder).expect("it was made here").count(), 1);
    fs::remove_dir_all(&folder).expect("it was made here");
}
