//! Rewriting: passes build a new graph from an old one.
//!
//! A pass walks the nodes of a graph in order. It copies a node ([`Rebuild::copy`]), replaces it ([`Rebuild::apply`],
//! [`Rebuild::name`]) or drops it. The new graph has the bindings of the old one, slot by slot, so a caller can bind numbers
//! to either. The rebuild carries over cuts, outputs and marks. [`Renaming`] maps old values to new ones.
//!
//! A shared module cannot get new cells. [`Extension`] makes a new module that begins with the tables
//! of the graph, so that ids keep their meaning, and adds cells at the end.

use crate::getters::getters;
use crate::graph::{Arena, Cut, GraphData, Operand, Signature};
use crate::id::{CellId, NodeId, SigId, SiteId, TypeId, ValueId};
use crate::module::{Body, Module};
use crate::types::Type;
use std::sync::Arc;

/// Maps each value of a graph to the value of the rewritten graph that has the same elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming(Vec<Option<ValueId>>);

impl Renaming {
    /// The renaming that maps every value to itself.
    #[must_use]
    pub fn identity(values: usize) -> Self {
        Self((0..values).map(|value| Some(ValueId::new(value))).collect())
    }

    getters! {
        /// The new value; `None` if the rewritten graph does not compute the elements.
        get(self, old: ValueId) -> Option<ValueId> = *self.0.get(old.index())?;
        /// The composition: this renaming first, then `next`.
        then(self, next: &Self) -> Self = Self(self.0.iter().map(|name| name.and_then(|middle| next.get(middle))).collect());
        /// Whether every value maps to itself.
        is_identity(self) -> bool = self.0.iter().enumerate().all(|(old, new)| new.is_some_and(|new| new.index() == old));
    }

    /// The pairs of old and new values, ascending by the old ones.
    pub fn pairs(&self) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
        self.0.iter().enumerate().filter_map(|(old, new)| new.map(|new| (ValueId::new(old), new)))
    }
}

/// A graph under construction from an old graph.
#[derive(Debug)]
pub struct Rebuild<'a> {
    old: &'a GraphData,
    new: GraphData,
    values: Vec<Option<ValueId>>,
    nodes: Vec<Option<NodeId>>,
    cuts: usize,
    scratch: Vec<Operand>,
}

impl<'a> Rebuild<'a> {
    /// A rebuild over the graph's own module.
    #[must_use]
    pub fn new(old: &'a GraphData) -> Self {
        Self::over(old, Arc::clone(&old.module))
    }

    /// A rebuild over another module with the same parameters. Its tables must begin with all types,
    /// signatures and sites of the graph, unless it is the graph's own module.
    #[must_use]
    pub fn over(old: &'a GraphData, module: Arc<Module>) -> Self {
        let mut new = GraphData::new(module);
        if Arc::ptr_eq(&new.module, &old.module) {
            (new.types, new.sigs, new.sites) = (old.types.clone(), old.sigs.clone(), old.sites.clone());
        }
        new.bindings.clone_from(&old.bindings);
        let (values, nodes) = (vec![None; old.arena.values()], vec![None; old.arena.len()]);
        Self { old, new, values, nodes, cuts: 0, scratch: Vec::new() }
    }

    /// Advances the walk to `node`: the new graph gets the cuts up to this node. Copying and appending advance the walk too.
    pub fn reach(&mut self, node: NodeId) {
        while let Some(cut) = self.old.cuts.get(self.cuts).filter(|cut| cut.first as usize <= node.index()) {
            self.new.cuts.push(Cut { first: self.new.arena.len() as u32, key: cut.key });
            self.cuts += 1;
        }
    }

    /// Copies a node with renamed operands and returns its first result.
    ///
    /// # Panics
    /// If an operand has no new value.
    pub fn copy(&mut self, node: NodeId) -> ValueId {
        let (sig, site) = (self.old.arena.node(node).sig, self.old.arena.node(node).site);
        let first = self.apply(node, sig, self.old.arena.operands(node), site);
        for (place, value) in self.old.arena.results(node).enumerate() {
            self.name(ValueId::new(value), ValueId::new(first.index() + place));
        }
        self.nodes[node.index()] = Some(NodeId::new(self.new.arena.len() - 1));
        first
    }

    /// Appends a node in the place of `at` and returns its first result. The operands are operands of
    /// the old graph; the rebuild renames them.
    ///
    /// # Panics
    /// If an operand has no new value.
    pub fn apply(&mut self, at: NodeId, sig: SigId, operands: &[Operand], site: SiteId) -> ValueId {
        let mut renamed = std::mem::take(&mut self.scratch);
        renamed.clear();
        renamed.extend(operands.iter().map(|&operand| self.renamed(operand)));
        let first = self.append(at, sig, &renamed, site);
        self.scratch = renamed;
        first
    }

