//! The verifier of graphs: the rules that all later stages rely on.
//!
//! A verified graph can be summarised, planned and executed without a panic, also if it came from an
//! untrusted file. The emitter enforces these rules, except G16 through cells and G20. So any other
//! finding in an emitted graph is a bug of this crate.
//!
//! Modules:
//! * **G1** A module's first type is `u32`; a graph's types, signatures and sites begin with its module's.
//! * **G2** Parameters, cells and exports have well-formed, unique names. Outputs have unique names.
//! * **G3** A parameter is stored as f32, f16 or bf16 in an interned type, and parameter ports of bodies have such types. A
//!   table is a matrix. The number of given initial values equals the number of elements.
//! * **G4** Ids lie inside their tables: types, cells and parameters of signatures, signatures and
//!   sites of nodes and declarations.
//! * **G5** The results of an op's signature equal those of [`infer`](super::infer::infer).
//! * **G6** A cell's signature has the ports, parameter ports and results of its body.
//! * **G7** A parameter argument has the declared type, and lookups read tables.
//! * **G8** Bodies take parameters through their ports, graphs and exports from the module.
//!
//! Nodes:
//! * **G9** A node has the results of its signature.
//! * **G10** A node has the number of operands of its signature; a list has any number.
//! * **G11** Operands are results of earlier nodes.
//! * **G12** Operands have the types of the signature.
//! * **G13** Only graphs have bindings, and only in inputs and index operands: labels, picks,
//!   lookups, noise keys, index ports. Inputs have no other operands.
//! * **G14** Bound ranges lie inside their pools, and bound booleans are 0 or 1.
//! * **G15** A noise key is bound words, the noise ports of the body, or a fork of such a key.
//! * **G16** Lists that an op reads together have equal lengths, through cells too.
//!
//! Bodies:
//! * **G17** The ports of a body are its first nodes. There are no other ports.
//! * **G18** The last two ports of a body that draws noise have type `u32`.
//! * **G19** A body calls only earlier cells.
//! * **G20** Calls nest at most [`MAX_NESTING`] deep. After inlining, all bodies of a module together
//!   have at most [`MAX_INLINED`] nodes, which bounds the cost of planning and proving.
//! * **G21** The results of a body are values of the body, and not lists.
//! * **G25** A body lists its items; it does not append to lists.
//!
//! Graphs:
//! * **G22** Cuts ascend and lie inside the arena.
//! * **G23** Outputs are values of the graph, and not lists. Losses are scalar f32.
//! * **G24** Marks name values and nodes of the graph.
//!
//! No rule says that operand and result ranges partition their pools, because constructing an arena ensures it.
//!
//! *Cost.* One pass in arena order. The verifier examines each signature once; a node then costs a few word comparisons.

mod graphs;
mod lists;
mod modules;
mod nodes;
mod signatures;

#[cfg(test)]
mod tests;

use crate::findings::{Findings, brief, rules};
use crate::graph::{Callee, GraphData, Signature, Site};
use crate::id::{CellId, NodeId, SiteId};
use crate::module::Module;
use crate::types::Type;
use lists::LengthConstraint;
use signatures::Facts;

/// The maximal nesting depth of calls of cells by cells.
pub const MAX_NESTING: u32 = 64;
/// The maximal number of nodes of all bodies of a module after inlining.
pub const MAX_INLINED: u64 = 1 << 20;

rules! {
    "G", "the rules of graphs are broken";
    Tables = 1, "a module's types begin with u32, a graph's tables with its module's";
    Names = 2, "names are well-formed and unique";
    Params = 3, "parameters are stored floats, tables are matrices, initial values fill the shape";
    Ids = 4, "ids lie inside their tables";
    Inference = 5, "an op's signature has the results that inference gives";
    CellSignature = 6, "a cell's signature has the types of its body";
    ParamTypes = 7, "parameter arguments have their declared types, lookups read tables";
    ParamSource = 8, "bodies take parameters through ports, graphs from the module";
    Results = 9, "a node has the results of its signature";
    OperandCount = 10, "a node has the number of operands of its signature";
    Order = 11, "operands are results of earlier nodes";
    OperandTypes = 12, "operands have the types of the signature";
    Bindings = 13, "only inputs and index operands of graphs are bindings";
    Pools = 14, "bound ranges lie inside their pools, booleans are 0 or 1";
    Noise = 15, "a noise key is bound words, noise ports, or a fork";
    Lengths = 16, "lists that an op reads together have equal lengths";
    Ports = 17, "the ports of a body are its first nodes";
    NoisePorts = 18, "noise ports are the last two ports and of type u32";
    CallOrder = 19, "a body calls only earlier cells";
    Nesting = 20, "bodies keep the limits of nesting and size";
    BodyResults = 21, "results of a body are its values, not lists";
    Cuts = 22, "cuts ascend and lie inside the arena";
    Outputs = 23, "outputs are values of the graph, losses are scalar f32";
    Marks = 24, "marks name values and nodes of the graph";
    Appends = 25, "only graphs append to lists";
}

