//! [`GraphData`]: the recorded graph as plain data, for the planner, the writers and the verifier.

use crate::getters::getters;
use crate::graph::{Arena, Bindings, Operand, Signature, Signatures, Site, Sites};
use crate::hash::StructureHash;
use crate::id::{NodeId, SigId, SiteId, TypeId, ValueId};
use crate::module::Module;
use crate::types::{Type, Types};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Hash prefixes that distinguish the two kinds of marks from outputs and from each other.
const SHARED_MARK: u64 = 0x5_4a2e_d000_0000;
const ALONE_MARK: u64 = 0xa_10e0_0000_0000;

/// The start of a range of nodes that belong to one instance, or to all. Nodes before the first cut
/// are common to all instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The first node of the range.
    pub first: u32,
    /// The key of the instance, which selects its noise; `None` for a range common to all instances.
    pub key: Option<u64>,
}

/// The kind of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// The caller reads the value.
    Value,
    /// The caller reads the value, a scalar f32, and its gradients.
    Loss,
}

/// A named output of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: ValueId,
    /// Its kind.
    pub kind: OutputKind,
}

/// A recorded graph: plain data that is `Send`, `Sync` and comparable.
#[derive(Clone, Debug)]
pub struct GraphData {
    /// The module: parameters and cells.
    pub module: Arc<Module>,
    /// Types: the module's, then the graph's own.
    pub types: Types,
    /// Signatures: the module's, then the graph's own.
    pub sigs: Signatures,
    /// Source lines: the module's, then the graph's own.
    pub sites: Sites,
    /// The nodes.
    pub arena: Arena,
    /// The cuts between instances, ascending by node.
    pub cuts: Vec<Cut>,
    /// The outputs.
    pub outputs: Vec<Output>,
    /// Values that every batch must read in all its rows.
    pub shared: Vec<ValueId>,
    /// Nodes that must each form a batch of their own.
    pub alone: Vec<NodeId>,
    /// The bindings.
    pub bindings: Bindings,
    /// The hash of the nodes and cuts so far; see [`structure`](Self::structure).
    pub(crate) hash: StructureHash,
}

impl PartialEq for GraphData {
    fn eq(&self, other: &Self) -> bool {
        let Self { module, types, sigs, sites, arena, cuts, outputs, shared, alone, bindings, hash: _ } =
            self;
        *module == other.module
            && *types == other.types
            && *sigs == other.sigs
            && *sites == other.sites
            && *arena == other.arena
            && *cuts == other.cuts
            && *outputs == other.outputs
            && *shared == other.shared
            && *alone == other.alone
            && bindings_equal(bindings, &other.bindings)
    }
}

/// Compares floats by their bits, so that a graph with a NaN input equals itself.
fn bindings_equal(a: &Bindings, b: &Bindings) -> bool {
    a.words == b.words && a.floats.iter().map(|x| x.to_bits()).eq(b.floats.iter().map(|x| x.to_bits()))
}

impl GraphData {
    /// An empty graph over a module.
    #[must_use]
    pub fn new(module: Arc<Module>) -> Self {
        Self {
            types: module.types.clone(),
            sigs: module.sigs.clone(),
            sites: module.sites.clone(),
            module,
            arena: Arena::default(),
            cuts: Vec::new(),
            outputs: Vec::new(),
            shared: Vec::new(),
            alone: Vec::new(),
            bindings: Bindings::default(),
            hash: StructureHash::default(),
        }
    }

    /// The name of what nodes of a signature call, as the text of the graph spells it.
    #[must_use]
    pub fn callee_name(&self, sig: SigId) -> String {
        self.module.callee_name(self.sigs.get(sig).callee)
    }

