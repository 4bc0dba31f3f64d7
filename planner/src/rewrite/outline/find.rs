//! Finds the runs on which all occurrences of a head agree.

use crate::index_vec::IndexVec;
use crate::rewrite::pass::{Context, marked, stretches};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand, OperandKind};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::types::INDEX;

/// Largest number of nodes of a run.
pub(super) const MAX_RUN: usize = 256;

const NONE: u32 = u32::MAX;

/// The role of a node in runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// May be in a run.
    Member,
    /// Has no operands to wait for.
    Source,
    /// A list, which a run skips if it holds no value of the run.
    List,
    /// Ends a run.
    Barrier,
}

autobatch_ir::ids! {
    /// A member of a run.
    pub(super) MemberId, "member";
    /// An occurrence of a run, numbered over all heads.
    pub(super) OccurrenceId, "occurrence";
}

/// An operand of a member of a run, by its place.
pub(super) type Use = (MemberId, u32);

/// The origin of an operand of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This result of this member.
    Inside { member: MemberId, result: u32 },
    /// A constant, equal in all occurrences.
    Constant(SigId),
    /// This port.
    Port(u32),
}

/// A run and its occurrences.
#[derive(Debug, Default)]
pub(super) struct NodeRun {
    /// For each member of the run its node in each occurrence.
    pub(super) members: IndexVec<MemberId, Vec<NodeId>>,
    /// For each member of the run the origins of its operands.
    pub(super) origins: IndexVec<MemberId, Vec<Origin>>,
    /// The first use of each port. It determines the type, and the operand in each occurrence.
    pub(super) ports: Vec<Use>,
    /// The values with readers outside of some occurrence: the member, and the place of the result.
    pub(super) results: Vec<(MemberId, u32)>,
}

impl NodeRun {
    pub(super) fn occurrences(&self) -> usize {
        self.heads().len()
    }

    /// The first node of each occurrence.
    pub(super) fn heads(&self) -> &[NodeId] {
        &self.members[MemberId(0)]
    }

    /// The last node of each occurrence.
    pub(super) fn last(&self) -> &[NodeId] {
        self.members.last().map_or(&[], Vec::as_slice)
    }

    /// The operand of a use in an occurrence.
    pub(super) fn operand(&self, graph: &GraphData, (member, place): Use, occurrence: usize) -> Operand {
        graph.arena.operands(self.members[member][occurrence])[place as usize]
    }
}

