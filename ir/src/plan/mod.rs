//! The Plan language: the output of a planner and the input of a runtime.
//!
//! A plan is plain data. It names memory (stores, slabs, bound pools, outputs), holds kernels, each a short program over
//! *one row*, and lists steps: execute this kernel on a number of rows, with operands from here and results to there. Waves
//! group steps. No step of a wave depends on another of the same wave, so a runtime needs barriers between waves only.
//!
//! The plan fixes which values are computed, in which order of roundings, and where they lie. Tile shapes, weight packing,
//! threads and pipelines belong to the runtimes. A plan contains no binding.

mod access;
mod address;
pub mod blocks;
mod certificate;
mod footprint;
mod hex;
pub mod inputs;
pub mod kernel;
mod limits;
pub(crate) mod normal;
mod output;
mod pause;
pub mod reductions;
mod roles;
pub mod row_ops;
#[cfg(test)]
mod tests;
pub mod text;
pub mod updates;
pub mod verify;

use crate::getters::getters;
use crate::id::{NodeId, ParamId};
use crate::module::ParamKind;
use crate::types::{DType, Type};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

pub use address::{Address, Group, GroupRange, GroupRule, List, Origin, StepOperand};
pub use certificate::Certificate;
pub use footprint::{Footprint, Limit, Limits, OverLimit};
pub use inputs::{BindError, Inputs, Stores};
pub use kernel::{Code, Instr, Kernel, ListSource, ProdInit, ProductPart, Reg, RegKind, Source, Stage, View};
pub use limits::{ComputedIndex, LimitOf, WordLimit, WordLimits, WordOrigins};
pub use normal::Spare;
pub use output::{OutputKey, PlanOutput};
pub use pause::Pause;
pub use reductions::{Reduction, ReductionPart, ReductionSum};
pub use roles::{PortRole, ResultRole, Roles};
pub use updates::{Update, UpdatePlan, UpdateSource};
pub use verify::{Examined, Verified, VerifyErrors};

/// The version of the plan format: text, binary and JSON.
pub const VERSION: u32 = 5;

/// The remedy for a plan file of another version.
pub const OTHER_VERSION_HELP: &str = "plan the graph again with this version of autobatch";

crate::ids! {
    /// A kernel of the plan: `k3`.
    pub KernelId, "k";
    /// A slab: `s0`.
    pub SlabId, "s";
    /// A field of a slab, numbered over all slabs.
    pub FieldId, "field";
    /// A store: parameters first, in the module's order.
    pub StoreId, "store";
    /// A step, by its place in the plan: `f12`.
    pub StepId, "f";
    /// A register of a kernel: `%4`. The first ones are its ports.
    pub RegId, "%";
    /// A parameter port of a kernel: `@1`.
    pub ParamPort, "@";
}

/// The content of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// A parameter of the module.
    Param(ParamKind),
    /// The gradient of the parameter in another store. The plan's reductions make it, the executor owns it, and no step reads
    /// it.
    Grad(StoreId),
    /// A state of an optimiser for the parameter in another store.
    State(StoreId),
}

/// An array that exists beyond the execution of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// Its name; text spells it `@name`.
    pub name: String,
    /// Storage type and shape.
    pub ty: Type,
    /// Its contents.
    pub kind: StoreKind,
}

/// The use of a slab's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlabKind {
    /// Rows that any step may name.
    Value,
    /// Rows in step order that only the reverse of a step reads.
    Node,
    /// Gradients: row `r` mirrors row `r` of a value slab.
    Mirror(SlabId),
}

/// A matrix of rows per field; the fields of a slab share row numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slab {
    /// The purpose of its rows.
    pub kind: SlabKind,
    /// How many rows it has.
    pub rows: u32,
    /// Its fields, as a range of field ids.
    pub fields: Range<u32>,
}

/// One of the values of each row of a slab. In memory a field is a matrix of its own, so neighbouring rows are neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The slab it belongs to.
    pub slab: SlabId,
    /// Its name in text.
    pub name: String,
    /// The type of one value.
    pub ty: Type,
}

impl Field {
    /// Words of one row.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.ty.shape.elements() as u32
    }
}

/// Where a result of a kernel goes, lane by lane. Rows of a step's results are distinct.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Row `start + lane`.
    Rows { field: FieldId, start: u32 },
    /// Row `tables[at + lane]`.
    Table { field: FieldId, at: u32 },
    /// For a register of edges: value `i` of a lane goes to row `start + tables[offsets + lane] + i`. The offsets are those of
    /// the list.
    Edges { field: FieldId, start: u32, offsets: u32 },
}

impl Place {
    /// The field written.
    #[must_use]
    pub const fn field(self) -> FieldId {
        match self {
            Self::Rows { field, .. } | Self::Table { field, .. } | Self::Edges { field, .. } => field,
        }
    }
}

/// The execution of a kernel on a number of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The kernel.
    pub kernel: KernelId,
    /// The number of rows, one per lane.
    pub rows: u32,
    /// The operands of the kernel's ports, as a range of the plan's operands.
    pub operands: Range<u32>,
    /// The places of the kernel's results, as a range of the plan's places.
    pub places: Range<u32>,
    /// The stores of the kernel's parameter ports, as a range of the plan's store arguments.
    pub stores: Range<u32>,
    /// The node behind each lane, as a range of the plan's lanes.
    pub lanes: Range<u32>,
}

/// The promise of a plan about its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only outputs stay. A row is reused after its last reader.
    #[default]
    Infer,
    /// Every row stays until the reverse reads it.
    Train,
    /// Rows keep their numbers while the graph grows.
    Grow,
}

impl Mode {
    /// Every mode, in declaration order.
    pub const ALL: [Self; 3] = [Self::Infer, Self::Train, Self::Grow];

