//! The verifier of plans: the guarantees that executors rely on.
//!
//! Only [`Plan::verify`] and [`UpdatePlan::verify`] make a [`Verified`] plan, and [`Verified::grow`] makes a longer one by the
//! same rules. Executors accept nothing else. A verified plan never reads or writes outside its memory, never reads a row that
//! no step wrote, and allows the steps of a wave in any order. The oracle proves that a plan computes what a *graph* says.
//!
//! Memory:
//! * **P1** The operands, places, store arguments and lanes of the steps tile their pools in the
//!   order of the steps; the fields of the slabs tile the fields.
//! * **P2** All named kernels, slabs, fields and stores exist.
//! * **P3** Waves ascend, none is empty, and the last ends with the last step.
//! * **P4** Fields hold words and no lists; those of a slab have different names. Stores are arrays of floats with different
//!   names that text can spell, parameters first; tables have two dimensions; gradients and states belong to a parameter and have
//!   its shape; gradients come last. A mirror has the fields of its slab.
//! * **P5** The bytes of a row and of all slabs fit in 64 bits.
//! * **P6** A step writes every row of a value slab: a plan allocates no unused memory.
//!
//! Kernels:
//! * **P7** Ports are the first registers; every register has a type that its kind allows.
//! * **P8** A view lies inside its register, which is no list.
//! * **P9** Stages write temporaries only, each element once, before a later stage or a result reads it.
//! * **P10** The parts of a product lie inside their weights; widths and rows agree.
//! * **P11** Elementwise instructions read earlier locals, views of the width of the stage, single elements or constants, of
//!   the element types of their code.
//! * **P12** A row stage executes an op that no other template executes, with the types that
//!   [`infer`](crate::graph::infer::infer) demands.
//! * **P13** So does a fold; its lists are list ports or views as wide as one element.
//! * **P14** A lookup takes one word and gives a row of a matrix.
//! * **P15** A source has no stages, and its steps read bindings only.
//!
//! Steps:
//! * **P16** A step has as many operands, places and stores as its kernel has ports, results and
//!   parameter ports, and as many lanes as rows, at least one.
//! * **P17** An operand has the type of its port: lists are segments or groups, floats are bound as floats,
//!   other words as words. (The field of a list without items is ignored.)
//! * **P18** A place has the type of its result.
//! * **P19** A store has the type of its parameter port, and is no gradient.
//! * **P20** Rows lie inside their slabs, and table ranges inside the tables.
//! * **P21** Segment offsets start at 0 and ascend. Groups follow each other over all lanes, each has a lane, and a prefix or
//!   suffix has at most one lane more than numbers.
//! * **P22** Lists that are folded together are equally long, lane by lane.
//! * **P23** Bindings lie inside their pools. Steps after a pause may also read the floats that arrive there.
//!
//! Order:
//! * **P24** An earlier wave writes every row that is read, and some wave writes every output.
//! * **P25** No two results of a wave are one row.
//! * **P26** No wave reads a row that it writes.
//! * **P27** The numbers of the certificate are true. Its bound needs the graph and is left to the oracle.
//!
//! Reductions:
//! * **P28** A reduction adds to a gradient store, inside it, and its rows have the widths of its block: `x` and `dy` are rows,
//!   the index of a table's row is one word. A part has no more lanes than all steps, and is cut into the shards of the plan,
//!   which begin at ascending nodes and are no more than all lanes.
//! * **P29** The rows of a reduction lie inside their slabs, and a step writes them.
//! * **P30** The gradient of a fold reads the operands of the fold and gives edges of their types. A register of edges is
//!   written once and is one result, and its place has the offsets of the list.
//!
//! Updates:
//! * **P31** An update plan has an update.
//! * **P32** The kernel of an update takes single floats, is made of lines one element wide and gives
//!   single floats: as many as the update has sources and targets, at least one.
//! * **P33** All stores of an update belong to one parameter, no gradient is a target, no store twice.
//!   Scalars are not made of stores, sums of squares of at least one.
//! * **P34** Scalars are made before they are read, and bound floats lie inside their pool.
//! * **P35** Only tables whose gradient the update reads have sparse rows.
//!
//! Reverse:
//! * **P36** A kernel that declares roles declares one for each port and result. The first step whose kernel declares roles
//!   begins the reverse: no step before it executes a node again, and the kernels of all steps after it declare roles.
//!
//! Pause:
//! * **P37** Only a plan in mode `train` pauses, after some number of its waves. The listed outputs exist, are float values,
//!   no gradients, and are listed once. The floats that arrive can be numbered. The waves before the pause write every
//!   output that is no gradient.
//!
//! Attention:
//! * **P38** The reverse of an attention reads and writes floats. Lists have keys as wide as the query and values as wide as the
//!   gradient of the result. The row of a reader has a query, a gradient and three numbers.
//!
//! Losses of labels:
//! * **P39** The loss of a label takes floats as wide as the rows of its parameter port, a matrix, and one word. It gives a float,
//!   and for the reverse another one and floats as wide as a row.
//!
//! The order rules are checked after memory, kernels and steps are sound. Work and memory are linear in the plan and in the
//! rows that its steps touch; declared sizes cost nothing.

mod grown;
mod kernels;
mod map;
mod memory;
mod order;
mod pause;
mod reductions;
mod roles;
mod spans;
mod stages;
mod steps;
mod updates;

#[cfg(test)]
mod tests;

pub use grown::Examined;

use super::{Kernel, KernelId, Plan, StepId, UpdatePlan};
use crate::findings::{Findings, brief, rules};
use crate::getters::getters;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

