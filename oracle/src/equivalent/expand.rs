//! Expands a graph into terms.

use super::MAX_EXPANDED;
use super::report::Unproved;
use super::terms::{Arg, Piece, Term, Terms, ViewId, What, views_of};
use crate::needed;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Operand, OperandKind, ParamArg, Signature};
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::types::{INDEX, Shape, Type};

pub(super) struct Expander<'a> {
    graph: &'a GraphData,
    terms: &'a mut Terms,
    /// The number of common cells; their calls are not inlined.
    common: usize,
    expanded: u64,
}

impl<'a> Expander<'a> {
    pub(super) fn new(graph: &'a GraphData, terms: &'a mut Terms, common: usize) -> Self {
        Self { graph, terms, common, expanded: 0 }
    }

    /// Expands these values and everything they depend on.
    pub(super) fn expand(mut self, values: &[ValueId]) -> Result<Vec<Arg>, Unproved> {
        let graph = self.graph;
        let needed = needed(&graph.arena, values);
        let images = self.arena(&graph.arena, Vec::new(), &[], |node| needed[node.index()])?;
        let image = |value: &ValueId| images[value.index()].clone();
        Ok(values.iter().map(|value| image(value).expect("needed values are expanded")).collect())
    }

    /// Expands the values of an arena, given those of its ports. Nodes that are not needed are skipped.
    fn arena(
        &mut self,
        arena: &Arena,
        ports: Vec<Arg>,
        params: &[ParamId],
        needed: impl Fn(NodeId) -> bool,
    ) -> Result<Vec<Option<Arg>>, Unproved> {
        let first = ports.len();
        let mut images: Vec<Option<Arg>> = ports.into_iter().map(Some).collect();
        images.resize(arena.values(), None);
        for node in arena.ids().skip(first).filter(|&node| needed(node)) {
            self.expanded += 1;
            if self.expanded > MAX_EXPANDED {
                return Err(Unproved::TooLarge);
            }
            let signature = self.graph.sigs.get(arena.node(node).sig);
            let args: Vec<Arg> =
                arena.operands(node).iter().map(|&operand| self.operand(operand, &images)).collect();
            let params: Vec<ParamId> = signature.params.iter().map(|&arg| resolve(arg, params)).collect();
            let results = self.apply(signature, args, params)?;
            for (slot, result) in images[arena.results(node)].iter_mut().zip(results) {
                *slot = Some(result);
            }
        }
        Ok(images)
    }

    fn operand(&mut self, operand: Operand, images: &[Option<Arg>]) -> Arg {
        match operand.kind() {
            Some(OperandKind::Value(value)) => {
                images[value.index()].clone().expect("operands precede their readers and are needed")
            }
            Some(OperandKind::Index(slot)) => Arg::View(self.terms.whole(Term::Words(slot), INDEX)),
            Some(OperandKind::Data(slot)) => Arg::View(self.terms.whole(Term::Floats(slot), INDEX)),
            None => unreachable!("verified graphs have valid operands"),
        }
    }

    fn apply(
        &mut self,
        signature: &Signature,
        args: Vec<Arg>,
        params: Vec<ParamId>,
    ) -> Result<Vec<Arg>, Unproved> {
        match signature.callee {
            Callee::Op(Op::List) => {
                let items = args.into_iter().map(|arg| match arg {
                    Arg::View(view) => view,
                    Arg::List(_) => unreachable!("verified graphs have no lists of lists"),
                });
                Ok(vec![Arg::List(items.collect())])
            }
            Callee::Op(Op::Append) => match <[Arg; 2]>::try_from(args) {
                Ok([Arg::List(items), Arg::View(item)]) => {
                    Ok(vec![Arg::List(items.iter().copied().chain([item]).collect())])
                }
                _ => unreachable!("verified graphs append a value to a list"),
            },
            Callee::Op(op) => Ok(self.op(op, signature, args, params)),
            Callee::Cell(cell) if cell.index() < self.common => {
                Ok(self.opaque(What::Cell(cell), signature, args, params))
            }
            Callee::Cell(cell) => {
                let graph = self.graph;
                let body = &graph.module.cell_decl(cell).body;
                let images = self.arena(&body.arena, args, &params, |_| true)?;
                let result = |value: &ValueId| images[value.index()].clone();
                Ok(body
                    .results
                    .iter()
                    .map(|value| result(value).expect("bodies compute their results"))
                    .collect())
            }
        }
    }

