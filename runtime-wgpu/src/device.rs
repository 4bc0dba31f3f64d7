//! An open device: its limits and its errors.

use crate::adapter::{AdapterFacts, choose, enough, facts, list};
use crate::compile::LoopLimit;
use crate::error::GpuError;
use crate::module::Tile;
use crate::options::Options;
use autobatch_shaders::{Joins, Numbers};
use pollster::block_on;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of a dispatch's arguments.
pub(crate) const NUMBERS: u32 = 12;

/// Maximum loop iterations of Mesa's software drivers. Other software adapters may allow more, but none reports it.
const SOFTWARE_ITERATIONS: u64 = 65_535;

/// Errors that a device reported outside of a call.
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
    reported: Arc<Mutex<Reported>>,
}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    /// If no adapter matches, or the matching one lacks something or gives no device.
    pub fn open(options: Options) -> Result<Self, GpuError> {
        let adapters = list();
        let number = choose(&adapters, &options.selector)?;
        let (adapter, facts) = (&adapters[number], facts(number, &adapters[number]));
        let limits = adapter.limits();
        enough(&facts, &limits)?;
        let features = wgpu::Features::PIPELINE_CACHE
            | wgpu::Features::SUBGROUP
            | wgpu::Features::IMMEDIATES
            | wgpu::Features::TIMESTAMP_QUERY;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("autobatch"),
            required_features: adapter.features() & features,
            required_limits: limits.clone(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            // Large blocks save calls, but shared memory is needed by others.
            memory_hints: match facts.kind {
                "discrete" | "virtual" => wgpu::MemoryHints::Performance,
                _ => wgpu::MemoryHints::MemoryUsage,
            },
            trace: wgpu::Trace::Off,
        };
        let (device, queue) = block_on(adapter.request_device(&descriptor))
            .map_err(|error| GpuError::Refused { adapter: facts.name.clone(), reason: error.to_string() })?;
        let reported = Arc::new(Mutex::new(Reported::default()));
        let (on_error, on_loss) = (Arc::clone(&reported), Arc::clone(&reported));
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let mut reported = on_error.lock().unwrap_or_else(PoisonError::into_inner);
            reported.error.get_or_insert_with(|| error.to_string());
        }));
        device.set_device_lost_callback(move |reason, message| {
            let mut reported = on_loss.lock().unwrap_or_else(PoisonError::into_inner);
            reported.lost.get_or_insert_with(|| format!("{reason:?} {message}").trim().to_owned());
        });
        Ok(Self { device, queue, limits, facts, options, reported })
    }

    /// The properties of its adapter.
    #[must_use]
    pub fn facts(&self) -> &AdapterFacts {
        &self.facts
    }

    /// The options it was opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The limits that templates depend on, by name.
    #[must_use]
    pub fn named_limits(&self) -> [(String, u64); 12] {
        let limits = &self.limits;
        [
            ("binding bytes", limits.max_storage_buffer_binding_size),
            ("buffer bytes", limits.max_buffer_size),
            ("storage buffers per stage", limits.max_storage_buffers_per_shader_stage.into()),
            ("bytes of immediates", limits.max_immediate_size.into()),
            ("bytes of group memory", limits.max_compute_workgroup_storage_size.into()),
            ("threads per group", limits.max_compute_invocations_per_workgroup.into()),
            ("threads per group in x", limits.max_compute_workgroup_size_x.into()),
            ("groups per dimension", limits.max_compute_workgroups_per_dimension.into()),
            ("uniform alignment", limits.min_uniform_buffer_offset_alignment.into()),
            ("storage alignment", limits.min_storage_buffer_offset_alignment.into()),
            ("bytes of a used binding", self.binding()),
            ("rows of the tallest tile", self.tallest().rows().into()),
        ]
        .map(|(name, limit)| (name.to_owned(), limit))
    }

    /// The names of the features of wgpu that the device has and the runtime uses.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        self.device.features().iter_names().map(|(name, _)| name.to_owned()).collect()
    }

    /// The way in which the threads of a row exchange values.
    #[must_use]
    pub fn joins(&self) -> Joins {
        let threads = self.facts.subgroups.filter(|_| self.options.subgroups);
        threads.map_or(Joins::Memory, |(least, _)| Joins::of(least))
    }

    /// The way in which dispatches receive their arguments.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let has = self.device.features().contains(wgpu::Features::IMMEDIATES)
            && self.limits.max_immediate_size >= NUMBERS;
        if self.options.immediates && has { Numbers::Immediate } else { Numbers::Uniform }
    }

    /// Bytes of one binding: a power of two, so that a shift selects the binding of a word.
    #[must_use]
    pub fn binding(&self) -> u64 {
        let of_device = self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size);
        let allowed = self.options.budget.binding.unwrap_or(u64::MAX).max(256);
        // Addresses have 32 bits, so a binding never needs to hold more than 2^32 bytes.
        let bounded = of_device.min(allowed).min(1 << 32);
        1 << bounded.ilog2()
    }

    /// Storage bindings of a module.
    #[must_use]
    pub fn bindings(&self) -> u32 {
        let allowed = self.options.budget.bindings.unwrap_or(u32::MAX);
        self.limits.max_storage_buffers_per_shader_stage.min(allowed)
    }

    /// The maximum number of loop iterations of a thread, by the device or the budget. Hardware has none.
    #[must_use]
    pub fn iterations(&self) -> Option<LoopLimit> {
        let of_device = (self.facts.kind == "software").then_some(LoopLimit::Device(SOFTWARE_ITERATIONS));
        let of_budget = self.options.budget.iterations.map(LoopLimit::Budget);
        of_device.into_iter().chain(of_budget).min_by_key(|limit| limit.max())
    }

    /// Bytes of all buffers on the device, if the interface counts them.
    #[must_use]
    pub fn allocated(&self) -> Option<u64> {
        self.device.generate_allocator_report().map(|report| report.total_allocated_bytes)
    }

    /// Frees buffers that nothing names any more: waits for the commands that still use them.
    pub(crate) fn free_unused(&self) {
        let timeout = Some(Duration::from_secs(self.options.timeout.max(1)));
        let _ = self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout });
    }

    /// The tallest tile of products. A thread of 128 rows keeps 64 sums, more registers than hardware with narrow subgroups
    /// has. Metal reports four threads for every GPU.
    #[must_use]
    pub fn tallest(&self) -> Tile {
        let AdapterFacts { kind, backend, subgroups, .. } = &self.facts;
        let is_narrow = subgroups.is_some_and(|(least, _)| least <= 16) && backend != "metal";
        if is_narrow && *kind != "software" { Tile::Rows64 } else { Tile::Rows128 }
    }

    /// Destroys the device. The next use reports its loss.
    pub fn destroy(&self) {
        self.device.destroy();
        // The loss callback runs during the next poll.
        let _ = self.device.poll(wgpu::PollType::Poll);
    }

    /// Returns whether the device is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).lost.is_some()
    }

    /// The error that an earlier call left, or the loss of the device.
    pub(crate) fn take_error(&self) -> Result<(), GpuError> {
        let reported = || self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let error = reported().error.take();
        match error {
            Some(reason) => Err(self.lost_or(GpuError::Rejected { reason })),
            None => match &reported().lost {
                Some(reason) => Err(GpuError::Lost { reason: reason.clone() }),
                None => Ok(()),
            },
        }
    }

    /// The rest of the timeout for work that was submitted at `since`.
    pub(crate) fn time_left(&self, since: Instant) -> Duration {
        Duration::from_secs(self.options.timeout.max(1)).saturating_sub(since.elapsed())
    }

    /// The loss of the device if that made a call fail, else `error`. A loss is reported after the work, so this waits
    /// for it.
    pub(crate) fn lost_or(&self, error: GpuError) -> GpuError {
        self.free_unused();
        match &self.reported.lock().unwrap_or_else(PoisonError::into_inner).lost {
            Some(reason) => GpuError::Lost { reason: reason.clone() },
            None => error,
        }
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

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
