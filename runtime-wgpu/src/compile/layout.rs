//! Where everything is in the arena: noise, constants, parameters that kernels take whole, bound numbers, the fields of
//! all slabs, gradients, scratch rows, outputs; in this order, in words. What comes before the bound numbers depends on
//! no sizes of the plan, so plans of a model have it in one place and leave it to one another.

use super::HEAD;
use super::record::{Spot, TABLED};
use crate::error::GpuError;
use autobatch_ir::plan::{FieldId, Kernel, Operand, Plan, RegKind, StoreId, StoreKind};
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;

/// Words of the vectors that parameters are read in. Bindings are cut at multiples of it.
pub(crate) const VECTOR: u64 = 4;

/// What a register wants a run of words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Elements with these bits.
    Const(u32),
    /// The elements of a store.
    Store(StoreId),
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The number of its first element, counted in elements as large as its own; a multiple of four.
    pub at: u32,
    /// 0 a word each, 1 halves, 2 the upper halves of words.
    pub kind: u32,
}

/// How parameters lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Halves two a word, for those that are only read.
    #[default]
    Halves,
    /// Every element a word, so that threads that update neighbours do not write the same one.
    Words,
}

impl Packing {
    /// How a storage type is stored; see [`Stored::kind`].
    const fn kind_of(self, dtype: DType) -> u32 {
        match (self, dtype) {
            (Self::Halves, DType::F16) => 1,
            (Self::Halves, DType::BF16) => 2,
            (Self::Words, _) | (_, DType::F32 | DType::I32 | DType::U32 | DType::Bool) => 0,
        }
    }

    /// The words that a parameter takes.
    pub(crate) fn words_of(self, ty: Type) -> u64 {
        let elements = ty.shape.elements() as u64;
        if self.kind_of(ty.dtype) == 0 { elements } else { elements.div_ceil(2) }
    }

    /// The words from where a parameter begins to where the next one does: whole vectors, so that neighbours
    /// can be read at once, and never past the end.
    pub(crate) fn room_of(self, ty: Type) -> u64 {
        self.words_of(ty).next_multiple_of(VECTOR)
    }
}

/// Rows or words that a plan which grows has room for at least.
const LEAST_ROOM: u64 = 16;

/// How much room a layout has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// What the plan takes.
    Exact,
    /// Up to twice that, the same for plans that are nearly alike: what a plan has when it grew lies where it lay
    /// before, until the room is used up.
    Roomy,
}

impl Space {
    /// The room for so many rows or words.
    pub(super) const fn of(self, count: u64) -> u64 {
        match self {
            Self::Exact => count,
            Self::Roomy if count <= LEAST_ROOM => LEAST_ROOM,
            Self::Roomy => count.next_power_of_two(),
        }
    }
}

/// Where everything is.
#[derive(Debug)]
pub struct Layout {
    space: Space,
    /// How many words are bound, and how many floats.
    bound: [u64; 2],
    words: u64,
    floats: u64,
    runs: BTreeMap<Want, (u64, u64)>,
    constants_end: u64,
    fields: Vec<u64>,
    widths: Vec<u32>,
    gradients: BTreeMap<StoreId, (u64, u64)>,
    scratch: u64,
    outputs: u64,
    end: u64,
    stores: Vec<(u64, u32)>,
    params: u64,
}

/// The end of a run of words, if 32 bits count it.
fn past(at: u64, words: u64) -> Result<u64, GpuError> {
    let end = at.saturating_add(words);
    let limit = u64::from(u32::MAX);
    match end <= limit {
        true => Ok(end),
        false => Err(GpuError::TooLarge {
            what: "the rows of the plan",
            needed: end.saturating_mul(4),
            limit: limit * 4,
        }),
    }
}

