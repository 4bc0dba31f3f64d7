//! Forward evaluation: the nodes of an arena in order.

use super::constants::Constants;
use super::datum::{Argument, Datum};
use super::error::{Checked, Place, RunError, RunFault, malformed};
use super::ops;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Operand, OperandKind, ParamArg, Signature};
use autobatch_ir::id::{CellId, NodeId, ParamId, TypeId, ValueId};
use autobatch_ir::numeric::Real;
use autobatch_ir::numeric::noise::Noise;
use autobatch_ir::types::{DType, Type};
use std::ops::Range;
use std::sync::Arc;

/// The data that every frame of an evaluation reads.
pub(crate) struct Scope<'a, T> {
    pub(crate) graph: &'a GraphData,
    pub(crate) params: &'a [&'a [T]],
    pub(crate) floats: &'a [T],
    pub(crate) noise: Noise,
    pub(crate) constants: Constants,
    /// Whether an index out of range counts as the last one.
    pub(crate) clamps: bool,
}

/// The values of an arena by index, then the list elements that are not values of the arena.
pub(crate) type Slots<T> = Vec<Option<Datum<T>>>;

/// An arena under evaluation: the graph, or the body of a cell with bound parameters.
pub(crate) struct Frame<'a, T> {
    pub(crate) scope: &'a Scope<'a, T>,
    pub(crate) arena: &'a Arena,
    /// The parameters bound to the parameter ports.
    params: Vec<ParamId>,
    /// The node of the graph whose call contains this frame; `None` in the graph itself.
    outer: Option<NodeId>,
    pub(crate) slots: Slots<T>,
    /// For each port of a cell that takes a list, the slots of its elements.
    pub(crate) lists: Vec<Option<Range<usize>>>,
}

/// One node with the data for its definition and its derivative.
pub(crate) struct Call<'a, T> {
    pub(crate) args: Vec<Argument<T>>,
    pub(crate) types: Vec<Type>,
    pub(crate) results: Vec<Type>,
    pub(crate) params: Vec<ParamArgument<'a, T>>,
    pub(crate) noise: Noise,
    /// Whether an index out of range counts as the last one.
    pub(crate) clamps: bool,
}

/// A parameter argument with its values.
pub(crate) struct ParamArgument<'a, T> {
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
    pub(crate) fn words(&self, operand: usize) -> Checked<&Arc<[u32]>> {
        self.args[operand].words(self.types[operand])
    }

    /// The elements of the values of a list operand.
    pub(crate) fn rows(&self, operand: usize) -> Checked<Vec<&[T]>> {
        self.args[operand].rows(self.types[operand])
    }

    /// The values of a list operand, of any element type.
    pub(crate) fn items(&self, operand: usize) -> Checked<&[Datum<T>]> {
        match &self.args[operand] {
            Argument::Many(items) => Ok(items),
            Argument::One(_) => malformed("an operand is not the list that the signature says"),
        }
    }

    /// The width of the rows of an operand.
    pub(crate) fn width(&self, operand: usize) -> usize {
        self.types[operand].shape.width()
    }
}

impl<'a, T: Real> Frame<'a, T> {
    /// The frame of an arena whose signatures name parameters of the module, as those of a graph do.
    pub(crate) fn of(scope: &'a Scope<'a, T>, arena: &'a Arena, slots: Slots<T>) -> Self {
        Self { scope, arena, params: Vec::new(), outer: None, slots, lists: Vec::new() }
    }

    /// Returns whether this is a graph and not the body of a cell.
    pub(crate) fn is_graph(&self) -> bool {
        self.outer.is_none()
    }

    pub(crate) fn signature(&self, node: NodeId) -> &'a Signature {
        self.scope.graph.sigs.get(self.arena.node(node).sig)
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
    pub(crate) fn blame(&self, node: NodeId, fault: RunFault) -> RunError {
        let site = self.scope.graph.sites.items().get(self.arena.node(node).site.index());
        let place = site.map(|site| Place {
            node: self.outer.unwrap_or(node),
            op: match self.signature(node).callee {
                Callee::Op(op) => op.spelling().to_owned(),
                Callee::Cell(cell) => cell.to_string(),
            },
            site: site.clone(),
        });
        RunError { fault, place }
    }

