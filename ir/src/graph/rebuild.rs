//! Making a graph from a graph: the door through which passes write.
//!
//! A pass walks the nodes of a graph in order and says for each whether it stays
//! ([`Rebuild::copy`]), gives way to others ([`Rebuild::apply`], [`Rebuild::name`]) or goes. The
//! result has the bindings of the old graph, slot by slot, so that whatever binds numbers to the one
//! binds them to the other; cuts, outputs and marks are carried over. [`Renaming`] says what became
//! of each value.
//!
//! Cells cannot be added to a module that others hold. [`Extension`] makes a new module that begins
//! with everything the graph knows, so that its ids keep their meaning, and adds cells behind.

use crate::graph::op::Op;
use crate::graph::{Arena, Callee, Cut, GraphData, Operand, Signature};
use crate::id::{CellId, NodeId, SigId, SiteId, TypeId, ValueId};
use crate::module::{Body, CellDecl, Module};
use crate::types::Type;
use std::sync::Arc;

/// For each value of a graph the value of the rewritten graph that has its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming(Vec<Option<ValueId>>);

impl Renaming {
    /// Every value keeps its name.
    #[must_use]
    pub fn identity(values: usize) -> Self {
        Self((0..values).map(|value| Some(ValueId::new(value))).collect())
    }

    /// What became of a value; `None` if nothing has its elements any more.
    #[must_use]
    pub fn get(&self, old: ValueId) -> Option<ValueId> {
        *self.0.get(old.index())?
    }

    /// First this renaming, then `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self(self.0.iter().map(|name| name.and_then(|middle| next.get(middle))).collect())
    }

    /// Every value that is still there, with its new name, ascending by the old one.
    pub fn pairs(&self) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
        self.0.iter().enumerate().filter_map(|(old, new)| new.map(|new| (ValueId::new(old), new)))
    }

    /// Whether every value keeps its name.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(old, new)| new.is_some_and(|new| new.index() == old))
    }
}

