//! WGSL templates of the GPU runtime, one a stage, and how a module is put together from them.
//!
//! A template has marked lines, `//~ name`, which are holes: `memory` (bindings and the functions that
//! reach them), `numbers` (how those of a dispatch arrive), `thread` (threads that are elements), `body` (what a stage computes), `shape` (the
//! constants of a tile), `epilogue` (a function of what products computed), `thread_of_group` and
//! `number_of_thread` (what a module asks about a thread of a row). Functions of the library
//! (elementwise functions, products, folds of rows, noise, lists) are put in where a template calls them,
//! and only then: what a driver compiles is what a dispatch needs.
//!
//! The text is plain WGSL without extensions, but for subgroups where [`Joins`] and immediates where [`Numbers`]
//! asks for them. Every template keeps to 8 storage buffers, 256 threads a
//! group and 16 KiB of group memory, which all devices have.

mod library;

pub use library::Library;

/// A stage template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Template {
    /// Its name: that of its file.
    pub name: &'static str,
    /// Its text, with holes.
    pub text: &'static str,
    /// What its modules begin with.
    pub access: Access,
}

impl std::hash::Hash for Template {
    /// Its name says which it is; texts are long.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// What a module begins with: the numbers of a dispatch, and how memory is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// As the stages of plans do: [`ACCESS`].
    Plan,
    /// As updates do: [`UPDATE_ACCESS`].
    Update,
    /// With its own declarations.
    Own,
}

impl Access {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Plan => ACCESS,
            Self::Update => UPDATE_ACCESS,
            Self::Own => "",
        }
    }
}

