//! Ids of the planner's own numberings. The `Display` of an id is its spelling in every report.

pub(crate) use autobatch_ir::id::Id;
use bytemuck::TransparentWrapper;

autobatch_ir::ids! {
    /// A job: a node that needs a step. Jobs have numbers in topological order.
    pub JobId, "job";
    /// A type of jobs. Jobs of one type may share a batch.
    pub TypeIndex, "type";
    /// A job of a part of a scheduling problem, numbered within the part in the order of all jobs.
    pub(crate) LocalJob, "job";
    /// A type of a part of a scheduling problem, numbered within the part in the order of all types.
    pub(crate) LocalType, "type";
    /// A part of a scheduling problem, in topological order.
    pub(crate) ComponentId, "component";
    /// A list of jobs that several jobs name.
    pub(crate) JobListId, "job list";
    /// A row of a slab.
    pub RowId, "row";
    /// A wave: batches that do not read each other.
    pub WaveId, "wave";
    /// An operand port of a signature, numbered over all signatures.
    pub(crate) PortId, "port";
    /// A result of a signature, numbered over all signatures.
    pub(crate) ResultId, "result";
    /// A class of results that share a field.
    pub(crate) ClassId, "class";
    /// A row before the layout moves it, numbered over all slabs, slab after slab.
    pub(crate) ProvisionalRow, "provisional row";
    /// A batch of the order, in execution order.
    pub(crate) BatchId, "batch";
    /// One result or operand of a batch, over all its lanes, numbered over all batches.
    pub(crate) SlotId, "slot";
    /// A lane of a batch, as the layout problem numbers them.
    pub(crate) Lane, "lane";
    /// A list of rows that operands read.
    pub(crate) ListId, "list";
    /// A register that forward steps save for the reverse, numbered within the derivative of a signature.
    pub(crate) SaveId, "save";
    /// A result of the reverse that only reductions and pulls take, numbered within the derivative of a signature.
    pub(crate) PartId, "part";
    /// A contribution to a gradient, numbered within the derivative of a signature.
    pub(crate) ContributionId, "contribution";
    /// A step of the reverse over the lanes of a forward step.
    pub(crate) ReverseId, "reverse step";
    /// Two lists whose items attention reads in pairs.
    pub(crate) PairId, "pair";
    /// A block of rows that a step of a signature writes, numbered within the signature.
    pub(crate) BlockId, "block";
}

/// A type of jobs, or an alone job as a type of its own. The numbers of alone jobs follow those of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TransparentWrapper)]
#[repr(transparent)]
pub(crate) struct KindId(pub(crate) TypeIndex);

impl KindId {
    /// Stands for all kinds where they do not matter.
    pub(crate) const ANY: Self = Self(TypeIndex(0));
}

impl Id for KindId {
    #[inline]
    fn from_index(index: usize) -> Self {
        Self(TypeIndex::from_index(index))
    }

    #[inline]
    fn to_index(self) -> usize {
        self.0.index()
    }
}
