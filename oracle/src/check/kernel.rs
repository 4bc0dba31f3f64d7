//! The terms of a kernel: its stages executed on terms.

use super::terms::{ListTerm, ProductStart, Seq, Term, TermOperand, Terms, Weight};
use autobatch_ir::graph::Op;
use autobatch_ir::graph::infer::infer;
use autobatch_ir::plan::{
    Instr, Kernel, ListSource, ProdInit, ProductPart, RegId, RegKind, Source, Stage, View,
};
use autobatch_ir::types::Type;
use std::collections::BTreeMap;

/// Instead of a port: no value, which equals no term of a graph.
const NOTHING: RegId = RegId(u32::MAX);

/// The terms of the results of a kernel of a verified plan.
pub(super) fn results(terms: &mut Terms, kernel: &Kernel, training: bool) -> Vec<Seq> {
    let mut execute = Execute { terms, kernel, training, written: vec![BTreeMap::new(); kernel.regs.len()] };
    for stage in &kernel.stages {
        if execute.terms.is_exhausted() {
            return Vec::new();
        }
        execute.stage(stage);
    }
    kernel.results.iter().map(|&view| execute.read(view)).collect()
}

struct Execute<'a> {
    terms: &'a mut Terms,
    kernel: &'a Kernel,
    training: bool,
    /// For each temporary the written values, by their first element.
    written: Vec<BTreeMap<u32, Seq>>,
}

impl Execute<'_> {
    fn read(&mut self, view: View) -> Seq {
        let reg = self.kernel.regs[view.reg.index()];
        let elements = reg.ty.shape.elements();
        let whole = match reg.kind {
            RegKind::Port => self.terms.whole(Term::Port(view.reg), elements),
            RegKind::Const(bits) => self.terms.whole(Term::Const(bits), elements),
            RegKind::Param(param) => self.terms.whole(Term::Param(param), elements),
            // Edges are gradients, which no cell makes. Their term is unique, so it equals no other.
            RegKind::Edges => return self.terms.whole(Term::Port(NOTHING), elements),
            RegKind::Temp => return self.read_temp(view),
        };
        self.terms.slice(&whole, view.start, view.width)
    }

    fn read_temp(&mut self, view: View) -> Seq {
        let written = &self.written[view.reg.index()];
        let first = written.range(..=view.start).next_back().map_or(view.start, |(&start, _)| start);
        let end = view.start + view.width;
        let runs: Vec<(u32, Seq)> =
            written.range(first..end).map(|(&start, seq)| (start, seq.clone())).collect();
        let mut whole = Seq::new();
        for (_, seq) in &runs {
            seq.iter().for_each(|&piece| self.terms.push(&mut whole, piece));
        }
        self.terms.slice(&whole, view.start - first, view.width)
    }

    fn write(&mut self, view: View, seq: Seq) {
        self.written[view.reg.index()].insert(view.start, seq);
    }

    fn stage(&mut self, stage: &Stage) {
        match stage {
            Stage::Prod { dst, rows, init, parts } => {
                let seq = self.product(*dst, *rows, *init, parts);
                self.write(*dst, seq);
            }
            Stage::Map { width, code } => self.map(*width, code),
            Stage::Row { op, sources, dsts } => self.row(*op, sources, dsts),
            Stage::Seg { op, query, lists, dst, .. } => {
                let query = query.map(|query| self.read(query));
                let lists = lists.iter().map(|list| self.list(list)).collect();
                let seq = self.terms.whole(Term::Fold(*op, query, lists), dst.width as usize);
                self.write(*dst, seq);
            }
            Stage::SegGrad { .. }
            | Stage::MeanGrad { .. }
            | Stage::AttendGrad { .. }
            | Stage::AttendPull { .. } => {
                for dst in stage.writes() {
                    let seq = self.terms.whole(Term::Port(NOTHING), dst.width as usize);
                    self.write(dst, seq);
                }
            }
            Stage::LabelLoss { param, x, label, dst, log_sum, slope } => {
                let (x, label) = (self.read(*x), self.read(*label));
                let seq = self.terms.whole(Term::LabelLoss(*param, x, label), dst.width as usize);
                self.write(*dst, seq);
                for &saved in log_sum.iter().chain(slope) {
                    let seq = self.terms.whole(Term::Port(NOTHING), saved.width as usize);
                    self.write(saved, seq);
                }
            }
            Stage::Lookup { param, index, dst } => {
                let index = self.read(*index);
                let seq = self.terms.whole(Term::Lookup(*param, index), dst.width as usize);
                self.write(*dst, seq);
            }
        }
    }

    fn list(&mut self, list: &ListSource) -> ListTerm {
        match list {
            ListSource::Port(port) => ListTerm::Port(*port),
            ListSource::Views(views) => ListTerm::Items(views.iter().map(|&view| self.read(view)).collect()),
        }
    }

    fn row(&mut self, op: Op, sources: &[(View, Type)], dsts: &[View]) {
        let mut operands: Vec<(Seq, Type)> =
            sources.iter().map(|&(view, ty)| (self.read(view), ty)).collect();
        let results = match op {
            Op::Dropout { .. } if !self.training => vec![operands.swap_remove(0).0],
            _ => {
                let types: Vec<Type> = operands.iter().map(|operand| operand.1).collect();
                let types = infer(&op, &types, &[]).expect("rule P12 holds");
                self.terms.row(op, operands, &types)
            }
        };
        dsts.iter().zip(results).for_each(|(&dst, seq)| self.write(dst, seq));
    }

    fn product(&mut self, dst: View, rows: u32, init: ProdInit, parts: &[ProductPart]) -> Seq {
        let first = parts[0].col;
        let mut factors = Vec::with_capacity(parts.len());
        for part in parts {
            let offset = i64::from(part.col) - i64::from(first);
            let weight = Weight { param: part.param, row: part.row, transposed: part.transposed, offset };
            factors.push((self.read(part.source), weight));
        }
        let view;
        let start = match init {
            ProdInit::Zero => ProductStart::Zero,
            ProdInit::Bias(param) => ProductStart::Bias(param),
            ProdInit::View(from) => {
                view = self.read(from);
                ProductStart::View(&view)
            }
        };
        self.terms.product(rows, start, &factors, first, dst.width / rows).unwrap_or_default()
    }

    fn map(&mut self, width: u32, code: &[Instr]) {
        let mut locals: Vec<Seq> = Vec::with_capacity(code.len());
        for instr in code {
            let operands: Vec<TermOperand> = instr
                .sources
                .iter()
                .map(|source| match *source {
                    Source::Local(local) => TermOperand::Value(locals[local as usize].clone()),
                    Source::View(view) | Source::Scalar(view) => TermOperand::Value(self.read(view)),
                    Source::Const(bits) => TermOperand::Const(bits),
                })
                .collect();
            locals.push(self.terms.elementwise(instr.code, instr.dtype, &operands, width));
        }
        for (instr, seq) in code.iter().zip(locals) {
            if let Some(store) = instr.store {
                self.write(store, seq);
            }
        }
    }
}