/// The broken rules of a graph or module.
pub type VerifyErrors = Findings<Rule>;

impl GraphData {
    /// Checks every rule, those of the module included.
    ///
    /// # Errors
    /// All broken rules, up to [`MAX_FINDINGS`](crate::findings::MAX_FINDINGS).
    pub fn verify(&self) -> Result<(), VerifyErrors> {
        if let Err(message) = graphs::tables_extend(self) {
            let mut findings = Findings::default();
            findings.report(Rule::Tables, &"the graph's tables", message);
            return Err(findings);
        }
        let (types, sigs, sites) = (self.types.items(), self.sigs.items(), self.sites.items());
        let mut verifier = Verifier::new(&self.module, types, sigs, sites);
        verifier.module();
        verifier.graph(self);
        verifier.findings.verdict(())
    }
}

impl Module {
    /// Checks the rules of modules and bodies.
    ///
    /// # Errors
    /// All broken rules, up to [`MAX_FINDINGS`](crate::findings::MAX_FINDINGS).
    pub fn verify(&self) -> Result<(), VerifyErrors> {
        let (types, sigs, sites) = (self.types.items(), self.sigs.items(), self.sites.items());
        let mut verifier = Verifier::new(self, types, sigs, sites);
        verifier.module();
        verifier.findings.verdict(())
    }
}

/// The facts about a cell that its callers need.
#[derive(Clone, Debug, Default)]
struct CellFacts {
    /// Whether the ports and results lie inside the arena, so that their types are readable.
    in_bounds: bool,
    /// The nesting depth of its calls, including its own level.
    depth: u32,
    /// The number of nodes after inlining.
    inlined: u64,
    /// Its constraints on the lengths of lists.
    constraints: Vec<LengthConstraint>,
    /// For each parameter port, whether it is read as a table.
    tables: Vec<bool>,
}

/// The tables behind ids, the facts so far, and the findings.
struct Verifier<'a> {
    module: &'a Module,
    types: &'a [Type],
    sigs: &'a [Signature],
    sites: &'a [Site],
    facts: Vec<Facts<'a>>,
    cells: Vec<CellFacts>,
    /// The number of nodes of the bodies so far, after inlining.
    inlined: u64,
    findings: VerifyErrors,
}

/// The place of a finding.
#[derive(Clone, Copy, Debug)]
enum At<'a> {
    Module,
    Param(&'a str),
    Cell(CellId),
    Export(&'a str),
    Signature(usize),
    Node(Option<CellId>, NodeId, SiteId),
    Cut(usize),
    Output(&'a str),
    Mark(&'static str),
}

impl<'a> Verifier<'a> {
    fn new(module: &'a Module, types: &'a [Type], sigs: &'a [Signature], sites: &'a [Site]) -> Self {
        Self {
            module,
            types,
            sigs,
            sites,
            facts: Vec::new(),
            cells: Vec::new(),
            inlined: 0,
            findings: Findings::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.findings.is_full()
    }

    #[cold]
    fn report(&mut self, rule: Rule, at: At<'_>, message: impl Into<String>) {
        if !self.is_full() {
            let place = self.place(at);
            self.findings.report(rule, &place, message);
        }
    }

    fn place(&self, at: At<'_>) -> String {
        match at {
            At::Module => format!("module {}", brief(&self.module.name)),
            At::Param(name) => format!("parameter @{}", brief(name)),
            At::Cell(cell) => self.cell_name(cell),
            At::Export(name) => format!("export @{}", brief(name)),
            At::Signature(number) => {
                format!("signature {number} ({})", self.callee_name(self.sigs[number].callee))
            }
            At::Node(cell, node, site) => {
                let site = self.sites.get(site.index()).map_or_else(
                    || "unknown line".to_owned(),
                    |site| format!("{}:{}:{}", brief(&site.file), site.line, site.column),
                );
                match cell {
                    Some(cell) => format!("{node} of {} ({site})", self.cell_name(cell)),
                    None => format!("{node} ({site})"),
                }
            }
            At::Cut(number) => format!("cut {number}"),
            At::Output(name) => format!("output {:?}", brief(name)),
            At::Mark(kind) => format!("mark {kind}"),
        }
    }

    fn cell_name(&self, cell: CellId) -> String {
        match self.module.cells.get(cell.index()) {
            Some(decl) => format!("cell @{}", brief(&decl.name)),
            None => format!("{cell}"),
        }
    }

    fn callee_name(&self, callee: Callee) -> String {
        match callee {
            Callee::Op(op) => op.spelling().to_owned(),
            Callee::Cell(cell) => self.cell_name(cell),
        }
    }
}
