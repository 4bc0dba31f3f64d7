//! `devices`: lists the devices that can execute plans.

use crate::console::Console;
use crate::failure::{Answer, Failure};
#[cfg(feature = "gpu")]
use crate::text::byte_size;
use autobatch::Device;
use autobatch::runtime_cpu::resolve_threads;
#[cfg(feature = "gpu")]
use autobatch::runtime_wgpu::adapters;
use std::io::Write;

/// Lists the CPU and the GPU adapters, and names the best device with the rule that selects it.
pub fn devices(console: &mut Console<'_>) -> Result<Answer, Failure> {
    let threads = resolve_threads(0);
    let features = cpu_features();
    let features = if features.is_empty() { "scalar".to_owned() } else { features.join(" ") };
    writeln!(console, "cpu  {}, {threads} threads, {features}", std::env::consts::ARCH)?;
    #[cfg(feature = "gpu")]
    for adapter in adapters() {
        let (number, kind, backend) = (adapter.number, adapter.kind, &adapter.backend);
        let (buffer, binding) = (byte_size(adapter.buffer), byte_size(adapter.binding));
        writeln!(
            console,
            "gpu:{number}  {}, {kind}, {backend}, {} bindings of {binding}, buffers of {buffer}, {}",
            adapter.name,
            adapter.bindings,
            match adapter.subgroups {
                Some((least, most)) if least < most => format!("subgroups of {least} to {most}"),
                Some((size, _)) => format!("subgroups of {size}"),
                None => "no subgroups".to_owned(),
            },
        )?;
    }
    let (best, why) = Device::best_and_why();
    writeln!(
        console,
        "best: {best} ({why}; rule: the first discrete or integrated GPU that is faster than the cpu, else the cpu)"
    )?;
    Ok(Answer::Yes)
}

/// The instruction sets of this processor that have kernels of their own.
fn cpu_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ];
        known.into_iter().filter(|(_, detected)| *detected).map(|(name, _)| name).collect()
    }
    #[cfg(target_arch = "aarch64")]
    {
        vec!["neon"]
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Vec::new()
    }
}