    /// Evaluates every node except the ports of a cell, which [`enter`](Self::enter) filled.
    pub(crate) fn evaluate(&mut self) -> Result<(), RunError> {
        for node in self.arena.ids() {
            let is_port = matches!(self.signature(node).callee, Callee::Op(Op::Port(_)));
            if is_port && !self.is_graph() {
                continue;
            }
            let results = self.apply(node)?;
            for (slot, result) in self.slots[self.arena.results(node)].iter_mut().zip(results) {
                *slot = Some(result);
            }
        }
        Ok(())
    }

    /// Evaluates one node, whose operands were evaluated.
    pub(crate) fn apply(&mut self, node: NodeId) -> Result<Vec<Datum<T>>, RunError> {
        let callee = self.signature(node).callee;
        let found = match callee {
            Callee::Op(Op::List) => self.list(node).map(|list| vec![Datum::List(list)]),
            Callee::Op(Op::Append) => self.longer_list(node).map(|list| vec![Datum::List(list)]),
            Callee::Op(op) => {
                self.call(node).and_then(|call| ops::evaluate(&self.scope.constants.of_op(op), &call))
            }
            Callee::Cell(cell) => {
                let mut inner = self.enter(node, cell).map_err(|fault| self.blame(node, fault))?;
                inner.evaluate()?;
                let result = |id: &ValueId| match inner.slots.get(id.index()) {
                    Some(Some(datum)) => Ok(datum.clone()),
                    _ => malformed(format!("{cell} returns {id}, which it does not compute")),
                };
                self.scope.graph.module.cell_decl(cell).body.results.iter().map(result).collect()
            }
        };
        let results = found.map_err(|fault| self.blame(node, fault))?;
        let (expected, found) = (self.arena.results(node).len(), results.len());
        if expected != found {
            let message = format!("expected {expected} results, found {found}");
            return Err(self.blame(node, RunFault::Malformed(message)));
        }
        Ok(results)
    }

    /// The frame of the cell that `node` calls, with values in its ports.
    pub(crate) fn enter(&self, node: NodeId, cell: CellId) -> Checked<Self> {
        let body = &self.scope.graph.module.cell_decl(cell).body;
        let args = self.call(node)?.args;
        if args.len() != body.ports || body.arena.values() < body.ports {
            return malformed(format!("{cell} takes {} operands, found {}", body.ports, args.len()));
        }
        let params =
            self.signature(node).params.iter().map(|&arg| self.param(arg)).collect::<Checked<_>>()?;
        let outer = Some(self.outer.unwrap_or(node));
        let mut slots: Slots<T> = vec![None; body.arena.values()];
        let mut lists = Vec::with_capacity(body.ports);
        for (port, arg) in args.into_iter().enumerate() {
            lists.push(None);
            slots[port] = Some(match arg {
                Argument::One(datum) => datum,
                Argument::Many(items) => {
                    let range = slots.len()..slots.len() + items.len();
                    slots.extend(items.into_iter().map(Some));
                    lists[port] = Some(range.clone());
                    Datum::List(range.map(name).collect::<Checked<_>>()?)
                }
            });
        }
        Ok(Self { scope: self.scope, arena: &body.arena, params, outer, slots, lists })
    }

