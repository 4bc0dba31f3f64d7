//! Programs of dispatches, identified by their content, and the texts of their modules.

mod products;
mod wgrad;

pub use products::{BLOCK_HEAD, LoadWidth, MAX_GROUPS, PART, Products, Tile};
pub use wgrad::WgradTile;

use autobatch_shaders::{
    ATTEND, ATTEND_GRAD, ATTEND_PULL, COLSUM, GRAPH_ATTEND, GRAPH_ATTEND_GRAD, GRAPH_ATTEND_PULL, LABEL_LOSS,
    LGRAD, Library, MAP, PROD_FEW, PROD_FOUR, PROD_TILE, ROW, SPARSE_ROWS, Template, WEIGHTED_SUM_GRAD,
    WGRAD, WGRAD_TILE,
};

/// Threads of a group of every template but the tiled ones.
pub const GROUP: u64 = 64;

/// The program of a dispatch. Equal programs share a pipeline, whatever plan or kernel they come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// A template without generated code.
    Fixed(Template),
    /// A map, with its generated body.
    Map(String),
    /// An op that reads rows as a whole: a function of the library.
    Row(&'static str),
    /// Products, with the generated epilogue that reads their sums.
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

    /// The number of threads of a group.
    #[must_use]
    pub fn group_threads(&self) -> u64 {
        match self {
            Self::Products(Products { tile: Tile::Rows16 | Tile::Rows64 | Tile::Rows128, .. })
            | Self::Wgrad(WgradTile::Two | WgradTile::Four)
            | Self::Fixed(COLSUM) => 256,
            _ => GROUP,
        }
    }

    /// The number of groups for `threads` threads. For tiled programs, `threads` counts rows of `columns` columns.
    #[must_use]
    pub fn groups(&self, threads: u64, columns: u64) -> u64 {
        match self {
            Self::Products(products) => products.workgroups(threads, columns),
            Self::Fixed(
                ATTEND | ATTEND_GRAD | ATTEND_PULL | GRAPH_ATTEND | GRAPH_ATTEND_GRAD | GRAPH_ATTEND_PULL
                | WEIGHTED_SUM_GRAD | LABEL_LOSS | LGRAD,
            ) => threads,
            Self::Fixed(COLSUM) => threads.div_ceil(32),
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
            Self::Wgrad(tile) => module(&tile.holes().each_ref().map(|(hole, text)| (*hole, text.as_str()))),
            Self::Map(body) => module(&[("body", body)]),
            Self::Row(function) => module(&[("body", &format!("    {function}(row);\n"))]),
            Self::Products(products) => module(&[
                ("shape", &products.shape()),
                ("epilogue", &products.epilogue_text()),
                ("body", &products.body()),
                ("call", &products.call()),
            ]),
        }
    }
}

/// The split of the arena and the parameters across bindings.
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
    /// One binding each, which suffices for most plans.
    pub const ONE: Self = Self { arena: 1, params: 1, shift: 25 };

    /// The hole `memory`: the bindings and the functions that read and write them. With several bindings, the upper
    /// bits of an address select one. Parameters are arrays of vectors, because stages only read them. The arena is an
    /// array of words, because every thread writes single words.
    fn memory(self) -> String {
        let arena = Array { name: "arena", buffers: self.arena, first_binding: 2 };
        let params = Array { name: "params", buffers: self.params, first_binding: 2 + self.arena };
        [
            arena.declaration("read_write", "u32"),
            params.declaration("read", "vec4<u32>"),
            self.function("fn ld(at: u32) -> u32", arena, "return {}[@];"),
            self.function("fn st(at: u32, x: u32)", arena, "{}[@] = x;"),
            self.function("fn param(at: u32) -> u32", params, "return {}[@ / 4u][@ % 4u];"),
            "\n// Four words from a multiple of four on.".to_owned(),
            self.function("fn param4(at: u32) -> vec4<u32>", params, "return {}[@ / 4u];"),
        ]
        .concat()
    }

    /// The text of the module that lists sparse rows. It reads the arena.
    #[must_use]
    pub fn sparse_rows(self, library: &Library) -> String {
        let arena = Array { name: "arena", buffers: self.arena, first_binding: 3 };
        let read = self.function("fn ld(at: u32) -> u32", arena, "return {}[@];");
        library.module(SPARSE_ROWS, &(arena.declaration("read", "u32") + &read), &[])
    }

    /// A function that accesses a word. In `act`, `{}` is the binding and `@` the index in it.
    fn function(self, head: &str, Array { name, buffers, .. }: Array, act: &str) -> String {
        let act = |number: u32, at: &str| act.replace("{}", &format!("{name}{number}")).replace('@', at);
        if buffers == 1 {
            return format!("\n{head} {{\n    {}\n}}\n", act(0, "at"));
        }
        let mask = (1u32 << self.shift) - 1;
        let case = |number: u32| {
            let label = if number + 1 == buffers { "default".to_owned() } else { format!("case {number}u") };
            format!("        {label}: {{ {} }}\n", act(number, "word"))
        };
        let cases: String = (0..buffers).map(case).collect();
        let shift = self.shift;
        format!(
            "\n{head} {{\n    let word = at & {mask}u;\n    switch at >> {shift}u {{\n{cases}    }}\n}}\n"
        )
    }
}

/// An array of a module that may span several bindings.
#[derive(Clone, Copy)]
struct Array {
    name: &'static str,
    buffers: u32,
    first_binding: u32,
}

impl Array {
    fn declaration(self, access: &str, of: &str) -> String {
        let Self { name, buffers, first_binding } = self;
        let line = |number: u32| {
            let binding = first_binding + number;
            format!("@group(0) @binding({binding}) var<storage, {access}> {name}{number}: array<{of}>;\n")
        };
        (0..buffers).map(line).collect()
    }
}
