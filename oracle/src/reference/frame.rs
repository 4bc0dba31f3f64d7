//! Forward evaluation: the nodes of an arena in order.

use super::datum::{Argument, BoundWord, Datum, Words};
use super::error::{Checked, Place, RunError, RunFault, malformed};
use super::ops;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Operand, OperandKind, ParamArg, Signature};
use autobatch_ir::id::{CellId, NodeId, ParamId, ValueId};
use autobatch_ir::module::Body;
use autobatch_ir::numeric::Real;
use autobatch_ir::numeric::noise::Noise;
use autobatch_ir::types::{DType, Type};
use std::sync::Arc;

/// The data that every level of an evaluation reads.
pub(crate) struct Scope<'a, T> {
    pub(crate) graph: &'a GraphData,
    pub(crate) params: &'a [Vec<T>],
    pub(crate) floats: &'a [T],
    pub(crate) noise: Noise,
}

/// An arena under evaluation: the graph, or the body of a cell with bound parameters.
pub(crate) struct Level<'a> {
    pub(crate) arena: &'a Arena,
    /// The parameters bound to the parameter ports.
    params: Vec<ParamId>,
    /// The node of the graph whose call contains this level; `None` in the graph itself.
    outer: Option<NodeId>,
}

/// The values of an arena by index, then the list elements that are not values of the arena.
pub(crate) type Slots<T> = Vec<Option<Datum<T>>>;

/// One node with the data for its definition and its derivative.
pub(crate) struct Call<'a, T> {
    pub(crate) args: Vec<Argument<T>>,
    /// The types of the operands.
    pub(crate) types: Vec<Type>,
    /// The types of the results.
    pub(crate) results: Vec<Type>,
    pub(crate) params: Vec<Bound<'a, T>>,
    pub(crate) noise: Noise,
}

/// A parameter argument with its values.
pub(crate) struct Bound<'a, T> {
    pub(crate) id: ParamId,
    pub(crate) values: &'a [T],
    pub(crate) ty: Type,
}

impl<T: Real> Call<'_, T> {
    /// The elements of a float operand.
    pub(crate) fn floats(&self, operand: usize) -> Checked<&Arc<[T]>> {
        self.args[operand].floats(self.types[operand])
    }

    /// The elements of an operand of words.
    pub(crate) fn words(&self, operand: usize) -> Checked<&Words> {
        self.args[operand].words(self.types[operand])
    }

    /// The elements of the values of a list operand.
    pub(crate) fn rows(&self, operand: usize) -> Checked<Vec<&[T]>> {
        self.args[operand].rows(self.types[operand])
    }

    /// The width of the rows of an operand.
    pub(crate) fn width(&self, operand: usize) -> usize {
        self.types[operand].shape.width()
    }
}

impl<'a> Level<'a> {
    /// The graph itself.
    pub(crate) fn top(graph: &'a GraphData) -> Self {
        Self::of(&graph.arena)
    }

    /// An arena whose signatures name parameters of the module, as those of a graph do.
    pub(crate) fn of(arena: &'a Arena) -> Self {
        Self { arena, params: Vec::new(), outer: None }
    }

    /// Whether this is a graph and not the body of a cell.
    pub(crate) fn is_graph(&self) -> bool {
        self.outer.is_none()
    }

    /// The body of the cell that node `node` of this level calls.
    pub(crate) fn inner<'b>(
        &self,
        body: &'b Body,
        signature: &Signature,
        node: NodeId,
    ) -> Checked<Level<'b>> {
        let params = signature.params.iter().map(|&arg| self.param(arg)).collect::<Checked<_>>()?;
        Ok(Level { arena: &body.arena, params, outer: Some(self.outer.unwrap_or(node)) })
    }

    fn param(&self, arg: ParamArg) -> Checked<ParamId> {
        match arg {
            ParamArg::Module(id) => Ok(id),
            ParamArg::Port(port) => match self.params.get(port as usize) {
                Some(&id) => Ok(id),
                None => malformed(format!("there is no parameter port {port}")),
            },
        }
    }

    /// Adds the place of `node` to a fault.
    pub(crate) fn blame<T>(&self, scope: &Scope<'_, T>, node: NodeId, fault: RunFault) -> RunError {
        let own = self.arena.node(node);
        let place = scope.graph.sites.items().get(own.site.index()).map(|site| Place {
            node: self.outer.unwrap_or(node),
            op: match scope.graph.sigs.get(own.sig).callee {
                Callee::Op(op) => op.spelling().to_owned(),
                Callee::Cell(cell) => cell.to_string(),
            },
            site: site.clone(),
        });
        RunError { fault, place }
    }
}

