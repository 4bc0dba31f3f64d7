//! The walk of a body forward with a tape, and back.
//!
//! *Needs* the nodes of a body in order. *Ensures* that contributions to the gradient of a value are added in the order of the
//! reference: they arrive descending by use and are summed ascending. [`rules`](super::rules) says what a node contributes.

use super::deriver::{Deriver, Partial, Refused, floats, sub};
use crate::kernels::compile::{Value, arguments, pieces, type_of};
use autobatch_ir::graph::{Arena, Binary, Callee, ListFold, Op, Operand, OperandKind, Signature, Unary};
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{Code, ParamPort, RegKind, Source, Stage, View};
use autobatch_ir::types::{DType, Type};

/// A node on the tape: an op or a cell.
pub(super) enum Tape<'a> {
    Op(Applied),
    Cell(Level<'a>),
}

/// An op on the tape.
pub(super) struct Applied {
    pub(super) op: Op,
    pub(super) operands: Vec<Value>,
    pub(super) needs: Vec<bool>,
    pub(super) results: Vec<Value>,
    pub(super) args: Vec<ParamPort>,
    /// The stage of a product or of a loss of labels.
    pub(super) stage: Option<Stage>,
}

/// A body on the tape.
pub(super) struct Level<'a> {
    arena: &'a Arena,
    ports: usize,
    results: Vec<ValueId>,
    needs: Vec<bool>,
    calls: Vec<Option<Tape<'a>>>,
}

/// Whether no derivative passes through an op.
pub(super) fn blocks(op: Op) -> bool {
    matches!(
        op,
        Op::StopGradient
            | Op::Fill { .. }
            | Op::Compare(_)
            | Op::ArgMax
            | Op::ListFold(ListFold::ArgMax)
            | Op::OneHot { .. }
            | Op::ForkNoise { .. }
            | Op::Unary(Unary::Sign)
    )
}

impl<'a> Deriver<'a> {
    /// Computes a node forward. Gives its results, which of them need gradients, and its tape.
    pub(super) fn forward(
        &mut self,
        signature: &'a Signature,
        operands: &[Value],
        needs: &[bool],
        args: &[ParamPort],
    ) -> (Vec<Value>, Vec<bool>, Tape<'a>) {
        let tables = self.b.tables;
        match signature.callee {
            Callee::Op(op) => {
                let types: Vec<Type> = signature.results.iter().map(|&ty| tables.types.get(ty)).collect();
                let first = self.b.stages.len();
                let results = self.b.op(op, operands.to_vec(), args, types.clone());
                let last = self.b.stages.get(first..).and_then(<[Stage]>::last);
                let stage =
                    last.filter(|stage| matches!(stage, Stage::Prod { .. } | Stage::LabelLoss { .. }));
                let stage = stage.cloned();
                let needed = !blocks(op)
                    && (needs.iter().any(|&needs| needs) || args.iter().any(|&arg| self.params[arg.index()]));
                let result_needs = types.iter().map(|ty| needed && ty.dtype == DType::F32).collect();
                let applied = Applied {
                    op,
                    operands: operands.to_vec(),
                    needs: needs.to_vec(),
                    results: results.clone(),
                    args: args.to_vec(),
                    stage,
                };
                (results, result_needs, Tape::Op(applied))
            }
            Callee::Cell(cell) => {
                let body = &tables.module.cell_decl(cell).body;
                let (values, level) = self.level(&body.arena, operands, needs, args);
                let results = body.results.iter().map(|value| values[value.index()].clone()).collect();
                let needs = body.results.iter().map(|value| level.needs[value.index()]).collect();
                (results, needs, Tape::Cell(Level { results: body.results.clone(), ..level }))
            }
        }
    }

    fn level(
        &mut self,
        arena: &'a Arena,
        ports: &[Value],
        port_needs: &[bool],
        args: &[ParamPort],
    ) -> (Vec<Value>, Level<'a>) {
        let mut values: Vec<Value> = ports.to_vec();
        let mut needs = port_needs.to_vec();
        let mut calls: Vec<Option<Tape<'a>>> = ports.iter().map(|_| None).collect();
        for id in arena.ids().skip(ports.len()) {
            let signature = self.b.tables.sigs.get(arena.node(id).sig);
            let read = operand_values(arena, id);
            let operands: Vec<Value> = read.iter().map(|value| values[value.index()].clone()).collect();
            let own_needs: Vec<bool> = read.iter().map(|value| needs[value.index()]).collect();
            let params = arguments(signature, args);
            let (results, result_needs, tape) = self.forward(signature, &operands, &own_needs, &params);
            values.extend(results);
            needs.extend(result_needs);
            calls.push((!signature.is_list()).then_some(tape));
        }
        (values, Level { arena, ports: ports.len(), results: Vec::new(), needs, calls })
    }

    /// The contributions of a node on the tape to its operands.
    pub(super) fn reverse(
        &mut self,
        tape: &Tape<'a>,
        grads: &[Option<Value>],
    ) -> Result<Vec<Partial>, Refused> {
        match tape {
            Tape::Op(applied) => self.rule(applied, grads),
            Tape::Cell(level) => self.reverse_level(level, grads),
        }
    }

