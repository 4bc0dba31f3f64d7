//! Options of `doctor`.

use super::path;
use clap::Args;

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Device: gpu, gpu:0, gpu:part-of-a-name.
    #[arg(long, default_value = "gpu")]
    pub device: String,
    /// Write the complete report: correctness of all models, speeds, memory, limits.
    #[arg(long)]
    pub gpu: bool,
    /// Print JSON, or write it to a file. With --gpu the file is written section by section.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", value_parser = path)]
    pub json: Option<String>,
}
