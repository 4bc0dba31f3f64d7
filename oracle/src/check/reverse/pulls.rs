//! Steps that pull: chains of contributions to the items of lists, over all nodes that attend to them.
//!
//! The kernel must be the stage that defines the chain, over its three ports. So only the rows of the readers need an
//! examination by example: on every probe, the chain of this one reader must equal what the reference contributes.

use super::class::{Class, set};
use super::equal_results::Comparison;
use super::reference_derivative::{Contribution, ReferenceDerivative};
use super::uses::WHOLE;
use super::{Name, Reverse};
use crate::check::lanes::Lanes;
use crate::check::report::Disagreement;
use crate::naive::lane::{Lane, Operands};
use crate::reference::{Argument, Partial};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::row_ops::{Noise, Scratch};
use autobatch_ir::plan::{Kernel, PortRole, RegId, ResultRole, Roles, Stage, Step, StepId};
use std::collections::BTreeSet;

/// Returns whether a kernel declares that it pulls.
pub(super) fn is_pull(roles: &Roles) -> bool {
    matches!(roles.ports[..], [PortRole::Item(_), PortRole::Item(_), PortRole::Readers(_)])
}

/// The roles of a kernel that pulls.
struct Pull {
    /// The operands that hold the keys and the values.
    lists: [u32; 2],
    /// The result of the step in reverse of every reader.
    row: u32,
    /// The contributions of its results.
    made: Vec<u32>,
    /// For each of them whether it is to the keys (0) or to the values (1).
    sides: Vec<usize>,
}

/// The lists of a node that a step pulls for.
struct Lists {
    node: NodeId,
    items: [Vec<Option<ValueId>>; 2],
}

impl Lanes<'_> {
    pub(super) fn pull(
        &mut self,
        id: StepId,
        step: &Step,
        roles: &Roles,
        sig: Option<SigId>,
        reverse: &mut Reverse<'_>,
    ) -> Result<(), Disagreement> {
        let kernel = self.plan.kernel(step);
        let nodes = self.plan.lanes(step);
        let Some(sig) = sig else { return Err(Disagreement::Signature { step: id, node: nodes[0] }) };
        if reverse.references.of(sig).is_none() {
            return Err(Disagreement::TooLarge { kernel: step.kernel });
        }
        let wrong = |result: usize| Disagreement::Derivative { kernel: step.kernel, step: id, result };
        let reference = reverse.references.get(sig).expect("it was made above");
        let pull = Pull::of(kernel, roles, reference).map_err(wrong)?;
        let mut items = Vec::with_capacity(nodes.len());
        let mut claimed = BTreeSet::new();
        let mut known: Option<Lists> = None;
        for (lane, &node) in nodes.iter().enumerate() {
            let lists = match known.take() {
                Some(lists) if lists.node == node => lists,
                _ => self.lists(node, &pull),
            };
            let item = self.item(reverse, step, lane as u32, &pull, &lists, &claimed);
            let Some(item) = item else {
                return Err(Disagreement::Port { step: id, port: 2, role: roles.ports[2], lane, node });
            };
            claimed.insert((node, item));
            items.push(item);
            known = Some(lists);
        }
        self.rows_of_readers(step, &pull, reverse).map_err(wrong)?;
        reverse.rows += u64::from(step.rows) * u64::from(kernel.ports);
        for (&place, &contribution) in self.plan.places(step).iter().zip(&pull.made) {
            for ((lane, node), &item) in (0..).zip(nodes).zip(&items) {
                for row in self.plan.result_rows(place, lane) {
                    let node = node.index() as u32;
                    self.set_name(reverse, place.field(), row, Name::Pulled { node, contribution, item });
                }
            }
        }
        Ok(())
    }

    fn lists(&self, node: NodeId, pull: &Pull) -> Lists {
        let arena = &self.graph.arena;
        let items = pull.lists.map(|operand| {
            let list = arena.operands(node).get(operand as usize).and_then(|own| own.as_value());
            let items = list.map(|list| arena.items(list, &self.graph.sigs));
            items.iter().flat_map(|items| items.iter()).map(|item| item.as_value()).collect()
        });
        Lists { node, items }
    }

    /// The place in the node's lists of the item that a lane pulls for: one that no lane before it claimed, at which its chains
    /// end, and whose readers are those of the lane.
    fn item(
        &self,
        reverse: &Reverse<'_>,
        step: &Step,
        lane: u32,
        pull: &Pull,
        lists: &Lists,
        claimed: &BTreeSet<(NodeId, u32)>,
    ) -> Option<u32> {
        let &[key, value, readers] = self.plan.operands(step) else { return None };
        let held = |operand| {
            let (field, row) = self.plan.operand_row(operand, lane)?;
            ValueId::try_new(self.at(field, row) as usize)
        };
        let sig = self.graph.arena.node(lists.node).sig;
        let pair = [held(key)?, held(value)?];
        let (field, rows) = self.plan.list_rows(readers, lane)?;
        let reads = |chain: &[u32]| {
            rows.len() == chain.len()
                && rows.iter().zip(chain).all(|(row, &reader)| match self.name(reverse, field, row) {
                    Name::Made { node, result, item: WHOLE, .. } => (node, result) == (reader, pull.row),
                    _ => false,
                })
        };
        let [keys, values] = &lists.items;
        let found = keys.iter().zip(values).enumerate().find(|(item, own)| {
            let at = (lists.node, *item as u32);
            let ends = |(&made, &side): (&u32, &usize)| {
                let chain = reverse.expected.chain(sig, made, [pair[side], pair[1 - side]]);
                chain.is_some_and(|(chain, place)| {
                    chain.last() == Some(&(at.0.index() as u32)) && place == at.1 && reads(chain)
                })
            };
            [*own.0, *own.1] == pair.map(Some)
                && !claimed.contains(&at)
                && pull.made.iter().zip(&pull.sides).all(ends)
        });
        found.map(|(item, _)| item as u32)
    }

    /// Examines the rows of the readers of a step: one of each class.
    fn rows_of_readers(&self, step: &Step, pull: &Pull, reverse: &mut Reverse<'_>) -> Result<(), usize> {
        let operand = self.plan.operands(step)[2];
        let mut classes = BTreeSet::new();
        for lane in 0..step.rows {
            let Some((field, rows)) = self.plan.list_rows(operand, lane) else { return Err(0) };
            for row in rows.iter() {
                if let Name::Made { class, .. } = self.name(reverse, field, row) {
                    classes.insert(class);
                }
            }
        }
        for class in classes {
            let derivative = &reverse.classes[class as usize];
            let Some(reference) = reverse.references.get(derivative.sig) else { return Err(0) };
            let first_wrong = reverse
                .pulls
                .entry((class, pull.row, step.kernel))
                .or_insert_with(|| pull.first_wrong(self.plan.kernel(step), reference, &derivative.class));
            if let Some(result) = *first_wrong {
                return Err(result);
            }
        }
        Ok(())
    }
}

