//! The derivative kernel of a signature.
//!
//! *Needs* a signature and which of its ports and parameters want gradients. *Ensures* a kernel over
//! one lane that, from the gradients of the results, makes the gradients of those ports with the
//! bits of `reference::reverse`, and whatever the sums over parameters take.
//!
//! *How.* The body is walked forward once, exactly as it is compiled, with a tape of what every
//! application read and made; then in reverse, each op appending the stages of its rule. Everything
//! forward that the reverse half reads would thus be computed again. What is worth keeping is cut
//! out instead: results are read where the forward step left them; products, row stages, folds and
//! lookups are *saved*, which means that the forward kernel returns their registers too, written in
//! place to an application slab. Elementwise stages are computed again. Dead stages go, the rest is
//! fused like any kernel.
//!
//! A result's gradient arrives as a list of contributions, folded first: none gives zeros, one is
//! copied, several are added in the order of the graph.

use super::rules::{Partial, PortUse};
use crate::compile::fuse::{fuse, rename, stage_reads, stage_writes};
use crate::compile::{Builder, CompileOptions, Tables, Value, type_of};
use autobatch_ir::graph::{Arena, Binary, Callee, ListFold, Op, OperandKind, ParamArg, Signature};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Code, FinalSum, Kernel, ListSource, Part, RegKind, Source, Stage, View};
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An op that has no rule here; gradients are refused rather than wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) op: &'static str,
}

/// Where a step in reverse finds what a port of its kernel or a final takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Where the forward step found this operand.
    Operand(u32),
    /// Where the forward step left this result.
    Result(u32),
    /// Where the forward step left this saved register.
    Save(u32),
    /// The contributions to the gradient of this forward result.
    Gradient(u32),
    /// Where the step in reverse left this one of its `kept` results.
    Kept(u32),
}

/// Rows that a sum over a parameter takes from every lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneFinal {
    /// The parameter argument of the signature.
    pub(crate) param: u32,
    pub(crate) sum: FinalSum,
    pub(crate) each: u32,
    pub(crate) x: Option<From>,
    pub(crate) dy: From,
}

/// What a result in reverse contributes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GradientOf {
    /// The forward operand. Of a list, one row is for all its values unless they are edges.
    pub(crate) operand: u32,
    /// Whether every value of the list has a row of its own.
    pub(crate) edges: bool,
}

/// What is played in reverse for a signature, and what the forward step must keep for it.
#[derive(Debug)]
pub(crate) struct Derivative {
    /// The forward kernel, which returns the saved registers after its results.
    pub(crate) forward: Arc<Kernel>,
    /// The types of the saved registers.
    pub(crate) saves: Vec<Type>,
    /// The kernel in reverse: first the gradients of operands, then what is kept for finals.
    pub(crate) kernel: Arc<Kernel>,
    /// Per port of that kernel, where it reads.
    pub(crate) ports: Vec<From>,
    /// What its first results contribute to: of a list, one for each use of it in the body.
    pub(crate) gradients: Vec<GradientOf>,
    /// The types of the results after those.
    pub(crate) kept: Vec<Type>,
    /// The sums that it feeds.
    pub(crate) finals: Vec<LaneFinal>,
}

/// What wants gradients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// Per operand of the signature.
    pub(crate) operands: Vec<bool>,
    /// Per parameter argument.
    pub(crate) params: Vec<bool>,
}

