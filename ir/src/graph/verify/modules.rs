//! Rules G1 to G3 and G17 to G21: declarations and bodies.

use super::nodes::Scope;
use super::{At, CellFacts, MAX_INLINED, MAX_NESTING, Rule, Verifier, brief};
use crate::graph::{Callee, ParamArg};
use crate::id::{CellId, SiteId};
use crate::module::{Body, Init, ParamKind, check_name};
use crate::types::{DType, INDEX};

impl Verifier<'_> {
    pub(super) fn module(&mut self) {
        let module = self.module;
        if self.types.first() != Some(&INDEX) {
            self.report(Rule::Tables, At::Module, format!("the first type must be {INDEX}"));
        }
        self.names("parameter", module.params.iter().map(|decl| decl.name.as_str()));
        self.names("cell", module.cells.iter().map(|decl| decl.name.as_str()));
        self.names("export", module.exports.iter().map(|export| export.name.as_str()));
        self.params();
        self.frames();
        self.signatures();
        for number in 0..module.cells.len() {
            if self.is_full() {
                return;
            }
            self.body(CellId::new(number));
        }
        self.calls_that_join_lists();
        self.lookups();
        self.exports();
    }

    fn names<'n>(&mut self, kind: &str, names: impl Iterator<Item = &'n str>) {
        let mut sorted: Vec<&str> = Vec::new();
        for name in names {
            // A well-formed name is short; the message must be, too.
            if name.len() > 255 || check_name(name).is_err() {
                let message = format!(
                    "a name begins with a letter and holds at most 255 letters, digits, '_', '.' and '-', \
                     found {kind} {:?}",
                    brief(name)
                );
                self.report(Rule::Names, At::Module, message);
            }
            sorted.push(name);
        }
        self.unique(kind, sorted);
    }

    pub(super) fn unique(&mut self, kind: &str, mut names: Vec<&str>) {
        names.sort_unstable();
        for pair in names.windows(2) {
            if pair[0] == pair[1] {
                let message = format!("the name {:?} has two {kind}s", brief(pair[0]));
                self.report(Rule::Names, At::Module, message);
            }
        }
    }

    fn site(&mut self, site: SiteId, at: At<'_>) {
        if site.index() >= self.sites.len() {
            self.report(Rule::Ids, at, format!("{site} is not among {} sites", self.sites.len()));
        }
    }

    fn params(&mut self) {
        let mut interned: Vec<_> = self.types.to_vec();
        interned.sort_unstable();
        for decl in &self.module.params {
            let at = At::Param(&decl.name);
            self.site(decl.site, at);
            if !matches!(decl.ty.dtype, DType::F32 | DType::F16 | DType::BF16) || decl.ty.is_list {
                let message = format!("a parameter is stored as f32, f16 or bf16, found {}", decl.ty);
                self.report(Rule::Params, at, message);
            }
            if interned.binary_search(&decl.ty).is_err() {
                self.report(Rule::Params, at, format!("the type {} is not interned", decl.ty));
            }
            if decl.kind == ParamKind::Table && decl.ty.shape.rank() != 2 {
                let message = format!("a table has the shape [rows, width], found {}", decl.ty.shape);
                self.report(Rule::Params, at, message);
            }
            if let Init::Values(values) = &decl.init
                && values.len() != decl.ty.shape.elements()
            {
                let (found, wanted) = (values.len(), decl.ty.shape.elements());
                let shape = decl.ty.shape;
                let message = format!("the shape {shape} wants {wanted} values, found {found}");
                self.report(Rule::Params, at, message);
            }
        }
    }

    /// Whether ports and results of each body lie inside it, before anything reads their types.
    fn frames(&mut self) {
        for (number, decl) in self.module.cells.iter().enumerate() {
            let at = At::Cell(CellId::new(number));
            self.site(decl.site, at);
            let Body { ports, noise: _, param_types, arena, results } = &decl.body;
            let mut framed = *ports <= arena.len() && *ports <= arena.values();
            if !framed {
                let message = format!("the body has {ports} ports and {} nodes", arena.len());
                self.report(Rule::Ports, at, message);
            }
            let outside = |id: &&crate::id::TypeId| id.index() >= self.types.len();
            if let Some(id) = param_types.iter().chain(arena.value_types()).find(outside) {
                let message = format!("{id} is not among {} types", self.types.len());
                self.report(Rule::Ids, at, message);
                framed = false;
            }
            if let Some(value) = results.iter().find(|value| value.index() >= arena.values()) {
                let message = format!("the result {value} is not among {} values", arena.values());
                self.report(Rule::BodyResults, at, message);
                framed = false;
            }
            self.cells.push(CellFacts { framed, ..CellFacts::default() });
        }
    }

    fn body(&mut self, cell: CellId) {
        let body = &self.module.cell_decl(cell).body;
        if !self.cells[cell.index()].framed {
            return;
        }
        let at = At::Cell(cell);
        let lists = body.results.iter().find(|&&value| self.types[body.arena.type_of(value).index()].is_list);
        if let Some(list) = lists {
            self.report(Rule::BodyResults, at, format!("a cell returns values, {list} is a list"));
        }
        let index = |place: usize| self.types[body.arena.value_types()[place].index()] == INDEX;
        if body.noise && !(body.ports >= 2 && index(body.ports - 1) && index(body.ports - 2)) {
            let message = "a body that draws noise has two last ports of type u32 for the key";
            self.report(Rule::NoisePorts, at, message);
        }
        // Calls of this cell are met only after it, so what it demands is known by then.
        let calls = self.called(cell);
        for &(sig, _) in &calls.list_joining {
            self.facts[sig].joins_lists = true;
        }
        let lengths = self.nodes(&body.arena, Scope::Body(cell, body));
        let tables = self.looked_up(body);
        let facts = &mut self.cells[cell.index()];
        (facts.depth, facts.inlined) = (calls.depth, calls.inlined);
        (facts.needs, facts.tables) = (lengths.into_needs(), tables);
        if calls.depth > MAX_NESTING {
            let message = format!("calls nest at most {MAX_NESTING} deep, found {}", calls.depth);
            self.report(Rule::Nesting, at, message);
        }
        let before = self.inlined;
        self.inlined = before.saturating_add(calls.inlined);
        if before <= MAX_INLINED && self.inlined > MAX_INLINED {
            let message = format!(
                "the bodies of a module have at most {MAX_INLINED} nodes together after inlining, \
                 found {} up to this one, {} of them its own; call cells from the graph, or less often",
                self.inlined, calls.inlined
            );
            self.report(Rule::Nesting, at, message);
        }
    }

    /// Levels and inlined size of a body, and the signatures of calls that constrain lists.
    fn called(&self, cell: CellId) -> Called {
        let body = &self.module.cell_decl(cell).body;
        let mut called = Called { depth: 1, inlined: 0, list_joining: Vec::new() };
        for node in body.arena.nodes() {
            let callee = self.sigs.get(node.sig.index()).map(|signature| signature.callee);
            let inlined = match callee {
                Some(Callee::Cell(callee)) if callee < cell => {
                    let facts = &self.cells[callee.index()];
                    called.depth = called.depth.max(facts.depth.saturating_add(1));
                    if !facts.needs.is_empty() {
                        called.list_joining.push((node.sig.index(), callee));
                    }
                    facts.inlined
                }
                _ => 1,
            };
            called.inlined = called.inlined.saturating_add(inlined);
        }
        called
    }

    /// Which parameter ports of a body are looked up, directly or by the cells it calls.
    fn looked_up(&self, body: &Body) -> Vec<bool> {
        let mut tables = vec![false; body.param_types.len()];
        for node in body.arena.nodes() {
            let Some(signature) = self.sigs.get(node.sig.index()) else { continue };
            for (place, &arg) in signature.params.iter().enumerate() {
                if let ParamArg::Port(port) = arg
                    && let Some(table) = tables.get_mut(port as usize)
                {
                    *table |= self.reads_table(signature.callee, place);
                }
            }
        }
        tables
    }

    /// Marks the signatures of cells with demands on lists, for the graph's nodes.
    fn calls_that_join_lists(&mut self) {
        for facts in &mut self.facts {
            if let Callee::Cell(cell) = facts.callee
                && facts.sound
            {
                facts.joins_lists = !self.cells[cell.index()].needs.is_empty();
            }
        }
    }

    fn exports(&mut self) {
        for export in &self.module.exports {
            let at = At::Export(&export.name);
            let Some(signature) = self.module.sigs.items().get(export.sig.index()) else {
                let message =
                    format!("{} is not among {} signatures", export.sig, self.module.sigs.items().len());
                self.report(Rule::Ids, at, message);
                continue;
            };
            if !matches!(signature.callee, Callee::Cell(_)) {
                self.report(Rule::CellSignature, at, "an export is a signature of a cell");
            }
            let ported = |arg: &ParamArg| matches!(arg, ParamArg::Port(_));
            if signature.params.iter().any(ported) {
                self.report(Rule::ParamSource, at, "an export names parameters of the module, found a port");
            }
        }
    }
}

/// What the calls of a body add up to.
struct Called {
    depth: u32,
    inlined: u64,
    list_joining: Vec<(usize, CellId)>,
}
