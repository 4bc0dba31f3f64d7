//! Executes a plan on the names of values. `reverse` follows the reads of the reverse.

use super::report::{Disagreement, Disagreements, Held, Proof};
use super::reverse::{Name, Reverse};
use super::terms::Terms;
use super::{body, bound, constant, kernel};
use autobatch_ir::graph::{GraphData, OperandKind, ParamArg};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::plan::{FieldId, GroupRule, KernelId, OutputKey, Place, Plan, Step, StepId, StepOperand};
use autobatch_ir::types::Type;
use std::collections::BTreeSet;

/// No value.
pub(super) const NOTHING: u32 = u32::MAX;

pub(super) struct Lanes<'a> {
    pub(super) plan: &'a Plan,
    pub(super) graph: &'a GraphData,
    pub(super) training: bool,
    pub(super) report: &'a mut Disagreements,
    /// For each field the position of its first row in `held`.
    pub(super) base: Vec<usize>,
    /// The value that each row holds.
    pub(super) held: Vec<u32>,
    executed: Vec<bool>,
    alone: Vec<bool>,
    /// For each value, whether it was promised to be shared; empty without promises.
    shared: Vec<bool>,
    compared: BTreeSet<(KernelId, SigId)>,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        graph: &'a GraphData,
        training: bool,
        report: &'a mut Disagreements,
    ) -> Self {
        let mut base = Vec::with_capacity(plan.fields.len());
        let mut total = 0;
        for field in &plan.fields {
            base.push(total);
            total += plan.slabs[field.slab.index()].rows as usize;
        }
        let mut shared = Vec::new();
        if !graph.shared.is_empty() {
            shared.resize(graph.arena.values(), false);
            graph.shared.iter().for_each(|value| shared[value.index()] = true);
        }
        Self {
            plan,
            graph,
            training,
            report,
            base,
            held: vec![NOTHING; total],
            executed: vec![false; graph.arena.len()],
            alone: bound::alone(graph),
            shared,
            compared: BTreeSet::new(),
        }
    }

    pub(super) fn execute(
        mut self,
        outputs: &[(OutputKey, ValueId)],
        losses: Option<&[(ValueId, f32)]>,
    ) -> Proof {
        let mut reverse = Reverse::of(self.plan, self.graph, self.training, losses);
        if let Some(reverse) = &mut reverse {
            reverse.names = vec![Name::Nothing; self.held.len()];
        }
        for &(sig, node) in reverse.iter().flat_map(|reverse| reverse.unknown()) {
            self.report.push(Disagreement::Unknown { sig, node });
        }
        for (number, step) in self.plan.steps.iter().enumerate() {
            if self.report.is_full() {
                return Proof::default();
            }
            let id = StepId(number as u32);
            match (&mut reverse, &self.plan.kernel(step).roles) {
                (Some(reverse), Some(roles)) => self.reverse_step(id, step, roles, reverse),
                (reverse, _) => self.step(id, step, reverse.as_mut()),
            }
        }
        let mut proof = Proof { kernels: self.compared.len(), ..Proof::default() };
        if let Some(reverse) = &mut reverse {
            proof.params = self.reductions(reverse);
            proof.losses = reverse.losses().to_vec();
            proof.arriving = reverse.arriving().to_vec();
            (proof.signatures, proof.derivatives, proof.reverse_rows) = reverse.counts();
        } else if !self.plan.reductions.is_empty() {
            self.report.push(Disagreement::Reduction { number: 0, part: 0, lane: 0, node: None });
        }
        proof.values = self.outputs(outputs, reverse.as_ref());
        proof
    }

    fn step(&mut self, id: StepId, step: &Step, mut reverse: Option<&mut Reverse<'_>>) {
        let Some(sig) = self.signature(id, step) else { return };
        if !self.has_signature(id, step, sig) {
            return;
        }
        for (number, &operand) in self.plan.operands(step).iter().enumerate() {
            self.operand(id, step, number, operand);
        }
        let results = self.graph.sigs.get(sig).results.len();
        for (number, &place) in self.plan.places(step).iter().enumerate() {
            let first = self.base[place.field().index()];
            for (lane, &node) in (0..).zip(self.plan.lanes(step)) {
                let rows = self.plan.result_rows(place, lane);
                let rows = first + rows.start as usize..first + rows.end as usize;
                let (held, name) = match place {
                    // Edges are gradients: they hold no value of the graph, and the reverse of this plan did not make them.
                    Place::Edges { .. } => (NOTHING, Name::Nothing),
                    _ if number < results => {
                        (self.graph.arena.node(node).results + number as u32, Name::Nothing)
                    }
                    // Results behind those of the signature are registers saved for the reverse.
                    _ => {
                        let (node, number) = (node.index() as u32, (number - results) as u32);
                        (NOTHING, Name::Saved { node, number })
                    }
                };
                self.held[rows.clone()].fill(held);
                if let Some(reverse) = &mut reverse {
                    reverse.names[rows].fill(name);
                }
            }
        }
        if let Some(reverse) = reverse {
            self.plan.lanes(step).iter().for_each(|node| reverse.forward[node.index()] = id.0);
        }
    }

    /// The signature of all lanes. A plan executes every node once, except constants, which it may copy to several
    /// fields.
    fn signature(&mut self, id: StepId, step: &Step) -> Option<SigId> {
        let lanes = self.plan.lanes(step);
        let mut sig = None;
        for &node in lanes {
            if node.index() >= self.graph.arena.len() {
                self.report.push(Disagreement::Node { step: id, node });
                return None;
            }
            let own = self.graph.arena.node(node).sig;
            if *sig.get_or_insert(own) != own {
                self.report.push(Disagreement::Signature { step: id, node });
                return None;
            }
            if std::mem::replace(&mut self.executed[node.index()], true)
                && constant(self.graph, node).is_none()
            {
                self.report.push(Disagreement::Twice { step: id, node });
            }
            if self.alone[node.index()] && lanes.len() > 1 {
                self.report.push(Disagreement::Alone { step: id, node });
            }
        }
        sig
    }

    /// Returns whether the kernel has the ports, parameters and results of the signature. Compares the terms of each pair once.
    fn has_signature(&mut self, id: StepId, step: &Step, sig: SigId) -> bool {
        let (plan, graph) = (self.plan, self.graph);
        let (signature, kernel) = (graph.sigs.get(sig), plan.kernel(step));
        for (port, (&found, &arg)) in plan.stores(step).iter().zip(&signature.params).enumerate() {
            let expected = match arg {
                ParamArg::Module(param) => Some(Plan::store_of(param)),
                ParamArg::Port(_) => None,
            };
            if expected != Some(found) {
                self.report.push(Disagreement::Store { step: id, port, expected, found });
            }
        }
        if !self.compared.insert((step.kernel, sig)) {
            return true;
        }
        let what = if kernel.source != signature.callee.is_source() {
            "marks of a source"
        } else if !kernel.regs[..kernel.ports as usize]
            .iter()
            .map(|reg| reg.ty)
            .eq(signature.operands.iter().map(|&ty| graph.ty(ty)))
        {
            "ports"
        } else if !kernel.params.iter().copied().eq(signature.param_types.iter().map(|&ty| graph.ty(ty))) {
            "parameter ports"
        } else if !plan
            .places(step)
            .iter()
            .map(|place| Some(self.place_type(*place)))
            .chain(std::iter::repeat(None))
            .zip(&signature.results)
            .all(|(place, &ty)| place == Some(graph.ty(ty)))
        {
            "results"
        } else {
            self.compare(id, step.kernel, sig);
            return true;
        };
        self.compared.remove(&(step.kernel, sig));
        self.report.push(Disagreement::Interface { kernel: step.kernel, step: id, what });
        false
    }

    fn place_type(&self, place: Place) -> Type {
        self.plan.field(place.field()).ty
    }

    fn compare(&mut self, step: StepId, id: KernelId, sig: SigId) {
        let mut terms = Terms::default();
        let found = kernel::results(&mut terms, &self.plan.kernels[id.index()], self.training);
        let expected = body::results(&mut terms, self.graph, self.graph.sigs.get(sig), self.training);
        let Some(expected) = expected.filter(|_| !terms.is_exhausted()) else {
            self.report.push(Disagreement::TooLarge { kernel: id });
            return;
        };
        for (result, (expected, found)) in expected.iter().zip(&found).enumerate() {
            if expected != found {
                self.report.push(Disagreement::Kernel { kernel: id, step, result });
            }
        }
    }

    fn operand(&mut self, id: StepId, step: &Step, number: usize, operand: StepOperand) {
        let (plan, lanes) = (self.plan, self.plan.lanes(step));
        let mut grouped = 0;
        for (begin, group) in operand.address.groups(&plan.groups) {
            // The lanes of a group mostly read one list of the graph, or each the list of the lane before with one item more.
            // So what was compared for one lane is not compared again.
            let mut proven = None;
            let begin = begin as usize;
            for (lane, &node) in (begin..).zip(&lanes[begin..group.end as usize]) {
                let own = self.graph.arena.operands(node).get(number).and_then(|own| own.as_value());
                let known = match (proven, own) {
                    (Some(before), Some(own)) => match group.rule {
                        GroupRule::All => before == own,
                        GroupRule::Prefix => self.continues(lane as u32, operand, [before, own]),
                        GroupRule::Suffix => false,
                    },
                    _ => false,
                };
                let agrees = known || self.lane(id, lane, node, number, operand);
                proven = own.filter(|_| agrees);
            }
            grouped = group.end as usize;
        }
        for (lane, &node) in lanes.iter().enumerate().skip(grouped) {
            self.lane(id, lane, node, number, operand);
        }
        if !self.shared.is_empty() {
            self.promises(id, lanes, number);
        }
    }

    /// Returns whether a lane reads the operand that the graph names, and reports it otherwise.
    #[inline]
    fn lane(&mut self, id: StepId, lane: usize, node: NodeId, number: usize, operand: StepOperand) -> bool {
        let agrees = self.agrees(lane as u32, node, number, operand);
        if !agrees {
            let expected = self.expected(node, number);
            let found = self.found(lane as u32, operand);
            self.report.push(Disagreement::Operand {
                step: id,
                lane,
                node,
                operand: number,
                expected,
                found,
            });
        }
        agrees
    }

    pub(super) fn at(&self, field: FieldId, row: u32) -> u32 {
        self.held[self.base[field.index()] + row as usize]
    }

    /// Returns whether a lane reads the operand that the graph names.
    #[inline]
    pub(super) fn agrees(&self, lane: u32, node: NodeId, number: usize, operand: StepOperand) -> bool {
        let own = self.graph.arena.operands(node).get(number);
        match own.and_then(|operand| operand.kind()) {
            Some(OperandKind::Value(value)) => match self.plan.operand_row(operand, lane) {
                Some((field, row)) => self.at(field, row) as usize == value.index(),
                None => self.same_list(lane, operand, value),
            },
            Some(OperandKind::Index(slot)) => self.plan.bound_word(operand, lane) == Some(slot),
            Some(OperandKind::Data(slot)) => self.plan.bound_float(operand, lane) == Some(slot),
            None => false,
        }
    }

    fn same_list(&self, lane: u32, operand: StepOperand, list: ValueId) -> bool {
        let (arena, sigs) = (&self.graph.arena, &self.graph.sigs);
        let Some((field, rows)) = self.plan.list_rows(operand, lane) else { return false };
        if !arena.is_list(list, sigs) {
            return false;
        }
        let items = arena.items(list, sigs);
        rows.len() == items.len()
            && rows.iter().zip(&*items).all(|(row, item)| {
                item.as_value().is_some_and(|value| self.at(field, row) as usize == value.index())
            })
    }

    /// Returns whether a list is another with one item more, which is the last that the lane reads.
    fn continues(&self, lane: u32, operand: StepOperand, [before, list]: [ValueId; 2]) -> bool {
        let arena = &self.graph.arena;
        let Some((from, item)) = arena.appended(arena.producer(list), &self.graph.sigs) else { return false };
        let Some((field, rows)) = self.plan.list_rows(operand, lane) else { return false };
        let last = rows.last().map(|row| self.at(field, row) as usize);
        from == before && last.is_some() && last == item.as_value().map(ValueId::index)
    }

    /// If a value was promised to be shared, all lanes must read it.
    fn promises(&mut self, id: StepId, lanes: &[NodeId], operand: usize) {
        let taken =
            |node: NodeId| self.graph.arena.operands(node).get(operand).and_then(|own| own.as_value());
        let Some(value) = lanes
            .iter()
            .filter_map(|&node| taken(node))
            .find(|value| self.shared.get(value.index()).is_some_and(|&shared| shared))
        else {
            return;
        };
        if let Some(&other) = lanes.iter().find(|&&node| taken(node) != Some(value)) {
            let found = self.expected(other, operand);
            self.report.push(Disagreement::Shared { step: id, operand, value, found });
        }
    }

    fn expected(&self, node: NodeId, number: usize) -> Held {
        match self.graph.arena.operands(node).get(number).and_then(|operand| operand.kind()) {
            Some(OperandKind::Value(value)) => {
                if !self.graph.arena.is_list(value, &self.graph.sigs) {
                    return Held::Value(value);
                }
                let items = self.graph.arena.items(value, &self.graph.sigs);
                Held::List(items.iter().filter_map(|item| item.as_value()).collect())
            }
            Some(OperandKind::Index(slot)) => Held::Words(slot),
            Some(OperandKind::Data(slot)) => Held::Floats(slot),
            None => Held::Nothing,
        }
    }

    fn found(&self, lane: u32, operand: StepOperand) -> Held {
        let plan = self.plan;
        if let Some((field, rows)) = plan.list_rows(operand, lane) {
            let known = |row: u32| ValueId::try_new(self.at(field, row) as usize);
            return Held::List(rows.iter().filter_map(known).collect());
        }
        let row = plan.operand_row(operand, lane).map(|(field, row)| self.held_at(field, row));
        let word = || plan.bound_word(operand, lane).map(Held::Words);
        let float = || plan.bound_float(operand, lane).map(Held::Floats);
        row.or_else(word).or_else(float).unwrap_or(Held::Nothing)
    }

    fn held_at(&self, field: FieldId, row: u32) -> Held {
        ValueId::try_new(self.at(field, row) as usize).map_or(Held::Nothing, Held::Value)
    }

    /// Checks that outputs hold the requested values and then gradients. Returns the values whose gradients are
    /// outputs.
    fn outputs(&mut self, wanted: &[(OutputKey, ValueId)], reverse: Option<&Reverse<'_>>) -> Vec<ValueId> {
        let places = &self.plan.outputs;
        let keys = places.iter().map(|output| &output.key).take(wanted.len());
        let gradients = places.get(wanted.len()..).unwrap_or(&[]);
        let of = |key| gradient_of(self.graph, key).filter(|_| reverse.is_some());
        let values: Option<Vec<ValueId>> = gradients.iter().map(|output| of(&output.key)).collect();
        let Some(values) = values.filter(|_| keys.eq(wanted.iter().map(|output| &output.0))) else {
            let expected = wanted.iter().map(|output| output.0.to_string()).collect();
            let found = places.iter().map(|output| output.key.to_string()).collect();
            self.report.push(Disagreement::Outputs { expected, found });
            return Vec::new();
        };
        for (output, (place, &(_, value))) in places.iter().zip(wanted).enumerate() {
            let found = self.held_at(place.field, place.row);
            let expected = Held::Value(value);
            if found != expected {
                self.report.push(Disagreement::Output { output, expected, found });
            }
        }
        for (output, &value) in values.iter().enumerate() {
            let place = &gradients[output];
            let output = wanted.len() + output;
            let is_it = reverse.is_some_and(|reverse| {
                let width = self.plan.field(place.field).ty;
                width == self.graph.type_of(value) && self.is_sum(reverse, place.field, place.row, value)
            });
            if !is_it {
                self.report.push(Disagreement::GradientOutput { output, value });
            }
        }
        values
    }
}

/// The value of the graph whose gradient an output is.
pub(super) fn gradient_of(graph: &GraphData, key: &OutputKey) -> Option<ValueId> {
    match *key {
        OutputKey::Gradient(value) => (value.index() < graph.arena.values()).then_some(value),
        OutputKey::Named(_) | OutputKey::Value(_) => None,
    }
}
