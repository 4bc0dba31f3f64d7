//! Modules: what a dispatch runs, by its content, and the text of each.

mod wgrad;
mod products;

pub use wgrad::WgradTile;
pub use products::{BLOCK_HEAD, MAX_GROUPS, PART, Products, LoadWidth, Tile};

use autobatch_shaders::{
    ATTEND, ATTEND_GRAD, COLLECT, COLSUM, DROPOUT, FORK_NOISE, LOOKUP, Library, MAP, MATMUL, MOVE, ONE_HOT,
    PICK, PROD_FEW, PROD_FOUR, PROD_TILE, ROW, SEG_FOLD, SEG_FOLD_GRAD, TGRAD, TOP_K, SPARSE_ROWS, Template,
    WEIGHTED_SUM, WEIGHTED_SUM_GRAD, WGRAD, WGRAD_TILE,
};
use std::fmt::Write as _;

/// Threads of a group of every template but those of tiles.
pub const GROUP: u64 = 64;

/// What a dispatch runs. Equal programs are one pipeline, whatever plan or kernel they come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// A template without a body of its own.
    Fixed(Template),
    /// A map, with its generated body.
    Map(String),
    /// An op that sees rows as a whole: a function of the library.
    Row(&'static str),
    /// Products, with the generated epilogue that takes their sums.
    Products(Products),
    /// The gradient of a weight.
    Wgrad(WgradTile),
}

impl Program {
    /// The template.
    #[must_use]
    pub const fn template(&self) -> Template {
        match self {
            Self::Fixed(template) => *template,
            Self::Map(_) => MAP,
            Self::Row(_) => ROW,
            Self::Products(Products { tile: Tile::Few, .. }) => PROD_FEW,
            Self::Products(Products { tile: Tile::Four, .. }) => PROD_FOUR,
            Self::Products(_) => PROD_TILE,
            Self::Wgrad(WgradTile::Element) => WGRAD,
            Self::Wgrad(_) => WGRAD_TILE,
        }
    }

    /// The length of its generated code.
    pub(crate) const fn generated_len(&self) -> usize {
        match self {
            Self::Map(text) | Self::Products(Products { epilogue: text, .. }) => text.len(),
            Self::Fixed(_) | Self::Row(_) | Self::Wgrad(_) => 0,
        }
    }

    /// How many groups execute so many threads of a program; of tiles, so many rows of so many columns.
    #[must_use]
    pub fn groups(&self, threads: u64, columns: u64) -> u64 {
        match self {
            Self::Products(products) => products.workgroups(threads, columns),
            Self::Fixed(ATTEND | ATTEND_GRAD | WEIGHTED_SUM_GRAD) => threads,
            Self::Row(_) => threads.div_ceil(GROUP / 16),
            Self::Wgrad(patch) if *patch != WgradTile::Element => patch.tiles(threads, columns),
            Self::Fixed(_) | Self::Map(_) | Self::Wgrad(_) => threads.div_ceil(GROUP),
        }
    }

    /// The text of the module.
    #[must_use]
    pub fn text(&self, library: &Library, split: Split) -> String {
        let memory = split.memory();
        let module = |holes: &[(&str, &str)]| library.module(self.template(), &memory, holes);
        match self {
            Self::Fixed(_) | Self::Wgrad(WgradTile::Element) => module(&[]),
            Self::Wgrad(patch) => module(&[("shape", &patch.shape()), ("body", &patch.body())]),
            Self::Map(body) => module(&[("body", body)]),
            Self::Row(function) => module(&[("body", &format!("    {function}(row);\n"))]),
            Self::Products(products) => module(&[
                ("shape", &products.shape()),
                ("epilogue", &products.epilogue_text()),
                ("body", &products.body()),
            ]),
        }
    }

    /// Every program without a generated body.
    #[must_use]
    pub fn fixed() -> Vec<Self> {
        let templates = [
            MOVE,
            LOOKUP,
            MATMUL,
            PICK,
            ONE_HOT,
            TOP_K,
            DROPOUT,
            FORK_NOISE,
            SEG_FOLD,
            WEIGHTED_SUM,
            ATTEND,
            SEG_FOLD_GRAD,
            WEIGHTED_SUM_GRAD,
            ATTEND_GRAD,
            COLSUM,
            TGRAD,
            COLLECT,
        ];
        let gradients = WgradTile::ALL.map(Self::Wgrad);
        let rows = ROW_FUNCTIONS.into_iter().map(Self::Row);
        templates.into_iter().map(Self::Fixed).chain(rows).chain(gradients).collect()
    }
}

