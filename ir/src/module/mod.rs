//! The part that graphs share: parameters, tables, and traced cells.
//!
//! A [`Module`] is immutable and holds no parameter *values*. Values are stored in
//! [`Weights`](crate::Weights), so several sets of them can share one module. A model builds its
//! module with a [`ModuleBuilder`] and stores `Copy` handles: [`Param`], [`Table`], [`Cell`].

mod builder;
mod init;
mod values;

pub use builder::ModuleBuilder;
pub(crate) use builder::{check_declaration, check_name, check_stored};
pub use init::Init;

use crate::getters::getters;
use crate::graph::signature::{Callee, ParamArg, Signature, Signatures};
use crate::graph::{Arena, Op, Sites};
use crate::id::{CellId, NodeId, ParamId, SigId, SiteId, TypeId, ValueId};
use crate::types::{INDEX, Shape, Type, Types};
use std::sync::atomic::{AtomicU32, Ordering};

/// A handle to a parameter: a dense array that training may change and that ops use as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    pub(crate) id: Option<ParamId>,
    pub(crate) module: u32,
}

/// A handle to a table: a parameter matrix whose rows are looked up by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    pub(crate) param: Param,
}

impl Param {
    /// The parameter's id in its module; `None` if the declaration failed.
    #[must_use]
    pub const fn id(self) -> Option<ParamId> {
        self.id
    }
}

impl Table {
    /// A parameter declared with [`ParamKind::Table`], as a table.
    #[must_use]
    pub const fn of_param(param: Param) -> Self {
        Self { param }
    }

    /// The table as a parameter, to use the whole matrix (a tied output layer, for example).
    #[must_use]
    pub const fn as_param(self) -> Param {
        self.param
    }
}

/// A handle to a traced function of `IN` operands and `OUT` results, with bound parameter arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell<const IN: usize, const OUT: usize> {
    pub(crate) sig: Option<SigId>,
    pub(crate) module: u32,
}

/// A handle to a traced function whose numbers of operands and results are known only at tracing, such as a layer with
/// a configurable number of heads. [`Graph::call_any`](crate::Graph::call_any) calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellOfAny {
    pub(crate) sig: Option<SigId>,
    pub(crate) module: u32,
}

impl CellOfAny {
    /// The signature of its calls; `None` if tracing failed.
    #[must_use]
    pub const fn sig(self) -> Option<SigId> {
        self.sig
    }
}

impl<const IN: usize, const OUT: usize> Cell<IN, OUT> {
    /// The signature of its calls; `None` if tracing failed.
    #[must_use]
    pub const fn sig(self) -> Option<SigId> {
        self.sig
    }
}

/// How a parameter is used. The kind decides how its gradient is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// A dense array.
    Param,
    /// A matrix whose rows are looked up.
    Table,
}

/// The declaration of a parameter.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ParamDecl {
    /// Its name, unique in the module; text spells it `@name`.
    pub name: String,
    /// Parameter or table.
    pub kind: ParamKind,
    /// The storage type and shape.
    #[serde(rename = "type")]
    pub ty: Type,
    /// How its initial values are drawn.
    pub init: Init,
    /// The source location of the declaration.
    pub site: SiteId,
}

/// The body of a cell: an arena whose first nodes are the ports.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The number of ports. If [`noise`](Self::noise) is set, the last two are the noise key, which
    /// calls bind automatically.
    pub ports: usize,
    /// Whether the cell draws noise.
    pub noise: bool,
    /// The types of the parameter ports.
    pub param_types: Vec<TypeId>,
    /// The ports, then all other nodes.
    pub arena: Arena,
    /// The results of the cell.
    pub results: Vec<ValueId>,
}

/// Compares what the bodies compute; source locations are ignored.
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
    /// The types of the ports, including the noise key.
    pub fn port_types(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.arena.value_types()[..self.ports].iter().copied()
    }
}

/// The declaration of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDecl {
    /// Its name, unique in the module; text spells it `@name`.
    pub name: String,
    /// The computation.
    pub body: Body,
    /// The source location of the declaration.
    pub site: SiteId,
}

