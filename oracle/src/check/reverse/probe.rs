//! Probes: lanes of random numbers on which a derivative is executed beside the reference.
//!
//! A derivative kernel has no second specification that could be compared term by term. So the proof executes it beside
//! `reference::reverse` of the one node on at least [`PROBES`] probes. Probes have large and small numbers, positive numbers
//! for logarithms and roots, and few distinct numbers so that ties and zeros occur. Small parameters are positive where
//! operands are. Lists have 3, 1, 2, 0, 4 and 2 values. A signature that reads indices gets more probes, so that every
//! element that an index may name is named. A signature whose gradient has an element that is finite on no probe gets more
//! probes too, with other [constants](crate::reference::Constants). The numbers come from a fixed seed, so equal plans get
//! equal verdicts.

use crate::reference::{Argument, Constants, Datum, Returned};
use autobatch_ir::hash::split_mix;
use autobatch_ir::types::{DType, Type};
use std::sync::Arc;

/// The least number of probes on which a derivative is executed.
pub const PROBES: usize = 6;
/// The lengths of the lists of each probe.
const LENGTHS: [usize; PROBES] = [3, 1, 2, 0, 4, 2];
/// The probes of positive numbers.
pub(super) const POSITIVE: [usize; 2] = [2, 5];
/// Seed and step of dropout noise.
pub(super) const NOISE: (u64, u64) = (11, 3);

/// A lane of random numbers with the results of the reference.
pub(super) struct Probe {
    /// The values of the parameters: an index into `ReferenceDerivatives::params`.
    pub(super) set: usize,
    pub(super) constants: Constants,
    pub(super) operands: Vec<Argument<f32>>,
    pub(super) results: Vec<Datum<f32>>,
    /// For each result the contributions to its gradient.
    pub(super) grads: Vec<Vec<Arc<[f32]>>>,
    /// The gradients of operands and parameters by the reference.
    pub(super) returned: Returned<f32>,
}

/// The sum of contributions, in order.
pub(super) fn fold(grads: &[Arc<[f32]>]) -> Option<Arc<[f32]>> {
    let mut sum = grads.first()?.to_vec();
    for more in &grads[1..] {
        sum.iter_mut().zip(more.iter()).for_each(|(sum, more)| *sum += more);
    }
    Some(sum.into())
}

pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number between -1 and 1.
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// A number of a probe.
    fn number(&mut self, probe: usize) -> f32 {
        match probe {
            1 => self.unit() * 3.0,
            2 => 1.05 + self.unit() * 0.95,
            3 => [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0][(self.next() % 6) as usize],
            5 => 0.5 + self.unit() * 0.45,
            _ => self.unit(),
        }
    }

    pub(super) fn argument(&mut self, ty: Type, probe: usize) -> Argument<f32> {
        match ty.is_list {
            false => Argument::One(self.datum(ty, probe)),
            true => Argument::Many((0..LENGTHS[probe % PROBES]).map(|_| self.datum(ty, probe)).collect()),
        }
    }

    fn datum(&mut self, ty: Type, probe: usize) -> Datum<f32> {
        let elements = ty.shape.elements();
        let words = |this: &mut Self, below: u64| {
            Datum::words((0..elements).map(|_| (this.next() % below) as u32).collect::<Vec<_>>())
        };
        match ty.dtype {
            DType::F32 => Datum::floats((0..elements).map(|_| self.number(probe)).collect::<Vec<f32>>()),
            DType::Bool => words(self, 2),
            _ if probe >= PROBES => {
                // Each further probe names the next element; several indices name different elements.
                let first = (probe - PROBES) as u32;
                Datum::words((first..).take(elements).collect::<Vec<_>>())
            }
            _ if probe == 4 => words(self, 1 << 16),
            _ => words(self, 7),
        }
    }
}