    /// A term for an op or call that the normal form does not interpret.
    fn opaque(
        &mut self,
        what: What,
        signature: &Signature,
        args: Vec<Arg>,
        params: Vec<ParamId>,
    ) -> Vec<Arg> {
        let types = signature.operands.iter().map(|&ty| self.graph.ty(ty)).collect();
        let term = self.terms.intern(Term::Apply { what, types, params: params.into(), args: args.into() });
        let results = signature.results.iter().enumerate();
        results.map(|(place, &ty)| Arg::View(self.terms.result(term, place, self.graph.ty(ty)))).collect()
    }

    fn op(&mut self, op: Op, signature: &Signature, args: Vec<Arg>, params: Vec<ParamId>) -> Vec<Arg> {
        let types: Vec<Type> = signature.operands.iter().map(|&ty| self.graph.ty(ty)).collect();
        let result = self.graph.ty(signature.results[0]);
        let Some(views) = views_of(&args) else { return self.opaque(What::Op(op), signature, args, params) };
        let known = match op {
            Op::Input(ty) => return vec![Arg::View(self.input(signature, &args, ty))],
            Op::Fill { ty, bits } => Some(self.terms.fill(bits, ty)),
            Op::Param => Some(self.terms.whole(Term::Param(params[0]), result)),
            Op::StopGradient | Op::ScaleGradient { .. } | Op::Reshape(_) => Some(views[0]),
            Op::Concat { axis } => self.concat(axis.into(), &views, &types),
            Op::Stack => self.concat(0, &views, &types),
            Op::Slice { axis, start, len } => self.terms.slice(axis.into(), start, len, views[0], types[0]),
            Op::Split { axis, parts } => {
                let len = types[0].shape.dims()[usize::from(axis)] / parts;
                let part = |part| self.terms.slice(axis.into(), part * len, len, views[0], types[0]);
                let views: Option<Vec<ViewId>> = (0..parts).map(part).collect();
                match views {
                    Some(views) => return views.into_iter().map(Arg::View).collect(),
                    None => None,
                }
            }
            Op::Affine { .. } => return vec![Arg::View(self.affine(op, &views, &types, params, result))],
            Op::AffineRows { row, bias, onto } => {
                let range = ChainRange { row, bias, onto };
                return vec![Arg::View(self.chain_range(range, &views, &types, params, result))];
            }
            _ => self.terms.known(op, &views, &types, result),
        };
        match known {
            Some(view) => vec![Arg::View(view)],
            None => self.opaque(What::Op(op), signature, args, params),
        }
    }

    fn input(&mut self, signature: &Signature, args: &[Arg], ty: Type) -> ViewId {
        let &[Arg::View(view)] = args else {
            unreachable!("an input has one bound operand, found {signature:?}")
        };
        let [Piece::Part { term, .. }] = *self.terms.view(view) else {
            unreachable!("a bound operand is one term")
        };
        self.terms.result(term, 0, ty)
    }

    fn concat(&mut self, axis: usize, views: &[ViewId], types: &[Type]) -> Option<ViewId> {
        let operands: Vec<(ViewId, Type)> = views.iter().copied().zip(types.iter().copied()).collect();
        self.terms.concat(axis, &operands)
    }

    /// An affine over one row, which concatenates the operands.
    fn affine(
        &mut self,
        op: Op,
        views: &[ViewId],
        types: &[Type],
        params: Vec<ParamId>,
        result: Type,
    ) -> ViewId {
        let rank = types[0].shape.rank();
        let (views, types) = match self.concat(rank.saturating_sub(1), views, types) {
            // The parameter gives the width of the row.
            Some(row) => (vec![row], vec![types[0].with_shape(types[0].shape.without_last())]),
            None => (views.to_vec(), types.to_vec()),
        };
        self.op_term(op, views, types, params, result)
    }

