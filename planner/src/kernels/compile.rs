//! Cell compilation: turns the body of a cell, or a single op, into a kernel.
//!
//! *Needs* a verified body. *Ensures* a kernel that computes the same bits for every lane: each op of the body becomes a stage or,
//! if it only renames elements, a view.
//!
//! *How.* One walk over the body. A value is a list of adjacent views, so `concat`, `split`, `slice`, `stack` and `reshape` cost
//! nothing: a product takes the pieces of its operand as parts, and every other op asks for one view, which copies only if there
//! are several pieces. The walk inlines cells that the body calls. Elementwise ops become map stages of one instruction, which
//! [`fuse`] then joins into straight lines.
//!
//! *Cost.* Linear in the body after inlining. Signatures that differ only in their parameters share one kernel.

use super::fuse;

use autobatch_ir::graph::{Arena, Callee, GraphData, Op, OperandKind, ParamArg, Signature, Signatures};
use autobatch_ir::id::{NodeId, SigId, ValueId};
use autobatch_ir::module::Module;
use autobatch_ir::plan::row_ops::{Template, template};
use autobatch_ir::plan::{
    Code, Instr, Kernel, ListSource, ParamPort, ProdInit, ProductPart, Reg, RegId, RegKind, Source, Stage,
    View,
};
use autobatch_ir::types::{Type, Types};
use std::collections::HashMap;

/// Options of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Whether dropout draws noise; otherwise it is the identity.
    pub training: bool,
}

/// The tables that resolve the ids of a signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables<'a> {
    pub(crate) module: &'a Module,
    pub(crate) types: &'a Types,
    pub(crate) sigs: &'a Signatures,
}

impl<'a> Tables<'a> {
    /// The tables of a graph.
    pub(crate) fn of(graph: &'a GraphData) -> Self {
        Self { module: &graph.module, types: &graph.types, sigs: &graph.sigs }
    }
}

/// The kernel of all nodes with this signature.
pub(crate) fn compile(tables: Tables<'_>, sig: SigId, options: CompileOptions) -> Kernel {
    let signature = tables.sigs.get(sig);
    let (mut builder, ports, args) = Builder::of(tables, signature, options);
    let results = builder.apply(signature, &ports, &args);
    let results = results.into_iter().map(|value| builder.one_view(value)).collect();
    let source = signature.callee.is_source();
    let name = tables.module.callee_name(signature.callee);
    let mut kernel = Kernel {
        name,
        ports: builder.ports,
        params: builder.params,
        regs: builder.regs,
        stages: builder.stages,
        results,
        source,
        roles: None,
    };
    fuse::fuse(&mut kernel);
    kernel
}

/// A value of the body inside the kernel.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Adjacent views, and the type of the whole.
    Pieces(Vec<View>, Type),
    /// A list, and the type of its elements.
    List(ListSource, Type),
}

/// The rows of a weight that a product reads.
#[derive(Clone, Copy, Debug)]
struct WeightRows {
    first: u32,
    transposed: bool,
}

/// A kernel under construction.
pub(crate) struct Builder<'a> {
    pub(crate) tables: Tables<'a>,
    pub(crate) options: CompileOptions,
    pub(crate) ports: u32,
    pub(crate) params: Vec<Type>,
    pub(crate) regs: Vec<Reg>,
    pub(crate) stages: Vec<Stage>,
    /// Copies of several pieces into one view, by the pieces.
    joined: HashMap<Vec<View>, View>,
}

impl<'a> Builder<'a> {
    /// The kernel of a signature without stages, its operands, and its parameter ports.
    pub(crate) fn of(
        tables: Tables<'a>,
        signature: &Signature,
        options: CompileOptions,
    ) -> (Self, Vec<Value>, Vec<ParamPort>) {
        let ports = signature.operands.len() as u32;
        let params = signature.param_types.iter().map(|&ty| tables.types.get(ty)).collect();
        let (regs, stages, joined) = (Vec::new(), Vec::new(), HashMap::new());
        let mut builder = Self { tables, options, ports, params, regs, stages, joined };
        let operands = signature.operands.iter().map(|&ty| builder.port(tables.types.get(ty))).collect();
        (builder, operands, (0..signature.params.len() as u32).map(ParamPort).collect())
    }