/// Evaluates every node of a level except the ports, whose values are in `slots`.
pub(crate) fn evaluate<T: Real>(
    scope: &Scope<'_, T>,
    level: &Level<'_>,
    mut slots: Slots<T>,
) -> Result<Slots<T>, RunError> {
    for node in level.arena.ids() {
        let is_port = |callee| matches!(callee, Callee::Op(Op::Port(_)));
        if !level.is_graph() && is_port(scope.graph.sigs.get(level.arena.node(node).sig).callee) {
            continue;
        }
        let results = apply(scope, level, &mut slots, node)?;
        for (slot, result) in slots[level.arena.results(node)].iter_mut().zip(results) {
            *slot = Some(result);
        }
    }
    Ok(slots)
}

/// Evaluates one node; `slots` holds its operands.
pub(crate) fn apply<T: Real>(
    scope: &Scope<'_, T>,
    level: &Level<'_>,
    slots: &mut Slots<T>,
    node: NodeId,
) -> Result<Vec<Datum<T>>, RunError> {
    let signature = scope.graph.sigs.get(level.arena.node(node).sig);
    let blame = |fault| level.blame(scope, node, fault);
    let mut results = match signature.callee {
        Callee::Op(Op::List) => {
            let list = list(scope, level, slots, node, signature).map_err(blame)?;
            vec![Datum::List(list)]
        }
        Callee::Op(op) => {
            let call = call(scope, level, slots, node, signature).map_err(blame)?;
            ops::evaluate(&op, &call).map_err(blame)?
        }
        Callee::Cell(cell) => {
            let entered = enter(scope, level, slots, node, cell).map_err(blame)?;
            let values = evaluate(scope, &entered.level, entered.slots)?;
            let result = |id: &ValueId| match values.get(id.index()) {
                Some(Some(datum)) => Ok(datum.clone()),
                _ => malformed(format!("{cell} returns {id}, which it does not compute")),
            };
            entered.body.results.iter().map(result).collect::<Checked<_>>().map_err(blame)?
        }
    };
    if level.is_graph() && !matches!(signature.callee, Callee::Op(Op::Input(_))) {
        results.iter_mut().for_each(Datum::forget_bound);
    }
    let (expected, found) = (level.arena.results(node).len(), results.len());
    if expected != found {
        let message = format!("expected {expected} results, found {found}");
        return Err(blame(RunFault::Malformed(message)));
    }
    Ok(results)
}

/// A cell before its evaluation, with values for its ports.
pub(crate) struct Entered<'a, T> {
    pub(crate) body: &'a Body,
    pub(crate) level: Level<'a>,
    pub(crate) slots: Slots<T>,
    /// For each port that takes a list, the slots of its elements.
    pub(crate) lists: Vec<Option<std::ops::Range<usize>>>,
}

/// Fills the ports of the cell that `node` calls.
pub(crate) fn enter<'a, T: Real>(
    scope: &Scope<'a, T>,
    level: &Level<'_>,
    slots: &Slots<T>,
    node: NodeId,
    cell: CellId,
) -> Checked<Entered<'a, T>> {
    let signature = scope.graph.sigs.get(level.arena.node(node).sig);
    let body = &scope.graph.module.cell_decl(cell).body;
    let call = call(scope, level, slots, node, signature)?;
    if call.args.len() != body.ports || body.arena.values() < body.ports {
        return malformed(format!("{cell} takes {} operands, found {}", body.ports, call.args.len()));
    }
    let mut inner: Slots<T> = vec![None; body.arena.values()];
    let mut lists = Vec::with_capacity(body.ports);
    for (port, arg) in call.args.into_iter().enumerate() {
        lists.push(None);
        inner[port] = Some(match arg {
            Argument::One(datum) => datum,
            Argument::Many(items) => {
                let range = inner.len()..inner.len() + items.len();
                inner.extend(items.into_iter().map(Some));
                lists[port] = Some(range.clone());
                Datum::List(range.map(name).collect::<Checked<_>>()?)
            }
        });
    }
    Ok(Entered { body, level: level.inner(body, signature, node)?, slots: inner, lists })
}

