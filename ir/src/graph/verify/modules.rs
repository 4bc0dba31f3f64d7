//! Rules G1 to G3 and G17 to G21: declarations and bodies.

use super::nodes::Scope;
use super::{At, CellFacts, MAX_INLINED, MAX_NESTING, Rule, Verifier, brief};
use crate::graph::{Callee, ParamArg};
use crate::id::{CellId, SiteId};
use crate::module::{Body, check_declaration, check_name, check_stored};
use crate::types::{INDEX, Type};

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
        self.bounds();
        self.signatures();
        for number in 0..module.cells.len() {
            if self.is_full() {
                return;
            }
            self.body(CellId::new(number));
        }
        self.mark_constrained_calls();
        self.lookups();
        self.exports();
    }

    fn names<'n>(&mut self, kind: &str, names: impl Iterator<Item = &'n str>) {
        let mut sorted: Vec<&str> = Vec::new();
        for name in names {
            // The length limit keeps the message short.
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
                let message = format!("two {kind}s have the name {:?}", brief(pair[0]));
                self.report(Rule::Names, At::Module, message);
            }
        }
    }

    fn site(&mut self, site: SiteId, at: At<'_>) {
        if site.index() >= self.sites.len() {
            self.report(Rule::Ids, at, format!("{site} is not among {} sites", self.sites.len()));
        }
    }

    /// Checks the type of a parameter port.
    fn stored(&mut self, ty: Type, at: At<'_>) {
        if let Err(message) = check_stored(ty) {
            self.report(Rule::Params, at, message);
        }
    }

    fn params(&mut self) {
        let mut interned: Vec<_> = self.types.to_vec();
        interned.sort_unstable();
        for decl in &self.module.params {
            let at = At::Param(&decl.name);
            self.site(decl.site, at);
            if let Err(message) = check_declaration(decl.kind, decl.ty, &decl.init) {
                self.report(Rule::Params, at, message);
            }
            if interned.binary_search(&decl.ty).is_err() {
                self.report(Rule::Params, at, format!("the type {} is not interned", decl.ty));
            }
        }
    }

    /// Checks that ports and results of each body lie inside it, before other rules read their types.
    fn bounds(&mut self) {
        for (number, decl) in self.module.cells.iter().enumerate() {
            let at = At::Cell(CellId::new(number));
            self.site(decl.site, at);
            let Body { ports, noise: _, param_types, arena, results } = &decl.body;
            let mut in_bounds = *ports <= arena.len() && *ports <= arena.values();
            if !in_bounds {
                let message = format!("the body has {ports} ports and {} nodes", arena.len());
                self.report(Rule::Ports, at, message);
            }
            let outside = |id: &&crate::id::TypeId| id.index() >= self.types.len();
            if let Some(id) = param_types.iter().chain(arena.value_types()).find(outside) {
                let message = format!("{id} is not among {} types", self.types.len());
                self.report(Rule::Ids, at, message);
                in_bounds = false;
            } else {
                param_types.iter().for_each(|id| self.stored(self.types[id.index()], at));
            }
            if let Some(value) = results.iter().find(|value| value.index() >= arena.values()) {
                let message = format!("the result {value} is not among {} values", arena.values());
                self.report(Rule::BodyResults, at, message);
                in_bounds = false;
            }
            self.cells.push(CellFacts { in_bounds, ..CellFacts::default() });
        }
    }

    fn body(&mut self, cell: CellId) {
        let body = &self.module.cell_decl(cell).body;
        if !self.cells[cell.index()].in_bounds {
            return;
        }
        let at = At::Cell(cell);
        let lists = body.results.iter().find(|&&value| self.types[body.arena.type_of(value).index()].is_list);
        if let Some(list) = lists {
            self.report(Rule::BodyResults, at, format!("a cell returns values, and {list} is a list"));
        }
        let index = |place: usize| self.types[body.arena.value_types()[place].index()] == INDEX;
        if body.noise && !(body.ports >= 2 && index(body.ports - 1) && index(body.ports - 2)) {
            let message = "the last two ports of a body that draws noise must be u32";
            self.report(Rule::NoisePorts, at, message);
        }
        // Only later nodes call this cell, so its constraints are complete before they are used.
        let calls = self.calls_of(cell);
        for &(sig, _) in &calls.constrained {
            self.facts[sig].constrains_lists = true;
        }
        let lengths = self.nodes(&body.arena, Scope::Body(cell, body));
        let tables = self.table_ports(body);
        let facts = &mut self.cells[cell.index()];
        (facts.depth, facts.inlined) = (calls.depth, calls.inlined);
        (facts.constraints, facts.tables) = (lengths.into_constraints(), tables);
        if calls.depth > MAX_NESTING {
            let message = format!("calls nest at most {MAX_NESTING} deep, found {}", calls.depth);
            self.report(Rule::Nesting, at, message);
        }
        let before = self.inlined;
        self.inlined = before.saturating_add(calls.inlined);
        if before <= MAX_INLINED && self.inlined > MAX_INLINED {
            let message = format!(
                "the bodies of a module have at most {MAX_INLINED} nodes after inlining, \
                 found {} up to this one, {} in this one; call cells from the graph, or less often",
                self.inlined, calls.inlined
            );
            self.report(Rule::Nesting, at, message);
        }
    }

    /// The depth and inlined size of a body, and its calls that constrain lists.
    fn calls_of(&self, cell: CellId) -> Calls {
        let body = &self.module.cell_decl(cell).body;
        let mut calls = Calls { depth: 1, inlined: 0, constrained: Vec::new() };
        for node in body.arena.nodes() {
            let callee = self.sigs.get(node.sig.index()).map(|signature| signature.callee);
            let inlined = match callee {
                Some(Callee::Cell(callee)) if callee < cell => {
                    let facts = &self.cells[callee.index()];
                    calls.depth = calls.depth.max(facts.depth.saturating_add(1));
                    if !facts.constraints.is_empty() {
                        calls.constrained.push((node.sig.index(), callee));
                    }
                    facts.inlined
                }
                _ => 1,
            };
            calls.inlined = calls.inlined.saturating_add(inlined);
        }
        calls
    }

    /// For each parameter port of a body, whether the body or a called cell reads it as a table.
    fn table_ports(&self, body: &Body) -> Vec<bool> {
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

    /// Marks the signatures of cells with list constraints, for the nodes of the graph.
    fn mark_constrained_calls(&mut self) {
        for facts in &mut self.facts {
            if let Callee::Cell(cell) = facts.callee
                && facts.sound
            {
                facts.constrains_lists = !self.cells[cell.index()].constraints.is_empty();
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

/// The calls of a body.
struct Calls {
    depth: u32,
    inlined: u64,
    constrained: Vec<(usize, CellId)>,
}
