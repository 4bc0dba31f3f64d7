//! Finds the runs that all occurrences of a head agree on.

use super::MAX_RUN;
use crate::rewrite::{Context, marked, stretches};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand, OperandKind};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::types::INDEX;

const NONE: u32 = u32::MAX;

/// What a node is to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// May be in a run.
    Member,
    /// Brings numbers in and waits for nothing.
    Source,
    /// A list, which is passed over if it names nothing of the run.
    List,
    /// Ends a run.
    Barrier,
}

/// An operand place of a run: which member, which operand.
pub(super) type Use = (u32, u32);

/// Where an operand of a member comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This result of this member.
    Inside { member: u32, result: u32 },
    /// A constant, the same in all occurrences.
    Constant(SigId),
    /// This port.
    Port(u32),
}

/// A port of a run's cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// The first use of the port, which says its type and, in each occurrence, its operand.
    pub(super) first: Use,
}

/// A run and where it occurs.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// For each place in the run the node of each occurrence.
    pub(super) members: Vec<Vec<u32>>,
    /// For each place in the run where its operands come from.
    pub(super) origins: Vec<Vec<Origin>>,
    /// What is read from outside.
    pub(super) ports: Vec<Port>,
    /// Member and result of what is read outside of some occurrence.
    pub(super) results: Vec<(u32, u32)>,
}

impl Run {
    pub(super) fn occurrences(&self) -> usize {
        self.members[0].len()
    }

    /// The last node of each occurrence.
    pub(super) fn last(&self) -> &[u32] {
        self.members.last().map_or(&[], Vec::as_slice)
    }

    /// The operand in this place, in this occurrence.
    pub(super) fn operand(&self, graph: &GraphData, (member, place): Use, occurrence: usize) -> Operand {
        let node = NodeId::new(self.members[member as usize][occurrence] as usize);
        graph.arena.operands(node)[place as usize]
    }
}