/// The derivative of a signature; none if nothing that wants a gradient gets one.
pub(crate) fn derive(
    tables: Tables<'_>,
    sig: SigId,
    options: CompileOptions,
    wanted: &Wanted,
) -> Result<Option<Derivative>, Refused> {
    let signature = tables.sigs.get(sig);
    let mut builder = Builder::new(tables, options);
    let ports: Vec<Value> = signature.operands.iter().map(|&ty| builder.port(tables.types.get(ty))).collect();
    builder.ports = ports.len() as u32;
    builder.params = signature.param_types.iter().map(|&ty| tables.types.get(ty)).collect();
    let mut deriver = Deriver {
        b: builder,
        params: wanted.params.clone(),
        finals: Vec::new(),
        kept: Vec::new(),
        incoming: Vec::new(),
    };
    let args: Vec<u32> = (0..signature.params.len() as u32).collect();
    let (results, needs, tape) = deriver.forward(signature, &ports, &wanted.operands, &args);
    let results: Vec<View> = results.into_iter().map(|value| deriver.b.one_view(value)).collect();
    let forward = Forward { regs: deriver.b.regs.len(), stages: deriver.b.stages.len(), results };
    let grads = signature.results.iter().zip(&needs).map(|(&ty, &needs)| {
        let ty = tables.types.get(ty);
        (needs && ty.dtype == DType::F32).then_some(ty)
    });
    let types: Vec<Option<Type>> = grads.collect();
    let incoming = |(result, ty): (usize, Option<Type>)| ty.map(|ty| deriver.incoming(result as u32, ty));
    let grads: Vec<Option<Value>> = types.into_iter().enumerate().map(incoming).collect();
    if grads.iter().all(Option::is_none) {
        return Ok(None);
    }
    let partials = deriver.reverse(&tape, &grads)?;
    let mut gradients = Vec::new();
    let mut made = Vec::new();
    for (place, partial) in partials.into_iter().enumerate() {
        let uses = match partial {
            _ if !wanted.operands[place] => continue,
            Partial::One(value) => vec![PortUse::Shared(value)],
            Partial::Port(uses) => uses,
            Partial::None | Partial::Many(_) => continue,
        };
        for contribution in uses {
            let edges = matches!(contribution, PortUse::Edges(_));
            gradients.push(GradientOf { operand: place as u32, edges });
            made.push(match contribution {
                PortUse::Shared(value) => deriver.b.one_view(value),
                PortUse::Edges(view) => view,
            });
        }
    }
    if gradients.is_empty() && deriver.finals.is_empty() {
        return Ok(None);
    }
    Ok(Some(deriver.finish(tables.module.callee_name(signature.callee), &forward, gradients, made)))
}

/// How far the forward half of the stages goes.
struct Forward {
    regs: usize,
    stages: usize,
    results: Vec<View>,
}

/// What was applied, what it read and what it made.
enum Tape<'a> {
    Op(Applied),
    Cell(Level<'a>),
}

/// An op on the tape.
pub(super) struct Applied {
    pub(super) op: Op,
    pub(super) operands: Vec<Value>,
    pub(super) needs: Vec<bool>,
    pub(super) results: Vec<Value>,
    pub(super) args: Vec<u32>,
    /// The parts of a product, as they were read.
    pub(super) parts: Vec<Part>,
}

/// A body on the tape.
struct Level<'a> {
    arena: &'a Arena,
    ports: usize,
    results: Vec<usize>,
    needs: Vec<bool>,
    calls: Vec<Option<Tape<'a>>>,
}

/// A sum over a parameter in the making.
pub(super) struct PendingFinal {
    pub(super) param: u32,
    pub(super) sum: FinalSum,
    pub(super) each: u32,
    pub(super) x: Option<View>,
    /// One of the `kept` views.
    pub(super) dy: usize,
    /// For a transposed weight the roles are exchanged.
    pub(super) swapped: bool,
}

pub(super) struct Deriver<'a> {
    pub(super) b: Builder<'a>,
    /// Which parameter arguments want gradients.
    pub(super) params: Vec<bool>,
    pub(super) finals: Vec<PendingFinal>,
    /// Views that finals take.
    pub(super) kept: Vec<View>,
    /// The register of each gradient that arrives, and the result it belongs to.
    incoming: Vec<(u32, u32)>,
}

/// Whether no derivative leads through an op.
fn blocks(op: Op) -> bool {
    matches!(
        op,
        Op::StopGradient
            | Op::Fill { .. }
            | Op::Compare(_)
            | Op::ArgMax
            | Op::OneHot { .. }
            | Op::ForkNoise { .. }
            | Op::Unary(autobatch_ir::graph::Unary::Sign)
    )
}

impl<'a> Deriver<'a> {
    /// A port for the contributions to a gradient, and their sum.
    fn incoming(&mut self, result: u32, ty: Type) -> Value {
        let list = self.b.reg(RegKind::Port, Type { is_list: true, ..ty });
        self.incoming.push((list.reg, result));
        let dst = self.b.temp(ty);
        let lists = vec![ListSource::Port(list.reg)];
        self.b.stages.push(Stage::Seg {
            op: Op::ListFold(ListFold::Sum),
            query: None,
            lists,
            elements: vec![ty],
            dst,
        });
        Value::Pieces(vec![dst], ty)
    }

