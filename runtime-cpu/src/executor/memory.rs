//! The slab memory of an executor: one aligned matrix per field. The next plan of the same kind reuses it, unless a limit forbids
//! it.

use crate::kernels::Aligned;
use autobatch_ir::plan::{Mode, Plan, Verified};
use std::ops::Range;

/// The fields of the current plan.
#[derive(Default)]
pub(super) struct Memory {
    fields: Fields,
    views: Vec<FieldMemory>,
    /// The identity of the plan that `views` belong to.
    plan: Option<u64>,
}

enum Fields {
    /// Side by side in one region: large enough for huge pages, where many small ones are not.
    Together { region: Aligned, places: Vec<Range<usize>> },
    /// Apart, for a plan that grows: a field moves alone.
    Growing(Vec<Aligned>),
}

impl Default for Fields {
    fn default() -> Self {
        Self::Together { region: Aligned::default(), places: Vec::new() }
    }
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
    /// Allocates every field of the plan. The fields of a plan that grows keep their contents. Returns `None` if an allocation
    /// fails.
    pub(super) fn fit(&mut self, plan: &Verified<Plan>) -> Option<&[FieldMemory]> {
        if self.plan != Some(plan.identity()) {
            self.plan = None;
            self.fields.fit(plan)?;
            self.plan = Some(plan.identity());
        }
        // Pointers are renewed, because results were read through other references since.
        let widths = plan.fields.iter().map(|field| field.width() as usize);
        self.views.clear();
        match &mut self.fields {
            Fields::Together { region, places } => {
                let region = region.floats_mut().as_mut_ptr();
                let views = places.iter().zip(widths);
                self.views.extend(
                    views.map(|(place, width)| FieldMemory { base: region.wrapping_add(place.start), width }),
                );
            }
            Fields::Growing(fields) => {
                let views = fields.iter_mut().zip(widths);
                self.views.extend(
                    views.map(|(field, width)| FieldMemory { base: field.floats_mut().as_mut_ptr(), width }),
                );
            }
        }
        Some(&self.views)
    }

    /// Frees all memory if it would exceed `limit` together with the needs of the plan.
    pub(super) fn shrink_to(&mut self, plan: &Plan, limit: u64) {
        let needs = |number: usize| plan.fields.get(number).map_or(0, |_| field_floats(plan, number) * FLOAT);
        let after = match &self.fields {
            Fields::Together { region, .. } if plan.mode != Mode::Grow => {
                (size_of_val(region.floats()) as u64).max(plan.slab_bytes())
            }
            Fields::Growing(fields) if plan.mode == Mode::Grow => {
                let held = |(number, field): (usize, &Aligned)| {
                    (size_of_val(field.floats()) as u64).max(needs(number))
                };
                fields.iter().enumerate().map(held).sum()
            }
            // The plan begins with memory of its own.
            _ => 0,
        };
        if after > limit {
            *self = Self::default();
        }
    }

    pub(super) fn row(&self, field: usize, row: usize, width: usize) -> &[f32] {
        &self.field(field)[row * width..(row + 1) * width]
    }

    pub(super) fn field(&self, field: usize) -> &[f32] {
        match &self.fields {
            Fields::Together { region, places } => &region.floats()[places[field].clone()],
            Fields::Growing(fields) => fields[field].floats(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.fields {
            Fields::Together { region, .. } => size_of_val(region.floats()),
            Fields::Growing(fields) => fields.iter().map(|field| size_of_val(field.floats())).sum(),
        }
    }
}

impl Fields {
    /// Gives every field of the plan its floats. Memory for plans of the other kind is freed first.
    fn fit(&mut self, plan: &Plan) -> Option<()> {
        let floats = |number: usize| usize::try_from(field_floats(plan, number)).ok();
        if plan.mode == Mode::Grow {
            if let Self::Together { .. } = self {
                *self = Self::Growing(Vec::new());
            }
            let Self::Growing(fields) = self else { unreachable!("it is growing now") };
            if fields.len() < plan.fields.len() {
                fields.resize_with(plan.fields.len(), Aligned::default);
            }
            let mut fields = (0..plan.fields.len()).zip(fields);
            return fields.try_for_each(|(number, field)| field.fit_growing(floats(number)?));
        }
        if let Self::Growing(_) = self {
            *self = Self::default();
        }
        let Self::Together { region, places } = self else { unreachable!("the fields are together now") };
        places.clear();
        let mut end = 0usize;
        for number in 0..plan.fields.len() {
            let start = end.checked_next_multiple_of(Aligned::LINE)?;
            end = start.checked_add(floats(number)?)?;
            places.push(start..end);
        }
        if region.floats().len() < end {
            // No contents are kept, so the old region goes first.
            *region = Aligned::default();
            *region = Aligned::zeroed(end)?;
        }
        Some(())
    }
}

/// The bytes of a float.
const FLOAT: u64 = size_of::<f32>() as u64;

fn field_floats(plan: &Plan, number: usize) -> u64 {
    let field = &plan.fields[number];
    u64::from(plan.slabs[field.slab.index()].rows) * u64::from(field.width())
}
