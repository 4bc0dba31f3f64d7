//! The plan played on the names of values.

use super::report::{Disagreement, Disagreements, Held};
use super::terms::Terms;
use super::{body, bound, kernel};
use crate::graph::{Callee, GraphData, Op, OperandKind, ParamArg};
use crate::id::{AppId, SigId, ValueId};
use crate::plan::{FieldId, KernelId, Operand, Place, Plan, Step, StepId};
use crate::types::Type;
use std::collections::BTreeSet;

/// No value.
const NOTHING: u32 = u32::MAX;

pub(super) struct Lanes<'a> {
    plan: &'a Plan,
    graph: &'a GraphData,
    training: bool,
    report: &'a mut Disagreements,
    /// Where the rows of each field begin in `held`.
    base: Vec<usize>,
    /// The value that each row holds.
    held: Vec<u32>,
    played: Vec<bool>,
    alone: Vec<bool>,
    /// Values promised to be shared, or none at all.
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
            played: vec![false; graph.arena.len()],
            alone: bound::alone(graph),
            shared,
            compared: BTreeSet::new(),
        }
    }

    pub(super) fn play(mut self, outputs: &[(String, ValueId)]) {
        for (number, step) in self.plan.steps.iter().enumerate() {
            if self.report.is_full() {
                return;
            }
            self.step(StepId(number as u32), step);
        }
        self.outputs(outputs);
    }

    fn step(&mut self, id: StepId, step: &Step) {
        let Some(sig) = self.signature(id, step) else { return };
        if !self.interface(id, step, sig) {
            return;
        }
        for (number, &operand) in self.plan.operands(step).iter().enumerate() {
            self.operand(id, step, number, operand);
        }
        for (number, &place) in self.plan.places(step).iter().enumerate() {
            for lane in 0..step.rows {
                let app = self.plan.lanes(step)[lane as usize];
                let (field, row) = match place {
                    Place::Rows { field, start } => (field, start + lane),
                    Place::Table { field, at } => (field, self.plan.tables[(at + lane) as usize]),
                    // Gradients hold no value of the graph.
                    Place::Edges { .. } => continue,
                };
                let value = self.graph.arena.app(app).results + number as u32;
                self.held[self.base[field.index()] + row as usize] = value;
            }
        }
    }

    /// The signature of all lanes, each of which is played for the first time: but for constants, which
    /// are brought into every field that they are read in.
    fn signature(&mut self, id: StepId, step: &Step) -> Option<SigId> {
        let lanes = self.plan.lanes(step);
        let mut sig = None;
        for &app in lanes {
            if app.index() >= self.graph.arena.len() {
                self.report.push(Disagreement::Application { step: id, app });
                return None;
            }
            let own = self.graph.arena.app(app).sig;
            if *sig.get_or_insert(own) != own {
                self.report.push(Disagreement::Signature { step: id, app });
                return None;
            }
            let constant = matches!(self.graph.sigs.get(own).callee, Callee::Op(Op::Fill { .. }));
            if std::mem::replace(&mut self.played[app.index()], true) && !constant {
                self.report.push(Disagreement::Twice { step: id, app });
            }
            if self.alone[app.index()] && lanes.len() > 1 {
                self.report.push(Disagreement::Alone { step: id, app });
            }
        }
        sig
    }

    /// Whether the kernel has the ports, parameters and results of the signature; what it computes is
    /// compared once.
    fn interface(&mut self, id: StepId, step: &Step, sig: SigId) -> bool {
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
        let what = if kernel.source != bound::is_source(signature) {
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
            .map(|place| self.place_type(*place))
            .eq(signature.results.iter().map(|&ty| graph.ty(ty)))
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

    fn operand(&mut self, id: StepId, step: &Step, number: usize, operand: Operand) {
        let lanes = self.plan.lanes(step);
        for (lane, &app) in lanes.iter().enumerate() {
            if !self.agrees(lane as u32, app, number, operand) {
                let expected = self.expected(app, number);
                let found = self.found(lane as u32, operand);
                self.report.push(Disagreement::Operand {
                    step: id,
                    lane,
                    app,
                    operand: number,
                    expected,
                    found,
                });
            }
        }
        if !self.shared.is_empty() {
            self.promises(id, lanes, number);
        }
    }

    fn at(&self, field: FieldId, row: u32) -> u32 {
        self.held[self.base[field.index()] + row as usize]
    }

    /// Whether a lane reads what the graph says.
    #[inline]
    fn agrees(&self, lane: u32, app: AppId, number: usize, operand: Operand) -> bool {
        let tables = &self.plan.tables;
        let Some(kind) = self.graph.arena.operands(app).get(number).and_then(|operand| operand.kind()) else {
            return false;
        };
        match (operand, kind) {
            (Operand::Rows { field, start, stride }, OperandKind::Value(value)) => {
                self.at(field, start + lane * stride) as usize == value.index()
            }
            (Operand::Table { field, at }, OperandKind::Value(value)) => {
                self.at(field, tables[(at + lane) as usize]) as usize == value.index()
            }
            (Operand::Segments { .. }, OperandKind::Value(value)) => self.same_list(lane, operand, value),
            (Operand::Words { start, stride }, OperandKind::Index(slot)) => start + lane * stride == slot,
            (Operand::WordTable { at }, OperandKind::Index(slot)) => tables[(at + lane) as usize] == slot,
            (Operand::Floats { start, stride }, OperandKind::Data(slot)) => start + lane * stride == slot,
            (Operand::FloatTable { at }, OperandKind::Data(slot)) => tables[(at + lane) as usize] == slot,
            _ => false,
        }
    }

    fn same_list(&self, lane: u32, operand: Operand, list: ValueId) -> bool {
        let producer = self.graph.arena.producer(list);
        if !self.graph.signature(producer).is_list() {
            return false;
        }
        let items = self.graph.arena.operands(producer);
        let (field, rows) = self.segment(lane, operand);
        rows.len() == items.len()
            && rows.iter().zip(items).all(|(&row, item)| {
                item.as_value().is_some_and(|value| self.at(field, row) as usize == value.index())
            })
    }

    /// The rows of a lane's segment.
    fn segment(&self, lane: u32, operand: Operand) -> (FieldId, &[u32]) {
        let tables = &self.plan.tables;
        let Operand::Segments { field, offsets, items } = operand else { return (FieldId(0), &[]) };
        let (from, to) = (tables[(offsets + lane) as usize], tables[(offsets + lane + 1) as usize]);
        (field, &tables[(items + from) as usize..(items + to) as usize])
    }

    /// Where a value was promised to be shared, all lanes must take it.
    fn promises(&mut self, id: StepId, lanes: &[AppId], operand: usize) {
        let taken = |app: AppId| self.graph.arena.operands(app).get(operand).and_then(|own| own.as_value());
        let Some(value) = lanes
            .iter()
            .filter_map(|&app| taken(app))
            .find(|value| self.shared.get(value.index()).is_some_and(|&shared| shared))
        else {
            return;
        };
        if let Some(&other) = lanes.iter().find(|&&app| taken(app) != Some(value)) {
            let found = self.expected(other, operand);
            self.report.push(Disagreement::Shared { step: id, operand, value, found });
        }
    }

    fn expected(&self, app: AppId, number: usize) -> Held {
        match self.graph.arena.operands(app).get(number).and_then(|operand| operand.kind()) {
            Some(OperandKind::Value(value)) => {
                let producer = self.graph.arena.producer(value);
                if !self.graph.signature(producer).is_list() {
                    return Held::Value(value);
                }
                let items = self.graph.arena.operands(producer);
                Held::List(items.iter().filter_map(|item| item.as_value()).collect())
            }
            Some(OperandKind::Index(slot)) => Held::Words(slot),
            Some(OperandKind::Data(slot)) => Held::Floats(slot),
            None => Held::Nothing,
        }
    }

    fn found(&self, lane: u32, operand: Operand) -> Held {
        let tables = &self.plan.tables;
        match operand {
            Operand::Rows { field, start, stride } => self.held_at(field, start + lane * stride),
            Operand::Table { field, at } => self.held_at(field, tables[(at + lane) as usize]),
            Operand::Segments { .. } => {
                let (field, rows) = self.segment(lane, operand);
                let known = |&row: &u32| ValueId::try_new(self.at(field, row) as usize);
                Held::List(rows.iter().filter_map(known).collect())
            }
            Operand::Words { start, stride } => Held::Words(start + lane * stride),
            Operand::WordTable { at } => Held::Words(tables[(at + lane) as usize]),
            Operand::Floats { start, stride } => Held::Floats(start + lane * stride),
            Operand::FloatTable { at } => Held::Floats(tables[(at + lane) as usize]),
        }
    }

    fn held_at(&self, field: FieldId, row: u32) -> Held {
        ValueId::try_new(self.at(field, row) as usize).map_or(Held::Nothing, Held::Value)
    }

    fn outputs(&mut self, wanted: &[(String, ValueId)]) {
        let names = |output: &crate::plan::PlanOutput| output.name.clone();
        if !self.plan.outputs.iter().map(|output| &output.name).eq(wanted.iter().map(|output| &output.0)) {
            let expected = wanted.iter().map(|output| output.0.clone()).collect();
            let found = self.plan.outputs.iter().map(names).collect();
            self.report.push(Disagreement::Outputs { expected, found });
            return;
        }
        for (output, (place, &(_, value))) in self.plan.outputs.iter().zip(wanted).enumerate() {
            let found = self.held_at(place.field, place.row);
            let expected = Held::Value(value);
            if found != expected {
                self.report.push(Disagreement::Output { output, expected, found });
            }
        }
    }
}
