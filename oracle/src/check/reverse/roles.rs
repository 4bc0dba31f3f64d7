//! What the ports of a step in reverse take: the same of every lane.
//!
//! A cell may have as many operands as a step has ports. So what lies in the row that the first lane reads says which operands,
//! results and saved registers are looked at on all lanes, and no port is held against all of them.

use super::class::Role;
use super::{Name, Reverse};
use crate::check::lanes::Lanes;
use autobatch_ir::graph::{GraphData, ListFold, Op, OperandKind, Signature};
use autobatch_ir::id::{NodeId, SigId, TypeId};
use autobatch_ir::plan::{Kernel, ListSource, Operand, Stage, Step};
use std::collections::BTreeMap;

/// What an operand of the first lane is, as far as one look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    Value(u32),
    /// A list of so many values, and the first of them.
    List(usize, Option<u32>),
    Words(u32),
    Floats(u32),
}

/// What the ports of a step have to choose from.
pub(super) struct Choice<'a> {
    signature: &'a Signature,
    /// How many registers the forward step saved.
    saves: u32,
    /// Where the results of the first lane begin.
    results: u32,
    /// The operands of the first lane.
    operands: BTreeMap<Look, Vec<u32>>,
    /// Per port whether it is a list that something other than its sum is made of.
    taken_apart: Vec<bool>,
}

fn looks(graph: &GraphData, node: NodeId) -> BTreeMap<Look, Vec<u32>> {
    let mut places: BTreeMap<Look, Vec<u32>> = BTreeMap::new();
    for (place, operand) in (0..).zip(graph.arena.operands(node)) {
        let look = match operand.kind() {
            Some(OperandKind::Value(value)) => {
                let producer = graph.arena.producer(value);
                if graph.signature(producer).is_list() {
                    let items = graph.arena.operands(producer);
                    let first = items.first().and_then(|item| item.as_value());
                    Look::List(items.len(), first.map(|value| value.index() as u32))
                } else {
                    Look::Value(value.index() as u32)
                }
            }
            Some(OperandKind::Index(slot)) => Look::Words(slot),
            Some(OperandKind::Data(slot)) => Look::Floats(slot),
            None => continue,
        };
        places.entry(look).or_default().push(place);
    }
    places
}

/// Per port whether it is a list that something other than its sum is made of, so that no contributions are not zeros.
fn taken_apart(kernel: &Kernel) -> Vec<bool> {
    let mut apart = vec![false; kernel.regs.len()];
    for stage in &kernel.stages {
        match stage {
            Stage::Seg { op: Op::ListFold(ListFold::Sum), .. } => {}
            Stage::Seg { lists, .. } => {
                for list in lists {
                    if let ListSource::Port(port) = list {
                        apart[*port as usize] = true;
                    }
                }
            }
            Stage::SegGrad { lists, .. } => lists.iter().for_each(|&port| apart[port as usize] = true),
            _ => {}
        }
    }
    apart
}

impl<'a> Lanes<'a> {
    /// What the ports of a step of this signature have to choose from.
    pub(super) fn choice(&self, step: &Step, sig: SigId, saves: usize) -> Choice<'a> {
        let first = self.plan.lanes(step)[0];
        Choice {
            signature: self.graph.sigs.get(sig),
            saves: saves as u32,
            results: self.graph.arena.results(first).start as u32,
            operands: looks(self.graph, first),
            taken_apart: taken_apart(self.plan.kernel(step)),
        }
    }

    /// What the first lane reads, as far as one look tells.
    fn look(&self, operand: Operand) -> Look {
        let tables = &self.plan.tables;
        match operand {
            Operand::Rows { field, start, .. } => Look::Value(self.at(field, start)),
            Operand::Table { field, at } => Look::Value(self.at(field, tables[at as usize])),
            Operand::Segments { .. } => {
                let (field, rows) = self.segment(0, operand);
                Look::List(rows.len(), rows.first().map(|&row| self.at(field, row)))
            }
            Operand::Words { start, .. } => Look::Words(start),
            Operand::WordTable { at } => Look::Words(tables[at as usize]),
            Operand::Floats { start, .. } => Look::Floats(start),
            Operand::FloatTable { at } => Look::Floats(tables[at as usize]),
        }
    }

    /// What a port may take, of all lanes.
    pub(super) fn roles(
        &self,
        step: &Step,
        choice: &Choice<'_>,
        port: usize,
        reverse: &Reverse<'_>,
    ) -> Vec<Role> {
        let ty = self.plan.kernel(step).regs[port].ty;
        let fits = |own: TypeId, list: bool| {
            let own = self.graph.ty(own);
            (own.dtype, own.shape.elements(), own.is_list) == (ty.dtype, ty.shape.elements(), list)
        };
        let operand = self.plan.operands(step)[port];
        let look = self.look(operand);
        let Choice { signature, saves, results, operands, taken_apart } = choice;
        let places = operands.get(&look).into_iter().flatten();
        let places = places.filter(|&&place| {
            signature.operands.get(place as usize).is_some_and(|&own| fits(own, ty.is_list))
        });
        let mut roles: Vec<Role> = places.map(|&place| Role::Operand(place)).collect();
        if let (false, Some((field, row))) = (ty.is_list, self.row(0, operand)) {
            if let Some(result) = self.at(field, row).checked_sub(*results)
                && signature.results.get(result as usize).is_some_and(|&own| fits(own, false))
            {
                roles.push(Role::Result(result));
            }
            if let Name::Save { number, .. } = self.name(reverse, field, row)
                && number < *saves
            {
                roles.push(Role::Save(number));
            }
        }
        if !ty.is_list || !taken_apart[port] {
            let results = (0..).zip(&signature.results).filter(|own| fits(*own.1, false));
            roles.extend(results.map(|own| Role::Gradient(own.0)));
        }
        for (lane, &node) in self.plan.lanes(step).iter().enumerate() {
            roles.retain(|&role| self.holds(reverse, role, lane as u32, node, operand));
            if roles.is_empty() {
                break;
            }
        }
        roles
    }

    /// Whether a port takes this of a node.
    fn holds(&self, reverse: &Reverse<'_>, role: Role, lane: u32, node: NodeId, operand: Operand) -> bool {
        match role {
            Role::Operand(place) => self.agrees(lane, node, place as usize, operand),
            Role::Result(result) => self.row(lane, operand).is_some_and(|(field, row)| {
                let value = self.graph.arena.results(node).start as u32 + result;
                self.at(field, row) == value
            }),
            Role::Save(number) => self.row(lane, operand).is_some_and(|(field, row)| {
                self.name(reverse, field, row) == Name::Save { node: node.index() as u32, number }
            }),
            Role::Gradient(result) => {
                let value = self.graph.arena.results(node).start + result as usize;
                self.is_gradient(reverse, value, lane, operand)
            }
        }
    }

    /// The first lane that takes nothing which all lanes before it take as well. What some lanes take, fewer take too, so it
    /// is looked for by halves.
    pub(super) fn first_stray(
        &self,
        step: &Step,
        choice: &Choice<'_>,
        port: usize,
        reverse: &Reverse<'_>,
    ) -> (usize, NodeId) {
        let lanes = self.plan.lanes(step);
        let mut some = step.clone();
        let (mut sound, mut stray) = (0, lanes.len());
        while stray - sound > 1 {
            let count = sound.midpoint(stray);
            some.lanes.end = some.lanes.start + count as u32;
            match self.roles(&some, choice, port, reverse).is_empty() {
                true => stray = count,
                false => sound = count,
            }
        }
        (sound, lanes[sound])
    }
}
