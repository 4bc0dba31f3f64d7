//! Addresses in the arena. It holds, in this order: the noise generator, constants, parameters that kernels read whole,
//! bound inputs, the fields of all slabs, checked indices, gradients, scratch rows, outputs. Addresses before the bound inputs do not
//! depend on sizes of the plan, so the plans of a model share these words.

use super::HEAD;
use super::checks::ComputedIndices;
use super::record::{GATHERED, RowAddress};
use crate::error::GpuError;
use autobatch_ir::plan::{FieldId, Kernel, Origin, Plan, RegKind, StepOperand, StoreId, StoreKind};
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;

/// Words of the vectors in which parameters are read. Bindings are split at multiples of it.
pub(crate) const VECTOR: u64 = 4;

/// The contents of a run of words that registers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordSource {
    /// Elements with these bits.
    Const(u32),
    /// The elements of a store.
    Store(StoreId),
}

/// The address of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The number of its first element, in elements of its own size; a multiple of four.
    pub at: u32,
    /// The storage of an element: 0 a word, 1 `f16`, 2 `bf16`.
    pub kind: u32,
}

/// The storage of parameters on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Two 16-bit elements per word, for parameters that are only read.
    #[default]
    Halves,
    /// One element per word, so that threads which update neighbouring elements write different words.
    Words,
}

impl Packing {
    /// The storage of an element type; see [`Stored::kind`].
    const fn kind_of(self, dtype: DType) -> u32 {
        match (self, dtype) {
            (Self::Halves, DType::F16) => 1,
            (Self::Halves, DType::BF16) => 2,
            (Self::Words, _) | (_, DType::F32 | DType::I32 | DType::U32 | DType::Bool) => 0,
        }
    }

    pub(crate) fn words_of(self, ty: Type) -> u64 {
        let elements = ty.shape.elements() as u64;
        if self.kind_of(ty.dtype) == 0 { elements } else { elements.div_ceil(2) }
    }

    /// The words from one parameter to the next: whole vectors, so that vector reads stay within the parameter.
    pub(crate) fn padded_words_of(self, ty: Type) -> u64 {
        self.words_of(ty).next_multiple_of(VECTOR)
    }
}

/// The smallest reservation of a growing plan, in rows or words.
const MIN_CAPACITY: u64 = 16;

/// The number of rows and words that a layout reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    /// The kernels of the plan.
    Exact,
    /// Up to twice as many. A plan that grows keeps its addresses until they are used up.
    Growable,
}

impl Capacity {
    /// The reservation for `count` rows or words.
    pub(super) const fn of(self, count: u64) -> u64 {
        match self {
            Self::Exact => count,
            Self::Growable if count <= MIN_CAPACITY => MIN_CAPACITY,
            Self::Growable => count.next_power_of_two(),
        }
    }
}

/// The addresses of everything in the arena.
#[derive(Debug)]
pub struct BufferLayout {
    capacity: Capacity,
    /// The number of bound words, and of bound floats.
    bound: [u64; 2],
    words: u64,
    floats: u64,
    runs: BTreeMap<WordSource, (u64, u64)>,
    constants_end: u64,
    fields: Vec<u64>,
    widths: Vec<u32>,
    checked: u64,
    gradients: BTreeMap<StoreId, (u64, u64)>,
    scratch: u64,
    outputs: u64,
    end: u64,
    stores: Vec<(u64, u32)>,
    params: u64,
}

/// The end of a run of words, if 32 bits can address it.
fn past(at: u64, words: u64) -> Result<u64, GpuError> {
    let end = at.saturating_add(words);
    match end <= u64::from(u32::MAX) {
        true => Ok(end),
        false => Err(GpuError::beyond_addresses("the rows of the plan", end)),
    }
}

