//! The driver's pipeline cache in a file, where the adapter supports it (Vulkan). The file starts with magic, length
//! and hash. A file that is truncated, changed or of another format is ignored. wgpu checks its own header next
//! (version, adapter, driver), and the driver checks its header. All errors are ignored: pipelines are then built anew.

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
/// Bytes of the header: magic, length, hash.
const HEAD: usize = 24;
/// Larger files are ignored.
const MAX_BYTES: u64 = 256 << 20;

/// A driver's cache and its file.
#[derive(Default)]
pub(super) struct PipelineFile {
    cache: Option<wgpu::PipelineCache>,
    path: Option<PathBuf>,
    /// The number of pipelines when the file was written last.
    saved: u32,
}

impl PipelineFile {
    /// The cache of an adapter, filled from the file. It is empty if the adapter has none or the options disable it.
    pub(super) fn open(gpu: &Gpu) -> Self {
        let Some(folder) = folder(&gpu.options().pipelines) else { return Self::default() };
        if !gpu.device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return Self::default();
        }
        let Some(name) = wgpu::util::pipeline_cache_key(&gpu.device.adapter_info()) else {
            return Self::default();
        };
        let path = folder.join(name);
        // wgpu accepts truncated or old data, but rejects the data of another adapter.
        let cache = read(&path).and_then(|data| made(gpu, Some(&data))).or_else(|| made(gpu, None));
        Self { cache, path: Some(path), saved: 0 }
    }

    pub(super) fn cache(&self) -> Option<&wgpu::PipelineCache> {
        self.cache.as_ref()
    }

    /// As [`save`](Self::save), but not again before there are twice as many pipelines.
    pub(super) fn save_if_doubled(&mut self, made: u32) {
        if made >= 2 * self.saved {
            self.save(made);
        }
    }

    /// Writes the file if pipelines were built since the last write.
    pub(super) fn save(&mut self, made: u32) {
        if made == self.saved {
            return;
        }
        self.saved = made;
        if let (Some(cache), Some(path)) = (&self.cache, &self.path)
            && let Some(data) = cache.get_data()
        {
            // A failed write is ignored.
            let _ = write(path, &data);
        }
    }
}

/// A cache with the given data, unless wgpu rejects it.
fn made(gpu: &Gpu, data: Option<&[u8]>) -> Option<wgpu::PipelineCache> {
    let refused = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let descriptor = wgpu::PipelineCacheDescriptor { label: Some("pipelines"), data, fallback: true };
    // SAFETY: this program got the data from `PipelineCache::get_data`, as its hash confirms, or there is none. The
    // hash proves nothing against an attacker, but anyone who can write the user's cache folder can run programs as the
    // user.
    let cache = unsafe { gpu.device.create_pipeline_cache(&descriptor) };
    block_on(refused.pop()).is_none().then_some(cache)
}

/// The folder of the file, if caching is enabled.
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

/// The driver's data, if the file is intact.
fn read(path: &Path) -> Option<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let bytes = files::read_at_most(path, MAX_BYTES).ok()?;
    let (head, data) = bytes.split_at_checked(HEAD)?;
    (head == head_of(data)).then(|| data.to_vec())
}

/// Writes a temporary file and renames it. Threads that write at the same time use different temporary files.
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
