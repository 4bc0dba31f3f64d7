//! Steps in reverse, executed on names.

use super::class::{Executing, Match, Role};
use super::uses::{SEED, Use, WHOLE};
use super::{Derivative, Key, Name, Reverse};
use crate::check::constant_bits;
use crate::check::lanes::{Lanes, NOTHING};
use crate::check::report::Disagreement;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{FieldId, Kernel, Operand, Place, Stage, Step, StepId};
use std::collections::BTreeSet;

/// The most ways to read a step's ports that are tried.
const TRIALS: usize = 64;

impl Lanes<'_> {
    /// A step whose lanes were executed before: seeds, a fold of gradients, or a derivative.
    pub(in crate::check) fn reverse_step(&mut self, id: StepId, step: &Step, reverse: &mut Reverse<'_>) {
        let Some(sig) = self.executed_before(id, step, reverse) else { return };
        let kernel = self.plan.kernel(step);
        if let Some(bits) = constant_bits(kernel) {
            return self.name_results(step, reverse, |_, _, _| Name::Seed(bits));
        }
        // The derivative of a node that hands its gradient on is a fold, too.
        let class = self.class(id, step, sig, reverse);
        match class {
            Ok(class) => {
                let made = |node: NodeId, result: usize, item: u32| Name::Made {
                    class,
                    node: node.index() as u32,
                    result: result as u32,
                    item,
                };
                self.name_results(step, reverse, made);
            }
            Err(_) if is_fold(kernel) && self.fold(step, reverse) => {}
            Err(wrong) => self.report.push(wrong),
        }
    }

    /// Whether all lanes were executed before, by another kernel: their signature, if they share it
    /// and the kernel that executed them.
    fn executed_before(&mut self, id: StepId, step: &Step, reverse: &Reverse<'_>) -> Option<Option<SigId>> {
        let mut all = None;
        let mut mixed = false;
        for &node in self.plan.lanes(step) {
            let before = reverse.forward.get(node.index()).copied().unwrap_or(u32::MAX);
            let Some(forward) = self.plan.steps.get(before as usize) else {
                self.report.push(Disagreement::Node { step: id, node });
                return None;
            };
            if forward.kernel == step.kernel {
                self.report.push(Disagreement::Twice { step: id, node });
                return None;
            }
            let own = (self.graph.arena.node(node).sig, forward.kernel);
            mixed |= *all.get_or_insert(own) != own;
        }
        Some(all.filter(|_| !mixed).map(|all| all.0))
    }

    fn name_results(
        &mut self,
        step: &Step,
        reverse: &mut Reverse<'_>,
        name: impl Fn(NodeId, usize, u32) -> Name,
    ) {
        for (result, &place) in self.plan.places(step).iter().enumerate() {
            for (lane, &node) in self.plan.lanes(step).iter().enumerate() {
                let lane = lane as u32;
                let (field, row) = match place {
                    Place::Rows { field, start } => (field, start + lane),
                    Place::Table { field, at } => (field, self.plan.tables[(at + lane) as usize]),
                    Place::Edges { field, start, offsets } => {
                        let offset = |lane: u32| self.plan.tables[(offsets + lane) as usize];
                        for item in 0..offset(lane + 1) - offset(lane) {
                            let row = start + offset(lane) + item;
                            self.set_name(reverse, field, row, name(node, result, item));
                        }
                        continue;
                    }
                };
                self.set_name(reverse, field, row, name(node, result, WHOLE));
            }
        }
    }

    pub(in crate::check) fn set_name(
        &mut self,
        reverse: &mut Reverse<'_>,
        field: FieldId,
        row: u32,
        name: Name,
    ) {
        let at = self.base[field.index()] + row as usize;
        self.held[at] = NOTHING;
        reverse.names[at] = name;
    }

    /// What a row holds that is no value.
    pub(super) fn name(&self, reverse: &Reverse<'_>, field: FieldId, row: u32) -> Name {
        let at = self.base[field.index()] + row as usize;
        let name = reverse.names[at];
        if self.held[at] == NOTHING || matches!(name, Name::Seed(_)) { name } else { Name::Nothing }
    }

    /// Steps that make the gradients of values by folding: whether this is one.
    fn fold(&mut self, step: &Step, reverse: &mut Reverse<'_>) -> bool {
        let Some(&operand) = self.plan.operands(step).first() else { return false };
        let mut sums = Vec::with_capacity(step.rows as usize);
        let width = self.plan.field(self.plan.places(step)[0].field()).width() as usize;
        for (lane, &node) in self.plan.lanes(step).iter().enumerate() {
            let fits = |&(_, value): &(u32, usize)| {
                let is_wide = self.graph.type_of(ValueId::new(value)).shape.elements() == width;
                is_wide && self.is_gradient(reverse, value, lane as u32, operand)
            };
            let results = (0..).zip(self.graph.arena.results(node)).filter(fits);
            let results: Vec<u32> = results.map(|(result, _)| result).collect();
            if results.is_empty() {
                return false;
            }
            sums.push(Name::Sum { node: node.index() as u32, results: reverse.set(results) });
        }
        let place = self.plan.places(step)[0];
        for (lane, sum) in sums.into_iter().enumerate() {
            let (field, row) = match place {
                Place::Rows { field, start } => (field, start + lane as u32),
                Place::Table { field, at } => (field, self.plan.tables[at as usize + lane]),
                Place::Edges { .. } => return false,
            };
            self.set_name(reverse, field, row, sum);
        }
        reverse.rows += u64::from(step.rows);
        true
    }

    /// Whether an operand is all contributions to the gradient of a value, in order, or their sum.
    pub(super) fn is_gradient(
        &self,
        reverse: &Reverse<'_>,
        value: usize,
        lane: u32,
        operand: Operand,
    ) -> bool {
        let expected = reverse.expected.of(value);
        let is_use = |name: Name, own: &Use| is_use(reverse, name, own);
        match operand {
            Operand::Segments { .. } => {
                let (field, rows) = self.segment(lane, operand);
                if rows.len() != expected.len() {
                    return false;
                }
                let name = |row: &u32| self.name(reverse, field, *row);
                let seeds = expected.iter().position(|own| own.node == SEED).unwrap_or(expected.len());
                if !rows[..seeds].iter().zip(expected).all(|(row, own)| is_use(name(row), own)) {
                    return false;
                }
                let in_order = rows[seeds..].iter().zip(&expected[seeds..]);
                if in_order.clone().all(|(row, own)| is_use(name(row), own)) {
                    return true;
                }
                // The order of several losses that are one value is that of the request.
                let mut wanted: Vec<Name> =
                    expected[seeds..].iter().map(|own| Name::Seed(own.contribution)).collect();
                rows[seeds..].iter().all(|row| {
                    let at = wanted.iter().position(|wanted| *wanted == name(row));
                    at.map(|at| wanted.swap_remove(at)).is_some()
                })
            }
            Operand::Rows { .. } | Operand::Table { .. } => {
                let Some((field, row)) = self.row(lane, operand) else { return false };
                self.is_sum(reverse, field, row, ValueId::new(value))
            }
            _ => false,
        }
    }

    /// Whether a row is the gradient of a value, or of one with the same contributions.
    pub(in crate::check) fn is_sum(
        &self,
        reverse: &Reverse<'_>,
        field: FieldId,
        row: u32,
        value: ValueId,
    ) -> bool {
        let wanted = reverse.expected.of(value.index());
        let same = |node: u32, results: &[u32]| {
            let first = self.graph.arena.results(NodeId::new(node as usize)).start;
            let mut of = results.iter().map(|&result| first + result as usize);
            of.any(|of| of == value.index() || reverse.expected.of(of) == wanted)
        };
        match self.name(reverse, field, row) {
            Name::Sum { node, results } => same(node, &reverse.sets[results as usize]),
            name @ Name::Made { class, node, .. } => {
                same(node, &reverse.classes[class as usize].sums)
                    || (wanted.len() == 1 && is_use(reverse, name, &wanted[0]))
            }
            name => wanted.len() == 1 && is_use(reverse, name, &wanted[0]),
        }
    }

    pub(super) fn row(&self, lane: u32, operand: Operand) -> Option<(FieldId, u32)> {
        match operand {
            Operand::Rows { field, start, stride } => Some((field, start + lane * stride)),
            Operand::Table { field, at } => Some((field, self.plan.tables[(at + lane) as usize])),
            _ => None,
        }
    }

    /// The class of a step: what its ports take, such that its results mean something.
    fn class(
        &self,
        id: StepId,
        step: &Step,
        sig: Option<SigId>,
        reverse: &mut Reverse<'_>,
    ) -> Result<u32, Disagreement> {
        let kernel = self.plan.kernel(step);
        let first = self.plan.lanes(step)[0];
        let Some(sig) = sig else { return Err(Disagreement::Signature { step: id, node: first }) };
        let forward = &self.plan.steps[reverse.forward[first.index()] as usize];
        let saves =
            self.plan.kernel(forward).results.len().saturating_sub(self.graph.sigs.get(sig).results.len());
        let mut ports = Vec::with_capacity(kernel.ports as usize);
        let choice = self.choice(step, sig, saves);
        for port in 0..kernel.ports as usize {
            let roles = self.roles(step, &choice, port, reverse);
            if roles.is_empty() {
                let (lane, node) = self.first_stray(step, &choice, port, reverse);
                return Err(Disagreement::Port { step: id, port, lane, node });
            }
            ports.push(roles);
        }
        reverse.rows += u64::from(step.rows) * u64::from(kernel.ports);
        let stores = self.plan.stores(step).to_vec();
        let roles = ports.first().filter(|_| is_fold(kernel)).into_iter().flatten();
        let sums: Vec<u32> = roles
            .filter_map(|role| match *role {
                Role::Gradient(result) => Some(result),
                _ => None,
            })
            .collect();
        let key = |roles: Vec<Role>| Key {
            sig,
            sums: sums.clone(),
            forward: forward.kernel,
            kernel: step.kernel,
            stores: stores.clone(),
            roles,
        };
        let trials = trials(&ports);
        for roles in &trials {
            if let Some(&class) = reverse.known.get(&key(roles.clone())) {
                return Ok(class);
            }
        }
        if reverse.truths.of(sig).is_none() {
            return Err(Disagreement::TooLarge { kernel: step.kernel });
        }
        let truth = reverse.truths.get(sig).expect("it was examined above");
        let forward_stores = self.plan.stores(forward);
        let executing = Executing {
            truth,
            params: &reverse.truths.params,
            training: self.training,
            forward: self.plan.kernel(forward),
            forward_stores,
            kernel,
            stores: &stores,
        };
        let mut stray = 0;
        for roles in trials {
            let Some(class) = executing.execute(&roles) else { continue };
            match (0..kernel.results.len()).find(|&result| !class.means_something(truth, result)) {
                Some(result) => stray = stray.max(result),
                None => {
                    let number = reverse.classes.len() as u32;
                    reverse.known.insert(key(roles), number);
                    reverse.classes.push(Derivative { sig, class, sums });
                    return Ok(number);
                }
            }
        }
        Err(match truth.nowhere_finite() {
            Some(to) => Disagreement::NotFinite { step: id, sig, node: self.plan.lanes(step)[0], to },
            None => Disagreement::Derivative { kernel: step.kernel, step: id, result: stray },
        })
    }
}