    pub(crate) fn reg(&mut self, kind: RegKind, ty: Type) -> View {
        self.regs.push(Reg { kind, ty });
        View { reg: RegId(self.regs.len() as u32 - 1), start: 0, width: ty.shape.elements() as u32 }
    }

    fn port(&mut self, ty: Type) -> Value {
        let view = self.reg(RegKind::Port, ty);
        match ty.is_list {
            true => Value::List(ListSource::Port(view.reg), ty.element()),
            false => Value::Pieces(vec![view], ty),
        }
    }

    pub(crate) fn temp(&mut self, ty: Type) -> View {
        self.reg(RegKind::Temp, ty)
    }

    /// Inlines a node, an op or a call of a cell, and returns its results. `args` are the kernel's parameter ports for the
    /// signature's parameter arguments.
    fn apply(&mut self, signature: &Signature, operands: &[Value], args: &[ParamPort]) -> Vec<Value> {
        match signature.callee {
            Callee::Op(op) => {
                let results = signature.results.iter().map(|&ty| self.tables.types.get(ty)).collect();
                self.op(op, operands.to_vec(), args, results)
            }
            Callee::Cell(cell) => {
                let body = &self.tables.module.cell_decl(cell).body;
                let values = self.body(&body.arena, operands, args);
                body.results.iter().map(|result| values[result.index()].clone()).collect()
            }
        }
    }

