//! How long a device takes: latencies, and the roofs of copying and of arithmetic.

use super::{Kernel, Probe};
use crate::error::GpuError;
use crate::predict::Card;
use std::time::Duration;

/// Measurements of one number; the fastest counts.
const ROUNDS: usize = 5;

/// Times of small things, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// A submission with one empty dispatch, until the host knows that it is done.
    pub submission: f64,
    /// Reading four bytes back, with its submission.
    pub read_back: f64,
    /// From one dispatch to the next, with a barrier between them.
    pub dispatch: f64,
    /// A load whose address comes from the load before.
    pub load: f64,
    /// Bytes and seconds of uploads.
    pub uploads: Vec<(u64, f64)>,
}

/// The largest speeds of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofs {
    /// Multiply-adds per second, in registers.
    pub multiply_adds: f64,
    /// Bytes per second of a copy, read and written.
    pub copy: f64,
    /// The number of groups of 256 threads that compute at once, about.
    pub groups: f64,
}

impl Probe {
    /// Measures latencies.
    ///
    /// # Errors
    /// If the device fails.
    pub fn latencies(&self) -> Result<Latencies, GpuError> {
        let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n\
            @compute @workgroup_size(64)\n\
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n\
            \x20   if data[0] == id.x + 1u {\n        data[1] = id.x;\n    }\n\
            }\n";
        let kernel = self.kernel("empty", text.to_owned(), &[16])?;
        self.run(&kernel, 1, 10)?;
        let submission = self.fastest(4 * ROUNDS, |probe| probe.run(&kernel, 1, 1))?;
        let many = self.fastest(ROUNDS, |probe| probe.run(&kernel, 1, 1001))?;
        let read_back = self.fastest(4 * ROUNDS, |probe| {
            let start = std::time::Instant::now();
            probe.read(&kernel, 1)?;
            Ok(start.elapsed())
        })?;
        Ok(Latencies {
            submission: submission.as_secs_f64(),
            read_back: read_back.as_secs_f64(),
            dispatch: many.saturating_sub(submission).as_secs_f64() / 1000.0,
            load: self.load()?,
            uploads: self.uploads()?,
        })
    }

    /// The time of a load that waits for the one before: a thread follows a chain through 4 MiB.
    fn load(&self) -> Result<f64, GpuError> {
        const WORDS: u32 = 1 << 20;
        let steps = if self.is_software() { 10_000 } else { 20_000u32 };
        let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n\
            @compute @workgroup_size(1)\n\
            fn main() {\n\
            \x20   let steps = data[1];\n    var at = data[0];\n\
            \x20   for (var step = 0u; step < steps; step++) {\n        at = data[at];\n    }\n\
            \x20   data[0] = at;\n\
            }\n";
        let kernel = self.kernel("load", text.to_owned(), &[WORDS.into()])?;
        let time = |steps: u32| {
            // A step of an odd number of cache lines visits all of them.
            let mut words: Vec<u32> = (0..WORDS).map(|at| (at + 16 * 1031) % WORDS).collect();
            (words[0], words[1]) = (2, steps);
            // The chain leads around these two words.
            for word in &mut words[2..] {
                *word = (*word).max(2);
            }
            self.write(&kernel, &words);
            self.fastest(ROUNDS, |probe| probe.run(&kernel, 1, 1))
        };
        let (short, long) = (time(100)?, time(steps)?);
        Ok(long.saturating_sub(short).as_secs_f64() / f64::from(steps - 100))
    }

    /// Times of uploads from 4 bytes to 64 MiB.
    fn uploads(&self) -> Result<Vec<(u64, f64)>, GpuError> {
        let most: u64 = if self.is_software() { 4 << 20 } else { 64 << 20 };
        let largest = most.min(self.gpu.binding());
        let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n\
            @compute @workgroup_size(1)\nfn main() {\n    data[0] = data[1];\n}\n";
        let kernel = self.kernel("upload", text.to_owned(), &[largest / 4])?;
        let words = vec![1u32; (largest / 4) as usize];
        let sizes =
            (0..).map(|power| 4u64 << (4 * power)).take_while(|bytes| *bytes < largest).chain([largest]);
        let time = |bytes: u64| -> Result<(u64, f64), GpuError> {
            let fastest = self.fastest(ROUNDS, |probe| {
                let start = std::time::Instant::now();
                probe.write(&kernel, &words[..(bytes / 4) as usize]);
                probe.run(&kernel, 1, 1)?;
                Ok(start.elapsed())
            })?;
            Ok((bytes, fastest.as_secs_f64()))
        };
        sizes.map(time).collect()
    }

    /// Measures the largest speeds.
    ///
    /// # Errors
    /// If the device fails.
    pub fn roofs(&self) -> Result<Roofs, GpuError> {
        let (multiply_adds, groups) = self.arithmetic_roof()?;
        Ok(Roofs { multiply_adds, copy: self.copy_roof()?, groups })
    }

    /// Multiply-adds per second of all cores, and how many groups that takes.
    fn arithmetic_roof(&self) -> Result<(f64, f64), GpuError> {
        const CHAINS: u32 = 16;
        let (turns, groups) = if self.is_software() { (200u32, 16u32) } else { (2_000, 4_096) };
        let lines = |line: fn(u32) -> String| (0..CHAINS).map(line).collect::<String>();
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<f32>;\n\
             @compute @workgroup_size(256)\n\
             fn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n\
             \x20   let x = data[0];\n    let y = data[1];\n    let turns = u32(data[2]);\n{}\
             \x20   for (var turn = 0u; turn < turns; turn++) {{\n{}    }}\n\
             \x20   if s0 == 1e30 {{\n        data[3] = 0.0{};\n    }}\n\
             }}\n",
            lines(|s| format!("    var s{s} = f32(id.x + {s}u);\n")),
            lines(|s| format!("        s{s} = fma(s{s}, x, y);\n")),
            lines(|s| format!(" + s{s}")),
        );
        let kernel = self.kernel("multiply-adds", text, &[16])?;
        self.write(&kernel, &[0.999f32, 0.001, turns as f32].map(f32::to_bits));
        let rate = |groups: u32, times: u32| -> Result<f64, GpuError> {
            self.run(&kernel, groups, times)?;
            let seconds = self.slope(&kernel, groups, times)?;
            let all = f64::from(groups) * 256.0 * f64::from(CHAINS) * f64::from(turns);
            Ok(all / seconds.max(1e-9))
        };
        let (one, all) = (rate(1, 8)?, rate(groups, 2)?);
        Ok((all, (all / one.max(1.0)).max(1.0)))
    }

    /// Bytes per second of a copy, read and written.
    fn copy_roof(&self) -> Result<f64, GpuError> {
        let most: u64 = if self.is_software() { 4 << 20 } else { 64 << 20 };
        let bytes = most.min(self.gpu.binding());
        let text = "@group(0) @binding(0) var<storage, read_write> to: array<vec4<u32>>;\n\
            @group(0) @binding(1) var<storage, read_write> data: array<vec4<u32>>;\n\
            @compute @workgroup_size(256)\n\
            fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {\n\
            \x20   let all = arrayLength(&data);\n\
            \x20   for (var at = id.x; at < all; at = at + 256u * groups.x) {\n        to[at] = data[at];\n    }\n\
            }\n";
        let kernel = self.kernel("copy", text.to_owned(), &[bytes / 4, bytes / 4])?;
        let groups = (bytes / 16 / 256 / 4).clamp(1, 16_384) as u32;
        self.run(&kernel, groups, 1)?;
        Ok(2.0 * bytes as f64 / self.slope(&kernel, groups, 4)?.max(1e-9))
    }

    /// The seconds of one of several dispatches, without the submission.
    fn slope(&self, kernel: &Kernel, groups: u32, times: u32) -> Result<f64, GpuError> {
        let time = |times| self.fastest(ROUNDS, |probe: &Self| probe.run(kernel, groups, times));
        let (few, many): (Duration, Duration) = (time(times)?, time(3 * times)?);
        Ok(many.saturating_sub(few).as_secs_f64() / f64::from(2 * times))
    }
}

impl Card {
    /// The card that the probes of a device describe. `share` is the share of its multiply-adds that products reach.
    #[must_use]
    pub fn measured(latencies: &Latencies, roofs: &Roofs, share: f64) -> Self {
        Self {
            name: "this device",
            multiply_adds: roofs.multiply_adds * share,
            bytes: roofs.copy,
            threads: roofs.groups * 256.0,
            wait: latencies.load.max(1e-9),
            dispatch: latencies.dispatch,
            submission: latencies.submission.max(latencies.read_back),
        }
    }
}
