//! Steps of the reverse, executed on names.

use super::class::{Execution, Target};
use super::pulls::is_pull;
use super::uses::{Use, WHOLE};
use super::{Derivative, Key, Name, Reverse};
use crate::check::constant_bits;
use crate::check::lanes::{Lanes, NOTHING};
use crate::check::report::Disagreement;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{
    FieldId, Kernel, ListSource, Place, PortRole, RegId, ResultRole, Roles, Stage, Step, StepId, StepOperand,
    View,
};
use std::collections::BTreeMap;

impl Lanes<'_> {
    /// A step whose kernel declares roles: seeds, a sum of contributions, or a derivative.
    pub(in crate::check) fn reverse_step(
        &mut self,
        id: StepId,
        step: &Step,
        roles: &Roles,
        reverse: &mut Reverse<'_>,
    ) {
        let Some(sig) = self.executed_before(id, step, reverse) else { return };
        let kernel = self.plan.kernel(step);
        let wrong = match (&roles.results[..], constant_bits(kernel)) {
            ([ResultRole::Seed], Some(bits)) => {
                self.name_results(step, reverse, |_, _, _| Name::Seed(bits));
                return;
            }
            ([ResultRole::Seed], None) => self.arrival(id, step, roles, reverse),
            ([ResultRole::Gradient], _) => self.sum(id, step, roles, reverse),
            _ if is_pull(roles) => self.pull(id, step, roles, sig, reverse),
            _ => self.class(id, step, roles, sig, reverse).map(|class| {
                let made = |node: NodeId, result: usize, item: u32| Name::Made {
                    class,
                    node: node.index() as u32,
                    result: result as u32,
                    item,
                };
                self.name_results(step, reverse, made);
            }),
        };
        if let Err(wrong) = wrong {
            self.report.push(wrong);
        }
    }

    /// A step that brings in gradients that arrive at the pause. The place of its floats names the output.
    fn arrival(
        &mut self,
        id: StepId,
        step: &Step,
        roles: &Roles,
        reverse: &mut Reverse<'_>,
    ) -> Result<(), Disagreement> {
        let kernel = self.plan.kernel(step);
        let whole = |width: u32| [View { reg: RegId(0), start: 0, width }];
        let place = self.plan.places(step)[0];
        let wrong = |lane: usize| Disagreement::Port {
            step: id,
            port: 0,
            role: PortRole::Arriving,
            lane,
            node: self.plan.lanes(step)[lane],
        };
        let width = self.plan.field(place.field()).width();
        let copies = kernel.source && kernel.ports == 1 && kernel.results == whole(width);
        if !copies || roles.ports != [PortRole::Arriving] {
            return Err(wrong(0));
        }
        let outputs = self.plan.pause.iter().flat_map(|pause| &pause.outputs);
        let widths = outputs.map(|&number| self.plan.field(self.plan.outputs[number as usize].field).width());
        let starts: BTreeMap<u32, (u32, u32)> = (0..)
            .zip(widths)
            .scan(self.plan.floats, |next, (number, width)| {
                let start = *next;
                *next += width;
                Some((start, (number, width)))
            })
            .collect();
        let operand = self.plan.operands(step)[0];
        let mut arrivals = Vec::with_capacity(step.rows as usize);
        for lane in 0..step.rows {
            let arrives = self.plan.bound_float(operand, lane).and_then(|float| starts.get(&float));
            let Some(&(number, _)) = arrives.filter(|own| own.1 == width) else {
                return Err(wrong(lane as usize));
            };
            arrivals.push(number);
        }
        for (lane, number) in (0..).zip(arrivals) {
            for row in self.plan.result_rows(place, lane) {
                self.set_name(reverse, place.field(), row, Name::Arrival(number));
            }
        }
        reverse.rows += u64::from(step.rows);
        Ok(())
    }

    /// Checks that forward steps executed all lanes. Returns their signature if they have one signature and one forward
    /// kernel.
    fn executed_before(&mut self, id: StepId, step: &Step, reverse: &Reverse<'_>) -> Option<Option<SigId>> {
        let mut all = None;
        let mut mixed = false;
        for &node in self.plan.lanes(step) {
            let before = reverse.forward.get(node.index()).copied().unwrap_or(u32::MAX);
            let Some(forward) = self.plan.steps.get(before as usize) else {
                self.report.push(Disagreement::Node { step: id, node });
                return None;
            };
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
            let is_edges = matches!(place, Place::Edges { .. });
            for (lane, &node) in (0..).zip(self.plan.lanes(step)) {
                for (item, row) in (0..).zip(self.plan.result_rows(place, lane)) {
                    let item = if is_edges { item } else { WHOLE };
                    self.set_name(reverse, place.field(), row, name(node, result, item));
                }
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

    /// The content of a row that holds no value.
    pub(super) fn name(&self, reverse: &Reverse<'_>, field: FieldId, row: u32) -> Name {
        let at = self.base[field.index()] + row as usize;
        if self.held[at] == NOTHING { reverse.names[at] } else { Name::Nothing }
    }

    /// A step whose lanes each sum all contributions to the gradient of a result.
    fn sum(
        &mut self,
        id: StepId,
        step: &Step,
        roles: &Roles,
        reverse: &mut Reverse<'_>,
    ) -> Result<(), Disagreement> {
        let kernel = self.plan.kernel(step);
        if !is_sum(kernel) || roles.ports != [PortRole::Contributions] {
            return Err(Disagreement::Derivative { kernel: step.kernel, step: id, result: 0 });
        }
        let operand = self.plan.operands(step)[0];
        let width = self.plan.field(self.plan.places(step)[0].field()).width() as usize;
        let mut sets = Vec::with_capacity(step.rows as usize);
        for (lane, &node) in self.plan.lanes(step).iter().enumerate() {
            let fits = |&(_, value): &(u32, usize)| {
                let is_wide = self.graph.type_of(ValueId::new(value)).shape.elements() == width;
                is_wide && self.is_gradient(reverse, value, lane as u32, operand)
            };
            let results = (0..).zip(self.graph.arena.results(node)).filter(fits);
            let results: Vec<u32> = results.map(|(result, _)| result).collect();
            if results.is_empty() {
                let role = PortRole::Contributions;
                return Err(Disagreement::Port { step: id, port: 0, role, lane, node });
            }
            sets.push(results);
        }
        let sets: Vec<u32> = sets.into_iter().map(|results| reverse.set(results)).collect();
        reverse.rows += u64::from(step.rows);
        let place = self.plan.places(step)[0];
        for ((lane, &node), results) in (0..).zip(self.plan.lanes(step)).zip(sets) {
            for row in self.plan.result_rows(place, lane) {
                self.set_name(reverse, place.field(), row, Name::Sum { node: node.index() as u32, results });
            }
        }
        Ok(())
    }

    /// Returns whether an operand is the list of all contributions to the gradient of a value, in order, or their sum.
    pub(super) fn is_gradient(
        &self,
        reverse: &Reverse<'_>,
        value: usize,
        lane: u32,
        operand: StepOperand,
    ) -> bool {
        let expected = reverse.expected.of(value);
        let is_use = |name: Name, own: &Use| is_use(reverse, name, own);
        if let Some((field, row)) = self.plan.operand_row(operand, lane) {
            return self.is_sum(reverse, field, row, ValueId::new(value));
        }
        let Some((field, list)) = self.plan.list_rows(operand, lane) else { return false };
        if list.len() != expected.len() {
            return false;
        }
        let name = |row: u32| self.name(reverse, field, row);
        let seeds = expected.iter().position(|own| own.seed().is_some()).unwrap_or(expected.len());
        if !list.iter().take(seeds).zip(expected).all(|(row, own)| is_use(name(row), own)) {
            return false;
        }
        let rest = || list.iter().skip(seeds);
        if rest().zip(&expected[seeds..]).all(|(row, own)| is_use(name(row), own)) {
            return true;
        }
        // Several losses may be one value. Their seeds are in the order of the request.
        let mut left: Vec<Name> = expected[seeds..].iter().filter_map(Use::seed).collect();
        rest().all(|row| {
            let at = left.iter().position(|own| *own == name(row));
            at.map(|at| left.swap_remove(at)).is_some()
        })
    }

    /// Returns whether a row is the gradient of a value, or of one with the same contributions.
    pub(in crate::check) fn is_sum(
        &self,
        reverse: &Reverse<'_>,
        field: FieldId,
        row: u32,
        value: ValueId,
    ) -> bool {
        let expected = reverse.expected.of(value.index());
        match self.name(reverse, field, row) {
            Name::Sum { node, results } => {
                let first = self.graph.arena.results(NodeId::new(node as usize)).start;
                let results = reverse.sets[results as usize].iter();
                let mut values = results.map(|&result| first + result as usize);
                values.any(|of| of == value.index() || reverse.expected.of(of) == expected)
            }
            name => expected.len() == 1 && is_use(reverse, name, &expected[0]),
        }
    }

    /// The class of a derivative, whose ports and results fit their roles.
    fn class(
        &self,
        id: StepId,
        step: &Step,
        roles: &Roles,
        sig: Option<SigId>,
        reverse: &mut Reverse<'_>,
    ) -> Result<u32, Disagreement> {
        let kernel = self.plan.kernel(step);
        let first = self.plan.lanes(step)[0];
        let Some(sig) = sig else { return Err(Disagreement::Signature { step: id, node: first }) };
        let forward = &self.plan.steps[reverse.forward[first.index()] as usize];
        let results = self.graph.sigs.get(sig).results.len();
        let saves = self.plan.kernel(forward).results.len().saturating_sub(results);
        for (port, &role) in roles.ports.iter().enumerate() {
            if let Some((lane, node)) = self.first_wrong_lane(step, sig, port, saves, reverse) {
                return Err(Disagreement::Port { step: id, port, role, lane, node });
            }
        }
        reverse.rows += u64::from(step.rows) * u64::from(kernel.ports);
        let stores = self.plan.stores(step).to_vec();
        let key = Key { sig, forward: forward.kernel, kernel: step.kernel, stores };
        if let Some(&class) = reverse.known.get(&key) {
            return Ok(class);
        }
        if reverse.references.of(sig).is_none() {
            return Err(Disagreement::TooLarge { kernel: step.kernel });
        }
        let reference = reverse.references.get(sig).expect("it was made above");
        let execution = Execution {
            reference,
            params: &reverse.references.params,
            training: self.training,
            forward: self.plan.kernel(forward),
            forward_stores: self.plan.stores(forward),
            kernel,
            roles,
            stores: &key.stores,
        };
        let saves_registers = saves > 0;
        let (of_forward, of_reverse) = (forward.kernel, step.kernel);
        let fits = |kernel: &Kernel| execution.justifies(kernel);
        if !fits(kernel) || (saves_registers && !fits(execution.forward)) {
            let kernel = if fits(kernel) { of_forward } else { of_reverse };
            return Err(Disagreement::Registers { kernel, node: first });
        }
        let class = execution.execute().map_err(|result| match reference.nowhere_finite() {
            Some(to) => Disagreement::NotFinite { step: id, sig, node: first, to },
            None => Disagreement::Derivative { kernel: step.kernel, step: id, result },
        })?;
        let number = reverse.classes.len() as u32;
        reverse.known.insert(key, number);
        reverse.classes.push(Derivative { sig, class });
        Ok(number)
    }
}

/// Returns whether a row is a contribution.
fn is_use(reverse: &Reverse<'_>, name: Name, own: &Use) -> bool {
    match name {
        Name::Seed(_) | Name::Arrival(_) => own.seed() == Some(name),
        Name::Made { class, node, result, item } if node == own.node => {
            match reverse.classes[class as usize].class.contribution(result as usize) {
                Some((contribution, target)) if contribution == own.contribution => {
                    item == if target == Target::Whole { WHOLE } else { own.item }
                }
                _ => false,
            }
        }
        Name::Pulled { node, contribution, item } => {
            (node, contribution, item) == (own.node, own.contribution, own.item)
        }
        _ => false,
    }
}

/// Returns whether a kernel only sums a list.
fn is_sum(kernel: &Kernel) -> bool {
    let (1, [result], [Stage::Seg { op: Op::ListFold(ListFold::Sum), lists, dst, .. }]) =
        (kernel.ports, &kernel.results[..], &kernel.stages[..])
    else {
        return false;
    };
    lists[..] == [ListSource::Port(RegId(0))] && dst == result
}
