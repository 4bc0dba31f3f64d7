//! Adapters of the machine, their properties, and the selection of one.

use crate::error::GpuError;
use pollster::block_on;
use std::fmt;
use std::str::FromStr;

/// Selects an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selector {
    /// The first by kind: discrete, integrated, virtual, software. Within a kind the system's order decides.
    #[default]
    Best,
    /// The adapter with this number in the list.
    Number(usize),
    /// The first whose name contains this text, ignoring case.
    Named(String),
}

/// The error of a word that selects no adapter.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} selects no adapter; write gpu, gpu:0 or gpu:part-of-a-name")]
pub struct UnknownSelector {
    found: String,
}

autobatch_ir::debug_as_display!(UnknownSelector);

impl FromStr for Selector {
    type Err = UnknownSelector;

    fn from_str(word: &str) -> Result<Self, UnknownSelector> {
        match word.split_once(':') {
            None if word == "gpu" => Ok(Self::Best),
            Some(("gpu", which)) if !which.trim().is_empty() => Ok(match which.parse() {
                Ok(number) => Self::Number(number),
                Err(_) => Self::Named(which.to_owned()),
            }),
            _ => Err(UnknownSelector { found: word.to_owned() }),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Best => f.write_str("gpu"),
            Self::Number(number) => write!(f, "gpu:{number}"),
            Self::Named(name) => write!(f, "gpu:{name}"),
        }
    }
}

/// Properties of an adapter, known before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterFacts {
    /// Its number in the list, for [`Selector::Number`].
    pub number: usize,
    /// Its name.
    pub name: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// The graphics interface: `vulkan`, `metal`, `dx12`, `gl`.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// Maximum bytes of one binding.
    pub binding: u64,
    /// Maximum bytes of one buffer.
    pub buffer: u64,
    /// Storage bindings of a module.
    pub bindings: u32,
    /// The smallest and the largest number of threads of a subgroup, or `None` without subgroup operations.
    pub subgroups: Option<(u32, u32)>,
}

/// The adapters of this machine, in the order of [`Selector::Best`].
#[must_use]
pub fn adapters() -> Vec<AdapterFacts> {
    list().iter().enumerate().map(|(number, adapter)| facts(number, adapter)).collect()
}

/// The share of a device's memory, in per cent, beyond which buffers are refused. Integrated GPUs share the memory of the
/// system, which would swap instead of refusing.
const MEMORY_PERCENT: u8 = 90;

pub(crate) fn list() -> Vec<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    descriptor.memory_budget_thresholds.for_resource_creation = Some(MEMORY_PERCENT);
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    adapters.sort_by_key(|adapter| {
        let info = adapter.get_info();
        (rank(info.device_type), rank_of_interface(info.backend))
    });
    adapters
}

/// The rank of an interface, if several list the same hardware. Direct3D 12 comes after Vulkan: its default compiler does
/// not promise that a multiply-add is fused alike in all modules.
fn rank_of_interface(backend: wgpu::Backend) -> u32 {
    match backend {
        wgpu::Backend::Vulkan | wgpu::Backend::Metal => 0,
        wgpu::Backend::Dx12 => 1,
        wgpu::Backend::Gl | wgpu::Backend::BrowserWebGpu | wgpu::Backend::Noop => 2,
    }
}

fn rank(kind: wgpu::DeviceType) -> u32 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

pub(crate) fn facts(number: usize, adapter: &wgpu::Adapter) -> AdapterFacts {
    let (info, limits, features) = (adapter.get_info(), adapter.limits(), adapter.features());
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => "discrete",
        wgpu::DeviceType::IntegratedGpu => "integrated",
        wgpu::DeviceType::VirtualGpu => "virtual",
        wgpu::DeviceType::Cpu => "software",
        wgpu::DeviceType::Other => "other",
    };
    AdapterFacts {
        number,
        name: info.name,
        kind,
        backend: info.backend.to_string(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        binding: limits.max_storage_buffer_binding_size,
        buffer: limits.max_buffer_size,
        bindings: limits.max_storage_buffers_per_shader_stage,
        subgroups: features
            .contains(wgpu::Features::SUBGROUP)
            .then_some((info.subgroup_min_size, info.subgroup_max_size)),
    }
}

pub(crate) fn choose(adapters: &[wgpu::Adapter], selector: &Selector) -> Result<usize, GpuError> {
    let names = || -> Vec<String> { adapters.iter().map(|adapter| adapter.get_info().name).collect() };
    let found = match selector {
        Selector::Best => (!adapters.is_empty()).then_some(0),
        Selector::Number(number) => (*number < adapters.len()).then_some(*number),
        Selector::Named(part) => {
            let part = part.to_lowercase();
            names().iter().position(|name| name.to_lowercase().contains(&part))
        }
    };
    found.ok_or_else(|| GpuError::NoAdapter { selector: selector.to_string(), found: names() })
}

/// Checks the limits that every template relies on.
pub(crate) fn enough(facts: &AdapterFacts, limits: &wgpu::Limits) -> Result<(), GpuError> {
    let required: [(&str, u64, u64); 5] = [
        ("storage buffers per stage", u64::from(limits.max_storage_buffers_per_shader_stage), 3),
        ("threads per group", u64::from(limits.max_compute_invocations_per_workgroup), 256),
        ("threads per group in x", u64::from(limits.max_compute_workgroup_size_x), 256),
        ("bytes of group memory", u64::from(limits.max_compute_workgroup_storage_size), 12 << 10),
        ("groups per dimension", u64::from(limits.max_compute_workgroups_per_dimension), 65_535),
    ];
    match required.iter().find(|(_, found, minimum)| found < minimum) {
        None => Ok(()),
        Some((what, found, minimum)) => Err(GpuError::Missing {
            adapter: facts.name.clone(),
            what: format!("{minimum} {what} (it has {found})"),
        }),
    }
}
