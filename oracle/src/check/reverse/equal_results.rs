//! Equality of rows on all probes, by hash and element by element.

use super::probe::Probe;
use super::reference_derivative::Uses;
use crate::reference::ShareKind;
use autobatch_ir::hash::StructureHash;
use std::collections::BTreeMap;

/// A hash of rows, probe by probe. Both zeros have one hash, and so do all NaNs.
#[derive(Default)]
pub(super) struct RowHash(StructureHash);

impl RowHash {
    /// Adds the floats of a probe.
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

    /// Adds an index of a probe.
    pub(super) fn index(&mut self, index: u32) {
        self.0.push(index.into());
    }

    pub(super) fn value(&self) -> u64 {
        self.0.value() as u64
    }
}

/// Returns whether two floats differ. Both zeros are equal, and so are all NaNs.
fn differ(found: u32, expected: f32) -> bool {
    let found = f32::from_bits(found);
    found != expected && !(found.is_nan() && expected.is_nan())
}

/// A comparison of rows, probe by probe.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) started: bool,
    pub(super) differs: bool,
    /// For each element, whether it is finite on some probe.
    finite: Vec<bool>,
}

impl Comparison {
    pub(super) fn compare(&mut self, found: &[u32], expected: &[f32]) {
        self.started = true;
        self.differs |= found.len() != expected.len()
            || found.iter().zip(expected).any(|(&found, &expected)| differ(found, expected));
        if self.finite.is_empty() {
            self.finite = vec![false; expected.len()];
        }
        self.differs |= self.finite.len() != expected.len();
        if !self.differs {
            self.finite.iter_mut().zip(expected).for_each(|(finite, x)| *finite |= x.is_finite());
        }
    }

    /// Returns whether all rows are equal and every element is finite on some probe.
    pub(super) fn holds(&self) -> bool {
        self.started && !self.differs && self.finite.iter().all(|&finite| finite)
    }
}

/// The uses of parameters by a signature, by the rows that a reduction takes for them.
#[derive(Default)]
pub(super) struct UseIndex {
    /// By parameter, first row (of transposed weights: column), and hashes of the rows that a reduction takes for the
    /// whole use.
    whole: BTreeMap<(usize, u32, [u64; 2]), Vec<u32>>,
    /// By parameter.
    of_param: BTreeMap<usize, Vec<u32>>,
}

impl UseIndex {
    pub(super) fn new(probes: &[Probe], uses: &[Uses]) -> Self {
        let mut index = Self::default();
        for (number, own) in (0..).zip(uses) {
            let [mut x, mut dy] = [RowHash::default(), RowHash::default()];
            let (mut at, mut swapped) = (0, false);
            for probe in probes {
                let share = &probe.returned.params[own.first()].share;
                let [taken_x, taken_dy] = share.taken();
                dy.floats(taken_dy);
                match share.kind {
                    ShareKind::Product { first, transposed, .. } => {
                        (at, swapped) = (first as u32, transposed);
                        x.floats(taken_x);
                    }
                    ShareKind::Labels { .. } => x.floats(taken_x),
                    ShareKind::Rows => {}
                    ShareKind::Row(index) => x.index(index as u32),
                }
            }
            let [x, dy] = [x.value(), dy.value()];
            let takes = if swapped { [dy, x] } else { [x, dy] };
            let param = own.param.index();
            index.whole.entry((param, at, takes)).or_default().push(number);
            index.of_param.entry(param).or_default().push(number);
        }
        index
    }

    /// Uses of a parameter that a reduction covers whole if it begins at this row or column and takes rows of these hashes.
    pub(super) fn whole(&self, param: usize, at: u32, takes: [u64; 2]) -> &[u32] {
        self.whole.get(&(param, at, takes)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_param(&self, param: usize) -> &[u32] {
        self.of_param.get(&param).map_or(&[], Vec::as_slice)
    }
}
