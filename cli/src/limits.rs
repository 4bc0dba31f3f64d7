//! Limits on the memory and the work that files may ask for, and the footprint of a plan in reports.
//!
//! A file of a few kilobytes can describe gigabytes of rows or hours of work. Verbs that execute what a file describes
//! compute its footprint first and compare it with these limits.

use crate::failure::Failure;
use autobatch::runtime_cpu::footprint;
use autobatch_inspector::text::{byte_size, plural};
use autobatch_ir::Module;
use autobatch_ir::Weights;
use autobatch_ir::plan::{Footprint, Limit, Limits, Plan, Verified};
use clap::Args;
use std::fs::read_to_string;

/// The most floating-point operations without `--work-limit`: about half a minute of one core.
const DEFAULT_WORK: u64 = 250_000_000_000;
/// The memory of a machine that does not tell it.
const ASSUMED_MEMORY: u64 = 8 << 30;
/// The part of the memory of the machine that the default limit allows.
const MEMORY_PART: u64 = 2;

/// Limits on what a file may ask for.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct LimitArgs {
    /// Maximum memory of executing the plan, with parameters and temporaries: 1000000, 64KiB, 512MiB, 2GiB [default: half of
    /// the memory of this machine].
    #[arg(long, value_name = "BYTES", value_parser = autobatch_bench::parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Maximum number of floating-point operations, such as 1e12 [default: 2.5e11; no limit for trained models].
    #[arg(long, value_name = "OPERATIONS", value_parser = parse_work)]
    pub work_limit: Option<u64>,
}

/// Parses a number of operations: `1000000` or `1e12`.
pub(crate) fn parse_work(text: &str) -> Result<u64, String> {
    let scientific = || text.parse::<f64>().ok().filter(|number| (0.0..=1e18).contains(number));
    let number = text.parse::<u64>().ok().or_else(|| scientific().map(|number| number as u64));
    number.ok_or_else(|| "expected a number of operations up to 1e18, such as 1e12".to_owned())
}

impl LimitArgs {
    /// The limits, with defaults.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let memory = self.memory_limit.unwrap_or_else(|| machine_memory() / MEMORY_PART);
        Limits { memory: Some(memory), work: Some(self.work_limit.unwrap_or(DEFAULT_WORK)) }
    }

    /// The limits on each graph of a session with trained parameters. The operations of a graph of many instances depend on
    /// the model, so they are unlimited unless the option says otherwise.
    #[must_use]
    pub fn of_sessions(&self) -> Limits {
        Limits { work: self.work_limit, ..self.limits() }
    }

    /// Rejects a footprint over the limits, before any of it is allocated. `subject` is the file that describes it.
    ///
    /// # Errors
    /// A usage error if an option set the exceeded limit, otherwise an error of the file; both say how to raise the limit.
    pub fn check(&self, subject: &str, footprint: &Footprint) -> Result<(), Failure> {
        let Err(over) = footprint.check(self.limits()) else { return Ok(()) };
        let (message, option, given) = match over.limit {
            Limit::Memory(most) => (
                format!(
                    "{subject}: executing the plan takes {} of memory ({}), and the limit is {}",
                    byte_size(footprint.memory()),
                    parts(footprint),
                    byte_size(most)
                ),
                format!("--memory-limit {}", rounded_up(footprint.memory())),
                self.memory_limit.is_some(),
            ),
            Limit::Work(most) => (
                format!(
                    "{subject}: executing the plan takes {:.1e} operations, and the limit is {:.1e}",
                    footprint.work as f64, most as f64
                ),
                format!("--work-limit {:.0e}", 2.0 * footprint.work as f64),
                self.work_limit.is_some(),
            ),
        };
        let failure = if given { Failure::usage(message) } else { Failure::input(message) };
        Err(failure.help(format!("if the file is to be trusted, raise the limit: {option}")))
    }
}

/// The footprint of executing a plan with freshly drawn or loaded parameters.
#[must_use]
pub fn with_parameters(plan: &Verified<Plan>, threads: usize, module: &Module, drawn: bool) -> Footprint {
    let mut own = footprint(plan, threads);
    if drawn {
        own.work = own.work.saturating_add(Weights::init_work(module));
    }
    own
}

/// A line with the footprint of a plan on one thread.
#[must_use]
pub fn footprint_line(plan: &Verified<Plan>) -> String {
    let own = footprint(plan, 1);
    format!(
        "{} on one thread ({}); {}, {} read and written",
        byte_size(own.memory()),
        parts(&own),
        plural(own.work, "operation"),
        byte_size(own.traffic),
    )
}

/// The parts of the memory that are not empty, largest first.
fn parts(footprint: &Footprint) -> String {
    let mut parts = footprint.memory_parts();
    parts.sort_by_key(|part| std::cmp::Reverse(part.1));
    let present = parts.iter().filter(|part| part.1 > 0);
    present.map(|(name, bytes)| format!("{name} {}", byte_size(*bytes))).collect::<Vec<_>>().join(", ")
}

/// A number of bytes that is at least this one, as an option takes it.
fn rounded_up(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{}KiB", bytes.div_ceil(1 << 10)),
        0x10_0000..0x4000_0000 => format!("{}MiB", bytes.div_ceil(1 << 20)),
        _ => format!("{}GiB", bytes.div_ceil(1 << 30)),
    }
}

/// The memory that this process may use: that of the machine, or of its control group if that is less.
pub(crate) fn machine_memory() -> u64 {
    let of_group = read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let of_machine = read_to_string("/proc/meminfo").ok().and_then(|text| total_memory(&text));
    [of_group, of_machine].into_iter().flatten().min().unwrap_or(ASSUMED_MEMORY)
}

/// The total of `/proc/meminfo`, in bytes.
fn total_memory(text: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::{machine_memory, parse_work, rounded_up, total_memory};

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       24 kB\n"), Some(24 << 10));
        assert_eq!(total_memory("MemTotal: many kB\n"), None);
        assert!(machine_memory() >= 64 << 20);
    }

    #[test]
    fn suggested_limits_suffice() {
        for bytes in [0, 1, 1025, 0x10_0000, 0x10_0001, 0x4000_0000, 1 << 40] {
            assert!(
                autobatch_bench::parse_bytes(&rounded_up(bytes)).is_ok_and(|limit| limit >= bytes),
                "{bytes}"
            );
        }
    }

    #[test]
    fn numbers_of_operations_may_be_scientific() {
        assert_eq!(["7", "1e12", "2.5e3"].map(parse_work), [Ok(7), Ok(1_000_000_000_000), Ok(2500)]);
        for wrong in ["", "-1", "1e19", "NaN", "inf", "1 GB"] {
            assert!(parse_work(wrong).is_err(), "{wrong}");
        }
    }
}
