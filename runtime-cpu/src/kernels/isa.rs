//! Selects the instruction set of the kernels.
//!
//! Every kernel has one variant per [`Isa`]. All variants compute the same bits, so the choice only changes speed. The
//! features of the machine are detected at run time. The environment variable `AUTOBATCH_CPU` forces a choice, for
//! tests and for reproducing a report from another machine.

use std::fmt;

/// The environment variable that forces an instruction set.
pub const ISA_VARIABLE: &str = "AUTOBATCH_CPU";

/// An instruction set with its own variant of every kernel, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Portable Rust with `f32::mul_add`: the definition that the other variants are tested against. It is very slow on
    /// x86-64, whose base set lacks a fused multiply-add: each element calls a library function.
    Scalar,
    /// Arm NEON, part of every aarch64 machine.
    Neon,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, DQ, VL and BW (every AVX-512 machine since Skylake-X).
    Avx512,
}

impl Isa {
    /// Every instruction set of the crate, slowest first, available on this machine or not.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The name that `AUTOBATCH_CPU` accepts.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Returns whether this machine has the instruction set.
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

    /// The instruction sets of this machine, slowest first. [`Isa::Scalar`] is always one of them.
    pub fn available() -> Vec<Isa> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The fastest instruction set of this machine. It ignores the environment.
    pub fn best() -> Isa {
        Self::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
    }

    /// The instruction set that `AUTOBATCH_CPU` names, or the fastest if the variable is unset or empty.
    pub fn detect() -> Result<Isa, IsaError> {
        match std::env::var_os(ISA_VARIABLE) {
            Some(word) if !word.is_empty() => Self::forced(&word.to_string_lossy()),
            _ => Ok(Self::best()),
        }
    }

    /// The instruction set called `word`.
    ///
    /// # Errors
    /// If the name is unknown or this machine lacks the instruction set.
    pub fn forced(word: &str) -> Result<Isa, IsaError> {
        let found = Self::ALL
            .into_iter()
            .find(|isa| isa.name() == word)
            .ok_or_else(|| IsaError::Unknown(word.to_owned()))?;
        found.required()
    }

    /// Returns `self` if this machine has the instruction set. Every safe kernel checks this before it runs.
    ///
    /// # Errors
    /// If this machine lacks it.
    pub fn required(self) -> Result<Isa, IsaError> {
        if self.is_available() { Ok(self) } else { Err(IsaError::Missing(self)) }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why an instruction set cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// No instruction set has this name.
    #[error("unknown instruction set `{0}`: {remedy}", remedy = expected_names())]
    Unknown(String),
    /// This machine lacks the instruction set.
    #[error("this machine has no {0}: {remedy}", remedy = expected_names())]
    Missing(Isa),
}

/// The remedy of an [`IsaError`].
fn expected_names() -> String {
    let names: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
    format!("expected one of {}; set or unset {ISA_VARIABLE}", names.join(", "))
}

autobatch_ir::debug_as_display!(IsaError);

/// Defines `fn $name(isa)`, which returns `$body` compiled with the features of `isa`. With AVX-512 it is `$masked`.
///
/// The bodies must be `#[inline(always)]`: only then are they compiled inside the functions that enable the features.
macro_rules! compiled_per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$T:ident: $bound:ident>)? -> unsafe fn $args:tt $(-> $result:ty)? = $body:expr) => {
        compiled_per_isa! {
            $(#[$meta])* $vis fn $name $(<$T: $bound>)? -> unsafe fn $args $(-> $result)? = $body; with masks $body
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$T:ident: $bound:ident>)?
            -> unsafe fn($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $body:expr; with masks $masked:expr
    ) => {
        $(#[$meta])*
        #[allow(unused_unsafe, reason = "some bodies are safe functions")]
        $vis fn $name $(<$T: $bound>)?(isa: $crate::kernels::Isa) -> unsafe fn($($ty),*) $(-> $result)? {
            /// # Safety
            /// As for the body, and the instruction set is available.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
            unsafe fn avx512 $(<$T: $bound>)?($($arg: $ty),*) $(-> $result)? {
                // SAFETY: as for this function.
                unsafe { $masked($($arg),*) }
            }

            /// # Safety
            /// As above.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2 $(<$T: $bound>)?($($arg: $ty),*) $(-> $result)? {
                // SAFETY: as above.
                unsafe { $body($($arg),*) }
            }

            /// # Safety
            /// As for the body.
            unsafe fn portable $(<$T: $bound>)?($($arg: $ty),*) $(-> $result)? {
                // SAFETY: as above.
                unsafe { $body($($arg),*) }
            }

            match isa {
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Isa::Avx512 => avx512 $(::<$T>)?,
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::Isa::Avx2 => avx2 $(::<$T>)?,
                _ => portable $(::<$T>)?,
            }
        }
    };
}

pub(super) use compiled_per_isa;