impl Pull {
    /// The roles of a kernel that is one stage over its ports.
    ///
    /// # Errors
    /// The number of the first result that does not fit its role.
    fn of(kernel: &Kernel, roles: &Roles, reference: &ReferenceDerivative) -> Result<Self, usize> {
        let [PortRole::Item(keys), PortRole::Item(values), PortRole::Readers(row)] = roles.ports[..] else {
            return Err(0);
        };
        let [Stage::AttendPull { key, value, readers: RegId(2), key_dst, value_dst, .. }] =
            &kernel.stages[..]
        else {
            return Err(0);
        };
        let dsts = [key_dst, value_dst];
        let wanted: Vec<_> = dsts.into_iter().flatten().copied().collect();
        if [*key, *value] != [0, 1].map(|port| kernel.whole(RegId(port))) || kernel.results != wanted {
            return Err(0);
        }
        let lists = [keys, values];
        let (mut made, mut sides) = (Vec::with_capacity(2), Vec::with_capacity(2));
        let mut results = roles.results.iter().enumerate();
        for (side, _) in dsts.iter().enumerate().filter(|(_, dst)| dst.is_some()) {
            let (result, role) = results.next().ok_or(0usize)?;
            let ResultRole::Contribution { operand, number } = *role else { return Err(result) };
            let to = reference.contribution(operand, number).ok_or(result)?;
            let own = (operand, reference.contributions[to as usize].partner);
            if own != (lists[side], Some(lists[1 - side])) {
                return Err(result);
            }
            made.push(to);
            sides.push(side);
        }
        Ok(Self { lists, row, made, sides })
    }

    /// The first result in which the chain of one reader differs from the contribution of the reference on some probe.
    fn first_wrong(&self, kernel: &Kernel, reference: &ReferenceDerivative, class: &Class) -> Option<usize> {
        let mut comparisons: Vec<Comparison> = self.made.iter().map(|_| Comparison::default()).collect();
        for (number, probe) in reference.probes.iter().enumerate() {
            let Some(row) = class.made(number, self.row) else { return Some(0) };
            let [Some(Argument::Many(keys)), Some(Argument::Many(values))] =
                self.lists.map(|operand| probe.operands.get(operand as usize))
            else {
                return Some(0);
            };
            for (item, pair) in keys.iter().zip(values).enumerate() {
                let mut lane = Lane::default();
                if lane.fit(kernel).is_err() || kernel.regs[2].ty.shape.elements() != row.len() {
                    return Some(0);
                }
                set(&mut lane, 0, &Argument::One(pair.0.clone()));
                set(&mut lane, 1, &Argument::One(pair.1.clone()));
                lane.set_list(2, std::iter::once(row));
                let operands = Operands { kernel, params: &[], noise: Noise::Off };
                lane.execute(operands, &mut Scratch::default());
                let results = kernel.results.iter().map(|&view| lane.view(view));
                for ((made, &to), comparison) in results.zip(&self.made).zip(&mut comparisons) {
                    let Contribution { operand, number, .. } = reference.contributions[to as usize];
                    let Partial::Many(items) = &probe.returned.operands[operand as usize] else {
                        return Some(0);
                    };
                    comparison.compare(made, &items[item][number as usize].elements());
                }
            }
        }
        comparisons.iter().position(|comparison| comparison.differs || !comparison.holds())
    }
}