    fn body(&mut self, arena: &Arena, ports: &[Value], args: &[ParamPort]) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::with_capacity(arena.values());
        values.extend(ports.iter().cloned());
        for id in arena.ids().skip(ports.len()) {
            let signature = self.tables.sigs.get(arena.node(id).sig);
            let operands = self.operands_of(arena, id, &values);
            let params = arguments(signature, args);
            values.extend(self.apply(signature, &operands, &params));
        }
        values
    }

    fn operands_of(&self, arena: &Arena, id: NodeId, values: &[Value]) -> Vec<Value> {
        let value = |id: ValueId| values[id.index()].clone();
        arena
            .operands(id)
            .iter()
            .map(|operand| match operand.kind() {
                Some(OperandKind::Value(id)) => value(id),
                _ => unreachable!("bodies of verified modules bind no numbers"),
            })
            .collect()
    }

    pub(crate) fn op(
        &mut self,
        op: Op,
        operands: Vec<Value>,
        args: &[ParamPort],
        results: Vec<Type>,
    ) -> Vec<Value> {
        match (template(op), op) {
            (Template::Source, Op::Fill { ty, bits }) => {
                vec![Value::Pieces(vec![self.reg(RegKind::Const(bits), ty)], ty)]
            }
            (Template::Source, Op::Param) => {
                vec![Value::Pieces(vec![self.reg(RegKind::Param(args[0]), results[0])], results[0])]
            }
            (Template::Source, _) => operands,
            (Template::List, _) => {
                let element = results[0].element();
                let views = operands.into_iter().map(|value| self.one_view(value)).collect();
                vec![Value::List(ListSource::Views(views), element)]
            }
            (Template::View, Op::Reshape(_) | Op::Stack) => vec![side_by_side(operands, results[0])],
            (Template::View, _) => operands,
            (Template::Map, _) => self.elementwise(op, operands, results[0]),
            (Template::Prod, Op::Affine { bias, transposed }) => {
                let init = if bias { ProdInit::Bias(args[1]) } else { ProdInit::Zero };
                self.affine(init, WeightRows { first: 0, transposed }, operands, args, results[0])
            }
            (Template::Prod, Op::AffineRows { row, bias, onto }) => {
                let mut parts = operands.into_iter();
                let init = match (bias, onto) {
                    (true, _) => ProdInit::Bias(args[1]),
                    (_, true) => {
                        let chains = parts.next().expect("a continued product has a first operand");
                        ProdInit::View(self.one_view(chains))
                    }
                    _ => ProdInit::Zero,
                };
                self.affine(
                    init,
                    WeightRows { first: row, transposed: false },
                    parts.collect(),
                    args,
                    results[0],
                )
            }
            (Template::Prod, _) => unreachable!("all products have a rule above"),
            (Template::Seg, _) => self.fold(op, operands, results[0]),
            (Template::Lookup, _) => {
                let index = self.one_view(operands[0].clone());
                let dst = self.temp(results[0]);
                self.stages.push(Stage::Lookup { param: args[0], index, dst });
                vec![Value::Pieces(vec![dst], results[0])]
            }
            (Template::LabelLoss, _) => {
                let [x, label] = [0, 1].map(|place| self.one_view(operands[place].clone()));
                let dst = self.temp(results[0]);
                // Only the reverse reads the others. Fusion drops them where nothing does.
                let [log_sum, slope] = [results[0], type_of(&operands[0])].map(|ty| Some(self.temp(ty)));
                self.stages.push(Stage::LabelLoss { param: args[0], x, label, dst, log_sum, slope });
                vec![Value::Pieces(vec![dst], results[0])]
            }
            // Some row ops are ranges of elements here.
            (Template::Row, Op::Dropout { .. }) if !self.options.training => {
                operands.into_iter().take(1).collect()
            }
            (Template::Row, Op::Concat { axis: 0 }) => vec![side_by_side(operands, results[0])],
            (Template::Row, Op::Split { axis: 0, .. }) => split(&operands[0], &results),
            (Template::Row, Op::Slice { axis: 0, start, .. }) => {
                let row = (results[0].shape.elements() as u32) / results[0].shape.dims()[0];
                vec![Value::Pieces(range(pieces(&operands[0]), start * row, results[0]), results[0])]
            }
            (Template::Row, _) => self.row(op, operands, results),
        }
    }

    /// Adds a stage that reads its operands as a whole.
    fn row(&mut self, op: Op, operands: Vec<Value>, results: Vec<Type>) -> Vec<Value> {
        let sources = operands
            .into_iter()
            .map(|value| {
                let ty = type_of(&value);
                (self.one_view(value), ty)
            })
            .collect();
        let dsts: Vec<View> = results.iter().map(|&ty| self.temp(ty)).collect();
        self.stages.push(Stage::Row { op, sources, dsts: dsts.clone() });
        dsts.into_iter().zip(results).map(|(view, ty)| Value::Pieces(vec![view], ty)).collect()
    }

    fn fold(&mut self, op: Op, operands: Vec<Value>, result: Type) -> Vec<Value> {
        let (mut query, mut lists, mut elements) = (None, Vec::new(), Vec::new());
        for operand in operands {
            match operand {
                Value::List(list, element) => {
                    lists.push(list);
                    elements.push(element);
                }
                value => query = Some(self.one_view(value)),
            }
        }
        let dst = self.temp(result);
        self.stages.push(Stage::Seg { op, query, lists, elements, dst });
        vec![Value::Pieces(vec![dst], result)]
    }

    /// Adds the product of adjacent operands with the weight's rows.
    fn affine(
        &mut self,
        init: ProdInit,
        weight: WeightRows,
        operands: Vec<Value>,
        args: &[ParamPort],
        result: Type,
    ) -> Vec<Value> {
        let rows = result.shape.rows() as u32;
        let WeightRows { first: mut row, transposed } = weight;
        let mut parts = Vec::new();
        for operand in operands {
            let width = type_of(&operand).shape.width() as u32;
            // The pieces of a vector are parts of the product. Those of a matrix are not: they would cut it along rows.
            let sources = match &operand {
                Value::Pieces(views, _) if rows == 1 => views.clone(),
                _ => vec![self.one_view(operand)],
            };
            let mut part_row = row;
            for source in sources {
                parts.push(ProductPart { source, param: args[0], row: part_row, col: 0, transposed });
                part_row += source.width / rows;
            }
            row += width;
        }
        let dst = self.temp(result);
        self.stages.push(Stage::Prod { dst, rows, init, parts });
        vec![Value::Pieces(vec![dst], result)]
    }

    fn elementwise(&mut self, op: Op, operands: Vec<Value>, result: Type) -> Vec<Value> {
        let width = result.shape.elements() as u32;
        let dtype = match op {
            Op::Select => type_of(&operands[1]).dtype,
            _ => type_of(&operands[0]).dtype,
        };
        let sources = operands.into_iter().map(|value| self.source(value, width)).collect();
        let dst = self.temp(result);
        let code = Code::of(op).unwrap_or_else(|| unreachable!("{} is not elementwise", op.spelling()));
        let instr = Instr { code, dtype, sources, store: Some(dst) };
        self.stages.push(Stage::Map { width, code: vec![instr] });
        vec![Value::Pieces(vec![dst], result)]
    }

    pub(crate) fn source(&mut self, value: Value, width: u32) -> Source {
        let view = self.one_view(value);
        self.view_source(view, width)
    }

    /// A view as an operand of a line of some width.
    pub(crate) fn view_source(&self, view: View, width: u32) -> Source {
        match self.regs[view.reg.index()].kind {
            RegKind::Const(bits) => Source::Const(bits),
            _ if view.width == width => Source::View(view),
            _ => Source::Scalar(view),
        }
    }

    /// The value as one view, copied there if it has several pieces.
    pub(crate) fn one_view(&mut self, value: Value) -> View {
        let Value::Pieces(views, ty) = value else { unreachable!("only folds read lists") };
        if let [view] = views[..] {
            return view;
        }
        if let Some(&whole) = self.joined.get(&views) {
            return whole;
        }
        let whole = self.temp(ty);
        self.joined.insert(views.clone(), whole);
        let mut start = 0;
        for view in views {
            let store = View { reg: whole.reg, start, width: view.width };
            start += view.width;
            let sources = vec![match self.regs[view.reg.index()].kind {
                RegKind::Const(bits) => Source::Const(bits),
                _ => Source::View(view),
            }];
            let instr = Instr { code: Code::Copy, dtype: ty.dtype, sources, store: Some(store) };
            self.stages.push(Stage::Map { width: view.width, code: vec![instr] });
        }
        whole
    }
}

