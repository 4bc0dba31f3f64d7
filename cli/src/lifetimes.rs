//! Which rows of which slab are alive at which step, read off a plan.
//!
//! A row is alive from the step that writes it to the last one that reads it before it is written
//! again; rows of outputs stay alive to the end. Read from the plan alone, so it shows what the
//! plan does, not what its planner believed.

use crate::facts::{field_written, for_each_place, for_each_row};
use autobatch_ir::plan::{Plan, SlabId};

/// Live rows by step and slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// For each step, live bytes of each slab while it is played.
    pub live: Vec<Vec<u64>>,
    /// Bytes of each slab.
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
        let slabs = plan.slabs.len();
        let mut lives: Vec<Vec<Option<Life>>> =
            plan.slabs.iter().map(|slab| vec![None; slab.rows as usize]).collect();
        // How live rows change when a step begins.
        let mut change = vec![vec![0i64; slabs]; plan.steps.len() + 1];
        let mut close = |slab: usize, life: Life| {
            change[life.written as usize][slab] += 1;
            change[life.read as usize + 1][slab] -= 1;
        };
        for (number, step) in plan.steps.iter().enumerate() {
            let number = number as u32;
            for &operand in plan.operands(step) {
                let mut rows = Vec::new();
                let Some(field) = for_each_row(plan, step, operand, |_, row| rows.push(row)) else {
                    continue;
                };
                let slab = plan.field(field).slab.index();
                for row in rows {
                    if let Some(life) = &mut lives[slab][row as usize] {
                        life.read = number;
                    }
                }
            }
            for &place in plan.places(step) {
                let slab = plan.field(field_written(place)).slab.index();
                for_each_place(plan, step, place, |_, row| {
                    let life = &mut lives[slab][row as usize];
                    // Another field of the row may have been written by this very step.
                    if life.is_none_or(|life| life.written != number) {
                        let old = life.replace(Life { written: number, read: number });
                        old.into_iter().for_each(|old| close(slab, old));
                    }
                });
            }
        }
        for output in &plan.outputs {
            let slab = plan.field(output.field).slab.index();
            if let Some(life) = &mut lives[slab][output.row as usize] {
                life.read = (plan.steps.len() as u32).saturating_sub(1);
            }
        }
        for (slab, lives) in lives.iter().enumerate() {
            lives.iter().flatten().for_each(|&life| close(slab, life));
        }
        let row_bytes: Vec<u64> = (0..slabs).map(|slab| row_bytes(plan, SlabId(slab as u32))).collect();
        let mut now = vec![0i64; slabs];
        let live = change[..plan.steps.len()].iter().map(|change| {
            now.iter_mut().zip(change).for_each(|(now, change)| *now += change);
            now.iter().zip(&row_bytes).map(|(&rows, bytes)| rows as u64 * bytes).collect()
        });
        let live = live.collect();
        let size =
            plan.slabs.iter().zip(&row_bytes).map(|(slab, bytes)| u64::from(slab.rows) * bytes).collect();
        Self { live, size }
    }

    /// The most bytes alive at any step.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.live.iter().map(|slabs| slabs.iter().sum()).max().unwrap_or(0)
    }
}

/// Bytes of one row of a slab.
#[must_use]
pub fn row_bytes(plan: &Plan, slab: SlabId) -> u64 {
    let fields = &plan.slabs[slab.index()].fields;
    let fields = &plan.fields[fields.start as usize..fields.end as usize];
    fields.iter().map(|field| u64::from(field.width()) * 4).sum()
}
