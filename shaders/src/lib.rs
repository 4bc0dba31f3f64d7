//! WGSL templates of the GPU runtime, one for each kind of stage, and the assembly of modules from them.
//!
//! A template has holes: lines of the form `//~ name`, which the runtime fills.
//!
//! | hole | filled with |
//! |---|---|
//! | `memory` | the bindings, and the functions that access them |
//! | `numbers` | the arguments of a dispatch |
//! | `thread`, `lane` | the element of a thread, the lane of a group |
//! | `thread_of_group`, `number_of_thread` | the thread of a row |
//! | `body` | the code of a stage |
//! | `shape` | the constants of a tile |
//! | `starts`, `loads`, `puts`, `chains`, `stores` | the lines for each element of a tile |
//! | `epilogue`, `call` | a function of the sums of products, and its call |
//!
//! A module contains exactly the library functions that it calls, so a driver compiles nothing that the dispatch does not need.
//! The text is plain WGSL without extensions, except for subgroup operations as [`Joins`] selects and immediates as [`Numbers`]
//! selects. Every template uses at most 8 storage buffers, 256 threads per group and 16 KiB of group memory, which all devices have.

mod library;

pub use library::{Library, fragment};

/// A template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Template {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// Its text, with holes.
    pub text: &'static str,
    /// The head of its modules.
    pub access: Access,
}

impl std::hash::Hash for Template {
    /// The name identifies a template; hashing the text would be slow.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The head of a module: the arguments of a dispatch, and access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// The head of plans: [`ACCESS`].
    Plan,
    /// The head of updates: [`UPDATE_ACCESS`].
    Update,
    /// None: the template has its own declarations.
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
    /// 1 at an index, else 0.
    ONE_HOT = "one_hot" on Plan;
    /// The largest elements.
    TOP_K = "top_k" on Plan;
    /// Dropout.
    DROPOUT = "dropout" on Plan;
    /// Noise keys.
    FORK_NOISE = "fork_noise" on Plan;
    /// Ops that read a row as a whole.
    ROW = "row" on Plan;
    /// Sum, mean and maximum over lists.
    SEG_FOLD = "seg_fold" on Plan;
    /// Weighted sums over lists.
    WEIGHTED_SUM = "weighted_sum" on Plan;
    /// Attention over lists.
    ATTEND = "attend" on Plan;
    /// The derivatives of sums, means and maxima over lists.
    SEG_FOLD_GRAD = "seg_fold_grad" on Plan;
    /// The derivative of weighted sums over lists.
    WEIGHTED_SUM_GRAD = "weighted_sum_grad" on Plan;
    /// The reverse of attention for queries.
    ATTEND_GRAD = "attend_grad" on Plan;
    /// The reverse of attention for keys and values.
    ATTEND_PULL = "attend_pull" on Plan;
    /// Graph attention over lists.
    GRAPH_ATTEND = "graph_attend" on Plan;
    /// The reverse of graph attention for queries.
    GRAPH_ATTEND_GRAD = "graph_attend_grad" on Plan;
    /// The reverse of graph attention for keys and values.
    GRAPH_ATTEND_PULL = "graph_attend_pull" on Plan;
    /// Gradients of weights.
    WGRAD = "wgrad" on Plan;
    /// Gradients of weights, tile by tile.
    WGRAD_TILE = "wgrad_tile" on Plan;
    /// Gradients of biases.
    COLSUM = "colsum" on Plan;
    /// Gradients of tables.
    TGRAD = "tgrad" on Plan;
    /// Losses of labels.
    LABEL_LOSS = "label_loss" on Plan;
    /// Gradients of labels' rows.
    LGRAD = "lgrad" on Plan;
    /// Collection of outputs.
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
    /// The rows of tables that lookups name.
    SPARSE_ROWS = "sparse_rows" on Own;
}

/// One product of few rows, for the hole `body` of [`PROD_FEW`] and [`PROD_FOUR`].
pub const FEW_PRODUCT: &str = include_str!("../wgsl/few_product.wgsl");
/// One product of a tile, for the hole `body` of [`PROD_TILE`].
pub const TILE_PRODUCT: &str = include_str!("../wgsl/tile_product.wgsl");
/// The head of modules of plans. Its hole `memory` gets the access to memory.
pub const ACCESS: &str = include_str!("../wgsl/access.wgsl");
/// The head of modules of updates.
pub const UPDATE_ACCESS: &str = include_str!("../wgsl/update_access.wgsl");
/// The text of the hole `lane`, for templates with a group per lane.
pub const LANE: &str = include_str!("../wgsl/lane.wgsl");
/// The text of the hole `thread`.
pub const THREAD: &str = include_str!("../wgsl/thread.wgsl");

/// Ways in which the threads of a row exchange values. All compute the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Joins {
    /// Through group memory, which every device has.
    #[default]
    Memory,
    /// By subgroup operations among eight threads, and through group memory beyond.
    Eight,
    /// By subgroup operations.
    Sixteen,
}

impl Joins {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Eight, Self::Sixteen];

    /// The way for subgroups of at least this many threads.
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

    /// The text of the hole `thread_of_group`: the built-in values of a thread.
    const fn builtins(self) -> &'static str {
        match self {
            Self::Memory => "    @builtin(local_invocation_index) local: u32,\n",
            Self::Eight | Self::Sixteen => {
                "    @builtin(subgroup_id) subgroup: u32,\n    @builtin(subgroup_size) size: u32,\n    \
                 @builtin(subgroup_invocation_id) member: u32,\n"
            }
        }
    }

    /// The text of the hole `number_of_thread`: the thread's number in the group. Neighbours share a subgroup.
    const fn number(self) -> &'static str {
        match self {
            Self::Memory => "",
            Self::Eight | Self::Sixteen => "    let local = subgroup * size + member;\n",
        }
    }
}

/// Ways in which dispatches of plans receive their arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numbers {
    /// In a uniform buffer with a dynamic offset, which every device supports.
    #[default]
    Uniform,
    /// As immediates, so that the bind group stays bound.
    Immediate,
}

impl Numbers {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Immediate];

    /// The text of the hole `numbers`.
    const fn declaration(self) -> &'static str {
        match self {
            Self::Uniform => "@group(0) @binding(0) var<uniform> dispatch: Dispatch;\n",
            Self::Immediate => "var<immediate> dispatch: Dispatch;\n",
        }
    }
}

/// Files of library functions. One of the two arithmetics below is added.
pub(crate) const FUNCTIONS: [&str; 6] = [
    include_str!("../wgsl/numeric.wgsl"),
    include_str!("../wgsl/products.wgsl"),
    include_str!("../wgsl/rows.wgsl"),
    include_str!("../wgsl/lists.wgsl"),
    include_str!("../wgsl/noise.wgsl"),
    include_str!("../wgsl/updates.wgsl"),
];
/// The device's own multiply-add, division and square root.
pub(crate) const NATIVE: &str = include_str!("../wgsl/arithmetic_native.wgsl");
/// The same, exact on devices that round twice.
pub(crate) const EXACT: &str = include_str!("../wgsl/arithmetic_exact.wgsl");
