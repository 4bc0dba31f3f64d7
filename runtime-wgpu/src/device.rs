//! Adapters: which there are, which is taken, what it holds, and how it rounds.

use crate::compile::Rounds;
use crate::error::GpuError;
use autobatch_shaders::{Joins, Numbers};
use pollster::block_on;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of the numbers of a dispatch.
pub(crate) const NUMBERS: u32 = 12;

/// Rounds of loops that Mesa's software drivers take; other software adapters may take more, but none says.
const SOFTWARE_ROUNDS: u64 = 65_535;

/// Which adapter is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selector {
    /// The best there is: discrete before integrated before virtual before software, in the order in
    /// which the system lists them.
    #[default]
    Best,
    /// The one with this place in the list.
    Number(usize),
    /// The first whose name contains this, whatever the case.
    Named(String),
}

/// A word that selects no adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSelector {
    found: String,
}

impl fmt::Display for UnknownSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} selects no adapter; write gpu, gpu:0 or gpu:part-of-a-name", self.found)
    }
}

impl std::error::Error for UnknownSelector {}

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

/// How products, quotients and roots are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// As the device does. Where it fuses a multiply-add and divides with one rounding, products and
    /// elementwise functions have the bits of the CPU; where it does not (software Vulkan does not), they
    /// are within bounds.
    #[default]
    Native,
    /// As the definition says, by error-free transformations where the device rounds twice: twenty times
    /// slower, and for checks. Denormals stay as the device has them.
    Exact,
}

/// Bounds below those of the device, for tests and for sharing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of one binding.
    pub binding: Option<u64>,
    /// Storage bindings a module may have.
    pub bindings: Option<u32>,
    /// Bytes of rows that stages leave for one another; steps that need more are played in pieces.
    pub scratch: Option<u64>,
    /// Bytes of rows and parameters together.
    pub memory: Option<u64>,
    /// Rounds of the loops of a thread; plans that need more are refused.
    pub rounds: Option<u64>,
}

/// Where what the driver makes of pipelines is kept from process to process, if the adapter has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Nowhere. Most drivers keep a cache of their own as well.
    #[default]
    Nowhere,
    /// In the folder `autobatch` of the user's caches.
    OfUser,
    /// In this folder.
    Folder(PathBuf),
}

impl Kept {
    /// As `AUTOBATCH_PIPELINES` says: `off`, or a folder. Without it, among the user's caches.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var_os("AUTOBATCH_PIPELINES") {
            None => Self::OfUser,
            Some(word) if word == "off" || word.is_empty() => Self::Nowhere,
            Some(folder) => Self::Folder(folder.into()),
        }
    }
}

/// How a device is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which adapter.
    pub selector: Selector,
    /// How it rounds.
    pub arithmetic: Arithmetic,
    /// Bounds below those of the device.
    pub budget: Budget,
    /// How many seconds a play may take before [`GpuError::Silent`].
    pub patience: u64,
    /// Whether all products are cut alike, whatever their rows. Tiles of different shapes compute the same
    /// chains, but a driver's compiler is free to round what follows them differently in each.
    pub strict: bool,
    /// Where pipelines are kept.
    pub pipelines: Kept,
    /// Whether threads of a subgroup may read from one another, where the adapter has it. Bits are the same.
    pub subgroups: bool,
    /// Whether the numbers of a dispatch go among the commands, where the adapter has it; else they are bound
    /// anew for each dispatch, which takes the host longer. Bits are the same.
    pub immediates: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selector: Selector::Best,
            arithmetic: Arithmetic::Native,
            budget: Budget::default(),
            patience: 120,
            strict: false,
            pipelines: Kept::Nowhere,
            subgroups: true,
            immediates: true,
        }
    }
}

/// What one wants to know of an adapter before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterFacts {
    /// Its place in the list, for [`Selector::Number`].
    pub number: usize,
    /// Its name.
    pub name: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// The interface: `vulkan`, `metal`, `dx12`, `gl`.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// Bytes of one binding.
    pub binding: u64,
    /// Bytes of one buffer.
    pub buffer: u64,
    /// Storage bindings of a module.
    pub bindings: u32,
    /// Threads of a subgroup, at least and at most; nothing where they cannot read from one another.
    pub subgroups: Option<(u32, u32)>,
    /// Whether it multiplies small matrices at once. No product is made so: sums would have other bits, and
    /// terms fewer digits.
    pub matrix_units: bool,
}