    fn forward(
        &mut self,
        signature: &'a Signature,
        operands: &[Value],
        needs: &[bool],
        args: &[u32],
    ) -> (Vec<Value>, Vec<bool>, Tape<'a>) {
        let tables = self.b.tables;
        match signature.callee {
            Callee::Op(op) => {
                let types: Vec<Type> = signature.results.iter().map(|&ty| tables.types.get(ty)).collect();
                let first = self.b.stages.len();
                let results = self.b.op(op, operands.to_vec(), args, types.clone());
                let parts = match self.b.stages.get(first..).and_then(<[Stage]>::last) {
                    Some(Stage::Prod { parts, .. }) => parts.clone(),
                    _ => Vec::new(),
                };
                let needed = !blocks(op)
                    && (needs.iter().any(|&needs| needs)
                        || args.iter().any(|&arg| self.params[arg as usize]));
                let result_needs = types.iter().map(|ty| needed && ty.dtype == DType::F32).collect();
                let applied = Applied {
                    op,
                    operands: operands.to_vec(),
                    needs: needs.to_vec(),
                    results: results.clone(),
                    args: args.to_vec(),
                    parts,
                };
                (results, result_needs, Tape::Op(applied))
            }
            Callee::Cell(cell) => {
                let body = &tables.module.cell_decl(cell).body;
                let (values, level) = self.level(&body.arena, operands, needs, args);
                let slots: Vec<usize> = body.results.iter().map(|result| result.index()).collect();
                let results = slots.iter().map(|&slot| values[slot].clone()).collect();
                let needs = slots.iter().map(|&slot| level.needs[slot]).collect();
                (results, needs, Tape::Cell(Level { results: slots, ..level }))
            }
        }
    }

    fn level(
        &mut self,
        arena: &'a Arena,
        ports: &[Value],
        port_needs: &[bool],
        args: &[u32],
    ) -> (Vec<Value>, Level<'a>) {
        let mut values: Vec<Value> = ports.to_vec();
        let mut needs = port_needs.to_vec();
        let mut calls: Vec<Option<Tape<'a>>> = ports.iter().map(|_| None).collect();
        for id in arena.ids().skip(ports.len()) {
            let signature = self.b.tables.sigs.get(arena.app(id).sig);
            let slots: Vec<usize> = operand_slots(arena, id);
            let operands: Vec<Value> = slots.iter().map(|&slot| values[slot].clone()).collect();
            let own_needs: Vec<bool> = slots.iter().map(|&slot| needs[slot]).collect();
            let params: Vec<u32> = signature
                .params
                .iter()
                .map(|&arg| match arg {
                    ParamArg::Port(port) => args[port as usize],
                    ParamArg::Module(_) => {
                        unreachable!("bodies of verified modules take parameters as ports")
                    }
                })
                .collect();
            let (results, result_needs, tape) = self.forward(signature, &operands, &own_needs, &params);
            values.extend(results);
            needs.extend(result_needs);
            calls.push((!signature.is_list()).then_some(tape));
        }
        (values, Level { arena, ports: ports.len(), results: Vec::new(), needs, calls })
    }

    fn reverse(&mut self, tape: &Tape<'a>, grads: &[Option<Value>]) -> Result<Vec<Partial>, Refused> {
        match tape {
            Tape::Op(applied) => self.rule(applied, grads),
            Tape::Cell(level) => self.reverse_level(level, grads),
        }
    }