/// The parameters of a node in a body, given the parameters of the body.
pub(crate) fn arguments(signature: &Signature, args: &[ParamPort]) -> Vec<ParamPort> {
    let of = |arg: &ParamArg| match *arg {
        ParamArg::Port(port) => args[port as usize],
        ParamArg::Module(_) => unreachable!("bodies of verified modules take parameters as ports"),
    };
    signature.params.iter().map(of).collect()
}

pub(crate) fn type_of(value: &Value) -> Type {
    match value {
        Value::Pieces(_, ty) => *ty,
        Value::List(_, element) => Type { is_list: true, ..*element },
    }
}

pub(crate) fn pieces(value: &Value) -> &[View] {
    match value {
        Value::Pieces(views, _) => views,
        Value::List(..) => unreachable!("only folds read lists"),
    }
}

pub(crate) fn side_by_side(operands: Vec<Value>, result: Type) -> Value {
    let mut views: Vec<View> = Vec::new();
    for view in operands.iter().flat_map(pieces) {
        match views.last_mut() {
            Some(last) if last.reg == view.reg && last.start + last.width == view.start => {
                last.width += view.width
            }
            _ => views.push(*view),
        }
    }
    Value::Pieces(views, result)
}

/// Consecutive ranges of a value, of these types.
pub(crate) fn split(whole: &Value, results: &[Type]) -> Vec<Value> {
    let mut end = 0;
    let part = |&ty: &Type| {
        let start = end;
        end += ty.shape.elements() as u32;
        Value::Pieces(range(pieces(whole), start, ty), ty)
    };
    results.iter().map(part).collect()
}

/// The elements of a value from `start` on, in the number of `ty`.
fn range(views: &[View], start: u32, ty: Type) -> Vec<View> {
    let (mut skip, mut left) = (start, ty.shape.elements() as u32);
    let mut taken = Vec::new();
    for view in views {
        let from = skip.min(view.width);
        let width = (view.width - from).min(left);
        if width > 0 {
            taken.push(View { reg: view.reg, start: view.start + from, width });
        }
        skip -= from;
        left -= width;
    }
    taken
}