/// A cell with its parameter arguments, under the model's name for it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Export {
    /// The name given to [`ModuleBuilder::cell`].
    pub name: String,
    /// The signature of its calls.
    #[serde(rename = "signature")]
    pub sig: SigId,
}

/// Parameters, tables and cells, with the types, signatures and sites they use.
#[derive(Clone, Debug)]
pub struct Module {
    /// Distinguishes modules within a process; never stored.
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
    /// Cells; a body calls only earlier cells.
    pub cells: Vec<CellDecl>,
    /// Cells with bound parameters, as the model names them.
    pub exports: Vec<Export>,
}

/// A tag that no other module of this process has.
fn next_tag() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
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
    /// An empty module, for a builder or a reader to fill.
    pub(crate) fn empty(name: &str) -> Self {
        Self {
            tag: next_tag(),
            name: name.to_owned(),
            types: [INDEX].into_iter().collect(),
            sigs: Signatures::default(),
            sites: Sites::default(),
            params: Vec::new(),
            cells: Vec::new(),
            exports: Vec::new(),
        }
    }

    /// The same declarations as another module, whose handles differ.
    fn under_new_tag(&self) -> Self {
        Self { tag: next_tag(), ..self.clone() }
    }

    getters! {
        /// A number that identifies this module within the process; never stored.
        identity(self) -> u64 = self.tag as u64;
        /// The declaration of a parameter.
        param_decl(self, id: ParamId) -> &ParamDecl = &self.params[id.index()];
        /// The declaration of a cell.
        cell_decl(self, id: CellId) -> &CellDecl = &self.cells[id.index()];
        /// The shape of a parameter.
        param_shape(self, id: ParamId) -> Shape = self.param_decl(id).ty.shape;
    }

    /// The id of [`INDEX`] in every module.
    #[must_use]
    pub const fn index_type() -> TypeId {
        TypeId::new(0)
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

    /// The cell with this name, if it has these numbers of operands and results.
    #[must_use]
    pub fn cell<const IN: usize, const OUT: usize>(&self, name: &str) -> Option<Cell<IN, OUT>> {
        let export = self.exports.iter().find(|export| export.name == name)?;
        let signature = self.sigs.get(export.sig);
        let noise = self.noise_ports(signature);
        let fits = signature.operands.len() == IN + noise && signature.results.len() == OUT;
        fits.then_some(Cell { sig: Some(export.sig), module: self.tag })
    }

    /// The cell with this name, whatever its numbers of operands and results.
    #[must_use]
    pub fn cell_of_any(&self, name: &str) -> Option<CellOfAny> {
        let export = self.exports.iter().find(|export| export.name == name)?;
        Some(CellOfAny { sig: Some(export.sig), module: self.tag })
    }

    /// The number of trailing operands that form a noise key, which calls bind automatically.
    #[must_use]
    pub fn noise_ports(&self, signature: &Signature) -> usize {
        match signature.callee {
            Callee::Cell(cell) if self.cell_decl(cell).body.noise => 2,
            Callee::Cell(_) => 0,
            Callee::Op(Op::Dropout { .. } | Op::ForkNoise { .. }) => 2,
            Callee::Op(_) => 0,
        }
    }

    /// The text spelling of a callee: the op's word or the cell's `@name`.
    #[must_use]
    pub fn callee_name(&self, callee: Callee) -> String {
        match callee {
            Callee::Op(op) => op.spelling().to_owned(),
            Callee::Cell(cell) => format!("@{}", self.cell_decl(cell).name),
        }
    }

    /// The text spelling of a parameter argument: a module parameter by name, a port by number.
    #[must_use]
    pub fn param_name(&self, arg: ParamArg) -> String {
        match arg {
            ParamArg::Module(id) => format!("@{}", self.param_decl(id).name),
            ParamArg::Port(number) => format!("@{number}"),
        }
    }
}

/// Moves the port nodes of a traced arena to the front, so that ports define the first values. Noise
/// key ports require this, because tracing adds them late. All other nodes keep their order.
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
