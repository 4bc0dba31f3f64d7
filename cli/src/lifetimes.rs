//! Which rows of which slab are alive at which step, read off a plan.
//!
//! A row is alive from the step that writes it to the last one that reads it before it is written
//! again; rows of outputs stay alive to the end. Read from the plan alone, so it shows what the
//! plan does, not what its planner believed.
//!
//! Memory follows what steps touch, not what slabs claim: a file may claim any number of rows.

use crate::facts::{for_each_place, for_each_row};
use autobatch_ir::plan::{Plan, SlabId};
use std::collections::BTreeMap;

/// Slabs that are told apart; smaller ones are taken together.
pub const TOLD_APART: usize = 12;

/// Live bytes by step and group of slabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The slabs that are told apart, the largest first: each is a group. All others are the group
    /// after them.
    pub largest: Vec<SlabId>,
    /// For each step, live bytes of each group while it is executed.
    pub live: Vec<Vec<u64>>,
    /// Bytes of each group.
    pub size: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Life {
    written: u32,
    read: u32,
}

impl Lifetimes {
    /// The lifetimes of a verified plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let bytes: Vec<u64> =
            (0..plan.slabs.len()).map(|slab| row_bytes(plan, SlabId(slab as u32))).collect();
        let size_of = |slab: usize| u64::from(plan.slabs[slab].rows).saturating_mul(bytes[slab]);
        let mut by_size: Vec<usize> = (0..plan.slabs.len()).collect();
        by_size.sort_by_key(|&slab| (std::cmp::Reverse(size_of(slab)), slab));
        let told_apart = by_size.len().min(TOLD_APART);
        let mut size = vec![0u64; told_apart + 1];
        let mut group = vec![told_apart; plan.slabs.len()];
        for (place, &slab) in by_size.iter().enumerate() {
            group[slab] = place.min(told_apart);
            size[group[slab]] = size[group[slab]].saturating_add(size_of(slab));
        }
        // How live bytes change when a step begins.
        let mut change = vec![vec![0i64; told_apart + 1]; plan.steps.len() + 1];
        for (slab, life) in lives(plan) {
            change[life.written as usize][group[slab]] += bytes[slab] as i64;
            change[life.read as usize + 1][group[slab]] -= bytes[slab] as i64;
        }
        let mut now = vec![0i64; told_apart + 1];
        let live = change[..plan.steps.len()].iter().map(|change| {
            now.iter_mut().zip(change).for_each(|(now, change)| *now += change);
            now.iter().map(|&bytes| bytes as u64).collect()
        });
        let live = live.collect();
        let largest = by_size[..told_apart].iter().map(|&slab| SlabId(slab as u32)).collect();
        Self { largest, live, size }
    }

    /// The most bytes alive at any step.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.live.iter().map(|groups| groups.iter().sum()).max().unwrap_or(0)
    }
}

/// Every life of every row, with its slab.
fn lives(plan: &Plan) -> Vec<(usize, Life)> {
    let mut ended: Vec<(usize, Life)> = Vec::new();
    let mut alive: BTreeMap<(usize, u32), Life> = BTreeMap::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let number = number as u32;
        for &operand in plan.operands(step) {
            let mut rows = Vec::new();
            let Some(field) = for_each_row(plan, step, operand, |_, row| rows.push(row)) else { continue };
            let slab = plan.field(field).slab.index();
            for row in rows {
                if let Some(life) = alive.get_mut(&(slab, row)) {
                    life.read = number;
                }
            }
        }
        for &place in plan.places(step) {
            let slab = plan.field(place.field()).slab.index();
            for_each_place(plan, step, place, |_, row| {
                // Another field of the row may have been written by this very step.
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

/// Bytes of one row of a slab.
#[must_use]
pub fn row_bytes(plan: &Plan, slab: SlabId) -> u64 {
    let fields = &plan.slabs[slab.index()].fields;
    let fields = &plan.fields[fields.start as usize..fields.end as usize];
    fields.iter().map(|field| u64::from(field.width()) * 4).sum()
}
