//! The slab memory of an executor: one aligned matrix per field. The next plan reuses it, unless a limit forbids it.

use crate::kernels::Aligned;
use autobatch_ir::plan::{Mode, Plan, Verified};

/// The fields of the current plan.
#[derive(Default)]
pub(super) struct Memory {
    fields: Vec<Aligned>,
    views: Vec<FieldMemory>,
    /// The identity of the plan that `views` belong to.
    plan: Option<u64>,
}

/// A field during a run, shared by threads that write disjoint rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldMemory {
    pub(super) base: *mut f32,
    pub(super) width: usize,
}

// SAFETY: threads of one wave write disjoint rows or only read (plan rules on results and hazards).
unsafe impl Send for FieldMemory {}
// SAFETY: as above.
unsafe impl Sync for FieldMemory {}

impl FieldMemory {
    /// A row of the field.
    ///
    /// # Safety
    /// The row exists, and no one writes it while the result lives.
    pub(super) unsafe fn row<'a>(self, row: usize) -> &'a [f32] {
        // SAFETY: the caller guarantees the row.
        unsafe { std::slice::from_raw_parts(self.base.wrapping_add(row * self.width), self.width) }
    }
}

impl Memory {
    /// Allocates every field of the plan. Returns `None` if an allocation fails.
    pub(super) fn fit(&mut self, plan: &Verified<Plan>) -> Option<&[FieldMemory]> {
        if self.plan == Some(plan.identity()) {
            // Pointers are renewed, because results were read through other references since.
            for (view, buffer) in self.views.iter_mut().zip(&mut self.fields) {
                view.base = buffer.floats_mut().as_mut_ptr();
            }
            return Some(&self.views);
        }
        self.plan = None;
        if self.fields.len() < plan.fields.len() {
            self.fields.resize_with(plan.fields.len(), Aligned::default);
        }
        self.views.clear();
        for (field, buffer) in plan.fields.iter().zip(&mut self.fields) {
            let rows = plan.slabs[field.slab.index()].rows as usize;
            let width = field.width() as usize;
            let floats = rows.checked_mul(width)?;
            match plan.mode {
                Mode::Grow => buffer.fit_growing(floats)?,
                _ => buffer.fit(floats)?,
            }
            self.views.push(FieldMemory { base: buffer.floats_mut().as_mut_ptr(), width });
        }
        self.plan = Some(plan.identity());
        Some(&self.views)
    }

    /// Frees all memory if it would exceed `limit` together with the needs of the plan.
    pub(super) fn shrink_to(&mut self, plan: &Plan, limit: u64) {
        let needs = |number: usize| -> u64 {
            let field = plan.fields.get(number);
            field.map_or(0, |field| {
                4 * u64::from(field.width()) * u64::from(plan.slabs[field.slab.index()].rows)
            })
        };
        let held = |field: &Aligned| size_of_val(field.floats()) as u64;
        let after: u64 =
            self.fields.iter().enumerate().map(|(number, field)| held(field).max(needs(number))).sum();
        if after > limit {
            self.fields.clear();
            self.views.clear();
            self.plan = None;
        }
    }

    pub(super) fn row(&self, field: usize, row: usize, width: usize) -> &[f32] {
        &self.fields[field].floats()[row * width..(row + 1) * width]
    }

    pub(super) fn field(&self, field: usize) -> &[f32] {
        self.fields[field].floats()
    }

    pub(super) fn bytes(&self) -> usize {
        self.fields.iter().map(|field| size_of_val(field.floats())).sum()
    }
}