    /// The word for it in text.
    #[must_use]
    pub const fn spelling(self) -> &'static str {
        match self {
            Self::Infer => "infer",
            Self::Train => "train",
            Self::Grow => "grow",
        }
    }
}

/// Memory, kernels and steps. The default is an empty plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The module's name.
    pub module: String,
    /// The structure of the planned graph; see `GraphData::structure`.
    #[serde(with = "hex")]
    pub structure: u128,
    /// The promise of the plan about its rows.
    pub mode: Mode,
    /// Stores. The module's parameters come first, in order.
    pub stores: Vec<Store>,
    /// How many words must be bound.
    pub words: u32,
    /// How many floats must be bound. [`Plan::all_floats`] adds the floats that arrive at a pause.
    pub floats: u32,
    /// Memory of the plan.
    pub slabs: Vec<Slab>,
    /// The fields of all slabs.
    pub fields: Vec<Field>,
    /// Programs over one row.
    pub kernels: Vec<Arc<Kernel>>,
    /// The steps, in an order in which they may be executed one after another.
    pub steps: Vec<Step>,
    /// Where waves end, ascending: wave `w` is the steps `waves[w - 1]..waves[w]`.
    pub waves: Vec<u32>,
    /// The operands of all steps.
    pub operands: Vec<StepOperand>,
    /// The groups of the lists of all steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The results of all steps.
    pub places: Vec<Place>,
    /// The store arguments of all steps.
    pub store_args: Vec<StoreId>,
    /// The nodes of all steps, lane by lane.
    pub lanes: Vec<NodeId>,
    /// Row numbers, segment offsets, places of bindings.
    pub tables: Vec<u32>,
    /// The first node of each shard behind the first one, ascending. The sums of the reductions are made for each shard alone and
    /// then added; see [`reductions`]. Without nodes there is one shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<NodeId>,
    /// Sums over all rows, executed in order after the last step: the gradients of parameters.
    #[serde(default)]
    pub reductions: Vec<Reduction>,
    /// Where outputs are found.
    pub outputs: Vec<PlanOutput>,
    /// Where execution pauses for the gradients of outputs, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The quality of the plan, in numbers.
    pub certificate: Certificate,
}

impl Plan {
    getters! {
        /// The operands of a step, one per port of its kernel.
        operands(self, step: &Step) -> &[StepOperand] = &self.operands[step.operands.start as usize..step.operands.end as usize];
        /// The places of a step's results.
        places(self, step: &Step) -> &[Place] = &self.places[step.places.start as usize..step.places.end as usize];
        /// The stores of a step's parameter ports.
        stores(self, step: &Step) -> &[StoreId] = &self.store_args[step.stores.start as usize..step.stores.end as usize];
        /// The node behind each lane of a step.
        lanes(self, step: &Step) -> &[NodeId] = &self.lanes[step.lanes.start as usize..step.lanes.end as usize];
        /// The kernel of a step.
        kernel(self, step: &Step) -> &Kernel = &self.kernels[step.kernel.index()];
        /// A field.
        field(self, id: FieldId) -> &Field = &self.fields[id.index()];
        /// The number of the output with a key.
        output(self, key: &OutputKey) -> Option<usize> = self.outputs.iter().position(|output| output.key == *key);
        /// How many stores the caller gives: all but the gradients, which come last.
        given_stores(self) -> usize = given_stores(&self.stores);
    }

    /// The number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.shards.len() + 1
    }

    /// The steps of each wave.
    pub fn waves(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.waves_from(0)
    }

    /// The steps of each wave from one on.
    pub fn waves_from(&self, first: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let before = first.checked_sub(1).and_then(|last| self.waves.get(last)).copied();
        let ends = self.waves.get(first..).unwrap_or(&[]);
        let starts = std::iter::once(before.unwrap_or(0)).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| start as usize..end as usize)
    }

    /// The store that holds the gradient of a parameter, if the plan makes it.
    #[must_use]
    pub fn gradient_of(&self, param: ParamId) -> Option<StoreId> {
        let wanted = StoreKind::Grad(Self::store_of(param));
        let at = self.stores.iter().position(|store| store.kind == wanted)?;
        Some(StoreId(at as u32))
    }

    /// Whether some row adds to the gradient of a parameter. The gradient of a parameter that no loss depends on is zeros.
    #[must_use]
    pub fn reaches(&self, param: ParamId) -> bool {
        let gradient = self.gradient_of(param);
        gradient.is_some_and(|store| self.reductions.iter().any(|sum| sum.store == store))
    }

    /// The parameters that some row adds a gradient to, ascending.
    #[must_use]
    pub fn reached(&self) -> Vec<ParamId> {
        let mut summed = vec![false; self.stores.len()];
        self.reductions.iter().for_each(|sum| summed[sum.store.index()] = true);
        let param = |(store, summed): (&Store, bool)| match store.kind {
            StoreKind::Grad(of) if summed => Some(ParamId::new(of.index())),
            _ => None,
        };
        let mut reached: Vec<ParamId> = self.stores.iter().zip(summed).filter_map(param).collect();
        reached.sort_unstable();
        reached.dedup();
        reached
    }

    /// The store of a parameter.
    #[must_use]
    pub const fn store_of(param: ParamId) -> StoreId {
        StoreId(param.index() as u32)
    }
}

/// How many stores come before the gradients.
fn given_stores(stores: &[Store]) -> usize {
    let gradient = |store: &Store| matches!(store.kind, StoreKind::Grad(_));
    stores.iter().position(gradient).unwrap_or(stores.len())
}

/// The element types that slabs and registers hold: one word each.
#[must_use]
pub const fn is_word_type(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::I32 | DType::U32 | DType::Bool)
}