    /// The call of a node, with its operands resolved.
    pub(crate) fn call(&self, node: NodeId) -> Checked<Call<'a, T>> {
        let (graph, signature) = (self.scope.graph, self.signature(node));
        let resolve = |ids: &[TypeId]| ids.iter().map(|&id| graph.ty(id)).collect::<Vec<_>>();
        let types = resolve(&signature.operands);
        let operands = self.arena.operands(node);
        if types.len() != operands.len() {
            return malformed(format!(
                "the signature has {} operands, found {}",
                types.len(),
                operands.len()
            ));
        }
        let args = operands.iter().zip(&types).map(|(&operand, &ty)| match self.item(operand, ty)? {
            Datum::List(items) => {
                let found = items.iter().map(|id| self.slots.get(id.index()).cloned().flatten());
                match found.collect::<Option<Vec<_>>>() {
                    Some(items) => Ok(Argument::Many(items)),
                    None => malformed("a list names a value that is not yet computed"),
                }
            }
            datum => Ok(Argument::One(datum)),
        });
        let args = args.collect::<Checked<Vec<_>>>()?;
        let params = signature.params.iter().zip(&signature.param_types).map(|(&arg, &ty)| {
            let (id, ty) = (self.param(arg)?, graph.ty(ty));
            match (self.scope.params.get(id.index()), graph.module.params.get(id.index())) {
                (Some(&values), Some(decl)) if decl.ty == ty => Ok(ParamArgument { id, values, ty }),
                _ => malformed(format!("{id} is not a {ty}")),
            }
        });
        let params = params.collect::<Checked<Vec<_>>>()?;
        let Scope { noise, clamps, .. } = *self.scope;
        Ok(Call { args, types, results: resolve(&signature.results), params, noise, clamps })
    }

    /// The ids of a list's elements; bound elements get slots of their own.
    fn list(&mut self, node: NodeId) -> Checked<Arc<[ValueId]>> {
        let Some(&element) = self.signature(node).operands.first() else {
            return malformed("a list has no element type");
        };
        let ty = self.scope.graph.ty(element);
        let items = self.arena.operands(node).iter().map(|&operand| match operand.as_value() {
            Some(id) => Ok(id),
            None => {
                let bound = self.item(operand, ty)?;
                self.slots.push(Some(bound));
                name(self.slots.len() - 1)
            }
        });
        items.collect()
    }

    /// The ids of a list's elements and of one more.
    fn longer_list(&self, node: NodeId) -> Checked<Arc<[ValueId]>> {
        let [list, item] = self.arena.operands(node) else {
            return malformed("append takes a list and an item");
        };
        let slot = list.as_value().and_then(|list| self.slots.get(list.index())?.as_ref());
        match (slot, item.as_value()) {
            (Some(Datum::List(items)), Some(item)) => Ok(items.iter().copied().chain([item]).collect()),
            _ => malformed("append takes a list and an item"),
        }
    }

    /// The value of an operand: a value of the arena, or bindings.
    fn item(&self, operand: Operand, ty: Type) -> Checked<Datum<T>> {
        let (scope, elements) = (self.scope, ty.shape.elements());
        match operand.kind() {
            Some(OperandKind::Value(id)) => match self.slots.get(id.index()) {
                Some(Some(datum)) => Ok(datum.clone()),
                _ => malformed(format!("{id} is used before it is computed")),
            },
            Some(OperandKind::Index(slot)) => {
                let words = run("words", &scope.graph.bindings.words, slot, elements)?;
                let normal = |&word: &u32| if ty.dtype == DType::Bool { u32::from(word != 0) } else { word };
                Ok(Datum::words(words.iter().map(normal).collect::<Vec<_>>()))
            }
            Some(OperandKind::Data(slot)) => Ok(Datum::floats(run("floats", scope.floats, slot, elements)?)),
            None => malformed("a word is not an operand"),
        }
    }
}

/// The id of a slot.
fn name(slot: usize) -> Checked<ValueId> {
    match ValueId::try_new(slot) {
        Some(id) => Ok(id),
        None => malformed("an arena has too many values"),
    }
}

/// The bindings of an operand that starts at a slot.
fn run<'a, N>(pool: &'static str, numbers: &'a [N], slot: u32, elements: usize) -> Checked<&'a [N]> {
    let start = slot as usize;
    let expected = start as u64 + elements as u64;
    let fault = RunFault::Binding { pool, expected, found: numbers.len() };
    numbers.get(start..start.saturating_add(elements)).ok_or(fault)
}
