//! What a driver made of pipelines, kept from process to process where the adapter has it (Vulkan).
//!
//! The file is ours: magic, length and hash stand before what the driver gave, and a file that is cut,
//! changed or of another format counts as none. wgpu looks at its own head next (its version, adapter,
//! driver), and the driver at its. It is a cache: whatever goes wrong with it, nothing is said and pipelines
//! are made anew.

use crate::device::Gpu;
use crate::options::Kept;
use autobatch_ir::files;
use autobatch_ir::hash::hash_bytes;
use pollster::block_on;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"abpipes1";
/// Bytes before what the driver gave: magic, length, hash.
const HEAD: usize = 24;
/// Larger files are not looked at.
const MOST_BYTES: u64 = 256 << 20;

/// A driver's cache, and the file that it is kept in.
#[derive(Default)]
pub(super) struct PipelineFile {
    cache: Option<wgpu::PipelineCache>,
    path: Option<PathBuf>,
    /// How many pipelines had been made when it was written last.
    saved: u32,
}

impl PipelineFile {
    /// The cache of an adapter, with what the file holds; nothing where the adapter has none or none is
    /// wanted.
    pub(super) fn open(gpu: &Gpu) -> Self {
        let Some(folder) = folder(&gpu.options().pipelines) else { return Self::default() };
        if !gpu.device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return Self::default();
        }
        let Some(name) = wgpu::util::pipeline_cache_key(&gpu.device.adapter_info()) else {
            return Self::default();
        };
        let path = folder.join(name);
        // wgpu makes do without data that is cut or old, but refuses what another adapter gave.
        let cache = read(&path).and_then(|data| made(gpu, Some(&data))).or_else(|| made(gpu, None));
        Self { cache, path: Some(path), saved: 0 }
    }

    /// What pipelines are made with.
    pub(super) fn cache(&self) -> Option<&wgpu::PipelineCache> {
        self.cache.as_ref()
    }

    /// Writes the file, if pipelines were made since.
    pub(super) fn save(&mut self, made: u32) {
        if made == self.saved {
            return;
        }
        self.saved = made;
        if let (Some(cache), Some(path)) = (&self.cache, &self.path)
            && let Some(data) = cache.get_data()
        {
            // A cache that cannot be written is none.
            let _ = write(path, &data);
        }
    }
}

/// A cache with what the driver gave before, unless wgpu refuses it.
fn made(gpu: &Gpu, data: Option<&[u8]>) -> Option<wgpu::PipelineCache> {
    let refused = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let descriptor = wgpu::PipelineCacheDescriptor { label: Some("pipelines"), data, fallback: true };
    // SAFETY: the data was got from `PipelineCache::get_data` by this program, as its hash says, or is
    // none. As wgpu's documentation says of files, nobody can prove it: whoever may write the user's
    // cache folder may run programs as the user anyway.
    let cache = unsafe { gpu.device.create_pipeline_cache(&descriptor) };
    block_on(refused.pop()).is_none().then_some(cache)
}

/// The folder of the file, if one is wanted.
fn folder(kept: &Kept) -> Option<PathBuf> {
    match kept {
        Kept::Nowhere => None,
        Kept::Folder(folder) => Some(folder.clone()),
        Kept::OfUser => {
            let set =
                |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let cache = set("XDG_CACHE_HOME")
                .or_else(|| set("LOCALAPPDATA"))
                .or_else(|| set("HOME").map(|home| home.join(".cache")))?;
            Some(cache.join("autobatch"))
        }
    }
}

/// What the driver gave, if the file is whole.
fn read(path: &Path) -> Option<Vec<u8>> {
    // Opening a pipe waits for its writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let bytes = files::read_at_most(path, MOST_BYTES).ok()?;
    let (head, data) = bytes.split_at_checked(HEAD)?;
    (head == head_of(data)).then(|| data.to_vec())
}

/// Writes the file beside, and puts it in its place; what cannot be put there is not left beside it. Threads that write
/// at once write files of their own, of which the last stays.
fn write(path: &Path, data: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{}-{number}", std::process::id()));
    let written = fs::write(&beside, [head_of(data).as_slice(), data].concat());
    let written = written.and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn head_of(data: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&(data.len() as u64).to_le_bytes());
    head[16..].copy_from_slice(&hash_bytes(data).to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn a_whole_file_is_read_and_no_other() {
        let folder = std::env::temp_dir().join(format!("autobatch-pipelines-{}", std::process::id()));
        let path = folder.join("file");
        assert_eq!(read(&path), None);
        write(&path, b"what a driver gave").expect("a folder to write to");
        assert_eq!(read(&path).as_deref(), Some(b"what a driver gave".as_slice()));
        let whole = fs::read(&path).expect("there");
        for at in [0, 9, 20, HEAD, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).expect("a file to write to");
            assert_eq!(read(&path), None, "byte {at} was changed");
        }
        for len in [0, 5, HEAD, whole.len() - 1] {
            fs::write(&path, &whole[..len]).expect("a file to write to");
            assert_eq!(read(&path), None, "cut at {len}");
        }
        fs::remove_dir_all(&folder).expect("it was made here");
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_none_and_is_let_go_of() {
        let folder = std::env::temp_dir().join(format!("autobatch-endless-pipelines-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder to write to");
        let path = folder.join("file");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("a link to write");
        assert_eq!(read(&path), None);
        // What is written takes the place of the link.
        write(&path, b"what a driver gave").expect("a folder to write to");
        assert_eq!(read(&path).as_deref(), Some(b"what a driver gave".as_slice()));
        fs::File::create(&path).and_then(|file| file.set_len(MOST_BYTES + 1)).expect("a file to write to");
        assert_eq!(read(&path), None, "more than is looked at");
        fs::remove_file(&path).expect("it was written here");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|status| status.success()) {
            assert_eq!(read(&path), None, "nobody writes to it");
        }
        fs::remove_dir_all(&folder).expect("it was made here");
    }

    #[test]
    fn what_another_adapter_gave_is_none_and_is_not_spoken_of() {
        let folder = std::env::temp_dir().join(format!("autobatch-other-pipelines-{}", std::process::id()));
        let pipelines = Kept::Folder(folder.clone());
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
            gpu.heard().expect("nothing is said");
        }
        fs::remove_dir_all(&folder).expect("it was made here");
    }

    #[test]
    fn threads_that_write_at_once_leave_a_whole_file_and_nothing_beside_it() {
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
    fn a_file_that_cannot_be_put_in_its_place_leaves_nothing_beside_it() {
        let folder = std::env::temp_dir().join(format!("autobatch-no-pipelines-{}", std::process::id()));
        let path = folder.join("file");
        fs::create_dir_all(path.join("taken")).expect("a folder to write to");
        assert!(write(&path, b"what a driver gave").is_err());
        assert_eq!(fs::read_dir(&folder).expect("it was made here").count(), 1);
        fs::remove_dir_all(&folder).expect("it was made here");
    }
}