impl Layout {
    pub(crate) fn new(plan: &Plan, packing: Packing, space: Space) -> Result<Self, GpuError> {
        let mut runs = wanted(plan);
        let mut end = HEAD;
        for (at, len) in runs.values_mut() {
            *at = end;
            end = past(end, *len)?;
        }
        let constants = |(want, run): (&Want, &(u64, u64))| match want {
            Want::Const(_) => Some(run.0 + run.1),
            Want::Store(_) => None,
        };
        let constants_end = runs.iter().filter_map(constants).max().unwrap_or(HEAD);
        let bound = [plan.words, plan.floats].map(u64::from);
        let words = past(HEAD, space.of(end - HEAD))?;
        let floats = past(words, space.of(bound[0]))?;
        end = past(floats, space.of(bound[1]))?;
        let mut fields = Vec::with_capacity(plan.fields.len());
        for field in &plan.fields {
            fields.push(end);
            let rows = space.of(plan.slabs[field.slab.index()].rows.into());
            end = past(end, rows.saturating_mul(field.ty.shape.elements() as u64))?;
        }
        let (mut stores, mut params) = (Vec::new(), 0);
        let mut gradients = BTreeMap::new();
        for (number, store) in plan.stores.iter().enumerate() {
            let elements = store.ty.shape.elements() as u64;
            let kind = packing.kind_of(store.ty.dtype);
            stores.push((params, kind));
            if let StoreKind::Grad(_) = store.kind {
                gradients.insert(StoreId(number as u32), (end, elements));
                end = past(end, elements)?;
            } else {
                params = past(params, packing.room_of(store.ty))?;
                // Halves are counted in 32 bits as well.
                past(if kind == 0 { 0 } else { params * 2 }, 0)?;
            }
        }
        let widths = plan.fields.iter().map(|field| field.width()).collect();
        let (scratch, outputs) = (end, end);
        Ok(Self {
            space,
            bound,
            words,
            floats,
            runs,
            constants_end,
            fields,
            widths,
            gradients,
            scratch,
            outputs,
            end,
            stores,
            params,
        })
    }

    /// Where scratch rows begin.
    pub(super) fn scratch(&self) -> u32 {
        self.scratch as u32
    }

    /// Makes room for the scratch rows; gives where outputs begin.
    pub(super) fn reserve_outputs(&mut self, scratch: u64) -> Result<u32, GpuError> {
        self.outputs = past(self.scratch, scratch)?;
        Ok(self.outputs as u32)
    }

    pub(super) fn fit_outputs(&mut self, words: u64) -> Result<(), GpuError> {
        self.end = past(self.outputs, words)?;
        past(self.total(), 0)?;
        Ok(())
    }

    /// How much room there is.
    pub(crate) const fn space(&self) -> Space {
        self.space
    }

    /// Room for so many words of a plan's tables.
    pub(super) const fn tables(&self, words: u64) -> u64 {
        self.space.of(words)
    }

    /// Whether rows and bound numbers of another layout of the same kind, with the parameters, are where they are in it.
    pub(crate) fn goes_on_from(&self, before: &Self) -> bool {
        self.space == before.space
            && (self.words, self.floats) == (before.words, before.floats)
            && self.fields.starts_with(&before.fields)
            && self.widths.starts_with(&before.widths)
            && self.stores == before.stores
    }

    /// Where bound words begin.
    #[must_use]
    pub fn bound_words(&self) -> u32 {
        self.words as u32
    }

    /// Where bound floats begin.
    #[must_use]
    pub fn bound_floats(&self) -> u32 {
        self.floats as u32
    }

    /// How many words are bound, and how many floats.
    pub(crate) const fn bound(&self) -> [u64; 2] {
        self.bound
    }

    /// Where a field begins, and the words of a row.
    #[must_use]
    pub fn field(&self, field: FieldId) -> (u32, u32) {
        (self.fields[field.index()] as u32, self.widths[field.index()])
    }

    /// Where an operand's words are, lane by lane; of lists, nothing.
    pub(super) fn operand(&self, operand: Operand) -> Spot {
        match operand {
            Operand::Rows { field, start, stride } => {
                let (base, width) = self.field(field);
                // A stride of all ones can only be that of a single row (rule P20), and means tables here.
                [base, start, if stride == TABLED { 0 } else { stride }, width]
            }
            Operand::Table { field, at } => {
                let (base, width) = self.field(field);
                [base, at, TABLED, width]
            }
            Operand::Words { start, stride } => {
                [self.bound_words(), start, if stride == TABLED { 0 } else { stride }, 1]
            }
            Operand::WordTable { at } => [self.bound_words(), at, TABLED, 1],
            Operand::Floats { start, stride } => {
                [self.bound_floats(), start, if stride == TABLED { 0 } else { stride }, 1]
            }
            Operand::FloatTable { at } => [self.bound_floats(), at, TABLED, 1],
            Operand::Segments { .. } => [0; 4],
        }
    }

