//! The long form of the version: features and instruction set.

use autobatch::runtime_cpu::kernels::Isa;

/// The version, the features of this build and the instruction set that executes kernels.
pub(crate) fn long() -> String {
    let features = if cfg!(feature = "gpu") { "gpu" } else { "none" };
    let isa = match Isa::detect() {
        Ok(isa) => isa.to_string(),
        Err(error) => error.to_string(),
    };
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    format!("{version}\nfeatures: {features}\ninstruction set: {isa} ({arch}; AUTOBATCH_CPU selects another)")
}