/// Whether a row is a contribution.
fn is_use(reverse: &Reverse<'_>, name: Name, own: &Use) -> bool {
    match name {
        Name::Seed(bits) => own.node == SEED && own.contribution == bits,
        Name::Made { class, node, result, item } if node == own.node => {
            let class = &reverse.classes[class as usize].class;
            match class.matches(result as usize, own.contribution) {
                Some(Match::Row) => item == WHOLE,
                Some(Match::Edges) => item == own.item,
                None => false,
            }
        }
        _ => false,
    }
}

/// Whether a kernel is nothing but the sum of a list.
fn is_fold(kernel: &Kernel) -> bool {
    let (1, [result], [Stage::Seg { op: Op::ListFold(ListFold::Sum), lists, dst, .. }]) =
        (kernel.ports, &kernel.results[..], &kernel.stages[..])
    else {
        return false;
    };
    lists[..] == [autobatch_ir::plan::ListSource::Port(0)] && dst == result
}

/// A way to choose roles for the first ports.
#[derive(Clone, Default)]
struct Trial {
    roles: Vec<Role>,
    taken: BTreeSet<Role>,
    /// How many ports take what one before them takes.
    repeats: usize,
}

impl Trial {
    fn take(&mut self, role: Role) {
        self.roles.push(role);
        self.repeats += usize::from(!self.taken.insert(role));
    }
}

/// Ways to choose one role a port, those first in which no two ports take the same.
fn trials(ports: &[Vec<Role>]) -> Vec<Vec<Role>> {
    let mut trials = vec![Trial::default()];
    for roles in ports {
        if let [role] = roles[..] {
            trials.iter_mut().for_each(|trial| trial.take(role));
        } else {
            let longer = trials.iter().flat_map(|trial| {
                roles.iter().map(|&role| {
                    let mut longer = trial.clone();
                    longer.take(role);
                    longer
                })
            });
            trials = longer.collect();
        }
        trials.sort_by_key(|trial| trial.repeats);
        trials.truncate(TRIALS);
    }
    trials.into_iter().map(|trial| trial.roles).collect()
}
