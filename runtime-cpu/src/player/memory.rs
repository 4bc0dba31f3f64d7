//! The memory of a player: one aligned matrix per field, grown when a plan needs more, never shrunk.

use crate::kernels::Aligned;
use autobatch_ir::plan::Plan;

/// The fields of the plan being played, and where they are.
#[derive(Default)]
pub(super) struct Memory {
    fields: Vec<Aligned>,
    views: Vec<FieldMemory>,
}

/// A field while a plan is played: shared by the threads, which write distinct rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldMemory {
    pub(super) base: *mut f32,
    pub(super) width: usize,
}

// SAFETY: threads of one wave touch distinct rows or only read (plan rules on results and hazards).
unsafe impl Send for FieldMemory {}
// SAFETY: as above.
unsafe impl Sync for FieldMemory {}

impl FieldMemory {
    /// A row of the field.
    ///
    /// # Safety
    /// The row exists, and nobody writes it while the result lives.
    pub(super) unsafe fn row<'a>(self, row: usize) -> &'a [f32] {
        // SAFETY: the caller vouches for the row.
        unsafe { std::slice::from_raw_parts(self.base.wrapping_add(row * self.width), self.width) }
    }
}

impl Memory {
    /// Makes room for every field of the plan; `None` if memory cannot be had.
    pub(super) fn fit(&mut self, plan: &Plan) -> Option<&[FieldMemory]> {
        if self.fields.len() < plan.fields.len() {
            self.fields.resize_with(plan.fields.len(), Aligned::default);
        }
        self.views.clear();
        for (field, buffer) in plan.fields.iter().zip(&mut self.fields) {
            let rows = plan.slabs[field.slab.index()].rows as usize;
            let width = field.width() as usize;
            buffer.fit(rows.checked_mul(width)?)?;
            self.views.push(FieldMemory { base: buffer.floats_mut().as_mut_ptr(), width });
        }
        Some(&self.views)
    }

    /// A row of a field.
    pub(super) fn row(&self, field: usize, row: usize, width: usize) -> &[f32] {
        &self.fields[field].floats()[row * width..(row + 1) * width]
    }

    /// All rows of a field.
    pub(super) fn field(&self, field: usize) -> &[f32] {
        self.fields[field].floats()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.fields.iter().map(|field| size_of_val(field.floats())).sum()
    }
}
