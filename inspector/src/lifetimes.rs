//! Lifetimes of the rows of a plan: the slab rows that are live at each step.
//!
//! A row is live from the step that writes it to the last step that reads it before the next write.
//! Output rows stay live to the end. The analysis reads the plan only, so it is independent of the
//! planner.
//!
//! Its memory use depends on the rows that steps access, not on the slab sizes that the plan
//! declares: a malformed file may declare any number of rows.

use crate::steps::for_each_written_row;
use autobatch_ir::plan::{Plan, SlabId};
use std::collections::BTreeMap;

/// Number of slabs with a group of their own; all smaller slabs share one group.
pub const MAX_OWN_GROUPS: usize = 12;

/// Live bytes by step and group of slabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The slabs with a group of their own, largest first. The last group holds all other slabs.
    pub largest: Vec<SlabId>,
    /// For each step, the live bytes of each group during its execution.
    pub live: Vec<Vec<u64>>,
    /// The size of each group in bytes.
    pub size: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Life {
    /// The step that writes the row.
    written: u32,
    /// The last step that reads it.
    read: u32,
}

impl Lifetimes {
    /// Computes the lifetimes of a verified plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let bytes: Vec<u64> =
            (0..plan.slabs.len()).map(|slab| row_bytes(plan, SlabId(slab as u32))).collect();
        let size_of = |slab: usize| u64::from(plan.slabs[slab].rows).saturating_mul(bytes[slab]);
        let mut by_size: Vec<usize> = (0..plan.slabs.len()).collect();
        by_size.sort_by_key(|&slab| (std::cmp::Reverse(size_of(slab)), slab));
        let own_groups = by_size.len().min(MAX_OWN_GROUPS);
        let mut size = vec![0u64; own_groups + 1];
        let mut group = vec![own_groups; plan.slabs.len()];
        for (rank, &slab) in by_size.iter().enumerate() {
            group[slab] = rank.min(own_groups);
            size[group[slab]] = size[group[slab]].saturating_add(size_of(slab));
        }
        // The change of live bytes at the start of each step.
        let mut change = vec![vec![0i64; own_groups + 1]; plan.steps.len() + 1];
        for (slab, life) in lives(plan) {
            change[life.written as usize][group[slab]] += bytes[slab] as i64;
            change[life.read as usize + 1][group[slab]] -= bytes[slab] as i64;
        }
        let mut now = vec![0i64; own_groups + 1];
        let live = change[..plan.steps.len()].iter().map(|change| {
            now.iter_mut().zip(change).for_each(|(now, change)| *now += change);
            now.iter().map(|&bytes| bytes as u64).collect()
        });
        let live = live.collect();
        let largest = by_size[..own_groups].iter().map(|&slab| SlabId(slab as u32)).collect();
        Self { largest, live, size }
    }

    /// The maximum of live bytes over all steps.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.live.iter().map(|groups| groups.iter().sum()).max().unwrap_or(0)
    }
}

/// All lifetimes of all rows, each with its slab.
fn lives(plan: &Plan) -> Vec<(usize, Life)> {
    let mut ended: Vec<(usize, Life)> = Vec::new();
    let mut alive: BTreeMap<(usize, u32), Life> = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let number = number as u32;
        for &operand in plan.operands(step) {
            let mut rows = Vec::new();
            let Some(field) = operand.for_each_row(plan, step.rows, |row| rows.push(row)) else {
                continue;
            };
            let slab = plan.field(field).slab.index();
            for row in rows {
                if let Some(life) = alive.get_mut(&(slab, row)) {
                    life.read = number;
                }
            }
        }
        for &place in plan.places(step) {
            let slab = plan.field(place.field()).slab.index();
            for_each_written_row(plan, step, place, |_, row| {
                // The same step may already have written another field of the row.
                if alive.get(&(slab, row)).is_none_or(|life| life.written != number) {
                    let old = alive.insert((slab, row), Life { written: number, read: number });
                    ended.extend(old.map(|old| (slab, old)));
                }
            });
        }
    }
    for output in &plan.outputs {
        let slab = plan.field(output.field).slab.index();
        if let Some(life) = alive.get_mut(&(slab, output.row)) {
            life.read = (plan.steps.len() as u32).saturating_sub(1);
        }
    }
    ended.extend(alive.into_iter().map(|((slab, _), life)| (slab, life)));
    ended
}

/// The size of one row of a slab in bytes.
#[must_use]
pub fn row_bytes(plan: &Plan, slab: SlabId) -> u64 {
    let fields = &plan.slabs[slab.index()].fields;
    let fields = &plan.fields[fields.start as usize..fields.end as usize];
    fields.iter().map(|field| u64::from(field.width()) * 4).sum()
}
