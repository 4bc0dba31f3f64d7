//! `devices`: lists the devices that can execute plans.

use crate::console::Console;
use crate::failure::{Answer, Failure};
use autobatch::Device;
use autobatch::runtime_cpu::resolve_threads;
#[cfg(feature = "gpu")]
use autobatch::runtime_wgpu::adapters;
#[cfg(feature = "gpu")]
use autobatch_inspector::text::byte_size;
use serde_json::{Value as Json, json};
use std::io::Write;

/// The rule that selects the best device.
const RULE: &str = "the first discrete or integrated GPU that is faster than the cpu, else the cpu";

/// The devices of this machine, as text and as JSON.
pub(super) struct Devices {
    pub(super) text: String,
    pub(super) json: Json,
}

/// Lists the CPU and the GPU adapters, and names the best device with the rule that selects it.
pub fn devices(json: bool, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let Devices { text, json: document } = all();
    match json {
        true => writeln!(console, "{document:#}")?,
        false => console.write_all(text.as_bytes())?,
    }
    Ok(Answer::Yes)
}

/// Describes the CPU, the GPU adapters and the best device.
pub(super) fn all() -> Devices {
    let (threads, features) = (resolve_threads(0), cpu_features());
    let shown = if features.is_empty() { "scalar".to_owned() } else { features.join(" ") };
    let arch = std::env::consts::ARCH;
    let mut text = format!("cpu  {arch}, {threads} threads, {shown}\n");
    let (gpu_text, gpus) = gpus();
    text += &gpu_text;
    let (best, why) = Device::best_and_why();
    text += &format!("best: {best} ({why}; rule: {RULE})\n");
    let json = json!({
        "cpu": { "architecture": arch, "threads": threads, "instruction_sets": features }, "gpus": gpus,
        "best": best.to_string(), "why": why, "rule": RULE,
    });
    Devices { text, json }
}

/// The GPU adapters, as lines of text and as JSON.
#[cfg(feature = "gpu")]
fn gpus() -> (String, Vec<Json>) {
    let (mut text, mut documents) = (String::new(), Vec::new());
    for adapter in adapters() {
        let (number, name, kind, backend) = (adapter.number, &adapter.name, adapter.kind, &adapter.backend);
        let (buffer, binding) = (byte_size(adapter.buffer), byte_size(adapter.binding));
        let subgroups = match adapter.subgroups {
            Some((least, most)) if least < most => format!("subgroups of {least} to {most}"),
            Some((size, _)) => format!("subgroups of {size}"),
            None => "no subgroups".to_owned(),
        };
        text += &format!(
            "gpu:{number}  {name}, {kind}, {backend}, {} bindings of {binding}, buffers of {buffer}, {subgroups}\n",
            adapter.bindings,
        );
        documents.push(json!({
            "device": format!("gpu:{number}"), "name": name, "kind": kind, "backend": backend,
            "bindings": adapter.bindings, "binding_bytes": adapter.binding, "buffer_bytes": adapter.buffer,
            "subgroups": adapter.subgroups.map(|(least, most)| [least, most]),
        }));
    }
    (text, documents)
}

/// This build has no GPU support.
#[cfg(not(feature = "gpu"))]
fn gpus() -> (String, Vec<Json>) {
    (String::new(), Vec::new())
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