/// The functions that see rows as a whole.
pub(crate) const ROW_FUNCTIONS: [&str; 17] = [
    "store_sum",
    "store_mean",
    "store_max",
    "store_min",
    "store_argmax",
    "store_softmax",
    "store_log_softmax",
    "store_logsumexp",
    "store_norm",
    "store_layer_norm",
    "store_pick_neg_log_softmax",
    "store_hinge",
    "store_dot",
    "store_cross_entropy",
    "store_kl_div",
    "store_mse",
    "store_bce",
];

/// Into how many bindings the arena and the parameters are cut, and how large a binding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Split {
    /// Bindings of the arena.
    pub arena: u32,
    /// Bindings of the parameters.
    pub params: u32,
    /// Words of one binding, as a power of two.
    pub shift: u32,
}

impl Split {
    /// One binding each, as most plans need.
    pub const ONE: Self = Self { arena: 1, params: 1, shift: 25 };

    /// The storage bindings of a module: the tables, the arena's and the parameters'.
    #[must_use]
    pub const fn bindings(self) -> u32 {
        1 + self.arena + self.params
    }

    /// The hole `memory`: the bindings, and the functions that load them. Groups read a word of one
    /// binding without a look at its number; of several, by its upper bits. Parameters are vectors, because
    /// stages only read them; threads write single words of the arena, so it has no vectors.
    fn memory(self) -> String {
        let mut text = String::new();
        let arrays =
            [("arena", self.arena, "read_write", "u32"), ("params", self.params, "read", "vec4<u32>")];
        let mut binding = 2;
        for (name, count, access, of) in arrays {
            for number in 0..count {
                let _ = writeln!(
                    text,
                    "@group(0) @binding({binding}) var<storage, {access}> {name}{number}: array<{of}>;"
                );
                binding += 1;
            }
        }
        self.function(&mut text, "fn ld(at: u32) -> u32", ("arena", self.arena), "return {}[@];");
        self.function(&mut text, "fn st(at: u32, x: u32)", ("arena", self.arena), "{}[@] = x;");
        let params = ("params", self.params);
        self.function(&mut text, "fn param(at: u32) -> u32", params, "return {}[@ / 4u][@ % 4u];");
        text.push_str("\n// Four words from a multiple of four on.");
        self.function(&mut text, "fn param4(at: u32) -> vec4<u32>", params, "return {}[@ / 4u];");
        text
    }

    /// The text of the module that lists sparse rows: it reads the arena.
    #[must_use]
    pub fn sparse_rows(self, library: &Library) -> String {
        let mut text = String::new();
        for number in 0..self.arena {
            let binding = 3 + number;
            let _ =
                writeln!(text, "@group(0) @binding({binding}) var<storage, read> arena{number}: array<u32>;");
        }
        self.function(&mut text, "fn ld(at: u32) -> u32", ("arena", self.arena), "return {}[@];");
        library.module(SPARSE_ROWS, &text, &[])
    }

    /// A function that reaches a word: `{}` stands for the binding, `@` for the place in it.
    fn function(self, text: &mut String, head: &str, (name, count): (&str, u32), act: &str) {
        let _ = writeln!(text, "\n{head} {{");
        let act = |number: u32, at: &str| act.replace("{}", &format!("{name}{number}")).replace('@', at);
        if count == 1 {
            let _ = writeln!(text, "    {}", act(0, "at"));
        } else {
            let mask = (1u32 << self.shift) - 1;
            let _ = writeln!(text, "    let word = at & {mask}u;\n    switch at >> {}u {{", self.shift);
            for number in 0..count {
                let label =
                    if number + 1 == count { "default".to_owned() } else { format!("case {number}u") };
                let _ = writeln!(text, "        {label}: {{ {} }}", act(number, "word"));
            }
            text.push_str("    }\n");
        }
        text.push_str("}\n");
    }
}
