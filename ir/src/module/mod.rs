//! What graphs share: parameters, tables, and cells that were traced once.
//!
//! A [`Module`] is immutable and holds no parameter *values*; those live in weights, so that two
//! trainers, a moving average and a frozen copy can stand on one module. Models build one with a
//! [`ModuleBuilder`] and keep `Copy` handles: [`Param`], [`Table`], [`Cell`].

mod builder;
mod init;
mod values;

pub use builder::ModuleBuilder;
pub(crate) use builder::{check_declaration, check_name};
pub use init::Init;

use crate::graph::signature::{Callee, ParamArg, Signature, Signatures};
use crate::graph::{Arena, Op, Sites};
use crate::id::{CellId, NodeId, ParamId, SigId, SiteId, TypeId, ValueId};
use crate::types::{INDEX, Shape, Type, Types};
use std::sync::atomic::{AtomicU32, Ordering};

/// A parameter: a dense array that training may change. Used as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    pub(crate) id: Option<ParamId>,
    pub(crate) module: u32,
}

/// A table: a parameter matrix whose rows are looked up by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    pub(crate) param: Param,
}

impl Param {
    /// The parameter's id in its module; `None` if its declaration was refused.
    #[must_use]
    pub const fn id(self) -> Option<ParamId> {
        self.id
    }
}

impl Table {
    /// The table as a parameter, for uses of the whole matrix such as a tied output layer.
    #[must_use]
    pub const fn as_param(self) -> Param {
        self.param
    }
}

/// A traced function of `IN` operands and `OUT` results, with its parameter arguments bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell<const IN: usize, const OUT: usize> {
    pub(crate) sig: Option<SigId>,
    pub(crate) module: u32,
}

/// A traced function whose numbers of operands and results are known when it is traced only: a layer's with as many heads
/// as it is asked for, say. [`Graph::call_of_any`](crate::Graph::call_of_any) applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellOfAny {
    pub(crate) sig: Option<SigId>,
    pub(crate) module: u32,
}

impl CellOfAny {
    /// The signature that its nodes have; `None` if tracing was refused.
    #[must_use]
    pub const fn sig(self) -> Option<SigId> {
        self.sig
    }
}

impl<const IN: usize, const OUT: usize> Cell<IN, OUT> {
    /// The signature that its nodes have; `None` if tracing was refused.
    #[must_use]
    pub const fn sig(self) -> Option<SigId> {
        self.sig
    }
}

/// How a parameter is used, which decides how its gradient is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// A dense array.
    Param,
    /// A matrix of rows to look up.
    Table,
}

/// The declaration of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamDecl {
    /// Its name, unique in the module; text spells it `@name`.
    pub name: String,
    /// Dense or table.
    pub kind: ParamKind,
    /// Storage type and shape.
    pub ty: Type,
    /// How its first values are drawn.
    pub init: Init,
    /// Where it was declared.
    pub site: SiteId,
}

/// The body of a cell: an arena whose first nodes are the ports.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// How many of the first nodes are ports. Where [`noise`](Self::noise) is set, the last
    /// two of them are the noise key, which calls bind by themselves.
    pub ports: usize,
    /// Whether the cell draws noise.
    pub noise: bool,
    /// The types of the parameter ports.
    pub param_types: Vec<TypeId>,
    /// Ports, then everything else.
    pub arena: Arena,
    /// The results.
    pub results: Vec<ValueId>,
}

/// Equal bodies compute the same; where they were written does not matter.
impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        let Self { ports, noise, param_types, arena, results } = self;
        let same_nodes = || {
            arena
                .nodes()
                .iter()
                .zip(other.arena.nodes())
                .all(|(a, b)| (a.sig, a.operands, a.results) == (b.sig, b.operands, b.results))
        };
        *ports == other.ports
            && *noise == other.noise
            && *param_types == other.param_types
            && *results == other.results
            && arena.len() == other.arena.len()
            && arena.operand_pool() == other.arena.operand_pool()
            && arena.value_types() == other.arena.value_types()
            && same_nodes()
    }
}

impl Body {
    /// The types of the ports, the noise key's included.
    pub fn port_types(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.arena.value_types()[..self.ports].iter().copied()
    }
}

/// The declaration of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDecl {
    /// Its name, unique in the module; text spells it `@name`.
    pub name: String,
    /// What it computes.
    pub body: Body,
    /// Where it was declared.
    pub site: SiteId,
}

/// A cell with its parameter arguments, under the name that the model gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The name given to [`ModuleBuilder::cell`].
    pub name: String,
    /// The signature of its calls.
    pub sig: SigId,
}

/// Parameters, tables and cells, with the types, signatures and sites they use.
#[derive(Clone, Debug)]
pub struct Module {
    /// Tells modules of one process apart; never stored.
    pub(crate) tag: u32,
    /// The module's name.
    pub name: String,
    /// Interned types. The first is always [`INDEX`].
    pub types: Types,
    /// Interned signatures of bodies and exports.
    pub sigs: Signatures,
    /// Source lines of declarations and bodies.
    pub sites: Sites,
    /// Parameters and tables.
    pub params: Vec<ParamDecl>,
    /// Cells; a body calls earlier cells only.
    pub cells: Vec<CellDecl>,
    /// Cells with bound parameters, as models know them.
    pub exports: Vec<Export>,
}