    /// The whole result of a term of an op.
    fn op_term(
        &mut self,
        op: Op,
        views: Vec<ViewId>,
        types: Vec<Type>,
        params: Vec<ParamId>,
        result: Type,
    ) -> ViewId {
        let args = views.into_iter().map(Arg::View).collect();
        let (what, types, params) = (What::Op(op), types.into(), params.into());
        self.terms.whole(Term::Apply { what, types, params, args }, result)
    }
}

/// The attributes of an `affine_rows` op: a range of the chains of a product.
#[derive(Clone, Copy)]
struct ChainRange {
    row: u32,
    bias: bool,
    onto: bool,
}

/// A term of an `affine_rows` op in normal form.
struct EarlierRange {
    range: ChainRange,
    /// The value at which its chains start.
    start: Vec<ViewId>,
    /// Its operand: one row or matrix.
    x: ViewId,
    params: Vec<ParamId>,
}

impl Expander<'_> {
    /// A range of chains, joined to the range at whose results it starts. A range over all rows of the weight is an
    /// affine.
    fn chain_range(
        &mut self,
        range: ChainRange,
        views: &[ViewId],
        types: &[Type],
        params: Vec<ParamId>,
        result: Type,
    ) -> ViewId {
        let (start, parts) = views.split_at(usize::from(range.onto));
        let types = &types[start.len()..];
        let lead = types[0].with_shape(types[0].shape.without_last());
        let axis = types[0].shape.rank() - 1;
        let Some(mut x) = self.concat(axis, parts, types) else {
            let ChainRange { row, bias, onto } = range;
            return self.op_term(
                Op::AffineRows { row, bias, onto },
                views.to_vec(),
                types.to_vec(),
                params,
                result,
            );
        };
        let rows = lead.shape.elements() as u32;
        let (mut whole, mut params, mut start) = (range, params, start.to_vec());
        if let Some(earlier) = start.first().and_then(|&view| self.earlier_range(view, result))
            && earlier.params[0] == params[0]
            && earlier.range.row + self.terms.elements(earlier.x) / rows == range.row
        {
            let ty = |terms: &Terms, view: ViewId| {
                let width = terms.elements(view) / rows;
                let dims: Vec<u32> = lead.shape.dims().iter().copied().chain([width]).collect();
                Shape::new(&dims).ok().map(|shape| lead.with_shape(shape))
            };
            if let (Some(a), Some(b)) = (ty(self.terms, earlier.x), ty(self.terms, x))
                && let Some(joined) = self.concat(axis, &[earlier.x, x], &[a, b])
            {
                (whole, params, start, x) = (earlier.range, earlier.params, earlier.start, joined);
            }
        }
        let ChainRange { row, bias, onto } = whole;
        let inputs = self.graph.module.param_decl(params[0]).ty.shape.dims()[0];
        let all = !onto && row == 0 && self.terms.elements(x) / rows == inputs;
        let op =
            if all { Op::Affine { bias, transposed: false } } else { Op::AffineRows { row, bias, onto } };
        start.push(x);
        self.op_term(op, start, vec![lead], params, result)
    }

    /// The term of an `affine_rows` op whose whole result is this view, if it is in normal form.
    fn earlier_range(&self, view: ViewId, result: Type) -> Option<EarlierRange> {
        let [Piece::Part { term, result: 0, start: 0, len }] = *self.terms.view(view) else { return None };
        let Term::Apply { what: What::Op(op), params, args, types } = self.terms.term(term) else {
            return None;
        };
        let Op::AffineRows { row, bias, onto } = *op else { return None };
        let mut start = views_of(args)?;
        let x = start.pop()?;
        let normal = types.len() == 1 && start.len() == usize::from(onto);
        let whole = u64::from(len) == result.shape.elements() as u64;
        let range = ChainRange { row, bias, onto };
        (normal && whole).then(|| EarlierRange { range, start, x, params: params.to_vec() })
    }
}

fn resolve(arg: ParamArg, params: &[ParamId]) -> ParamId {
    match arg {
        ParamArg::Module(id) => id,
        ParamArg::Port(port) => params[port as usize],
    }
}