/// The adapters of this machine, best first by [`Selector::Best`]'s rule within the system's order.
#[must_use]
pub fn adapters() -> Vec<AdapterFacts> {
    list().iter().enumerate().map(|(number, adapter)| facts(number, adapter)).collect()
}

fn list() -> Vec<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let mut adapters = block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    // The same hardware may be listed by several interfaces; OpenGL comes after all others.
    adapters.sort_by_key(|adapter| {
        let info = adapter.get_info();
        (rank(info.device_type), info.backend == wgpu::Backend::Gl)
    });
    adapters
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

fn facts(number: usize, adapter: &wgpu::Adapter) -> AdapterFacts {
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
        matrix_units: features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
    }
}

/// What a device said outside of a call: that it is lost, or an error nobody waited for.
#[derive(Debug, Default)]
struct Said {
    lost: Option<String>,
    error: Option<String>,
}

/// An open device.
#[derive(Clone, Debug)]
pub struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: wgpu::Limits,
    facts: AdapterFacts,
    options: Options,
    said: Arc<Mutex<Said>>,
}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    /// If no adapter fits, or the one that does lacks something or gives no device.
    pub fn open(options: Options) -> Result<Self, GpuError> {
        let adapters = list();
        let number = choose(&adapters, &options.selector)?;
        let (adapter, facts) = (&adapters[number], facts(number, &adapters[number]));
        let limits = adapter.limits();
        enough(&facts, &limits)?;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("autobatch"),
            required_features: adapter.features()
                & (wgpu::Features::PIPELINE_CACHE | wgpu::Features::SUBGROUP | wgpu::Features::IMMEDIATES),
            required_limits: limits.clone(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = block_on(adapter.request_device(&descriptor))
            .map_err(|error| GpuError::Refused { adapter: facts.name.clone(), reason: error.to_string() })?;
        let said = Arc::new(Mutex::new(Said::default()));
        let (on_error, on_loss) = (Arc::clone(&said), Arc::clone(&said));
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let mut said = on_error.lock().unwrap_or_else(PoisonError::into_inner);
            said.error.get_or_insert_with(|| error.to_string());
        }));
        device.set_device_lost_callback(move |reason, message| {
            let mut said = on_loss.lock().unwrap_or_else(PoisonError::into_inner);
            said.lost.get_or_insert_with(|| format!("{reason:?} {message}").trim().to_owned());
        });
        Ok(Self { device, queue, limits, facts, options, said })
    }

    /// The adapter that the device is of.
    #[must_use]
    pub fn facts(&self) -> &AdapterFacts {
        &self.facts
    }

    /// How it was opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How threads of a row hand numbers to one another.
    #[must_use]
    pub fn joins(&self) -> Joins {
        let threads = self.facts.subgroups.filter(|_| self.options.subgroups);
        threads.map_or(Joins::Memory, |(least, _)| Joins::of(least))
    }

    /// How the numbers of a dispatch arrive.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let has = self.device.features().contains(wgpu::Features::IMMEDIATES)
            && self.limits.max_immediate_size >= NUMBERS;
        if self.options.immediates && has { Numbers::Immediate } else { Numbers::Uniform }
    }

    /// Bytes of one binding: a power of two, so that a shift finds the binding of a word.
    #[must_use]
    pub fn binding(&self) -> u64 {
        let of_device = self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size);
        let allowed = self.options.budget.binding.unwrap_or(u64::MAX).max(256);
        // Words are counted in 32 bits, so one binding never needs to hold more than 2^32 bytes.
        let bounded = of_device.min(allowed).min(1 << 32);
        1 << bounded.ilog2()
    }

    /// Storage bindings of a module.
    #[must_use]
    pub fn bindings(&self) -> u32 {
        let allowed = self.options.budget.bindings.unwrap_or(u32::MAX);
        self.limits.max_storage_buffers_per_shader_stage.min(allowed)
    }

    /// Rounds of loops after which the device stops without a word, or that it was told to keep to; nothing for
    /// hardware.
    #[must_use]
    pub fn rounds(&self) -> Option<Rounds> {
        let of_device = (self.facts.kind == "software").then_some(Rounds::OfDevice(SOFTWARE_ROUNDS));
        let of_budget = self.options.budget.rounds.map(Rounds::OfBudget);
        of_device.into_iter().chain(of_budget).min_by_key(|rounds| rounds.most())
    }

    /// Gives the device back at once; whoever plays on it next finds it lost.
    pub fn destroy(&self) {
        self.device.destroy();
        // The callback of a destroyed device comes with the next poll.
        let _ = self.device.poll(wgpu::PollType::Poll);
    }

    /// Whether the device is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).lost.is_some()
    }

    /// The error that a call left behind, or the loss of the device.
    pub(crate) fn heard(&self) -> Result<(), GpuError> {
        let said = || self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let error = said().error.take();
        match error {
            Some(reason) => Err(self.lost_or(GpuError::Rejected { reason })),
            None => match &said().lost {
                Some(reason) => Err(GpuError::Lost { reason: reason.clone() }),
                None => Ok(()),
            },
        }
    }

    /// The loss of the device, if that is why a call failed, else the error. A device says that it is lost
    /// only when all its work is over, so that is waited for.
    pub(crate) fn lost_or(&self, error: GpuError) -> GpuError {
        let timeout = Some(Duration::from_secs(self.options.patience.max(1)));
        let _ = self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout });
        match &self.said.lock().unwrap_or_else(PoisonError::into_inner).lost {
            Some(reason) => GpuError::Lost { reason: reason.clone() },
            None => error,
        }
    }

    /// A buffer, if the device can give it.
    pub(crate) fn buffer(
        &self,
        what: &'static str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, GpuError> {
        let limit = self.limits.max_buffer_size;
        if bytes > limit {
            return Err(GpuError::TooLarge { what, needed: bytes, limit });
        }
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let descriptor =
            wgpu::BufferDescriptor { label: Some(what), size: bytes, usage, mapped_at_creation: false };
        let buffer = self.device.create_buffer(&descriptor);
        let (rejected, exhausted) = (block_on(validation.pop()), block_on(memory.pop()));
        self.heard()?;
        if exhausted.is_some() {
            return Err(GpuError::Memory { what, bytes });
        }
        match rejected {
            Some(error) => Err(GpuError::Rejected { reason: error.to_string() }),
            None => Ok(buffer),
        }
    }
}