rules! {
    "P", "the plan breaks its rules";
    Ranges = 1, "ranges tile their pools";
    Ids = 2, "what is named exists";
    Waves = 3, "waves ascend and cover the steps";
    Storage = 4, "fields hold words, stores hold floats";
    Sizes = 5, "sizes fit in 64 bits";
    Rows = 6, "a slab has no row that no step writes";
    Registers = 7, "ports come first, registers have types of their kind";
    Views = 8, "views lie inside registers";
    Once = 9, "elements are written once, before they are read";
    Products = 10, "products fit their weights";
    Maps = 11, "elementwise instructions fit their line";
    RowOps = 12, "row stages have the types of their op";
    Folds = 13, "folds have the types of their op";
    Lookups = 14, "lookups take a word and give a row";
    Sources = 15, "sources only bring in numbers";
    Arity = 16, "a step fits its kernel";
    OperandTypes = 17, "operands have the types of ports";
    PlaceTypes = 18, "places have the types of results";
    StoreTypes = 19, "stores have the types of parameter ports";
    Bounds = 20, "rows lie inside slabs, ranges inside tables";
    Segments = 21, "segment offsets ascend from 0";
    Lengths = 22, "lists folded together are equally long";
    Bindings = 23, "bindings lie inside their pools";
    Definition = 24, "rows are written before they are read";
    Distinct = 25, "results of a wave are distinct";
    Hazards = 26, "no wave reads a row that it writes";
    Certificate = 27, "the certificate is true";
    Reductions = 28, "reductions fit their gradient stores";
    ReductionRows = 29, "rows of reductions exist and were written";
    Edges = 30, "gradients of folds fit their lists";
    Updates = 31, "an update plan has an update";
    UpdateKernels = 32, "kernels of updates compute on one element";
    UpdateStores = 33, "an update changes what belongs to one parameter";
    UpdateScalars = 34, "scalars are made before they are read";
    UpdateRows = 35, "sparse rows are those of a table's gradient";
    Roles = 36, "kernels of the reverse declare roles";
    Pause = 37, "a pause has the outputs whose gradients arrive";
    Attention = 38, "the reverse of an attention fits its lists";
    LabelLosses = 39, "the loss of a label fits its rows";
}

/// The broken rules of a plan.
pub type VerifyErrors = Findings<Rule>;

/// A value whose rules hold. It cannot change, only be taken apart.
#[derive(Clone, Debug)]
pub struct Verified<T> {
    thing: T,
    identity: u64,
    /// The identity before it grew, if it grew.
    before: Option<u64>,
}

/// Equality ignores identities.
impl<T: PartialEq> PartialEq for Verified<T> {
    fn eq(&self, other: &Self) -> bool {
        self.thing == other.thing
    }
}

impl<T: Eq> Eq for Verified<T> {}

impl<T> Verified<T> {
    fn new(thing: T) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { thing, identity: NEXT.fetch_add(1, Ordering::Relaxed), before: None }
    }

    /// The value itself, which may change and be verified again.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.thing
    }

    getters! {
        /// A number that only clones of this value share in this process: a key for caches.
        identity(self) -> u64 = self.identity;
        /// Whether it [grew](Verified::<Plan>::grow) in one step from the plan with this identity, whose steps it begins with.
        grew_from(self, identity: u64) -> bool = self.before == Some(identity);
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.thing
    }
}

impl Plan {
    /// Checks every rule.
    ///
    /// # Errors
    /// All broken rules, up to [`MAX_FINDINGS`](crate::findings::MAX_FINDINGS).
    pub fn verify(self) -> Result<Verified<Self>, VerifyErrors> {
        examine(&self, Since::default(), &mut order::Order::default()).map(|()| Verified::new(self))
    }
}

/// The part of a plan that was verified before.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    kernels: usize,
    steps: usize,
    waves: usize,
}

/// Checks every rule of the new part, with the state of the rest.
fn examine(plan: &Plan, since: Since, order: &mut order::Order) -> Result<(), VerifyErrors> {
    let mut findings = Findings::default();
    memory::verify(plan, since, &mut findings);
    if findings.is_clean() {
        kernels::verify_all(&plan.kernels, since.kernels, &mut findings);
    }
    if findings.is_clean() {
        pause::verify(plan, &mut findings);
    }
    if findings.is_clean() {
        steps::verify(plan, since.steps, &mut findings);
    }
    if findings.is_clean() {
        order.verify(plan, since, &mut findings);
    }
    findings.verdict(())
}

impl UpdatePlan {
    /// Checks every rule that concerns stores, kernels and updates.
    ///
    /// # Errors
    /// All broken rules, up to [`MAX_FINDINGS`](crate::findings::MAX_FINDINGS).
    pub fn verify(self) -> Result<Verified<Self>, VerifyErrors> {
        let mut findings = Findings::default();
        memory::stores(&self.stores, &mut findings);
        kernels::verify_all(&self.kernels, 0, &mut findings);
        if findings.is_clean() {
            updates::verify(&self, &mut findings);
        }
        findings.verdict(()).map(|()| Verified::new(self))
    }
}

/// Where a kernel breaks a rule.
struct AtKernel<'a> {
    id: KernelId,
    kernel: &'a Kernel,
    stage: Option<usize>,
}

impl fmt::Display for AtKernel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} ({})", self.id, brief(&self.kernel.name))?;
        self.stage.map_or(Ok(()), |stage| write!(f, ", stage {stage}"))
    }
}

/// Where a step breaks a rule.
struct AtStep<'a> {
    plan: &'a Plan,
    step: usize,
}

impl fmt::Display for AtStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = StepId(self.step as u32);
        let kernel = self.plan.steps[self.step].kernel;
        match self.plan.kernels.get(kernel.index()) {
            Some(known) => write!(f, "step {id} ({kernel} {})", brief(&known.name)),
            None => write!(f, "step {id}"),
        }
    }
}
