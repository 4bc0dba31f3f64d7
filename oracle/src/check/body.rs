//! The terms of a signature: its op, or the body of its cell with all calls inlined.

use super::terms::{ListTerm, ProductStart, Seq, Term, TermOperand, Terms, Weight};
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, OperandKind, ParamArg, Signature};
use autobatch_ir::plan::row_ops::{Template, template};
use autobatch_ir::plan::{Code, ParamPort, RegId};
use autobatch_ir::types::{DType, Type};

/// The terms of the results of a signature; `None` if its body is malformed or too large.
pub(super) fn results(
    terms: &mut Terms,
    graph: &GraphData,
    signature: &Signature,
    training: bool,
) -> Option<Vec<Seq>> {
    let mut ports = Vec::with_capacity(signature.operands.len());
    for (port, &ty) in (0..).map(RegId).zip(&signature.operands) {
        let ty = graph.ty(ty);
        let seq = terms.whole(Term::Port(port), ty.shape.elements());
        ports.push(if ty.is_list { Value::List(ListTerm::Port(port)) } else { Value::Seq(seq) });
    }
    let args: Vec<ParamPort> = (0..signature.params.len() as u32).map(ParamPort).collect();
    let mut execute = Execute { terms, graph, training };
    execute.apply(signature, ports, &args)?.into_iter().map(Value::seq).collect()
}

/// A value of a cell body.
#[derive(Clone, Debug)]
enum Value {
    Seq(Seq),
    List(ListTerm),
}

impl Value {
    fn seq(self) -> Option<Seq> {
        match self {
            Self::Seq(seq) => Some(seq),
            Self::List(_) => None,
        }
    }
}

struct Execute<'a> {
    terms: &'a mut Terms,
    graph: &'a GraphData,
    training: bool,
}

