//! The verifier of graphs: what every later stage may rely on.
//!
//! Whatever passes can be summarised, planned and executed without a panic, wherever it came from.
//! Emitted graphs keep these rules (the emitter refuses what breaks them, but for G16 through cells
//! and G20, which it does not follow), so a finding in one is a fault of this crate.
//!
//! Modules:
//! * **G1** A module's first type is `u32`; a graph's types, signatures and sites begin with its
//!   module's.
//! * **G2** Parameters, cells and exports have well-formed names, each once; each output has its own
//!   name.
//! * **G3** A parameter is stored as f32, f16 or bf16 in an interned type; a table is a matrix;
//!   given values are as many as its elements.
//! * **G4** Ids lie inside the tables they point into: types, cells and parameters of signatures,
//!   signatures and sites of nodes and declarations.
//! * **G5** The results of an op's signature are those that [`infer`](super::infer::infer) gives.
//! * **G6** A cell's signature has the ports, parameter ports and results of its body.
//! * **G7** A parameter argument has the declared type, and lookups read tables.
//! * **G8** Bodies take parameters through their ports, graphs and exports from the module.
//!
//! Nodes:
//! * **G9** A node makes the results that its signature says.
//! * **G10** It has as many operands as its signature; a list has any number.
//! * **G11** Operands are results of earlier nodes.
//! * **G12** Operands have the types of the signature.
//! * **G13** Numbers are bound in graphs only, and only where an index is read: inputs, labels,
//!   picks, lookups, noise keys, index ports. Inputs take nothing else.
//! * **G14** Bound runs lie inside their pools, and bound truth values are 0 or 1.
//! * **G15** A noise key is bound words, the noise ports of the body, or a fork of such a key.
//! * **G16** Lists that are taken together are equally long, through cells too.
//!
//! Bodies:
//! * **G17** Ports stand at the head of a body, and nowhere else.
//! * **G18** A body that draws noise ends its ports with two of type `u32`.
//! * **G19** A body calls earlier cells only.
//! * **G20** Calls nest at most [`MAX_NESTING`] deep, and the bodies of a module have at most
//!   [`MAX_INLINED`] nodes together after inlining: what planning and proving cost follows from that sum.
//! * **G21** The results of a body are its values, and no lists.
//!
//! Graphs:
//! * **G22** Cuts ascend and lie inside the arena.
//! * **G23** Outputs are values of the graph, and no lists; losses are scalar f32.
//! * **G24** Marks name values and nodes of the graph.
//!
//! That operand and result ranges tile their pools is no rule: an arena cannot be built otherwise.
//!
//! One pass in arena order. Signatures are examined once each; a node then costs a few
//! word compares.

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
use lists::ListNeed;
use signatures::Facts;

/// How deep calls of cells by cells may nest.
pub const MAX_NESTING: u32 = 64;
/// How many nodes the bodies of all cells of a module may have together after inlining.
pub const MAX_INLINED: u64 = 1 << 20;

rules! {
    "G", "the rules of graphs are broken";
    Tables = 1, "a module's types begin with u32, a graph's tables with its module's";
    Names = 2, "names are well formed and unique";
    Params = 3, "parameters are stored floats, tables are matrices, given values fill the shape";
    Ids = 4, "ids lie inside their tables";
    Inference = 5, "an op's signature has the results that inference gives";
    CellSignature = 6, "a cell's signature has the types of its body";
    ParamTypes = 7, "parameter arguments have their declared types, lookups read tables";
    ParamSource = 8, "bodies take parameters through ports, graphs from the module";
    Results = 9, "a node makes the results of its signature";
    OperandCount = 10, "a node has as many operands as its signature";
    Order = 11, "operands are results of earlier nodes";
    OperandTypes = 12, "operands have the types of the signature";
    Bound = 13, "numbers are bound in graphs only, where an index or input is read";
    Pools = 14, "bound runs lie inside their pools, truth values are 0 or 1";
    Noise = 15, "a noise key is bound words, noise ports, or a fork";
    Lengths = 16, "lists that are taken together are equally long";
    Ports = 17, "ports stand at the head of a body";
    NoisePorts = 18, "noise ports are the last two ports and of type u32";
    CallOrder = 19, "a body calls earlier cells only";
    Nesting = 20, "bodies nest and grow within limits";
    BodyResults = 21, "results of a body are its values and no lists";
    Cuts = 22, "cuts ascend and lie inside the arena";
    Outputs = 23, "outputs are values of the graph, losses are scalar f32";
    Marks = 24, "marks name values and nodes of the graph";
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

/// What is known of a cell, for its callers.
#[derive(Clone, Debug, Default)]
struct CellFacts {
    /// Whether the ports and results lie inside the arena, so that types of both can be read.
    framed: bool,
    /// Levels of calls, its own included.
    depth: u32,
    /// Nodes after inlining.
    inlined: u64,
    /// What it demands of the lengths of lists.
    needs: Vec<ListNeed>,
    /// Which parameter ports are read as tables.
    tables: Vec<bool>,
}

/// The tables that ids point into, what is known so far, and the findings.
struct Verifier<'a> {
    module: &'a Module,
    types: &'a [Type],
    sigs: &'a [Signature],
    sites: &'a [Site],
    facts: Vec<Facts<'a>>,
    cells: Vec<CellFacts>,
    /// Nodes of the bodies so far, after inlining.
    inlined: u64,
    findings: VerifyErrors,
}

/// Where a rule is broken.
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