/// The search for runs.
pub(super) struct Finder<'a> {
    graph: &'a GraphData,
    roles: Vec<Role>,
    stretch_of: Vec<u32>,
    /// The last reader of each value, or [`NONE`] for requested values.
    last_use: Vec<u32>,
    /// The occurrence of a node, and which of its members the node is.
    owner: Vec<OccurrenceId>,
    member: Vec<MemberId>,
    owners: u32,
    /// Whether a node belongs to a run.
    taken: Vec<bool>,
    /// Number of members of each signature outside of runs.
    free: Vec<u32>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(graph: &'a GraphData, context: &Context<'_>) -> Self {
        let mut last_use = vec![0; graph.arena.values()];
        for node in graph.arena.ids() {
            for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                last_use[value.index()] = node.index() as u32;
            }
        }
        context.requested(graph).for_each(|value| last_use[value.index()] = NONE);
        let nodes = graph.arena.len();
        Self {
            graph,
            roles: roles(graph),
            stretch_of: stretches(graph),
            last_use,
            owner: vec![OccurrenceId(NONE); nodes],
            member: vec![MemberId(0); nodes],
            owners: 0,
            taken: vec![false; nodes],
            free: vec![0; graph.sigs.items().len()],
        }
    }

    /// All runs with at least two members and one result, by first head.
    pub(super) fn runs(mut self) -> Vec<NodeRun> {
        let by_sig = self.by_signature();
        self.free = by_sig.iter().map(|nodes| nodes.len() as u32).collect();
        let mut tried = vec![false; by_sig.len()];
        let mut runs = Vec::new();
        for node in self.graph.arena.ids() {
            let sig = self.sig(node).index();
            if self.roles[node.index()] != Role::Member
                || self.taken[node.index()]
                || std::mem::replace(&mut tried[sig], true)
            {
                continue;
            }
            let heads: Vec<NodeId> =
                by_sig[sig].iter().copied().filter(|node| !self.taken[node.index()]).collect();
            if heads.len() < 2 {
                continue;
            }
            let mut run = self.grow(heads);
            self.find_results(&mut run);
            if run.members.len() > 1 && !run.results.is_empty() {
                for &node in run.members.iter().flatten() {
                    self.taken[node.index()] = true;
                    let sig = self.sig(node).index();
                    self.free[sig] -= 1;
                }
                runs.push(run);
            }
        }
        runs
    }

    fn sig(&self, node: NodeId) -> SigId {
        self.graph.arena.node(node).sig
    }

    fn operands(&self, node: NodeId) -> &'a [Operand] {
        self.graph.arena.operands(node)
    }

    fn by_signature(&self) -> Vec<Vec<NodeId>> {
        let mut by_sig = vec![Vec::new(); self.graph.sigs.items().len()];
        for node in self.graph.arena.ids().filter(|node| self.roles[node.index()] == Role::Member) {
            by_sig[self.sig(node).index()].push(node);
        }
        by_sig
    }

    /// The longest run from these heads, all of one signature, on which all occurrences agree.
    fn grow(&mut self, heads: Vec<NodeId>) -> NodeRun {
        let base = OccurrenceId(self.owners);
        self.owners += heads.len() as u32;
        let head_sig = self.sig(heads[0]);
        let mut run = NodeRun::default();
        let mut cursors = heads.clone();
        self.push(&mut run, heads, base);
        let mut next = Vec::with_capacity(cursors.len());
        while run.members.len() < MAX_RUN {
            next.clear();
            for (owner, &from) in (base.0..).map(OccurrenceId).zip(&cursors) {
                let Some(node) = self.following(from, owner, head_sig) else { return run };
                let agrees = match next.first() {
                    None => self.continues(node, base),
                    Some(&model) => self.are_equal_members(node, owner, model, base),
                };
                if !agrees || self.stands_apart(node, owner, cursors.len()) {
                    return run;
                }
                next.push(node);
            }
            cursors.clone_from(&next);
            self.push(&mut run, next.clone(), base);
        }
        run
    }

    /// The next possible member after `from`.
    fn following(&self, from: NodeId, owner: OccurrenceId, head_sig: SigId) -> Option<NodeId> {
        let stretch = self.stretch_of[from.index()];
        for index in from.index() + 1..self.stretch_of.len() {
            let node = NodeId::new(index);
            if self.stretch_of[index] != stretch {
                return None;
            }
            match self.roles[index] {
                Role::Source => {}
                Role::List
                    if self.operands(node).iter().all(|&operand| self.inside(operand, owner).is_none()) => {}
                Role::Member if !self.taken[index] && self.sig(node) != head_sig => return Some(node),
                _ => return None,
            }
        }
        None
    }

    /// The member and result that an operand names in an occurrence.
    fn inside(&self, operand: Operand, owner: OccurrenceId) -> Option<(MemberId, u32)> {
        let value = operand.as_value()?;
        let producer = self.graph.arena.producer(value);
        let result = value.index() - self.graph.arena.results(producer).start;
        (self.owner[producer.index()] == owner).then(|| (self.member[producer.index()], result as u32))
    }

    /// Whether a node reads a value of the run.
    fn continues(&self, node: NodeId, owner: OccurrenceId) -> bool {
        self.operands(node).iter().any(|&operand| self.inside(operand, owner).is_some())
    }

    /// Whether two nodes are equal members of their occurrences.
    fn are_equal_members(
        &self,
        node: NodeId,
        owner: OccurrenceId,
        model: NodeId,
        model_owner: OccurrenceId,
    ) -> bool {
        let (ours, theirs) = (self.operands(node), self.operands(model));
        self.sig(node) == self.sig(model)
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(&a, &b)| self.inside(a, owner) == self.inside(b, model_owner))
    }

    /// Whether a node must stay out of the run: it is heavy, and either its signature also occurs elsewhere, or it reads a value of
    /// the run that has later readers.
    fn stands_apart(&self, node: NodeId, owner: OccurrenceId, occurrences: usize) -> bool {
        let sig = self.sig(node);
        let Callee::Op(op) = self.graph.sigs.get(sig).callee else { return true };
        let flows_on = |&operand: &Operand| {
            let last = operand.as_value().map(|value| self.last_use[value.index()]);
            self.inside(operand, owner).is_some() && last.is_some_and(|last| last > node.index() as u32)
        };
        is_heavy(op)
            && (self.free[sig.index()] as usize != occurrences || self.operands(node).iter().any(flows_on))
    }

    /// Appends these nodes as the next member.
    fn push(&mut self, run: &mut NodeRun, nodes: Vec<NodeId>, base: OccurrenceId) {
        let own = run.members.push(nodes);
        let operands = self.operands(run.members[own][0]);
        let mut origins = Vec::with_capacity(operands.len());
        for (place, &operand) in operands.iter().enumerate() {
            let origin = match self.inside(operand, base) {
                Some((member, result)) => Origin::Inside { member, result },
                None => self.outside(run, (own, place as u32)),
            };
            origins.push(origin);
        }
        run.origins.push(origins);
        for (owner, node) in (base.0..).map(OccurrenceId).zip(&run.members[own]) {
            self.owner[node.index()] = owner;
            self.member[node.index()] = own;
        }
    }

    /// The origin of an outside operand: a constant, a known port, or a new port.
    fn outside(&self, run: &mut NodeRun, at: Use) -> Origin {
        let all = 0..run.occurrences();
        let constant = |operand: Operand| {
            let sig = self.graph.arena.node(self.graph.arena.producer(operand.as_value()?)).sig;
            matches!(self.graph.sigs.get(sig).callee, Callee::Op(Op::Fill { .. })).then_some(sig)
        };
        if let Some(sig) = constant(run.operand(self.graph, at, 0))
            && all.clone().all(|occurrence| constant(run.operand(self.graph, at, occurrence)) == Some(sig))
        {
            return Origin::Constant(sig);
        }
        let equal = |&port: &Use| {
            all.clone().all(|occurrence| {
                run.operand(self.graph, port, occurrence) == run.operand(self.graph, at, occurrence)
            })
        };
        let known = run.ports.iter().position(equal).unwrap_or(run.ports.len());
        if known == run.ports.len() {
            run.ports.push(at);
        }
        Origin::Port(known as u32)
    }

    /// Finds the values with readers outside of the run in some occurrence.
    fn find_results(&self, run: &mut NodeRun) {
        for (member, column) in run.members.entries() {
            let results = self.graph.sigs.get(self.sig(column[0])).results.len();
            for result in 0..results {
                let leaves = column.iter().zip(run.last()).any(|(&node, &last)| {
                    let first = self.graph.arena.results(node).start;
                    self.last_use[first + result] > last.index() as u32
                });
                if leaves {
                    run.results.push((member, result as u32));
                }
            }
        }
    }
}

