//! What a driver made of pipelines, kept from process to process where the adapter has it (Vulkan).
//!
//! The file is ours: magic, length and hash stand before what the driver gave, and a file that is cut,
//! changed or of another format counts as none. wgpu looks at its own head next (its version, adapter,
//! driver), and the driver at its. It is a cache: whatever goes wrong with it, nothing is said and pipelines
//! are made anew.

use crate::device::Gpu;
use crate::options::PipelineCacheDir;
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
const MAX_BYTES: u64 = 256 << 20;

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
fn folder(kept: &PipelineCacheDir) -> Option<PathBuf> {
    match kept {
        PipelineCacheDir::Disabled => None,
        PipelineCacheDir::Folder(folder) => Some(folder.clone()),
        PipelineCacheDir::User => {
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
    let bytes = files::read_at_most(path, MAX_BYTES).ok()?;
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
mod tests;