    /// Where a store begins among the parameters.
    pub(super) fn store(&self, store: StoreId) -> Stored {
        let (word, kind) = self.stores[store.index()];
        Stored { at: (if kind == 0 { word } else { word * 2 }) as u32, kind }
    }

    /// Where a gradient is, and how many elements it has; nothing for other stores.
    #[must_use]
    pub fn gradient(&self, store: StoreId) -> Option<(u64, u64)> {
        self.gradients.get(&store).copied()
    }

    /// All gradients together: where they begin and how many words they are.
    #[must_use]
    pub fn gradients(&self) -> (u64, u64) {
        let start = self.gradients.values().map(|run| run.0).min().unwrap_or(self.scratch);
        (start, self.scratch - start)
    }

    /// Where the run of words is that a register wants.
    pub(super) fn run(&self, want: Want) -> u32 {
        self.runs.get(&want).map_or(0, |run| run.0 as u32)
    }

    /// Words of the arena.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.scratch.saturating_add(self.space.of(self.end - self.scratch))
    }

    /// Words of the parameters.
    #[must_use]
    pub fn params(&self) -> u64 {
        self.params
    }

    /// The stores that kernels take whole, where in the arena they go, and how many elements they have.
    pub(super) fn taken_whole(&self) -> Vec<(StoreId, u32, u64)> {
        let run = |(want, &(to, elements)): (&Want, &(u64, u64))| match want {
            Want::Const(_) => None,
            Want::Store(store) => Some((*store, to as u32, elements)),
        };
        self.runs.iter().filter_map(run).collect()
    }

    pub(super) fn constants(&self) -> Vec<u32> {
        let mut words = vec![0; (self.constants_end - HEAD) as usize];
        for (want, &(at, len)) in &self.runs {
            if let Want::Const(bits) = want {
                words[(at - HEAD) as usize..][..len as usize].fill(*bits);
            }
        }
        words
    }
}

/// Per distinct constant and per store taken whole how many words are wanted: as many as the widest
/// register has. Constants come first, as `Want` orders them.
fn wanted(plan: &Plan) -> BTreeMap<Want, (u64, u64)> {
    let mut runs: BTreeMap<Want, (u64, u64)> = BTreeMap::new();
    for kernel in &plan.kernels {
        for reg in &kernel.regs {
            if let RegKind::Const(bits) = reg.kind {
                let run = runs.entry(Want::Const(bits)).or_default();
                run.1 = run.1.max(reg.ty.shape.elements() as u64);
            }
        }
    }
    let whole = |kernel: &Kernel| kernel.regs.iter().any(|reg| matches!(reg.kind, RegKind::Param(_)));
    let takes: Vec<bool> = plan.kernels.iter().map(|kernel| whole(kernel)).collect();
    for step in plan.steps.iter().filter(|step| takes[step.kernel.index()]) {
        for reg in &plan.kernel(step).regs {
            if let RegKind::Param(param) = reg.kind {
                let store = plan.stores(step)[param as usize];
                let elements = plan.stores[store.index()].ty.shape.elements() as u64;
                runs.insert(Want::Store(store), (0, elements));
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_begin_and_end_at_whole_vectors() {
        let text = "autobatch plan 2 module \"m\" structure 0x00000000000000000000000000000001 mode infer
             store @a param f32[5] store @b param f16[3,3] store @c param bf16[2] store @d param f32[4]
             bind words 0 floats 0
             certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes";
        let plan = Plan::from_text(text).expect("parses");
        let starts = |packing| {
            let layout = Layout::new(&plan, packing, Space::Exact).expect("fits");
            let at: Vec<u32> = (0..4).map(|store| layout.store(StoreId(store)).at).collect();
            (at, layout.params())
        };
        // Halves are counted by themselves: two a word.
        assert_eq!(starts(Packing::Halves), (vec![0, 16, 32, 20], 24));
        assert_eq!(starts(Packing::Words), (vec![0, 8, 20, 24], 28));
    }
}
