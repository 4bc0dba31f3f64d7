//! Ordinary numbers in place of constants that no arithmetic survives.
//!
//! A cell may hold an infinite constant, or the logarithm of a negative one. All its gradients are then no numbers, and any
//! row of NaNs equals any other. The proof therefore evaluates such a node once more, with an ordinary number in place of each
//! of these constants. A derivative that is correct for every constant is correct for this number, and the kernel under test
//! gets the same number for the same bits. A kernel that computes with constants in advance differs, so the proof rejects it.

use autobatch_ir::graph::Op;
use autobatch_ir::hash::split_mix;
use autobatch_ir::plan::{Kernel, RegKind, Source, Stage};
use autobatch_ir::types::DType;
use std::borrow::Cow;

/// The constants with which a node is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constants {
    /// The constants of the graph.
    Given,
    /// An ordinary number in place of each constant that is [wild](is_wild).
    Tame,
}

/// Constants beyond this are large, and those below its inverse are small.
const LARGE: f32 = (1 << 24) as f32;

/// Returns whether a constant may make gradients infinite or no numbers: it is not finite, it is large or small, or it is
/// negative. Rules of derivatives write -0.5, -1 and -2 themselves, so these three are not wild.
pub(crate) fn is_wild(bits: u32) -> bool {
    let constant = f32::from_bits(bits);
    let is_ordinary = constant == 0.0 || (LARGE.recip()..=LARGE).contains(&constant);
    !is_ordinary && ![-0.5, -1.0, -2.0].contains(&constant)
}

/// The number in place of a constant: between 0.5 and 1 if the constant is wild.
fn tame(dtype: DType, bits: u32) -> u32 {
    if dtype != DType::F32 || !is_wild(bits) {
        return bits;
    }
    let mut state = u64::from(bits);
    let unit = (split_mix(&mut state) >> 40) as f32 / (1 << 24) as f32;
    (0.5 + 0.5 * unit).to_bits()
}

impl Constants {
    /// An op of the graph with these constants.
    pub(crate) fn of_op(self, op: Op) -> Op {
        match op {
            Op::Fill { ty, bits } if self == Self::Tame => Op::Fill { ty, bits: tame(ty.dtype, bits) },
            op => op,
        }
    }

    /// A kernel with these constants.
    pub(crate) fn of_kernel(self, kernel: &Kernel) -> Cow<'_, Kernel> {
        if self == Self::Given {
            return Cow::Borrowed(kernel);
        }
        let mut kernel = kernel.clone();
        for reg in &mut kernel.regs {
            if let RegKind::Const(bits) = &mut reg.kind {
                *bits = tame(reg.ty.dtype, *bits);
            }
        }
        let maps = kernel.stages.iter_mut().filter_map(|stage| match stage {
            Stage::Map { code, .. } => Some(code),
            _ => None,
        });
        for instr in maps.flatten() {
            for source in &mut instr.sources {
                if let Source::Const(bits) = source {
                    *bits = tame(instr.dtype, *bits);
                }
            }
        }
        Cow::Owned(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, is_wild, tame};

    #[test]
    fn wild_constants_become_different_numbers_and_the_others_stay() {
        let wild =
            [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, 1e-40, -1.96875, -87.5].map(f32::to_bits);
        let mut numbers = wild.map(|bits| tame(DType::F32, bits));
        assert!(wild.iter().all(|&bits| is_wild(bits)));
        assert!(numbers.iter().all(|&bits| (0.5..1.0).contains(&f32::from_bits(bits))), "{numbers:x?}");
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:x?}");
        for ordinary in [0.0f32, -0.0, 1.0, 0.25, 1024.0, -1.0].map(f32::to_bits) {
            assert_eq!(tame(DType::F32, ordinary), ordinary);
        }
        assert_eq!(tame(DType::U32, u32::MAX), u32::MAX);
    }
}