    /// Walks a body as the reference does: contributions arrive in descending order of the uses.
    fn reverse_level(&mut self, level: &Level<'a>, grads: &[Option<Value>]) -> Result<Vec<Partial>, Refused> {
        let mut pending: Vec<Vec<Partial>> = level.needs.iter().map(|_| Vec::new()).collect();
        for (value, grad) in level.results.iter().zip(grads).rev() {
            if let (Some(grad), true) = (grad, level.needs[value.index()]) {
                pending[value.index()].push(Partial::One(grad.clone()));
            }
        }
        for id in level.arena.ids().skip(level.ports).rev() {
            let Some(tape) = &level.calls[id.index()] else { continue };
            let mut grads = Vec::new();
            for value in level.arena.results(id) {
                let arrived = std::mem::take(&mut pending[value]);
                grads.push(match self.fold(arrived)? {
                    Partial::One(value) => Some(value),
                    _ => None,
                });
            }
            if grads.iter().all(Option::is_none) {
                continue;
            }
            let partials = self.reverse(tape, &grads)?;
            let read = operand_values(level.arena, id);
            for (&value, partial) in read.iter().zip(partials).rev() {
                distribute(level, value, partial, &mut pending);
            }
        }
        pending.into_iter().take(level.ports).map(|arrived| self.fold(arrived)).collect()
    }

    /// The sum of contributions that arrived in descending order.
    fn fold(&mut self, arrived: Vec<Partial>) -> Result<Partial, Refused> {
        let mut ascending = arrived.into_iter().rev();
        let Some(mut sum) = ascending.next() else { return Ok(Partial::None) };
        for more in ascending {
            sum = match (sum, more) {
                (Partial::One(a), Partial::One(b)) => Partial::One(self.add(a, b)),
                (Partial::Port(mut uses), Partial::Port(more)) => {
                    uses.extend(more);
                    Partial::Port(uses)
                }
                (Partial::Many(a), Partial::Many(b)) => {
                    let both = a.into_iter().zip(b).map(|(mut a, b)| {
                        a.extend(b);
                        a
                    });
                    Partial::Many(both.collect())
                }
                (sum, Partial::None) => sum,
                (Partial::None, more) => more,
                _ => return Err(Refused { op: "list" }),
            };
        }
        Ok(sum)
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        let ty = type_of(&a);
        if pieces(&a).iter().chain(pieces(&b)).any(|view| self.is_zero(view)) {
            return Value::Pieces(self.add_pieces(pieces(&a), pieces(&b)), ty);
        }
        let width = ty.shape.elements() as u32;
        let sources = vec![self.b.source(a, width), self.b.source(b, width)];
        Value::Pieces(vec![self.instr(Code::Binary(Binary::Add), sources, ty)], ty)
    }

    fn is_zero(&self, view: &View) -> bool {
        self.b.regs[view.reg.index()].kind == RegKind::Const(0)
    }

    /// The sum range by range. Where one side is the zeros around a slice, the result is the other side.
    fn add_pieces(&mut self, a: &[View], b: &[View]) -> Vec<View> {
        let mut sum: Vec<View> = Vec::with_capacity(a.len() + b.len());
        let (mut rest, mut other) = (a.iter().copied(), b.iter().copied());
        let (mut x, mut y) = (rest.next(), other.next());
        while let (Some(p), Some(q)) = (x, y) {
            let width = p.width.min(q.width);
            let (own, its) = (sub(p, 0, width), sub(q, 0, width));
            let made = match (self.is_zero(&own), self.is_zero(&its)) {
                (true, _) => its,
                (_, true) => own,
                _ => self.binary(Binary::Add, Source::View(own), Source::View(its), floats(width)),
            };
            match sum.last_mut() {
                Some(last) if last.reg == made.reg && last.start + last.width == made.start => {
                    last.width += width;
                }
                _ => sum.push(made),
            }
            let after = |view: View| (view.width > width).then(|| sub(view, width, view.width - width));
            x = after(p).or_else(|| rest.next());
            y = after(q).or_else(|| other.next());
        }
        sum
    }
}

/// The values that the operands of a node of a body name.
fn operand_values(arena: &Arena, id: NodeId) -> Vec<ValueId> {
    let value = |operand: &Operand| match operand.kind() {
        Some(OperandKind::Value(value)) => value,
        _ => unreachable!("bodies of verified modules bind no numbers"),
    };
    arena.operands(id).iter().map(value).collect()
}

/// Adds a contribution to the values that an operand names, in descending order.
fn distribute(level: &Level<'_>, value: ValueId, partial: Partial, pending: &mut [Vec<Partial>]) {
    if !level.needs[value.index()] || matches!(partial, Partial::None) {
        return;
    }
    let producer = level.arena.producer(value);
    match partial {
        // A list made in this body names its elements. A list port passes its contributions on.
        Partial::Many(items) if producer.index() >= level.ports => {
            let read = operand_values(level.arena, producer);
            for (value, item) in read.iter().zip(items).rev() {
                if level.needs[value.index()] {
                    pending[value.index()].extend(item.into_iter().rev().map(Partial::One));
                }
            }
        }
        partial => pending[value.index()].push(partial),
    }
}