/// Whether an op costs much more than reading and writing its operands once.
const fn is_heavy(op: Op) -> bool {
    matches!(
        op,
        Op::Affine { .. }
            | Op::AffineRows { .. }
            | Op::Matmul
            | Op::Outer
            | Op::Lookup
            | Op::LabelLoss
            | Op::ListFold(_)
            | Op::ListPick
            | Op::WeightedSum { .. }
            | Op::Attend { .. }
            | Op::GraphAttend { .. }
    )
}

fn roles(graph: &GraphData) -> Vec<Role> {
    let marked = marked(graph);
    let of_sig: Vec<Role> = graph.sigs.items().iter().map(|signature| role(signature.callee)).collect();
    let role = |node: NodeId| {
        let role = of_sig[graph.arena.node(node).sig.index()];
        let bound = || {
            graph.arena.operands(node).iter().zip(&graph.signature(node).operands).any(|(operand, &ty)| {
                match operand.kind() {
                    Some(OperandKind::Value(_)) => false,
                    Some(OperandKind::Index(_)) => graph.ty(ty) != INDEX,
                    Some(OperandKind::Data(_)) | None => true,
                }
            })
        };
        // The readers of a `shared` value keep their own batches.
        let promised = || {
            let mut read = graph.arena.operands(node).iter().filter_map(|operand| operand.as_value());
            !graph.shared.is_empty() && read.any(|value| marked[graph.arena.producer(value).index()])
        };
        let stays = role == Role::Member && (marked[node.index()] || bound() || promised());
        if stays { Role::Barrier } else { role }
    };
    graph.arena.ids().map(role).collect()
}

const fn role(callee: Callee) -> Role {
    match callee {
        Callee::Cell(_) | Callee::Op(Op::Port(_) | Op::Dropout { .. } | Op::ForkNoise { .. }) => {
            Role::Barrier
        }
        Callee::Op(Op::Input(_) | Op::Fill { .. } | Op::Param) => Role::Source,
        Callee::Op(Op::List | Op::Append) => Role::List,
        Callee::Op(_) => Role::Member,
    }
}

/// A result of a node.
pub(super) fn result_of(graph: &GraphData, node: NodeId, result: u32) -> ValueId {
    ValueId::new(graph.arena.results(node).start + result as usize)
}