/// The id of a slot.
fn name(slot: usize) -> Checked<ValueId> {
    match ValueId::try_new(slot) {
        Some(id) => Ok(id),
        None => malformed("an arena has too many values"),
    }
}

/// The call of a node's op, with its operands resolved.
pub(crate) fn call<'a, T: Real>(
    scope: &Scope<'a, T>,
    level: &Level<'_>,
    slots: &Slots<T>,
    node: NodeId,
    signature: &Signature,
) -> Checked<Call<'a, T>> {
    let resolve = |ids: &[autobatch_ir::TypeId]| ids.iter().map(|&id| scope.graph.ty(id)).collect::<Vec<_>>();
    let types = resolve(&signature.operands);
    let operands = level.arena.operands(node);
    if types.len() != operands.len() {
        return malformed(format!("the signature has {} operands, found {}", types.len(), operands.len()));
    }
    let args = operands.iter().zip(&types).map(|(&operand, &ty)| match item(scope, slots, operand, ty)? {
        Datum::List(items) => {
            let found = items.iter().map(|id| slots.get(id.index()).cloned().flatten());
            match found.collect::<Option<Vec<_>>>() {
                Some(items) => Ok(Argument::Many(items)),
                None => malformed("a list names a value that is not yet computed"),
            }
        }
        datum => Ok(Argument::One(datum)),
    });
    let args = args.collect::<Checked<Vec<_>>>()?;
    let params = signature.params.iter().zip(&signature.param_types).map(|(&arg, &ty)| {
        let (id, ty) = (level.param(arg)?, scope.graph.ty(ty));
        match (scope.params.get(id.index()), scope.graph.module.params.get(id.index())) {
            (Some(values), Some(decl)) if decl.ty == ty => Ok(Bound { id, values, ty }),
            _ => malformed(format!("{id} is not a {ty}")),
        }
    });
    let params = params.collect::<Checked<Vec<_>>>()?;
    Ok(Call { args, types, results: resolve(&signature.results), params, noise: scope.noise })
}

/// The ids of a list's elements; bound elements get slots of their own.
fn list<T: Real>(
    scope: &Scope<'_, T>,
    level: &Level<'_>,
    slots: &mut Slots<T>,
    node: NodeId,
    signature: &Signature,
) -> Checked<Arc<[ValueId]>> {
    let Some(&element) = signature.operands.first() else {
        return malformed("a list has no element type");
    };
    let ty = scope.graph.ty(element);
    let items = level.arena.operands(node).iter().map(|&operand| match operand.as_value() {
        Some(id) => Ok(id),
        None => {
            let bound = item(scope, slots, operand, ty)?;
            slots.push(Some(bound));
            name(slots.len() - 1)
        }
    });
    items.collect()
}

/// The value of an operand: a value of the arena, or bindings.
fn item<T: Real>(scope: &Scope<'_, T>, slots: &Slots<T>, operand: Operand, ty: Type) -> Checked<Datum<T>> {
    let elements = ty.shape.elements();
    match operand.kind() {
        Some(OperandKind::Value(id)) => match slots.get(id.index()) {
            Some(Some(datum)) => Ok(datum.clone()),
            _ => malformed(format!("{id} is used before it is computed")),
        },
        Some(OperandKind::Index(slot)) => {
            let words = run("words", &scope.graph.bindings.words, slot, elements)?;
            let normal = |&word: &u32| if ty.dtype == DType::Bool { u32::from(word != 0) } else { word };
            let bound = |element: usize| Some(BoundWord { vector: slot, element: element as u32 });
            let bound = (0..words.len()).map(bound).collect();
            Ok(Datum::Words(Words { words: words.iter().map(normal).collect(), bound }))
        }
        Some(OperandKind::Data(slot)) => Ok(Datum::floats(run("floats", scope.floats, slot, elements)?)),
        None => malformed("a word is not an operand"),
    }
}

/// The bindings of an operand that starts at a slot.
fn run<'a, N>(pool: &'static str, numbers: &'a [N], slot: u32, elements: usize) -> Checked<&'a [N]> {
    let start = slot as usize;
    let expected = start as u64 + elements as u64;
    let fault = RunFault::Binding { pool, expected, found: numbers.len() };
    numbers.get(start..start.saturating_add(elements)).ok_or(fault)
}