/// A graph that is being rewritten.
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
    /// Over the graph's own module.
    #[must_use]
    pub fn new(old: &'a GraphData) -> Self {
        Self::over(old, Arc::clone(&old.module))
    }

    /// Over another module with the same parameters, which must begin with all types, signatures
    /// and sites of the graph, or be the graph's own.
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

    /// Says that the walk has come to `node`: instances that begin here or before begin in the new
    /// graph now. Copying and applying do it by themselves.
    pub fn reach(&mut self, node: NodeId) {
        while let Some(cut) = self.old.cuts.get(self.cuts).filter(|cut| cut.first as usize <= node.index()) {
            self.new.cuts.push(Cut { first: self.new.arena.len() as u32, key: cut.key });
            self.cuts += 1;
        }
    }

    /// Keeps a node, its operands renamed; its first result.
    ///
    /// # Panics
    /// If an operand went without being given a new name.
    pub fn copy(&mut self, node: NodeId) -> ValueId {
        let (sig, site) = (self.old.arena.node(node).sig, self.old.arena.node(node).site);
        let first = self.apply(node, sig, self.old.arena.operands(node), site);
        for (place, value) in self.old.arena.results(node).enumerate() {
            self.name(ValueId::new(value), ValueId::new(first.index() + place));
        }
        self.nodes[node.index()] = Some(NodeId::new(self.new.arena.len() - 1));
        first
    }

    /// Appends a node in the place of `at`; its operands are those of the old graph, and
    /// are renamed. The first result, in the new graph.
    ///
    /// # Panics
    /// If an operand went without being given a new name.
    pub fn apply(&mut self, at: NodeId, sig: SigId, operands: &[Operand], site: SiteId) -> ValueId {
        let mut renamed = std::mem::take(&mut self.scratch);
        renamed.clear();
        renamed.extend(operands.iter().map(|&operand| self.renamed(operand)));
        let first = self.append(at, sig, &renamed, site);
        self.scratch = renamed;
        first
    }

    /// Appends a node in the place of `at` whose operands are those of the new graph. The
    /// first result, in the new graph.
    pub fn append(&mut self, at: NodeId, sig: SigId, operands: &[Operand], site: SiteId) -> ValueId {
        self.reach(at);
        let results = &self.new.sigs.get(sig).results;
        self.new.arena.append(sig, operands, results, site)
    }

    /// Gives a value of the old graph its name in the new one.
    pub fn name(&mut self, old: ValueId, new: ValueId) {
        self.values[old.index()] = Some(new);
    }

    /// The name that a value of the old graph has in the new one so far.
    #[must_use]
    pub fn renaming(&self, old: ValueId) -> Option<ValueId> {
        self.values[old.index()]
    }

    /// An operand of the old graph as one of the new graph.
    ///
    /// # Panics
    /// If it names a value that went without being given a new name.
    #[must_use]
    pub fn renamed(&self, operand: Operand) -> Operand {
        match operand.as_value() {
            Some(value) => Operand::value(
                self.values[value.index()].expect("operands are named before the nodes that read them"),
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

    /// The finished graph. Outputs must have names in it; marks of what went go too.
    ///
    /// # Panics
    /// If an output went without being given a new name.
    #[must_use]
    pub fn finish(mut self) -> (GraphData, Renaming) {
        for cut in &self.old.cuts[self.cuts..] {
            self.new.cuts.push(Cut { first: self.new.arena.len() as u32, key: cut.key });
        }
        self.new.outputs.clone_from(&self.old.outputs);
        for output in &mut self.new.outputs {
            output.value = self.values[output.value.index()].expect("outputs keep a value");
        }
        let (values, nodes) = (&self.values, &self.nodes);
        self.new.shared = self.old.shared.iter().filter_map(|value| values[value.index()]).collect();
        self.new.alone = self.old.alone.iter().filter_map(|node| nodes[node.index()]).collect();
        self.new.rehash();
        (self.new, Renaming(self.values))
    }
}

/// A module that begins with everything a graph knows, and is given further cells.
#[derive(Debug)]
pub struct Extension {
    module: Module,
}

impl Extension {
    /// The module of a graph, with the graph's types, signatures and sites.
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

    /// The id of a signature whose types are those of this module.
    pub fn sig(&mut self, signature: Signature) -> SigId {
        self.module.sigs.intern(signature, &self.module.types)
    }

    /// The signature of a cell's port of a type of this module.
    pub fn port(&mut self, ty: TypeId) -> SigId {
        let op = Op::Port(self.module.types.get(ty));
        self.sig(Signature {
            callee: Callee::Op(op),
            operands: Box::default(),
            params: Box::default(),
            param_types: Box::default(),
            results: [ty].into(),
        })
    }

    /// The signature behind an id.
    #[must_use]
    pub fn signature(&self, sig: SigId) -> &Signature {
        self.module.sigs.get(sig)
    }

    /// The cell with this body: a known one, or a new one whose name begins with `name`.
    pub fn cell(&mut self, name: &str, body: Body, site: SiteId) -> CellId {
        if let Some(known) = self.module.cells.iter().position(|decl| decl.body == body) {
            return CellId::new(known);
        }
        let taken = |name: &str| self.module.cells.iter().any(|decl| decl.name == name);
        let mut unique = name.to_owned();
        let mut number = 2;
        while taken(&unique) {
            unique = format!("{name}.{number}");
            number += 1;
        }
        self.module.cells.push(CellDecl { name: unique, body, site });
        CellId::new(self.module.cells.len() - 1)
    }

    /// The finished module.
    #[must_use]
    pub fn finish(self) -> Arc<Module> {
        Arc::new(self.module)
    }
}

impl Arena {
    /// Appends a node; its first result. The verifier checks that the parts fit.
    ///
    /// # Panics
    /// If an operand names a value that is not there yet: the order of an arena is topological.
    pub fn append(&mut self, sig: SigId, operands: &[Operand], results: &[TypeId], site: SiteId) -> ValueId {
        for operand in operands {
            let earlier = operand.as_value().is_none_or(|value| value.index() < self.values());
            assert!(earlier, "{operand:?} names a value that no node made yet");
        }
        ValueId::new(self.push_whole(sig, operands, results, site) as usize)
    }
}