impl BufferLayout {
    pub(crate) fn new(plan: &Plan, packing: Packing, capacity: Capacity) -> Result<Self, GpuError> {
        let mut runs = word_runs(plan);
        let mut end = HEAD;
        for (at, len) in runs.values_mut() {
            *at = end;
            end = past(end, *len)?;
        }
        let constants = |(source, run): (&WordSource, &(u64, u64))| match source {
            WordSource::Const(_) => Some(run.0 + run.1),
            WordSource::Store(_) => None,
        };
        let constants_end = runs.iter().filter_map(constants).max().unwrap_or(HEAD);
        let bound = [u64::from(plan.words), plan.all_floats()];
        let words = past(HEAD, capacity.of(end - HEAD))?;
        let floats = past(words, capacity.of(bound[0]))?;
        end = past(floats, capacity.of(bound[1]))?;
        let mut fields = Vec::with_capacity(plan.fields.len());
        for field in &plan.fields {
            fields.push(end);
            let rows = capacity.of(plan.slabs[field.slab.index()].rows.into());
            end = past(end, rows.saturating_mul(field.ty.shape.elements() as u64))?;
        }
        let checked = end;
        end = past(end, ComputedIndices::of(plan).words(plan))?;
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
                params = past(params, packing.padded_words_of(store.ty))?;
                // Addresses of 16-bit elements must fit 32 bits as well.
                past(if kind == 0 { 0 } else { params * 2 }, 0)?;
            }
        }
        let widths = plan.fields.iter().map(|field| field.width()).collect();
        let (scratch, outputs) = (end, end);
        Ok(Self {
            capacity,
            bound,
            words,
            floats,
            runs,
            constants_end,
            fields,
            widths,
            checked,
            gradients,
            scratch,
            outputs,
            end,
            stores,
            params,
        })
    }

    /// The first of the computed indices that the host checks.
    pub(super) fn checked(&self) -> u32 {
        self.checked as u32
    }

    /// The first word of the scratch rows.
    pub(super) fn scratch(&self) -> u32 {
        self.scratch as u32
    }

    /// Places the outputs behind `scratch` words of scratch rows. Returns their first word.
    pub(super) fn reserve_outputs(&mut self, scratch: u64) -> Result<u32, GpuError> {
        self.outputs = past(self.scratch, scratch)?;
        Ok(self.outputs as u32)
    }

    /// Ends the arena behind `words` words of outputs.
    pub(super) fn fit_outputs(&mut self, words: u64) -> Result<(), GpuError> {
        self.end = past(self.outputs, words)?;
        past(self.total(), 0)?;
        Ok(())
    }

    /// Its reservation of rows and words.
    pub(crate) const fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The reservation for `words` words of tables.
    pub(super) const fn tables(&self, words: u64) -> u64 {
        self.capacity.of(words)
    }

    /// Returns whether it keeps the addresses of an earlier layout: inputs, fields and parameters.
    pub(crate) fn extends(&self, before: &Self) -> bool {
        self.capacity == before.capacity
            && (self.words, self.floats) == (before.words, before.floats)
            && self.fields.starts_with(&before.fields)
            && self.widths.starts_with(&before.widths)
            && self.stores == before.stores
    }

    /// The address of the bound words.
    #[must_use]
    pub fn bound_words(&self) -> u32 {
        self.words as u32
    }

    /// The address of the bound floats.
    #[must_use]
    pub fn bound_floats(&self) -> u32 {
        self.floats as u32
    }

    /// The number of bound words, and of bound floats.
    pub(crate) const fn bound(&self) -> [u64; 2] {
        self.bound
    }

    /// The address of a field, and the words of a row.
    #[must_use]
    pub fn field(&self, field: FieldId) -> (u32, u32) {
        (self.fields[field.index()] as u32, self.widths[field.index()])
    }

    /// The address of an operand. Lists have none.
    pub(super) fn operand(&self, operand: StepOperand) -> RowAddress {
        let (base, width) = match operand.origin {
            Origin::Field(field) => self.field(field),
            Origin::Words => (self.bound_words(), 1),
            Origin::Floats => (self.bound_floats(), 1),
        };
        match (operand.address.steps(), operand.address.table()) {
            // Such a stride belongs to a single row (rule P20), and would mean a table here.
            (Some((start, GATHERED)), _) => [base, start, 0, width],
            (Some((start, stride)), _) => [base, start, stride, width],
            (_, Some(at)) => [base, at, GATHERED, width],
            _ => [0; 4],
        }
    }

    /// The address of a store among the parameters.
    pub(super) fn store(&self, store: StoreId) -> Stored {
        let (word, kind) = self.stores[store.index()];
        Stored { at: (if kind == 0 { word } else { word * 2 }) as u32, kind }
    }

    /// The range of a gradient, or `None` for other stores.
    #[must_use]
    pub fn gradient(&self, store: StoreId) -> Option<(u64, u64)> {
        self.gradients.get(&store).copied()
    }

    /// The range of all gradients.
    #[must_use]
    pub fn gradients(&self) -> (u64, u64) {
        let start = self.gradients.values().map(|run| run.0).min().unwrap_or(self.scratch);
        (start, self.scratch - start)
    }

    /// The address of a run of words.
    pub(super) fn run(&self, source: WordSource) -> u32 {
        self.runs.get(&source).map_or(0, |run| run.0 as u32)
    }

    /// Words of the arena.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.scratch.saturating_add(self.capacity.of(self.end - self.scratch))
    }

    /// Words of the parameters.
    #[must_use]
    pub fn params(&self) -> u64 {
        self.params
    }

    /// The stores that kernels read whole, with their addresses in the arena and their elements.
    pub(super) fn whole_parameters(&self) -> Vec<(StoreId, u32, u64)> {
        let run = |(source, &(to, elements)): (&WordSource, &(u64, u64))| match source {
            WordSource::Const(_) => None,
            WordSource::Store(store) => Some((*store, to as u32, elements)),
        };
        self.runs.iter().filter_map(run).collect()
    }

    pub(super) fn constants(&self) -> Vec<u32> {
        let mut words = vec![0; (self.constants_end - HEAD) as usize];
        for (source, &(at, len)) in &self.runs {
            if let WordSource::Const(bits) = source {
                words[(at - HEAD) as usize..][..len as usize].fill(*bits);
            }
        }
        words
    }
}

/// The runs of words that registers read: each distinct constant as wide as its widest register, then each store that a
/// kernel reads whole. `WordSource` orders constants first.
fn word_runs(plan: &Plan) -> BTreeMap<WordSource, (u64, u64)> {
    let mut runs: BTreeMap<WordSource, (u64, u64)> = BTreeMap::new();
    for kernel in &plan.kernels {
        for reg in &kernel.regs {
            if let RegKind::Const(bits) = reg.kind {
                let run = runs.entry(WordSource::Const(bits)).or_default();
                run.1 = run.1.max(reg.ty.shape.elements() as u64);
            }
        }
    }
    let whole = |kernel: &Kernel| kernel.regs.iter().any(|reg| matches!(reg.kind, RegKind::Param(_)));
    let takes: Vec<bool> = plan.kernels.iter().map(|kernel| whole(kernel)).collect();
    for step in plan.steps.iter().filter(|step| takes[step.kernel.index()]) {
        for reg in &plan.kernel(step).regs {
            if let RegKind::Param(param) = reg.kind {
                let store = plan.stores(step)[param.index()];
                let elements = plan.stores[store.index()].ty.shape.elements() as u64;
                runs.insert(WordSource::Store(store), (0, elements));
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests;
