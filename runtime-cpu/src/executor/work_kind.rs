//! The kinds of work of a run, and the time that each takes.

use super::clock::{Clock, Ticks};
use super::program::Task;
use autobatch_ir::graph::Op;
use autobatch_ir::plan::{Kernel, Stage};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A kind of work in the steps of a plan.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WorkKind {
            $($(#[$doc])* $kind,)*
        }

        impl WorkKind {
            /// All kinds, by number.
            pub const ALL: [Self; [$(Self::$kind),*].len()] = [$(Self::$kind),*];

            /// The name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// Finding the rows of operands, and copying those that lie apart.
    Gather = "gathering operands",
    /// Products with weights.
    Product = "products with weights",
    /// Products of two values.
    Multiply = "products of values",
    /// Attention, and its reverse.
    Attention = "attention",
    /// Losses of labels.
    Labels = "losses of labels",
    /// Elementwise instructions.
    Map = "elementwise",
    /// Ops on rows as a whole.
    Row = "row ops",
    /// Folds over lists, and their gradients.
    Fold = "folds of lists",
    /// Rows of tables.
    Lookup = "lookups",
    /// Copying results that no stage writes in place.
    Copy = "copying results",
}

impl WorkKind {
    pub(super) fn of(task: &Task, kernel: &Kernel) -> Self {
        match task {
            Task::Prod { .. } => Self::Product,
            Task::Multiply { .. } => Self::Multiply,
            Task::Map(_) => Self::Map,
            Task::Stage(number) => Self::of_stage(&kernel.stages[*number]),
        }
    }

    /// The kind of a stage.
    #[must_use]
    pub fn of_stage(stage: &Stage) -> Self {
        match stage {
            Stage::Seg { op: Op::Attend { .. } | Op::GraphAttend { .. }, .. }
            | Stage::AttendGrad { .. }
            | Stage::AttendPull { .. } => Self::Attention,
            Stage::Seg { .. } | Stage::SegGrad { .. } | Stage::MeanGrad { .. } => Self::Fold,
            Stage::LabelLoss { .. } => Self::Labels,
            Stage::Lookup { .. } => Self::Lookup,
            Stage::Prod { .. } => Self::Product,
            Stage::Map { .. } => Self::Map,
            Stage::Row { op: Op::Matmul, .. } => Self::Multiply,
            Stage::Row { .. } => Self::Row,
        }
    }
}

/// The ticks of each kind, by number.
pub(super) type KindTicks = [Ticks; WorkKind::ALL.len()];

/// The time of one thread of a counted run by kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    clock: Clock,
    last: Ticks,
    pub(super) spent: KindTicks,
}

impl Stopwatch {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, last: clock.now(), spent: KindTicks::default() }
    }

    /// Begins a lap. The time since the last one counts nowhere.
    pub(super) fn begin(&mut self) {
        self.last = self.clock.now();
    }

    /// Ends a lap, and begins the next one.
    pub(super) fn end(&mut self, kind: WorkKind) {
        let now = self.clock.now();
        self.spent[kind as usize] += now - self.last;
        self.last = now;
    }
}
