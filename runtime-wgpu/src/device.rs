//! An open device: what it can hold, and what it said.

use crate::adapter::{AdapterFacts, choose, enough, facts, list};
use crate::compile::LoopLimit;
use crate::error::GpuError;
use crate::options::Options;
use autobatch_shaders::{Joins, Numbers};
use pollster::block_on;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of the numbers of a dispatch.
pub(crate) const NUMBERS: u32 = 12;

/// LoopLimit of loops that Mesa's software drivers take; other software adapters may take more, but none says.
const SOFTWARE_ITERATIONS: u64 = 65_535;

/// What a device said outside of a call: that it is lost, or an error nobody waited for.
#[derive(Debug, Default)]
struct Reported {
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
    said: Arc<Mutex<Reported>>,
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
        let features = wgpu::Features::PIPELINE_CACHE | wgpu::Features::SUBGROUP | wgpu::Features::IMMEDIATES;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("autobatch"),
            required_features: adapter.features() & features,
            required_limits: limits.clone(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = block_on(adapter.request_device(&descriptor))
            .map_err(|error| GpuError::Refused { adapter: facts.name.clone(), reason: error.to_string() })?;
        let said = Arc::new(Mutex::new(Reported::default()));
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

    /// LoopLimit of loops after which the device stops without a word, or that it was told to keep to; nothing for
    /// hardware.
    #[must_use]
    pub fn iterations(&self) -> Option<LoopLimit> {
        let of_device = (self.facts.kind == "software").then_some(LoopLimit::Device(SOFTWARE_ITERATIONS));
        let of_budget = self.options.budget.iterations.map(LoopLimit::Budget);
        of_device.into_iter().chain(of_budget).min_by_key(|limit| limit.max())
    }

    /// Gives the device back at once; whoever executes on it next finds it lost.
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
    pub(crate) fn take_error(&self) -> Result<(), GpuError> {
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

    /// How much longer to wait for what was submitted at some time.
    pub(crate) fn time_left(&self, since: Instant) -> Duration {
        Duration::from_secs(self.options.timeout.max(1)).saturating_sub(since.elapsed())
    }

    /// The loss of the device, if that is why a call failed, else the error. A device says that it is lost
    /// only when all its work is over, so that is waited for.
    pub(crate) fn lost_or(&self, error: GpuError) -> GpuError {
        let timeout = Some(Duration::from_secs(self.options.timeout.max(1)));
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
        self.take_error()?;
        if exhausted.is_some() {
            return Err(GpuError::Memory { what, bytes });
        }
        match rejected {
            Some(error) => Err(GpuError::Rejected { reason: error.to_string() }),
            None => Ok(buffer),
        }
    }
}

#[cfg(test)]
impl Gpu {
    /// An adapter. A test that gets none says that it is skipped, or fails where `AUTOBATCH_REQUIRE_GPU` is 1.
    #[allow(clippy::print_stderr, reason = "whoever runs tests wants to know which were skipped")]
    pub(crate) fn of_tests(options: Options) -> Option<Self> {
        match Self::open(options) {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                let required = std::env::var_os("AUTOBATCH_REQUIRE_GPU").is_some_and(|value| value == "1");
                assert!(!required, "AUTOBATCH_REQUIRE_GPU is 1: {error}");
                eprintln!("skipped: {error}");
                None
            }
        }
    }
}