    /// As the reference walks a body: contributions arrive in descending order of the uses.
    fn reverse_level(&mut self, level: &Level<'a>, grads: &[Option<Value>]) -> Result<Vec<Partial>, Refused> {
        let mut pending: Vec<Vec<Partial>> = level.needs.iter().map(|_| Vec::new()).collect();
        for (&slot, grad) in level.results.iter().zip(grads).rev() {
            if let (Some(grad), true) = (grad, level.needs[slot]) {
                pending[slot].push(Partial::One(grad.clone()));
            }
        }
        for id in level.arena.ids().skip(level.ports).rev() {
            let Some(tape) = &level.calls[id.index()] else { continue };
            let mut grads = Vec::new();
            for slot in level.arena.results(id) {
                let arrived = std::mem::take(&mut pending[slot]);
                grads.push(match self.fold(arrived)? {
                    Partial::One(value) => Some(value),
                    _ => None,
                });
            }
            if grads.iter().all(Option::is_none) {
                continue;
            }
            let partials = self.reverse(tape, &grads)?;
            let slots = operand_slots(level.arena, id);
            for (&slot, partial) in slots.iter().zip(partials).rev() {
                distribute(level, slot, partial, &mut pending);
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
        let width = ty.shape.elements() as u32;
        let sources = vec![self.b.source(a, width), self.b.source(b, width)];
        Value::Pieces(vec![self.instr(Code::Binary(Binary::Add), sources, ty)], ty)
    }

    /// One elementwise instruction.
    pub(super) fn instr(&mut self, code: Code, sources: Vec<Source>, ty: Type) -> View {
        let dst = self.b.temp(ty);
        self.instr_to(dst, code, ty.dtype, sources);
        dst
    }

    /// One elementwise instruction with a place for its result.
    pub(super) fn instr_to(&mut self, dst: View, code: Code, dtype: DType, sources: Vec<Source>) {
        let instr = autobatch_ir::plan::Instr { code, dtype, sources, store: Some(dst) };
        self.b.stages.push(Stage::Map { width: dst.width, code: vec![instr] });
    }

    /// Keeps a view for finals.
    pub(super) fn keep(&mut self, view: View) -> usize {
        if let Some(known) = self.kept.iter().position(|kept| *kept == view) {
            return known;
        }
        self.kept.push(view);
        self.kept.len() - 1
    }

    /// Cuts the stages into a forward and a reverse kernel.
    fn finish(
        mut self,
        name: String,
        forward: &Forward,
        gradients: Vec<GradientOf>,
        made: Vec<View>,
    ) -> Derivative {
        let mut saves: Vec<View> = Vec::new();
        let pending = std::mem::take(&mut self.finals);
        let mut xs: Vec<Option<From>> = Vec::new();
        for view in pending.iter().map(|pending| pending.x) {
            xs.push(view.map(|view| self.home(view, forward, &mut saves)));
        }
        let results: Vec<View> = made.iter().chain(&self.kept).copied().collect();
        let mut ports: BTreeMap<u32, From> = BTreeMap::new();
        let kept_stages = self.live(&results, forward, &mut saves, &mut ports);
        let forward_kernel = self.forward_kernel(&name, forward, &saves);
        let kept: Vec<Type> = self.kept.iter().map(|view| self.view_type(*view)).collect();
        let finals = pending
            .iter()
            .zip(xs)
            .map(|(pending, x)| {
                let dy = From::Kept(pending.dy as u32);
                let (x, dy) = match (x, pending.swapped) {
                    (Some(x), true) => (Some(dy), x),
                    (x, _) => (x, dy),
                };
                LaneFinal { param: pending.param, sum: pending.sum, each: pending.each, x, dy }
            })
            .collect();
        let saves = saves.iter().map(|view| self.view_type(*view)).collect();
        let (kernel, ports) = self.kernel(name + "'", kept_stages, results, ports);
        Derivative {
            forward: Arc::new(forward_kernel),
            saves,
            kernel: Arc::new(kernel),
            ports,
            gradients,
            kept,
            finals,
        }
    }

    /// The type of a register, or of some of its elements.
    fn view_type(&self, view: View) -> Type {
        let ty = self.b.regs[view.reg as usize].ty;
        if ty.shape.elements() as u32 == view.width {
            return ty;
        }
        let shape =
            autobatch_ir::types::Shape::new(&[view.width]).expect("a view is no wider than its register");
        ty.with_shape(shape)
    }

    fn whole(&self, reg: u32) -> View {
        View { reg, start: 0, width: self.b.regs[reg as usize].ty.shape.elements() as u32 }
    }

    /// Where a forward view is found after the forward step; saved if nowhere else.
    fn home(&self, view: View, forward: &Forward, saves: &mut Vec<View>) -> From {
        let reg = self.b.regs[view.reg as usize];
        if reg.kind == RegKind::Port && view == self.whole(view.reg) {
            return From::Operand(view.reg);
        }
        if let Some(result) = forward.results.iter().position(|result| *result == view) {
            return From::Result(result as u32);
        }
        let at = saves.iter().position(|save| *save == view).unwrap_or_else(|| {
            saves.push(view);
            saves.len() - 1
        });
        From::Save(at as u32)
    }

    /// The stages that the results need, and the registers that become ports instead of being
    /// computed.
    fn live(
        &self,
        results: &[View],
        forward: &Forward,
        saves: &mut Vec<View>,
        ports: &mut BTreeMap<u32, From>,
    ) -> Vec<Stage> {
        let mut needed = vec![false; self.b.regs.len()];
        results.iter().for_each(|view| needed[view.reg as usize] = true);
        let mut kept = Vec::new();
        for (number, stage) in self.b.stages.iter().enumerate().rev() {
            let writes: Vec<u32> = stage_writes(stage).iter().map(|view| view.reg).collect();
            if !writes.iter().any(|&reg| needed[reg as usize]) {
                continue;
            }
            let mut found = number < forward.stages;
            for &reg in writes.iter().filter(|&&reg| number < forward.stages && needed[reg as usize]) {
                let whole = self.whole(reg);
                let is_result = forward.results.contains(&whole);
                if is_result || !matches!(stage, Stage::Map { .. }) {
                    ports.insert(reg, self.home(whole, forward, saves));
                } else {
                    found = false;
                }
            }
            if !found {
                stage_reads(stage).iter().for_each(|view| needed[view.reg as usize] = true);
                kept.push(stage.clone());
            }
        }
        kept.reverse();
        for (number, reg) in self.b.regs.iter().enumerate() {
            if reg.kind == RegKind::Port && needed[number] && number < forward.regs {
                ports.insert(number as u32, From::Operand(number as u32));
            }
        }
        kept
    }

    fn forward_kernel(&self, name: &str, forward: &Forward, saves: &[View]) -> Kernel {
        let mut kernel = Kernel {
            name: name.to_owned(),
            ports: self.b.ports,
            params: self.b.params.clone(),
            regs: self.b.regs[..forward.regs].to_vec(),
            stages: self.b.stages[..forward.stages].to_vec(),
            results: forward.results.iter().chain(saves).copied().collect(),
            source: false,
        };
        fuse(&mut kernel);
        kernel
    }

    /// The kernel in reverse: registers are numbered anew, ports first.
    fn kernel(
        &self,
        name: String,
        stages: Vec<Stage>,
        results: Vec<View>,
        mut ports: BTreeMap<u32, From>,
    ) -> (Kernel, Vec<From>) {
        let reads: Vec<u32> = stages.iter().flat_map(stage_reads).map(|view| view.reg).collect();
        for &(reg, result) in self.incoming.iter().filter(|(reg, _)| reads.contains(reg)) {
            ports.insert(reg, From::Gradient(result));
        }
        let others = (0..self.b.regs.len() as u32)
            .filter(|reg| !ports.contains_key(reg) && self.b.regs[*reg as usize].kind != RegKind::Port);
        let order: Vec<u32> = ports.keys().copied().chain(others).collect();
        let mut renumbered = vec![0; self.b.regs.len()];
        let mut regs = Vec::with_capacity(order.len());
        for (new, &old) in order.iter().enumerate() {
            renumbered[old as usize] = new as u32;
            let mut reg = self.b.regs[old as usize];
            if ports.contains_key(&old) {
                reg.kind = RegKind::Port;
            }
            regs.push(reg);
        }
        let renumber = |view: &mut View| view.reg = renumbered[view.reg as usize];
        let (mut stages, mut results) = (stages, results);
        stages.iter_mut().for_each(|stage| rename(stage, &renumber));
        results.iter_mut().for_each(renumber);
        let params = self.b.params.clone();
        let mut kernel =
            Kernel { name, ports: ports.len() as u32, params, regs, stages, results, source: false };
        fuse(&mut kernel);
        (kernel, ports.into_values().collect())
    }
}

/// The slots that the operands of an application of a body name.
fn operand_slots(arena: &Arena, id: autobatch_ir::id::AppId) -> Vec<usize> {
    let slot = |operand: &autobatch_ir::graph::Operand| match operand.kind() {
        Some(OperandKind::Value(id)) => id.index(),
        _ => unreachable!("bodies of verified modules bind no numbers"),
    };
    arena.operands(id).iter().map(slot).collect()
}

/// Hands a contribution to the values that an operand names, in descending order.
fn distribute(level: &Level<'_>, slot: usize, partial: Partial, pending: &mut [Vec<Partial>]) {
    if !level.needs[slot] || matches!(partial, Partial::None) {
        return;
    }
    let producer = level.arena.producer(autobatch_ir::id::ValueId::new(slot));
    match partial {
        // A list made in this body names its elements; one that came through a port is handed on.
        Partial::Many(items) if producer.index() >= level.ports => {
            let slots = operand_slots(level.arena, producer);
            for (&slot, item) in slots.iter().zip(items).rev() {
                if level.needs[slot] {
                    pending[slot].extend(item.into_iter().rev().map(Partial::One));
                }
            }
        }
        partial => pending[slot].push(partial),
    }
}