impl PartialEq for Module {
    fn eq(&self, other: &Self) -> bool {
        let Self { tag: _, name, types, sigs, sites, params, cells, exports } = self;
        *name == other.name
            && *types == other.types
            && *sigs == other.sigs
            && *sites == other.sites
            && *params == other.params
            && *cells == other.cells
            && *exports == other.exports
    }
}

impl Module {
    /// A module with nothing in it, to be filled by a builder or a reader.
    pub(crate) fn empty(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self {
            tag: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            types: [INDEX].into_iter().collect(),
            sigs: Signatures::default(),
            sites: Sites::default(),
            params: Vec::new(),
            cells: Vec::new(),
            exports: Vec::new(),
        }
    }

    /// A number that tells this module from every other of the process; never stored.
    #[must_use]
    pub const fn identity(&self) -> u64 {
        self.tag as u64
    }

    /// The id that [`INDEX`] has in every module.
    #[must_use]
    pub const fn index_type() -> TypeId {
        TypeId::new(0)
    }

    /// The declaration of a parameter.
    #[must_use]
    pub fn param_decl(&self, id: ParamId) -> &ParamDecl {
        &self.params[id.index()]
    }

    /// The declaration of a cell.
    #[must_use]
    pub fn cell_decl(&self, id: CellId) -> &CellDecl {
        &self.cells[id.index()]
    }

    /// The parameter with this name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Param> {
        let number = self.params.iter().position(|decl| decl.name == name)?;
        Some(Param { id: Some(ParamId::new(number)), module: self.tag })
    }

    /// The table with this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table> {
        let param = self.param(name)?;
        let decl = self.param_decl(param.id?);
        (decl.kind == ParamKind::Table).then_some(Table { param })
    }

    /// The cell with this name and these numbers of operands and results.
    #[must_use]
    pub fn cell<const IN: usize, const OUT: usize>(&self, name: &str) -> Option<Cell<IN, OUT>> {
        let export = self.exports.iter().find(|export| export.name == name)?;
        let signature = self.sigs.get(export.sig);
        let noise = self.noise_ports(signature);
        let fits = signature.operands.len() == IN + noise && signature.results.len() == OUT;
        fits.then_some(Cell { sig: Some(export.sig), module: self.tag })
    }

    /// How many of a signature's last operands are a noise key that calls bind by themselves.
    #[must_use]
    pub fn noise_ports(&self, signature: &Signature) -> usize {
        match signature.callee {
            Callee::Cell(cell) if self.cell_decl(cell).body.noise => 2,
            Callee::Cell(_) => 0,
            Callee::Op(Op::Dropout { .. } | Op::ForkNoise { .. }) => 2,
            Callee::Op(_) => 0,
        }
    }

    /// How text spells what a signature calls: the op's word or the cell's `@name`.
    #[must_use]
    pub fn callee_name(&self, callee: Callee) -> String {
        match callee {
            Callee::Op(op) => op.spelling().to_owned(),
            Callee::Cell(cell) => format!("@{}", self.cell_decl(cell).name),
        }
    }

    /// How text spells a parameter argument: a module's parameter by name, a port by number.
    #[must_use]
    pub fn param_name(&self, arg: ParamArg) -> String {
        match arg {
            ParamArg::Module(id) => format!("@{}", self.param_decl(id).name),
            ParamArg::Port(number) => format!("@{number}"),
        }
    }

    /// The shape of a parameter.
    #[must_use]
    pub fn param_shape(&self, id: ParamId) -> Shape {
        self.param_decl(id).ty.shape
    }
}

/// Moves the port nodes of a traced arena to its head, keeping every other order, so that
/// ports number the first values. Ports that tracing adds late (noise keys) make this necessary.
pub(crate) fn ports_first(arena: &Arena, is_port: impl Fn(SigId) -> bool, results: &mut [ValueId]) -> Arena {
    let (ports, rest): (Vec<NodeId>, Vec<NodeId>) = arena.ids().partition(|&id| is_port(arena.node(id).sig));
    let mut moved = Arena::default();
    let mut renamed = vec![None; arena.values()];
    for id in ports.into_iter().chain(rest) {
        let mark = moved.operand_mark();
        for &operand in arena.operands(id) {
            let operand = match operand.as_value() {
                Some(value) => crate::graph::Operand::value(
                    renamed[value.index()].expect("operands name earlier values, which were moved first"),
                ),
                None => operand,
            };
            moved.push_operand(operand);
        }
        let node = arena.node(id);
        let old = arena.results(id);
        let first = moved.push(node.sig, mark, &arena.value_types()[old.clone()], node.site) as usize;
        for (place, value) in old.enumerate() {
            renamed[value] = Some(ValueId::new(first + place));
        }
    }
    for result in results {
        *result = renamed[result.index()].expect("every value was moved");
    }
    moved
}