    /// Appends a node in the place of `at` and returns its first result. The operands are operands of the new graph.
    pub fn append(&mut self, at: NodeId, sig: SigId, operands: &[Operand], site: SiteId) -> ValueId {
        self.reach(at);
        let results = &self.new.sigs.get(sig).results;
        self.new.arena.append(sig, operands, results, site)
    }

    /// Maps a value of the old graph to a value of the new one.
    pub fn name(&mut self, old: ValueId, new: ValueId) {
        self.values[old.index()] = Some(new);
    }

    /// The new value of a value of the old graph, if it has one so far.
    #[must_use]
    pub fn renaming(&self, old: ValueId) -> Option<ValueId> {
        self.values[old.index()]
    }

    /// An operand of the old graph as one of the new graph.
    ///
    /// # Panics
    /// If it reads a value that has no new value.
    #[must_use]
    pub fn renamed(&self, operand: Operand) -> Operand {
        match operand.as_value() {
            Some(value) => Operand::value(
                self.values[value.index()].expect("passes rename operands before their readers"),
            ),
            None => operand,
        }
    }

    /// The id of a type in the new graph.
    pub fn ty(&mut self, ty: Type) -> TypeId {
        self.new.types.intern(ty)
    }

    /// The id of a signature in the new graph, whose types are those of the new graph.
    pub fn sig(&mut self, signature: Signature) -> SigId {
        self.new.sigs.intern(signature, &self.new.types)
    }

    /// Finishes the graph. Every output must have a new value. Marks of dropped values and nodes are dropped.
    ///
    /// # Panics
    /// If an output has no new value.
    #[must_use]
    pub fn finish(mut self) -> (GraphData, Renaming) {
        for cut in &self.old.cuts[self.cuts..] {
            self.new.cuts.push(Cut { first: self.new.arena.len() as u32, key: cut.key });
        }
        self.new.outputs.clone_from(&self.old.outputs);
        for output in &mut self.new.outputs {
            output.value = self.values[output.value.index()].expect("every output has a new value");
        }
        let (values, nodes) = (&self.values, &self.nodes);
        self.new.shared = self.old.shared.iter().filter_map(|value| values[value.index()]).collect();
        self.new.alone = self.old.alone.iter().filter_map(|node| nodes[node.index()]).collect();
        self.new.rehash();
        (self.new, Renaming(self.values))
    }
}

/// A new module with the tables of a graph, which can get further cells.
#[derive(Debug)]
pub struct Extension {
    module: Module,
}

impl Extension {
    /// Begins a module with the graph's types, signatures and sites, and its module's declarations.
    #[must_use]
    pub fn new(graph: &GraphData) -> Self {
        let mut module = Module::empty(&graph.module.name);
        let Module { tag: _, name: _, types, sigs, sites, params, cells, exports } = &mut module;
        types.clone_from(&graph.types);
        sigs.clone_from(&graph.sigs);
        sites.clone_from(&graph.sites);
        params.clone_from(&graph.module.params);
        cells.clone_from(&graph.module.cells);
        exports.clone_from(&graph.module.exports);
        Self { module }
    }

    /// The id of a type.
    pub fn ty(&mut self, ty: Type) -> TypeId {
        self.module.types.intern(ty)
    }

    /// The id of a signature over the types of this module.
    pub fn sig(&mut self, signature: Signature) -> SigId {
        self.module.sigs.intern(signature, &self.module.types)
    }

    /// The signature of a cell port of this type.
    pub fn port(&mut self, ty: TypeId) -> SigId {
        self.sig(Signature::port(self.module.types.get(ty), ty))
    }

    /// The signature with this id.
    #[must_use]
    pub fn signature(&self, sig: SigId) -> &Signature {
        self.module.sigs.get(sig)
    }

    /// The cell with this body: an existing one, or a new one whose name starts with `name`.
    pub fn cell(&mut self, name: &str, body: Body, site: SiteId) -> CellId {
        self.module.intern_cell(name, body, |_| site)
    }

    /// Finishes the module.
    #[must_use]
    pub fn finish(self) -> Arc<Module> {
        Arc::new(self.module)
    }
}

impl Arena {
    /// Appends a node and returns its first result. The caller verifies the graph afterwards.
    ///
    /// # Panics
    /// If an operand reads a value that no earlier node produces.
    pub fn append(&mut self, sig: SigId, operands: &[Operand], results: &[TypeId], site: SiteId) -> ValueId {
        for operand in operands {
            let earlier = operand.as_value().is_none_or(|value| value.index() < self.values());
            assert!(earlier, "{operand:?} reads a value that no earlier node produces");
        }
        ValueId::new(self.push_whole(sig, operands, results, site) as usize)
    }
}
