//! Which device it is, and through which files the system reaches it.

use super::Examination;
use crate::error::BenchError;
use autobatch::runtime_wgpu::adapters;
use serde_json::{Value as Json, json};
use std::fs;

/// Environment variables that choose or change a driver.
const VARIABLES: [&str; 14] = [
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_SELECT",
    "VK_INSTANCE_LAYERS",
    "WGPU_BACKEND",
    "WGPU_POWER_PREF",
    "EGL_PLATFORM",
    "LIBGL_ALWAYS_SOFTWARE",
    "MESA_LOADER_DRIVER_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CUDA_VISIBLE_DEVICES",
    "AUTOBATCH_PIPELINES",
];

/// Folders of descriptions of Vulkan drivers on Linux.
const DRIVER_FOLDERS: [&str; 4] = [
    "/etc/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
];

/// Describes all adapters, and the examined one with its limits.
pub(super) fn identity(examination: &mut Examination<'_>) -> Result<Json, BenchError> {
    let all = adapters();
    let nvidia = fs::read_to_string("/proc/driver/nvidia/version").ok();
    let is_hardware = |kind: &str| matches!(kind, "discrete" | "integrated" | "virtual");
    if !all.iter().any(|facts| is_hardware(facts.kind)) {
        let finding = match &nvidia {
            Some(_) => Some(
                "an NVIDIA driver is loaded, but it offers no Vulkan: install the graphics half of the driver (libnvidia-gl, with nvidia_icd.json); in a container set NVIDIA_DRIVER_CAPABILITIES=all; partitions of a GPU (MIG) have no Vulkan",
            ),
            // Opening the device says so.
            None if all.is_empty() => None,
            None => Some(
                "only software adapters were found: install the Vulkan, Metal or Direct3D 12 driver of the GPU; the times of this report are those of a program",
            ),
        };
        finding.into_iter().for_each(|finding| examination.find(finding.to_owned()));
    }
    let probe = examination.probe()?;
    let (gpu, facts) = (probe.gpu(), probe.gpu().facts().clone());
    let adapters: Vec<Json> = all
        .iter()
        .map(|facts| {
            json!({ "number": facts.number, "name": facts.name, "kind": facts.kind, "backend": facts.backend, "driver": facts.driver })
        })
        .collect();
    let variables = VARIABLES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
    let drivers = DRIVER_FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let identity = json!({
        "name": facts.name, "kind": facts.kind, "backend": facts.backend, "driver": facts.driver,
        "number": facts.number, "subgroups": facts.subgroups.map(|(least, most)| [least, most]),
        "limits": gpu.named_limits().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "features": gpu.features(),
        "adapters": adapters,
        "environment": variables.collect::<std::collections::BTreeMap<_, _>>(),
        "driver_files": drivers.map(|file| file.path().display().to_string()).collect::<Vec<_>>(),
        "libraries": libraries(),
        "nvidia": nvidia.as_deref().and_then(|text| text.lines().next()),
        "system": { "os": std::env::consts::OS, "architecture": std::env::consts::ARCH, "processor": processor(),
            "threads": std::thread::available_parallelism().map_or(1, usize::from) },
    });
    examination.facts = Some(facts);
    Ok(identity)
}

/// The libraries of drivers and loaders that this process has opened, on Linux.
fn libraries() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let is_driver = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        ["vulkan", "egl", "nvidia", "radeon", "intel", "swiftshader", "gallium", "swrast", "vvl"]
            .iter()
            .any(|part| file.contains(part))
    };
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| line[at..].to_owned()));
    let mut found: Vec<String> = paths.filter(|path| is_driver(path)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The name of the processor, on Linux.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
