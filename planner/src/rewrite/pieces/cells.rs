//! Declares the cells that take and return pieces around an op or cell.

use super::classes::vector;
use autobatch_ir::graph::rebuild::Extension;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Operand, ParamArg, Signature};
use autobatch_ir::id::{SigId, SiteId, TypeId, ValueId};
use autobatch_ir::module::Body;
use autobatch_ir::types::Type;

/// The pieces of each operand and each result.
pub(super) struct Pattern {
    pub(super) places: Vec<Vec<Type>>,
    pub(super) results: Vec<Vec<Type>>,
}

impl Pattern {
    /// Whether every operand and result is one piece of its own type.
    pub(super) fn is_plain(&self, graph: &GraphData, signature: &Signature) -> bool {
        let plain = |pieces: &[Vec<Type>], types: &[TypeId]| {
            pieces.iter().zip(types).all(|(pieces, &ty)| pieces[..] == [graph.ty(ty)])
        };
        plain(&self.places, &signature.operands) && plain(&self.results, &signature.results)
    }
}

/// Declares the cell that applies a signature to pieces, and returns the signature of its calls.
pub(super) fn wrap(
    extension: &mut Extension,
    graph: &GraphData,
    sig: SigId,
    pattern: &Pattern,
    site: SiteId,
) -> Signature {
    let inner = graph.sigs.get(sig);
    let mut writer = Writer { extension, arena: Arena::default(), site };
    let ports: Vec<TypeId> = pattern.places.iter().flatten().map(|&ty| writer.port(ty)).collect();
    let mut next = 0;
    let mut operands = Vec::with_capacity(inner.operands.len());
    for (pieces, &ty) in pattern.places.iter().zip(&inner.operands) {
        let values: Vec<(ValueId, Type)> =
            (next..).zip(pieces).map(|(port, &ty)| (ValueId::new(port), ty)).collect();
        next += pieces.len();
        operands.push(Operand::value(writer.joined(&values, graph.ty(ty))));
    }
    let params = (0..inner.params.len() as u32).map(ParamArg::Port).collect();
    let called = Signature { params, ..inner.clone() };
    let first = writer.push(called, &operands);
    let mut results = Vec::new();
    for (place, (pieces, &ty)) in pattern.results.iter().zip(&inner.results).enumerate() {
        writer.cut(ValueId::new(first.index() + place), graph.ty(ty), pieces, &mut results);
    }
    let result_types: Box<[TypeId]> = results.iter().map(|&value| writer.arena.type_of(value)).collect();
    let param_types = inner.param_types.clone();
    let name = format!("parts.{}", graph.module.callee_name(inner.callee).trim_start_matches('@'));
    let Writer { extension, arena, .. } = writer;
    let body = Body { ports: ports.len(), noise: false, param_types: param_types.to_vec(), arena, results };
    let cell = extension.cell(&name, body, site);
    Signature {
        callee: Callee::Cell(cell),
        operands: ports.into(),
        params: inner.params.clone(),
        param_types,
        results: result_types,
    }
}

struct Writer<'a> {
    extension: &'a mut Extension,
    arena: Arena,
    site: SiteId,
}

impl Writer<'_> {
    fn push(&mut self, signature: Signature, operands: &[Operand]) -> ValueId {
        let results = signature.results.clone();
        let sig = self.extension.sig(signature);
        self.arena.append(sig, operands, &results, self.site)
    }

    fn port(&mut self, ty: Type) -> TypeId {
        let id = self.extension.ty(ty);
        self.push(plain(Op::Port(ty), &[], id), &[]);
        id
    }

    /// An op of one result, without parameters.
    fn op(&mut self, op: Op, operands: &[(ValueId, Type)], result: Type) -> ValueId {
        let types: Vec<TypeId> = operands.iter().map(|&(_, ty)| self.extension.ty(ty)).collect();
        let result = self.extension.ty(result);
        let operands: Vec<Operand> = operands.iter().map(|&(value, _)| Operand::value(value)).collect();
        self.push(plain(op, &types, result), &operands)
    }

    fn reshaped(&mut self, value: ValueId, from: Type, to: Type) -> ValueId {
        if from == to { value } else { self.op(Op::Reshape(to.shape), &[(value, from)], to) }
    }

    /// Joins pieces to one value.
    fn joined(&mut self, pieces: &[(ValueId, Type)], whole: Type) -> ValueId {
        if let [(value, ty)] = *pieces {
            return self.reshaped(value, ty, whole);
        }
        let flat = |ty: Type| ty.with_shape(vector(ty.shape.elements() as u32));
        let vectors: Vec<(ValueId, Type)> =
            pieces.iter().map(|&(value, ty)| (self.reshaped(value, ty, flat(ty)), flat(ty))).collect();
        let joined = self.op(Op::Concat { axis: 0 }, &vectors, flat(whole));
        self.reshaped(joined, flat(whole), whole)
    }

    /// Cuts a value into pieces.
    fn cut(&mut self, value: ValueId, whole: Type, pieces: &[Type], results: &mut Vec<ValueId>) {
        if let [ty] = *pieces {
            results.push(self.reshaped(value, whole, ty));
            return;
        }
        let flat = |ty: Type| ty.with_shape(vector(ty.shape.elements() as u32));
        let row = self.reshaped(value, whole, flat(whole));
        let mut start = 0;
        for &ty in pieces {
            let len = ty.shape.elements() as u32;
            let piece = self.op(Op::Slice { axis: 0, start, len }, &[(row, flat(whole))], flat(ty));
            results.push(self.reshaped(piece, flat(ty), ty));
            start += len;
        }
    }
}

/// The signature of an op of one result, without parameters.
pub(super) fn plain(op: Op, operands: &[TypeId], result: TypeId) -> Signature {
    Signature {
        callee: Callee::Op(op),
        operands: operands.into(),
        params: Box::default(),
        param_types: Box::default(),
        results: [result].into(),
    }
}
