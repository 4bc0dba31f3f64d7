//! WGSL templates of the GPU runtime, one a stage, and how a module is put together from them.
//!
//! A template has marked lines, `//~ name`, which are holes: `memory` (bindings and the functions that
//! reach them), `thread` (threads that are elements), `body` (what a stage computes), `shape` (the
//! constants of a tile) and `tail` (a function of what products computed). Functions of the library
//! (elementwise functions, products, folds of rows, noise, lists) are put in where a template calls them,
//! and only then: what a driver compiles is what a dispatch needs.
//!
//! The text is plain WGSL without extensions. Every template keeps to 8 storage buffers, 256 threads a
//! group and 16 KiB of group memory, which all devices have.

mod library;

pub use library::Library;

/// A stage template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Template {
    /// Its name: that of its file.
    pub name: &'static str,
    /// Its text, with holes.
    pub text: &'static str,
}

macro_rules! templates {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $constant: Template =
                Template { name: $name, text: include_str!(concat!("../wgsl/", $name, ".wgsl")) };
        )*

        /// Every template.
        pub const TEMPLATES: &[Template] = &[$($constant),*];
    };
}

templates! {
    /// Elementwise instructions.
    MAP = "map";
    /// Moves of words.
    MOVE = "move";
    /// Products of few rows.
    PROD_FEW = "prod_few";
    /// Products of many rows, tile by tile.
    PROD_TILE = "prod_tile";
    /// Rows of tables.
    LOOKUP = "lookup";
    /// Products of two values.
    MATMUL = "matmul";
    /// One row of a value.
    PICK = "pick";
    /// 1 at an index.
    ONE_HOT = "one_hot";
    /// The greatest elements.
    TOP_K = "top_k";
    /// Dropout.
    DROPOUT = "dropout";
    /// Keys of noise.
    FORK_NOISE = "fork_noise";
    /// Ops that see a row as a whole.
    ROW = "row";
    /// Sum, mean and maximum over lists.
    SEG_FOLD = "seg_fold";
    /// Weighted sums over lists.
    WEIGHTED_SUM = "weighted_sum";
    /// Attention over lists.
    ATTEND = "attend";
    /// What comes back from sums, means and maxima over lists.
    SEG_FOLD_GRAD = "seg_fold_grad";
    /// What comes back from weighted sums over lists.
    WEIGHTED_SUM_GRAD = "weighted_sum_grad";
    /// What comes back from attention.
    ATTEND_GRAD = "attend_grad";
    /// Gradients of weights.
    WGRAD = "wgrad";
    /// Gradients of biases.
    COLSUM = "colsum";
    /// Gradients of tables.
    TGRAD = "tgrad";
    /// Outputs, brought together.
    COLLECT = "collect";
}

/// What every module begins with; its hole `memory` says how memory is reached.
pub const ACCESS: &str = include_str!("../wgsl/access.wgsl");
/// What stands in the hole `thread`.
pub const THREAD: &str = include_str!("../wgsl/thread.wgsl");

/// Files of library functions; the arithmetic is one of the two below.
pub(crate) const FUNCTIONS: [&str; 5] = [
    include_str!("../wgsl/numeric.wgsl"),
    include_str!("../wgsl/products.wgsl"),
    include_str!("../wgsl/rows.wgsl"),
    include_str!("../wgsl/lists.wgsl"),
    include_str!("../wgsl/noise.wgsl"),
];
/// Product, division and root as the device has them.
pub(crate) const NATIVE: &str = include_str!("../wgsl/arithmetic_native.wgsl");
/// The same, exact on devices that round twice.
pub(crate) const EXACT: &str = include_str!("../wgsl/arithmetic_exact.wgsl");
