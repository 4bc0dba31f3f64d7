//! Shared parts of the kernel tests: random numbers with a printed seed, and the number of cases.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

use autobatch_ir::hash::split_mix;
use autobatch_runtime_cpu::kernels::Isa;

/// A SplitMix64 generator.
pub(crate) struct Random {
    pub(crate) seed: u64,
    state: u64,
}

impl Random {
    /// Seeds from `AUTOBATCH_SEED`, or with a fixed seed. Assertions print it.
    #[allow(clippy::print_stdout, reason = "the seed of a failing run must be known")]
    pub(crate) fn seeded() -> Self {
        let seed = autobatch_testing::trials::asked_seed().unwrap_or(0x5eed);
        println!("AUTOBATCH_SEED={seed}");
        Random { seed, state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        split_mix(&mut self.state)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Values in -1..1 with full mantissas, which reveal a different order of additions.
    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }
}

/// The number of cases: `count`, scaled by `AUTOBATCH_TEST`; few under Miri.
pub(crate) fn cases(count: usize) -> usize {
    if cfg!(miri) { 3 } else { autobatch_testing::trials::cases(count as u64) as usize }
}

/// The instruction sets to test; Miri runs the portable kernels only.
pub(crate) fn isas() -> Vec<Isa> {
    if cfg!(miri) { vec![Isa::Scalar] } else { Isa::available() }
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}