impl Execute<'_> {
    fn apply(
        &mut self,
        signature: &Signature,
        operands: Vec<Value>,
        args: &[ParamPort],
    ) -> Option<Vec<Value>> {
        self.terms.spend(1 + operands.len());
        if self.terms.is_exhausted() {
            return None;
        }
        match signature.callee {
            Callee::Op(op) => self.op(op, signature, operands, args),
            Callee::Cell(cell) => {
                let body = &self.graph.module.cells.get(cell.index())?.body;
                let values = self.body(&body.arena, operands, args)?;
                body.results.iter().map(|result| values.get(result.index()).cloned()).collect()
            }
        }
    }

    fn body(&mut self, arena: &Arena, ports: Vec<Value>, args: &[ParamPort]) -> Option<Vec<Value>> {
        let first = ports.len();
        let mut values = ports;
        for id in arena.ids().skip(first) {
            let signature = self.graph.sigs.get(arena.node(id).sig);
            let mut operands = Vec::with_capacity(signature.operands.len());
            for operand in arena.operands(id) {
                let Some(OperandKind::Value(value)) = operand.kind() else { return None };
                operands.push(values.get(value.index())?.clone());
            }
            let mut own = Vec::with_capacity(signature.params.len());
            for &arg in &signature.params {
                let ParamArg::Port(port) = arg else { return None };
                own.push(*args.get(port as usize)?);
            }
            values.extend(self.apply(signature, operands, &own)?);
        }
        Some(values)
    }

    fn op(
        &mut self,
        op: Op,
        signature: &Signature,
        mut operands: Vec<Value>,
        args: &[ParamPort],
    ) -> Option<Vec<Value>> {
        let types: Vec<Type> = signature.operands.iter().map(|&ty| self.graph.ty(ty)).collect();
        let results: Vec<Type> = signature.results.iter().map(|&ty| self.graph.ty(ty)).collect();
        let width = results.first().map_or(0, |ty| ty.shape.elements());
        let one = |seq: Seq| Some(vec![Value::Seq(seq)]);
        let weight = |row, transposed| Some(Weight { param: *args.first()?, row, transposed, offset: 0 });
        match (template(op), op) {
            (Template::Source, Op::Input(_))
            | (Template::View, Op::StopGradient | Op::ScaleGradient { .. }) => Some(operands),
            (Template::Row, Op::Dropout { .. }) if !self.training => {
                operands.truncate(1);
                Some(operands)
            }
            (Template::Source, Op::Fill { bits, .. }) => one(self.terms.whole(Term::Const(bits), width)),
            (Template::Source, Op::Param) => one(self.terms.whole(Term::Param(*args.first()?), width)),
            (Template::List, _) => {
                let items = operands.into_iter().map(Value::seq).collect::<Option<Vec<Seq>>>()?;
                Some(vec![Value::List(ListTerm::Items(items))])
            }
            (Template::Lookup, _) => {
                let index = operands.swap_remove(0).seq()?;
                one(self.terms.whole(Term::Lookup(*args.first()?, index), width))
            }
            (Template::LabelLoss, _) => {
                let (label, x) = (operands.pop()?.seq()?, operands.pop()?.seq()?);
                one(self.terms.whole(Term::LabelLoss(*args.first()?, x, label), width))
            }
            (Template::Seg, _) => one(self.fold(op, operands, width)),
            (Template::Prod, Op::Affine { bias, transposed }) => {
                let sources = operands.into_iter().map(Value::seq).collect::<Option<Vec<Seq>>>()?;
                let start = if bias { ProductStart::Bias(*args.get(1)?) } else { ProductStart::Zero };
                one(self.affine(start, weight(0, transposed)?, &sources, &types, results[0])?)
            }
            (Template::Prod, Op::AffineRows { row, bias, onto }) => {
                let sources = operands.into_iter().map(Value::seq).collect::<Option<Vec<Seq>>>()?;
                let (before, parts) = sources.split_at_checked(usize::from(onto))?;
                let start = match (before, bias) {
                    ([view], _) => ProductStart::View(view),
                    (_, true) => ProductStart::Bias(*args.get(1)?),
                    _ => ProductStart::Zero,
                };
                let types = types.get(usize::from(onto)..)?;
                one(self.affine(start, weight(row, false)?, parts, types, results[0])?)
            }
            (Template::Map, _) => {
                let code = Code::of(op)?;
                let dtype: DType = types.get(usize::from(code == Code::Select))?.dtype;
                let operands: Vec<TermOperand> = operands
                    .into_iter()
                    .map(|value| value.seq().map(TermOperand::Value))
                    .collect::<Option<_>>()?;
                one(self.terms.elementwise(code, dtype, &operands, width as u32))
            }
            (Template::View | Template::Row, _) => {
                let sources = operands.into_iter().zip(types);
                let sources =
                    sources.map(|(value, ty)| Some((value.seq()?, ty))).collect::<Option<Vec<_>>>()?;
                let seqs = self.terms.row(op, sources, &results);
                Some(seqs.into_iter().map(Value::Seq).collect())
            }
            (Template::Source | Template::Prod, _) => None,
        }
    }

    fn fold(&mut self, op: Op, operands: Vec<Value>, width: usize) -> Seq {
        let (mut query, mut lists) = (None, Vec::new());
        for operand in operands {
            match operand {
                Value::Seq(seq) => query = Some(seq),
                Value::List(list) => lists.push(list),
            }
        }
        self.terms.whole(Term::Fold(op, query, lists), width)
    }

    /// A product of operands, side by side, with the rows of a weight from the given one on.
    fn affine(
        &mut self,
        start: ProductStart<'_>,
        first: Weight,
        sources: &[Seq],
        types: &[Type],
        result: Type,
    ) -> Option<Seq> {
        let mut row = first.row;
        let mut parts = Vec::with_capacity(sources.len());
        for (source, ty) in sources.iter().zip(types) {
            parts.push((source.clone(), Weight { row, ..first }));
            row += ty.shape.width() as u32;
        }
        let (rows, columns) = (result.shape.rows() as u32, result.shape.width() as u32);
        self.terms.product(rows, start, &parts, 0, columns)
    }
}