fn choose(adapters: &[wgpu::Adapter], selector: &Selector) -> Result<usize, GpuError> {
    let names = || -> Vec<String> { adapters.iter().map(|adapter| adapter.get_info().name).collect() };
    let found = match selector {
        Selector::Best => (!adapters.is_empty()).then_some(0),
        Selector::Number(number) => (*number < adapters.len()).then_some(*number),
        Selector::Named(part) => {
            let part = part.to_lowercase();
            names().iter().position(|name| name.to_lowercase().contains(&part))
        }
    };
    found.ok_or_else(|| GpuError::NoAdapter { wanted: selector.to_string(), found: names() })
}

/// Every template keeps to these limits; an adapter below them plays nothing.
fn enough(facts: &AdapterFacts, limits: &wgpu::Limits) -> Result<(), GpuError> {
    let wanted: [(&str, u64, u64); 5] = [
        ("storage buffers a stage", u64::from(limits.max_storage_buffers_per_shader_stage), 3),
        ("threads a group", u64::from(limits.max_compute_invocations_per_workgroup), 256),
        ("threads a group in a row", u64::from(limits.max_compute_workgroup_size_x), 256),
        ("bytes of group memory", u64::from(limits.max_compute_workgroup_storage_size), 12 << 10),
        ("groups a dimension", u64::from(limits.max_compute_workgroups_per_dimension), 65_535),
    ];
    match wanted.iter().find(|(_, found, least)| found < least) {
        None => Ok(()),
        Some((what, found, least)) => Err(GpuError::Missing {
            adapter: facts.name.clone(),
            what: format!("{least} {what} (it has {found})"),
        }),
    }
}