    /// The types, signatures and sites that follow those of the module.
    pub(crate) fn own_tables(&self) -> (&[Type], &[Signature], &[Site]) {
        fn rest<'a, T>(own: &'a [T], module: &[T]) -> &'a [T] {
            own.get(module.len()..).unwrap_or_default()
        }
        let Module { types, sigs, sites, .. } = &*self.module;
        (
            rest(self.types.items(), types.items()),
            rest(self.sigs.items(), sigs.items()),
            rest(self.sites.items(), sites.items()),
        )
    }

    /// Removes everything emitted so far and keeps the allocations.
    pub(crate) fn clear(&mut self) {
        self.types.truncate(self.module.types.items().len());
        self.sigs.truncate(self.module.sigs.items().len());
        self.sites.truncate(self.module.sites.items().len());
        self.arena.clear();
        self.cuts.clear();
        self.outputs.clear();
        self.shared.clear();
        self.alone.clear();
        self.bindings.clear();
        self.hash = StructureHash::default();
    }

    /// The 128-bit hash of the structure. Two graphs over one module have the same hash if they differ only in bindings and
    /// source lines. The hash covers the content of signatures, not their ids.
    ///
    /// Plan caches use it as their key. No other decision depends on a hash alone.
    #[must_use]
    pub fn structure(&self) -> u128 {
        let mut hash = self.hash;
        for output in &self.outputs {
            hash.push((output.value.index() as u64) << 1 | u64::from(output.kind == OutputKind::Loss));
        }
        for value in &self.shared {
            hash.push(SHARED_MARK | value.index() as u64);
        }
        for node in &self.alone {
            hash.push(ALONE_MARK | node.index() as u64);
        }
        hash.value()
    }

    /// Recomputes the hash of nodes and cuts, for graphs that were read or rebuilt.
    ///
    /// The result equals the hash that emitting computes: outputs and marks, which have no place in
    /// the arena order, enter in [`structure`](Self::structure) only.
    pub(crate) fn rehash(&mut self) {
        let mut hash = StructureHash::default();
        let mut cuts = self.cuts.iter().copied().peekable();
        for id in self.arena.ids() {
            while let Some(cut) = cuts.next_if(|cut| cut.first as usize <= id.index()) {
                hash_cut(&mut hash, cut);
            }
            hash_node(&mut hash, self.sigs.hash(self.arena.node(id).sig), self.arena.operands(id));
        }
        cuts.for_each(|cut| hash_cut(&mut hash, cut));
        self.hash = hash;
    }

    getters! {
        /// The signature of a node.
        signature(self, node: NodeId) -> &Signature = self.sigs.get(self.arena.node(node).sig);
        /// The type of a value.
        type_of(self, value: ValueId) -> Type = self.types.get(self.arena.type_of(value));
        /// The type behind an id.
        ty(self, id: TypeId) -> Type = self.types.get(id);
        /// The source line behind an id.
        site(self, id: SiteId) -> &Site = self.sites.get(id);
    }

    /// The ranges of nodes between cuts, each with its key. A non-empty common prefix comes first.
    pub fn stretches(&self) -> impl Iterator<Item = (Option<u64>, Range<usize>)> + '_ {
        let prefix = self.cuts.first().map_or(self.arena.len(), |cut| cut.first as usize);
        let prefix = (prefix > 0).then_some((None, 0..prefix));
        let rest = self.cuts.iter().enumerate().map(|(number, cut)| {
            let end = self.cuts.get(number + 1).map_or(self.arena.len(), |next| next.first as usize);
            (cut.key, cut.first as usize..end)
        });
        prefix.into_iter().chain(rest)
    }

    /// The [stretches](Self::stretches), each with the number and key of its instance.
    pub fn numbered_stretches(&self) -> impl Iterator<Item = (Option<(usize, u64)>, Range<usize>)> + '_ {
        let mut numbers = HashMap::new();
        self.stretches().map(move |(key, range)| {
            let mut number = |key| {
                let next = numbers.len();
                (*numbers.entry(key).or_insert(next), key)
            };
            (key.map(&mut number), range)
        })
    }

    /// The number of instances. Ranges with the same key belong to one instance.
    #[must_use]
    pub fn instances(&self) -> usize {
        let keys = || self.cuts.iter().filter_map(|cut| cut.key);
        if keys().is_sorted_by(|a, b| a < b) { keys().count() } else { keys().collect::<BTreeSet<_>>().len() }
    }

    /// The values that no node reads and that are not among some others, without lists.
    pub fn unread(&self, others: &[ValueId]) -> impl Iterator<Item = ValueId> + use<'_> {
        let arena = &self.arena;
        let mut read = vec![false; arena.values()];
        let operands = arena.ids().flat_map(|node| arena.operands(node));
        for id in operands.filter_map(|operand| operand.as_value()).chain(others.iter().copied()) {
            read[id.index()] = true;
        }
        let ids = (0..read.len()).map(ValueId::new);
        ids.filter(move |&id| !read[id.index()] && !self.type_of(id).is_list)
    }

    /// Makes values outputs, named as plans name them, such as `%12`. A name that is taken stays as it is.
    pub fn add_outputs(&mut self, values: impl IntoIterator<Item = (ValueId, OutputKind)>) {
        let mut seen: BTreeSet<String> = self.outputs.iter().map(|output| output.name.clone()).collect();
        for (value, kind) in values {
            let name = value.to_string();
            if seen.insert(name.clone()) {
                self.outputs.push(Output { name, value, kind });
            }
        }
    }

    /// The keys of the cuts before the first cut with this key.
    pub(crate) fn keys_before(&self, key: u64) -> impl Iterator<Item = u64> + '_ {
        self.cuts.iter().filter_map(|cut| cut.key).take_while(move |&other| other != key)
    }
}

pub(crate) fn hash_cut(hash: &mut StructureHash, cut: Cut) {
    hash.push(u64::MAX - u64::from(cut.first));
}

/// Appends a node to the hash: its signature with the number of operands, then the operands. The
/// first two operands share a pair of words with the signature; each further pair holds four.
#[inline(always)]
pub(crate) fn hash_node(hash: &mut StructureHash, sig: u64, operands: &[Operand]) {
    let pair = |a: Operand, b: Operand| u64::from(a.word()) << 32 | u64::from(b.word());
    let head = sig ^ (operands.len() as u64).rotate_left(48);
    match *operands {
        [] => hash.push_pair(head, 0),
        [a] => hash.push_pair(head, u64::from(a.word())),
        [a, b, ref rest @ ..] => {
            hash.push_pair(head, pair(a, b));
            let (fours, last) = rest.as_chunks();
            for &[a, b, c, d] in fours {
                hash.push_pair(pair(a, b), pair(c, d));
            }
            match *last {
                [a] => hash.push_pair(u64::from(a.word()), 0),
                [a, b] => hash.push_pair(pair(a, b), 0),
                [a, b, c] => hash.push_pair(pair(a, b), u64::from(c.word())),
                _ => {}
            }
        }
    }
}
