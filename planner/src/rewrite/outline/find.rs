//! Finds the runs that all occurrences of a head agree on.

use super::MAX_RUN;
use crate::rewrite::{Context, marked, stretches};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand, OperandKind};
use autobatch_ir::id::{AppId, SigId, ValueId};
use autobatch_ir::types::INDEX;

const NONE: u32 = u32::MAX;

/// What an application is to a run.
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
    /// For each place in the run the application of each occurrence.
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

    /// The last application of each occurrence.
    pub(super) fn last(&self) -> &[u32] {
        self.members.last().map_or(&[], Vec::as_slice)
    }

    /// The operand in this place, in this occurrence.
    pub(super) fn operand(&self, graph: &GraphData, (member, place): Use, occurrence: usize) -> Operand {
        let app = AppId::new(self.members[member as usize][occurrence] as usize);
        graph.arena.operands(app)[place as usize]
    }
}

/// Looks for runs.
pub(super) struct Finder<'a> {
    graph: &'a GraphData,
    roles: Vec<Role>,
    stretch_of: Vec<u32>,
    /// The last application that reads each value; [`NONE`] if it is read from outside.
    last_use: Vec<u32>,
    /// The number of the occurrence, over all heads, that an application is in; and its place.
    owner: Vec<u32>,
    place: Vec<u32>,
    owners: u32,
    /// Whether an application is in a run already.
    taken: Vec<bool>,
    /// For each signature how many members are in no run yet.
    free: Vec<u32>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(graph: &'a GraphData, context: &Context<'_>) -> Self {
        let mut last_use = vec![0; graph.arena.values()];
        for app in graph.arena.ids() {
            for value in graph.arena.operands(app).iter().filter_map(|operand| operand.as_value()) {
                last_use[value.index()] = app.index() as u32;
            }
        }
        context.kept(graph).for_each(|value| last_use[value.index()] = NONE);
        let apps = graph.arena.len();
        Self {
            graph,
            roles: roles(graph),
            stretch_of: stretches(graph),
            last_use,
            owner: vec![NONE; apps],
            place: vec![0; apps],
            owners: 0,
            taken: vec![false; apps],
            free: vec![0; graph.sigs.items().len()],
        }
    }

    /// All runs worth a cell, by the place of their first head.
    pub(super) fn runs(mut self) -> Vec<Run> {
        let by_sig = self.by_signature();
        self.free = by_sig.iter().map(|apps| apps.len() as u32).collect();
        let mut tried = vec![false; by_sig.len()];
        let mut runs = Vec::new();
        for app in 0..self.graph.arena.len() {
            let sig = self.sig(app as u32).index();
            if self.roles[app] != Role::Member || self.taken[app] || std::mem::replace(&mut tried[sig], true)
            {
                continue;
            }
            let heads: Vec<u32> =
                by_sig[sig].iter().copied().filter(|&app| !self.taken[app as usize]).collect();
            if heads.len() < 2 {
                continue;
            }
            let mut run = self.grow(heads);
            self.find_results(&mut run);
            if run.members.len() > 1 && !run.results.is_empty() {
                for &app in run.members.iter().flatten() {
                    self.taken[app as usize] = true;
                    let sig = self.sig(app).index();
                    self.free[sig] -= 1;
                }
                runs.push(run);
            }
        }
        runs
    }

    fn sig(&self, app: u32) -> SigId {
        self.graph.arena.app(AppId::new(app as usize)).sig
    }

    fn operands(&self, app: u32) -> &'a [Operand] {
        self.graph.arena.operands(AppId::new(app as usize))
    }

    fn by_signature(&self) -> Vec<Vec<u32>> {
        let mut by_sig = vec![Vec::new(); self.graph.sigs.items().len()];
        for (app, &role) in self.roles.iter().enumerate() {
            if role == Role::Member {
                by_sig[self.sig(app as u32).index()].push(app as u32);
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
                let Some(app) = self.following(from, base + occurrence as u32, head_sig) else { return run };
                let agrees = match next.first() {
                    None => self.continues(app, base),
                    Some(&model) => self.alike(app, base + occurrence as u32, model, base),
                };
                if !agrees || self.stands_apart(app, base + occurrence as u32, cursors.len()) {
                    return run;
                }
                next.push(app);
            }
            cursors.clone_from(&next);
            self.push(&mut run, next.clone(), base);
        }
        run
    }

    /// The next application that could be in the run after `from`.
    fn following(&self, from: u32, owner: u32, head_sig: SigId) -> Option<u32> {
        let mut app = from + 1;
        while self.stretch_of.get(app as usize)? == &self.stretch_of[from as usize] {
            match self.roles[app as usize] {
                Role::Source => {}
                Role::List
                    if self.operands(app).iter().all(|&operand| self.inside(operand, owner).is_none()) => {}
                Role::Member if !self.taken[app as usize] && self.sig(app) != head_sig => return Some(app),
                _ => return None,
            }
            app += 1;
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

    /// Whether an application reads something of the run.
    fn continues(&self, app: u32, owner: u32) -> bool {
        self.operands(app).iter().any(|&operand| self.inside(operand, owner).is_some())
    }

    /// Whether two applications do the same in their occurrences.
    fn alike(&self, app: u32, owner: u32, model: u32, model_owner: u32) -> bool {
        let (ours, theirs) = (self.operands(app), self.operands(model));
        self.sig(app) == self.sig(model)
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(&a, &b)| self.inside(a, owner) == self.inside(b, model_owner))
    }

    /// Whether an application must not be tied to the run: it does much, and either others of its
    /// signature are elsewhere, with which it can share a batch, or it reads a value of the run that
    /// flows on.
    fn stands_apart(&self, app: u32, owner: u32, occurrences: usize) -> bool {
        let sig = self.sig(app);
        let Callee::Op(op) = self.graph.sigs.get(sig).callee else { return true };
        let flows_on = |&operand: &Operand| {
            let last = operand.as_value().map(|value| self.last_use[value.index()]);
            self.inside(operand, owner).is_some() && last.is_some_and(|last| last > app)
        };
        is_heavy(op)
            && (self.free[sig.index()] as usize != occurrences || self.operands(app).iter().any(flows_on))
    }

    /// Makes these applications the next member.
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
        for (occurrence, &app) in run.members[number as usize].iter().enumerate() {
            self.owner[app as usize] = base + occurrence as u32;
            self.place[app as usize] = number;
        }
    }

    /// Where an operand from outside comes from: a constant, a known port, or a new one.
    fn outside(&self, run: &mut Run, at: Use) -> Origin {
        let all = 0..run.occurrences();
        let constant = |operand: Operand| {
            let sig = self.graph.arena.app(self.graph.arena.producer(operand.as_value()?)).sig;
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
                let leaves = column.iter().zip(run.last()).any(|(&app, &last)| {
                    let first = self.graph.arena.results(AppId::new(app as usize)).start;
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
            | Op::Lookup { .. }
            | Op::ListFold(_)
            | Op::WeightedSum { .. }
            | Op::Attend { .. }
    )
}

fn roles(graph: &GraphData) -> Vec<Role> {
    let marked = marked(graph);
    let of_sig: Vec<Role> = graph.sigs.items().iter().map(|signature| role(signature.callee)).collect();
    let role = |app: AppId| {
        let role = of_sig[graph.arena.app(app).sig.index()];
        let bound = || {
            graph.arena.operands(app).iter().zip(&graph.signature(app).operands).any(|(operand, &ty)| {
                match operand.kind() {
                    Some(OperandKind::Value(_)) => false,
                    Some(OperandKind::Index(_)) => graph.ty(ty) != INDEX,
                    Some(OperandKind::Data(_)) | None => true,
                }
            })
        };
        // The reader of a value that is promised to be shared keeps its own batches.
        let promised = || {
            let mut read = graph.arena.operands(app).iter().filter_map(|operand| operand.as_value());
            !graph.shared.is_empty() && read.any(|value| marked[graph.arena.producer(value).index()])
        };
        let stays = role == Role::Member && (marked[app.index()] || bound() || promised());
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

/// A result of an application.
pub(super) fn result_of(graph: &GraphData, app: u32, result: u32) -> ValueId {
    ValueId::new(graph.arena.results(AppId::new(app as usize)).start + result as usize)
}