macro_rules! templates {
    ($($(#[$doc:meta])* $constant:ident = $name:literal on $access:ident;)*) => {
        $(
            $(#[$doc])*
            pub const $constant: Template = Template {
                name: $name,
                text: include_str!(concat!("../wgsl/", $name, ".wgsl")),
                access: Access::$access,
            };
        )*

        /// Every template.
        pub const TEMPLATES: &[Template] = &[$($constant),*];
    };
}

templates! {
    /// Elementwise instructions.
    MAP = "map" on Plan;
    /// Moves of words.
    MOVE = "move" on Plan;
    /// Products of few rows.
    PROD_FEW = "prod_few" on Plan;
    /// Products of few rows and many columns.
    PROD_FOUR = "prod_four" on Plan;
    /// Products of many rows, tile by tile.
    PROD_TILE = "prod_tile" on Plan;
    /// Rows of tables.
    LOOKUP = "lookup" on Plan;
    /// Products of two values.
    MATMUL = "matmul" on Plan;
    /// One row of a value.
    PICK = "pick" on Plan;
    /// 1 at an index.
    ONE_HOT = "one_hot" on Plan;
    /// The greatest elements.
    TOP_K = "top_k" on Plan;
    /// Dropout.
    DROPOUT = "dropout" on Plan;
    /// Keys of noise.
    FORK_NOISE = "fork_noise" on Plan;
    /// Ops that see a row as a whole.
    ROW = "row" on Plan;
    /// Sum, mean and maximum over lists.
    SEG_FOLD = "seg_fold" on Plan;
    /// Weighted sums over lists.
    WEIGHTED_SUM = "weighted_sum" on Plan;
    /// Attention over lists.
    ATTEND = "attend" on Plan;
    /// What comes back from sums, means and maxima over lists.
    SEG_FOLD_GRAD = "seg_fold_grad" on Plan;
    /// What comes back from weighted sums over lists.
    WEIGHTED_SUM_GRAD = "weighted_sum_grad" on Plan;
    /// What comes back from attention.
    ATTEND_GRAD = "attend_grad" on Plan;
    /// Gradients of weights.
    WGRAD = "wgrad" on Plan;
    /// Gradients of weights, tile by tile.
    WGRAD_TILE = "wgrad_tile" on Plan;
    /// Gradients of biases.
    COLSUM = "colsum" on Plan;
    /// Gradients of tables.
    TGRAD = "tgrad" on Plan;
    /// Outputs, brought together.
    COLLECT = "collect" on Plan;
    /// Optimisers on whole arrays.
    UPDATE = "update" on Update;
    /// Optimisers on sparse rows of tables.
    UPDATE_ROWS = "update_rows" on Update;
    /// Scalars of optimisers.
    UPDATE_SCALARS = "update_scalars" on Update;
    /// Sums of squares of blocks.
    SUMSQ = "sumsq" on Update;
    /// Sums of squares of whole arrays.
    SUMSQ_JOIN = "sumsq_join" on Update;
    /// Rows of tables that lookups named.
    SPARSE_ROWS = "sparse_rows" on Own;
}

/// What every module of a plan's stages begins with; its hole `memory` says how memory is reached.
pub const ACCESS: &str = include_str!("../wgsl/access.wgsl");
/// What every module of an update begins with.
pub const UPDATE_ACCESS: &str = include_str!("../wgsl/update_access.wgsl");
/// What stands in the hole `thread`.
pub const THREAD: &str = include_str!("../wgsl/thread.wgsl");

/// How the threads of a row hand numbers to one another. All ways make the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Joins {
    /// Through the memory of the group, as every device can.
    #[default]
    Memory,
    /// Lane to lane where these are eight in a subgroup, the rest through memory.
    Eight,
    /// Lane to lane.
    Sixteen,
}

impl Joins {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Eight, Self::Sixteen];

    /// The way for subgroups of so many threads at least.
    #[must_use]
    pub const fn of(threads: u32) -> Self {
        match threads {
            0..8 => Self::Memory,
            8..16 => Self::Eight,
            _ => Self::Sixteen,
        }
    }

    /// Files of library functions.
    const fn files(self) -> &'static [&'static str] {
        const NEAR: &str = include_str!("../wgsl/joins_subgroup.wgsl");
        match self {
            Self::Memory => &[include_str!("../wgsl/joins_memory.wgsl")],
            Self::Eight => &[NEAR, include_str!("../wgsl/far_memory.wgsl")],
            Self::Sixteen => &[NEAR, include_str!("../wgsl/far_subgroup.wgsl")],
        }
    }

    /// The hole `thread_of_group`: what a module asks about a thread.
    const fn builtins(self) -> &'static str {
        match self {
            Self::Memory => "    @builtin(local_invocation_index) local: u32,\n",
            Self::Eight | Self::Sixteen => {
                "    @builtin(subgroup_id) subgroup: u32,\n    @builtin(subgroup_size) size: u32,\n    \
                 @builtin(subgroup_invocation_id) member: u32,\n"
            }
        }
    }

    /// The hole `number_of_thread`: its number in the group, neighbours in one subgroup.
    const fn number(self) -> &'static str {
        match self {
            Self::Memory => "",
            Self::Eight | Self::Sixteen => "    let local = subgroup * size + member;\n",
        }
    }
}

/// How the numbers of a dispatch arrive at the stages of plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numbers {
    /// In a buffer, at an offset that is bound anew for each dispatch: as every device can.
    #[default]
    Uniform,
    /// Among the commands, so that what is bound stays bound.
    Immediate,
}

impl Numbers {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Immediate];

    /// The hole `numbers`.
    const fn declaration(self) -> &'static str {
        match self {
            Self::Uniform => "@group(0) @binding(0) var<uniform> dispatch: Dispatch;\n",
            Self::Immediate => "var<immediate> dispatch: Dispatch;\n",
        }
    }
}

/// Files of library functions; the arithmetic is one of the two below.
pub(crate) const FUNCTIONS: [&str; 6] = [
    include_str!("../wgsl/numeric.wgsl"),
    include_str!("../wgsl/products.wgsl"),
    include_str!("../wgsl/rows.wgsl"),
    include_str!("../wgsl/lists.wgsl"),
    include_str!("../wgsl/noise.wgsl"),
    include_str!("../wgsl/updates.wgsl"),
];
/// Product, division and root as the device has them.
pub(crate) const NATIVE: &str = include_str!("../wgsl/arithmetic_native.wgsl");
/// The same, exact on devices that round twice.
pub(crate) const EXACT: &str = include_str!("../wgsl/arithmetic_exact.wgsl");
