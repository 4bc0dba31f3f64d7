//! Which instruction set the kernels run on.
//!
//! Every kernel has one twin per [`Isa`]; the twins give the same bits, so the choice changes speed only. A machine is asked once, at run
//! time; the environment variable `AUTOBATCH_CPU` forces a choice, for tests and for reproducing a report from another machine.

use std::fmt;

/// The environment variable that forces an instruction set.
pub const ISA_VARIABLE: &str = "AUTOBATCH_CPU";

/// An instruction set with its own twin of every kernel, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Portable Rust with `f32::mul_add`: the definition that the others are tested against. Very slow where the target has no fused
    /// multiply-add in its base set (x86-64 calls a library function per element).
    Scalar,
    /// Arm NEON, part of every aarch64 machine.
    Neon,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, DQ, VL and BW, as every such machine since Skylake-X has.
    Avx512,
}

impl Isa {
    /// Every instruction set the crate knows, slowest first, whether this machine has it or not.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The word that `AUTOBATCH_CPU` takes.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether the machine this runs on has the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                use std::arch::is_x86_feature_detected as has;
                let vectors = has!("avx512f") && has!("avx512dq") && has!("avx512vl") && has!("avx512bw");
                vectors && has!("avx2") && has!("fma")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// What this machine has, slowest first; never empty, because [`Isa::Scalar`] runs everywhere.
    pub fn available() -> Vec<Isa> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The fastest instruction set of this machine, whatever the environment says.
    pub fn best() -> Isa {
        Self::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
    }

    /// What `AUTOBATCH_CPU` names; without it, or if it is empty, the fastest of this machine.
    pub fn detect() -> Result<Isa, IsaError> {
        match std::env::var_os(ISA_VARIABLE) {
            Some(word) if !word.is_empty() => Self::forced(&word.to_string_lossy()),
            _ => Ok(Self::best()),
        }
    }

    /// The instruction set called `word`, if it is known and this machine has it.
    pub fn forced(word: &str) -> Result<Isa, IsaError> {
        let found = Self::ALL
            .into_iter()
            .find(|isa| isa.name() == word)
            .ok_or_else(|| IsaError::Unknown(word.to_owned()))?;
        found.required()
    }

    /// The instruction set itself if this machine has it: what every safe kernel asks before it runs.
    pub fn required(self) -> Result<Isa, IsaError> {
        if self.is_available() { Ok(self) } else { Err(IsaError::Missing(self)) }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an instruction set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsaError {
    /// The word names no instruction set.
    Unknown(String),
    /// The word is known, but this machine lacks the instruction set.
    Missing(Isa),
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IsaError::Unknown(word) => write!(f, "unknown instruction set `{word}`")?,
            IsaError::Missing(isa) => write!(f, "this machine has no {isa}")?,
        }
        let names: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
        write!(f, ": expected one of {}; set or unset {ISA_VARIABLE}", names.join(", "))
    }
}

impl std::error::Error for IsaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_lists_what_this_machine_has() {
        let error = Isa::forced("sse9").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("unknown instruction set `sse9`: expected one of scalar"), "{text}");
        assert!(text.contains(Isa::best().name()), "{text}");
    }

    #[test]
    fn a_missing_instruction_set_is_refused_and_an_available_one_taken() {
        for isa in Isa::ALL {
            let expected =
                if Isa::available().contains(&isa) { Ok(isa) } else { Err(IsaError::Missing(isa)) };
            assert_eq!(Isa::forced(isa.name()), expected);
        }
        assert!(Isa::ALL.iter().any(|isa| !isa.is_available()), "no machine has both NEON and AVX2");
    }

    /// So that what was meant for an instruction set is not executed on others alone.
    #[test]
    fn what_the_environment_names_is_there() {
        let chosen = Isa::detect().unwrap_or_else(|error| panic!("{error}"));
        assert!(Isa::available().contains(&chosen));
    }

    #[test]
    fn the_best_is_the_last_available() {
        assert_eq!(Some(&Isa::best()), Isa::available().last());
    }
}
