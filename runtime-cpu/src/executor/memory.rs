//! The slab memory of an executor: one aligned matrix per field. The next plan reuses it, unless a limit forbids it.

use crate::kernels::Aligned;
use autobatch_ir::plan::{Mode, Plan, Verified};

/// The fields of the current plan, side by side in one region: large enough for huge pages, where many small ones are not.
#[derive(Default)]
pub(super) struct Memory {
    region: Aligned,
    /// The floats of the region that plans have used. The rest takes no memory.
    used: usize,
    places: Vec<Place>,
    views: Vec<FieldMemory>,
    /// The identity of the plan that `views` belong to.
    plan: Option<u64>,
}

/// The floats of a field in the region.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: usize,
    /// The floats of the plan, and those that the field may grow to before it moves.
    floats: usize,
    capacity: usize,
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
            match plan.mode {
                Mode::Grow => self.grow(plan)?,
                _ => self.place(plan)?,
            }
            self.plan = Some(plan.identity());
        }
        // Pointers are renewed, because results were read through other references since.
        let base = self.region.floats_mut().as_mut_ptr();
        self.views.clear();
        self.views.extend(self.places.iter().zip(&plan.fields).map(|(place, field)| FieldMemory {
            base: base.wrapping_add(place.start),
            width: field.width() as usize,
        }));
        Some(&self.views)
    }

    /// Places the fields of a plan one behind the other.
    fn place(&mut self, plan: &Plan) -> Option<()> {
        self.places.clear();
        let mut end = 0usize;
        for number in 0..plan.fields.len() {
            let floats = floats_of(plan, number)?;
            let capacity = floats.checked_next_multiple_of(Aligned::LINE)?;
            self.places.push(Place { start: end, floats, capacity });
            end = end.checked_add(capacity)?;
        }
        if self.region.floats().len() < end {
            // The old region goes first.
            (self.region, self.used) = (Aligned::default(), 0);
            self.region = Aligned::zeroed(end)?;
        }
        self.used = self.used.max(end);
        Some(())
    }

    /// Gives the fields of a plan that grew their floats. If one is too small for its place, all move to a larger region.
    fn grow(&mut self, plan: &Plan) -> Option<()> {
        self.places.resize_with(plan.fields.len(), Place::default);
        let (mut end, mut is_large_enough) = (0usize, true);
        let mut moved = Vec::with_capacity(plan.fields.len());
        for (number, place) in self.places.iter_mut().enumerate() {
            let (before, floats) = (*place, floats_of(plan, number)?);
            let mut capacity = before.capacity;
            if floats > capacity {
                is_large_enough = false;
                capacity = floats.max(capacity.checked_mul(2)?).checked_next_multiple_of(Aligned::LINE)?;
            }
            place.floats = floats;
            moved.push((before, Place { start: end, floats, capacity }));
            end = end.checked_add(capacity)?;
        }
        if !is_large_enough {
            let mut region = Aligned::zeroed(end)?;
            for &(from, to) in &moved {
                let kept = from.floats.min(to.floats);
                let to = &mut region.floats_mut()[to.start..][..kept];
                to.copy_from_slice(&self.region.floats()[from.start..][..kept]);
            }
            self.region = region;
            self.places.iter_mut().zip(moved).for_each(|(place, (_, to))| *place = to);
        }
        self.used = self.places.iter().map(|place| place.floats).sum();
        Some(())
    }

    /// Frees all memory if it would exceed `limit` together with the needs of the plan.
    pub(super) fn shrink_to(&mut self, plan: &Plan, limit: u64) {
        let after = (self.bytes() as u64).max(plan.slab_bytes());
        if after > limit {
            *self = Self::default();
        }
    }

    pub(super) fn row(&self, field: usize, row: usize, width: usize) -> &[f32] {
        &self.field(field)[row * width..(row + 1) * width]
    }

    pub(super) fn field(&self, field: usize) -> &[f32] {
        let Place { start, floats, .. } = self.places[field];
        &self.region.floats()[start..start + floats]
    }

    pub(super) fn bytes(&self) -> usize {
        self.used * size_of::<f32>()
    }
}

/// The floats of a field; `None` if no address space has as many.
fn floats_of(plan: &Plan, number: usize) -> Option<usize> {
    let field = &plan.fields[number];
    let rows = plan.slabs[field.slab.index()].rows as usize;
    rows.checked_mul(field.width() as usize)
}