/// Looks for runs.
pub(super) struct Finder<'a> {
    graph: &'a GraphData,
    roles: Vec<Role>,
    stretch_of: Vec<u32>,
    /// The last node that reads each value; [`NONE`] if it is read from outside.
    last_use: Vec<u32>,
    /// The number of the occurrence, over all heads, that a node is in; and its place.
    owner: Vec<u32>,
    place: Vec<u32>,
    owners: u32,
    /// Whether a node is in a run already.
    taken: Vec<bool>,
    /// For each signature how many members are in no run yet.
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
        context.kept(graph).for_each(|value| last_use[value.index()] = NONE);
        let nodes = graph.arena.len();
        Self {
            graph,
            roles: roles(graph),
            stretch_of: stretches(graph),
            last_use,
            owner: vec![NONE; nodes],
            place: vec![0; nodes],
            owners: 0,
            taken: vec![false; nodes],
            free: vec![0; graph.sigs.items().len()],
        }
    }

    /// All runs worth a cell, by the place of their first head.
    pub(super) fn runs(mut self) -> Vec<Run> {
        let by_sig = self.by_signature();
        self.free = by_sig.iter().map(|nodes| nodes.len() as u32).collect();
        let mut tried = vec![false; by_sig.len()];
        let mut runs = Vec::new();
        for node in 0..self.graph.arena.len() {
            let sig = self.sig(node as u32).index();
            if self.roles[node] != Role::Member
                || self.taken[node]
                || std::mem::replace(&mut tried[sig], true)
            {
                continue;
            }
            let heads: Vec<u32> =
                by_sig[sig].iter().copied().filter(|&node| !self.taken[node as usize]).collect();
            if heads.len() < 2 {
                continue;
            }
            let mut run = self.grow(heads);
            self.find_results(&mut run);
            if run.members.len() > 1 && !run.results.is_empty() {
                for &node in run.members.iter().flatten() {
                    self.taken[node as usize] = true;
                    let sig = self.sig(node).index();
                    self.free[sig] -= 1;
                }
                runs.push(run);
            }
        }
        runs
    }

    fn sig(&self, node: u32) -> SigId {
        self.graph.arena.node(NodeId::new(node as usize)).sig
    }

    fn operands(&self, node: u32) -> &'a [Operand] {
        self.graph.arena.operands(NodeId::new(node as usize))
    }

    fn by_signature(&self) -> Vec<Vec<u32>> {
        let mut by_sig = vec![Vec::new(); self.graph.sigs.items().len()];
        for (node, &role) in self.roles.iter().enumerate() {
            if role == Role::Member {
                by_sig[self.sig(node as u32).index()].push(node as u32);
            }
        }
        by_sig
    }

    /// The longest run from these heads, all of one signature, on which all agree.
    fn grow(&mut self, heads: Vec<u32>) -> Run {
        let base = self.owners;
        self.owners += heads.len() as u32;
        let head_sig = self.sig(heads[0]);
        let mut run = Run::default();
        let mut cursors = heads.clone();
        self.push(&mut run, heads, base);
        let mut next = Vec::with_capacity(cursors.len());
        while run.members.len() < MAX_RUN {
            next.clear();
            for (occurrence, &from) in cursors.iter().enumerate() {
                let Some(node) = self.following(from, base + occurrence as u32, head_sig) else { return run };
                let agrees = match next.first() {
                    None => self.continues(node, base),
                    Some(&model) => self.alike(node, base + occurrence as u32, model, base),
                };
                if !agrees || self.stands_apart(node, base + occurrence as u32, cursors.len()) {
                    return run;
                }
                next.push(node);
            }
            cursors.clone_from(&next);
            self.push(&mut run, next.clone(), base);
        }
        run
    }

    /// The next node that could be in the run after `from`.
    fn following(&self, from: u32, owner: u32, head_sig: SigId) -> Option<u32> {
        let mut node = from + 1;
        while self.stretch_of.get(node as usize)? == &self.stretch_of[from as usize] {
            match self.roles[node as usize] {
                Role::Source => {}
                Role::List
                    if self.operands(node).iter().all(|&operand| self.inside(operand, owner).is_none()) => {}
                Role::Member if !self.taken[node as usize] && self.sig(node) != head_sig => {
                    return Some(node);
                }
                _ => return None,
            }
            node += 1;
        }
        None
    }

    /// Member and result of the run's occurrence that an operand names.
    fn inside(&self, operand: Operand, owner: u32) -> Option<(u32, u32)> {
        let value = operand.as_value()?;
        let producer = self.graph.arena.producer(value);
        let result = value.index() - self.graph.arena.results(producer).start;
        (self.owner[producer.index()] == owner).then(|| (self.place[producer.index()], result as u32))
    }

    /// Whether a node reads something of the run.
    fn continues(&self, node: u32, owner: u32) -> bool {
        self.operands(node).iter().any(|&operand| self.inside(operand, owner).is_some())
    }

    /// Whether two nodes do the same in their occurrences.
    fn alike(&self, node: u32, owner: u32, model: u32, model_owner: u32) -> bool {
        let (ours, theirs) = (self.operands(node), self.operands(model));
        self.sig(node) == self.sig(model)
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(&a, &b)| self.inside(a, owner) == self.inside(b, model_owner))
    }

    /// Whether a node must not be tied to the run: it does much, and either others of its
    /// signature are elsewhere, with which it can share a batch, or it reads a value of the run that
    /// flows on.
    fn stands_apart(&self, node: u32, owner: u32, occurrences: usize) -> bool {
        let sig = self.sig(node);
        let Callee::Op(op) = self.graph.sigs.get(sig).callee else { return true };
        let flows_on = |&operand: &Operand| {
            let last = operand.as_value().map(|value| self.last_use[value.index()]);
            self.inside(operand, owner).is_some() && last.is_some_and(|last| last > node)
        };
        is_heavy(op)
            && (self.free[sig.index()] as usize != occurrences || self.operands(node).iter().any(flows_on))
    }

    /// Makes these nodes the next member.
    fn push(&mut self, run: &mut Run, members: Vec<u32>, base: u32) {
        let number = run.members.len() as u32;
        run.members.push(members);
        let operands = self.operands(run.members[number as usize][0]);
        let mut origins = Vec::with_capacity(operands.len());
        for (place, &operand) in operands.iter().enumerate() {
            let origin = match self.inside(operand, base) {
                Some((member, result)) => Origin::Inside { member, result },
                None => self.outside(run, (number, place as u32)),
            };
            origins.push(origin);
        }
        run.origins.push(origins);
        for (occurrence, &node) in run.members[number as usize].iter().enumerate() {
            self.owner[node as usize] = base + occurrence as u32;
            self.place[node as usize] = number;
        }
    }

    /// Where an operand from outside comes from: a constant, a known port, or a new one.
    fn outside(&self, run: &mut Run, at: Use) -> Origin {
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
        let equal = |port: &Port| {
            all.clone().all(|occurrence| {
                run.operand(self.graph, port.first, occurrence) == run.operand(self.graph, at, occurrence)
            })
        };
        let known = run.ports.iter().position(equal).unwrap_or(run.ports.len());
        if known == run.ports.len() {
            run.ports.push(Port { first: at });
        }
        Origin::Port(known as u32)
    }

    /// What is read outside of the run in any occurrence.
    fn find_results(&self, run: &mut Run) {
        for (member, column) in run.members.iter().enumerate() {
            let results = self.graph.sigs.get(self.sig(column[0])).results.len();
            for result in 0..results {
                let leaves = column.iter().zip(run.last()).any(|(&node, &last)| {
                    let first = self.graph.arena.results(NodeId::new(node as usize)).start;
                    self.last_use[first + result] > last
                });
                if leaves {
                    run.results.push((member as u32, result as u32));
                }
            }
        }
    }
}

/// Whether an op does much more than read and write its operands once.
const fn is_heavy(op: Op) -> bool {
    matches!(
        op,
        Op::Affine { .. }
            | Op::AffineRows { .. }
            | Op::Matmul
            | Op::Outer
            | Op::Lookup
            | Op::ListFold(_)
            | Op::WeightedSum { .. }
            | Op::Attend { .. }
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
        // The reader of a value that is promised to be shared keeps its own batches.
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
        Callee::Op(Op::List) => Role::List,
        Callee::Op(_) => Role::Member,
    }
}

/// A result of a node.
pub(super) fn result_of(graph: &GraphData, node: u32, result: u32) -> ValueId {
    ValueId::new(graph.arena.results(NodeId::new(node as usize)).start + result as usize)
}
