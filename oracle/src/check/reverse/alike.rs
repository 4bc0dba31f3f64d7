//! What the lanes of a proof hold, by hash: equal rows are found, and not searched for one after the other. Then they are compared.

use super::truth::{Contribution, Probe, Uses};
use crate::reference::{Partial, Share};
use autobatch_ir::hash::StructureHash;
use std::collections::BTreeMap;

/// A hash of rows, lane by lane. Rows that are equal to a proof have one hash: both zeros are one number, and so is every NaN.
#[derive(Default)]
pub(super) struct Alike(StructureHash);

impl Alike {
    /// The floats of a lane.
    pub(super) fn floats(&mut self, floats: &[f32]) {
        self.0.push(floats.len() as u64);
        for &float in floats {
            self.0.push(match float {
                0.0 => 0,
                nan if nan.is_nan() => f32::NAN.to_bits().into(),
                other => other.to_bits().into(),
            });
        }
    }

    /// An index of a lane.
    pub(super) fn index(&mut self, index: u32) {
        self.0.push(index.into());
    }

    pub(super) fn value(&self) -> u64 {
        self.0.value() as u64
    }
}

/// Whether a float is another number; both zeros are one, and so is every NaN.
pub(super) fn differ(found: u32, wanted: f32) -> bool {
    let found = f32::from_bits(found);
    found != wanted && !(found.is_nan() && wanted.is_nan())
}

/// Whether numbers are the same, lane by lane.
#[derive(Default)]
pub(super) struct Same {
    pub(super) started: bool,
    pub(super) differs: bool,
    /// Per element whether it was finite once.
    finite: Vec<bool>,
}

impl Same {
    pub(super) fn compare(&mut self, found: &[u32], wanted: &[f32]) {
        self.started = true;
        // Most rows that are compared differ at once.
        if found.len() != wanted.len()
            || found.iter().zip(wanted).any(|(&found, &wanted)| differ(found, wanted))
        {
            self.differs = true;
            return;
        }
        if self.finite.is_empty() {
            self.finite = vec![false; wanted.len()];
        }
        if self.finite.len() != wanted.len() {
            self.differs = true;
            return;
        }
        self.finite.iter_mut().zip(wanted).for_each(|(finite, wanted)| *finite |= wanted.is_finite());
    }

    pub(super) fn holds(&self) -> bool {
        self.started && !self.differs && self.finite.iter().all(|&finite| finite)
    }
}

/// The contributions of a signature and its uses of parameters, by what they are on all lanes.
#[derive(Default)]
pub(super) struct Found {
    /// Contributions to values, not to those of lists, by their elements.
    contributions: BTreeMap<u64, Vec<u32>>,
    /// The contributions to values of lists.
    pub(super) of_lists: Vec<u32>,
    /// By parameter, and by the first row of it that is met, the first column where it is transposed, and what a final
    /// that covers a whole use takes: the uses.
    whole: BTreeMap<(usize, u32, [u64; 2]), Vec<u32>>,
    /// By parameter the uses.
    of_param: BTreeMap<usize, Vec<u32>>,
    /// By rows that a sum takes, the first use that contributes them, and whether they entered there.
    rows: BTreeMap<u64, (u32, bool)>,
}

impl Found {
    pub(super) fn new(probes: &[Probe], contributions: &[Contribution], uses: &[Uses]) -> Self {
        let mut found = Self::default();
        for (number, to) in (0..).zip(contributions) {
            if to.is_list {
                found.of_lists.push(number);
                continue;
            }
            let mut hash = Alike::default();
            for probe in probes {
                if let Partial::One(elements) = &probe.returned.operands[to.operand as usize] {
                    hash.floats(elements);
                }
            }
            found.contributions.entry(hash.value()).or_default().push(number);
        }
        for (number, own) in (0..).zip(uses) {
            let [mut x, mut dy] = [Alike::default(), Alike::default()];
            let (mut at, mut swapped, mut enters) = (0, false, false);
            for probe in probes {
                match &probe.returned.params[own.first].share {
                    Share::Product { x: own_x, dy: own_dy, first, transposed, .. } => {
                        (at, swapped, enters) = (*first as u32, *transposed, true);
                        x.floats(own_x);
                        dy.floats(own_dy);
                    }
                    Share::Rows(own_dy) => dy.floats(own_dy),
                    Share::Row { index, dy: own_dy } => {
                        x.index(*index as u32);
                        dy.floats(own_dy);
                    }
                }
            }
            let [x, dy] = [x.value(), dy.value()];
            let takes = if swapped { [dy, x] } else { [x, dy] };
            let param = own.param.index();
            found.whole.entry((param, at, takes)).or_default().push(number);
            found.of_param.entry(param).or_default().push(number);
            found.rows.entry(dy).or_insert((number, false));
            if enters {
                found.rows.entry(x).or_insert((number, true));
            }
        }
        found
    }

    /// Contributions to values whose elements have this hash.
    pub(super) fn contributions(&self, hash: u64) -> &[u32] {
        self.contributions.get(&hash).map_or(&[], Vec::as_slice)
    }

    /// Uses of a parameter that a final covers as a whole if it begins at this row or column and takes rows of these hashes.
    pub(super) fn whole(&self, param: usize, at: u32, takes: [u64; 2]) -> &[u32] {
        self.whole.get(&(param, at, takes)).map_or(&[], Vec::as_slice)
    }

    /// All uses of a parameter.
    pub(super) fn of_param(&self, param: usize) -> &[u32] {
        self.of_param.get(&param).map_or(&[], Vec::as_slice)
    }

    /// A use of which rows of this hash are what a sum takes, and whether they entered there.
    pub(super) fn rows(&self, hash: u64) -> Option<(u32, bool)> {
        self.rows.get(&hash).copied()
    }
}
