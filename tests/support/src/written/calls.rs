//! Lists, and calls of cells.

use super::scope::{LARGEST_INDEX, Node, Param, Scope, UNKNOWN};
use autobatch_ir::graph::{Float, ListFold};
use autobatch_ir::{DType, INDEX, Op, Type};

/// The interface of a cell.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) ports: Vec<Type>,
    pub(super) results: Vec<Type>,
}

fn length(scope: &mut Scope<'_>) -> usize {
    scope.rng.pick(&[0, 0, 1, 2, 3, 5])
}

/// Returns a list of values of this type, sometimes an existing one or one that grew from it.
fn some_list(scope: &mut Scope<'_>, element: Type) -> Option<usize> {
    let list = Type { is_list: true, ..element };
    let existing = if scope.rng.chance(30) { scope.any(|value| value.ty == list) } else { None };
    let len = length(scope);
    let list = existing.or_else(|| scope.list(element, len)).or_else(|| scope.list(element, 0))?;
    if scope.in_body || !scope.rng.chance(30) {
        return Some(list);
    }
    let Some(item) = scope.plain(|ty| ty == element) else { return Some(list) };
    let grown = scope.values.len();
    scope.apply(&Node::new(Op::Append, vec![list, item])).map(|()| grown)
}

pub(super) fn fold(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.float()?;
    let list = some_list(scope, scope.ty(x))?;
    Some(Node::new(Op::ListFold(scope.rng.pick(ListFold::ALL)), vec![list]))
}

pub(super) fn pick(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.plain(|_| true)?;
    let len = 1 + length(scope);
    let list = scope.list(scope.ty(x), len)?;
    let index = scope.index(len as u32)?;
    Some(Node::new(Op::ListPick, vec![index, list]))
}

pub(super) fn weighted_sum(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.float()?;
    let ty = scope.ty(x);
    let score =
        scope.plain(|other| other.dtype == DType::F32 && (other == ty || other.shape.elements() == 1))?;
    let len = length(scope);
    let scores = scope.list(scope.ty(score), len)?;
    let values = scope.list(ty, len)?;
    Some(Node::new(Op::WeightedSum { softmax: scope.rng.chance(50) }, vec![scores, values]))
}

pub(super) fn attend(scope: &mut Scope<'_>) -> Option<Node> {
    let query = scope.plain(|ty| ty.dtype == DType::F32 && ty.shape.rank() == 1)?;
    let value = scope.float()?;
    let (key, element, len) = (scope.ty(query), scope.ty(value), length(scope));
    let keys = scope.list(key, len)?;
    let values = if key == element && scope.rng.chance(30) { keys } else { scope.list(element, len)? };
    let number = Float::new(scope.attribute());
    let has_heads = element.shape.elements().is_multiple_of(key.shape.elements());
    let op = match has_heads && scope.rng.chance(50) {
        true => Op::GraphAttend { slope: number },
        false => Op::Attend { scale: number },
    };
    Some(Node::new(op, vec![query, keys, values]))
}

/// Returns an argument of a port in textual form.
fn argument(scope: &mut Scope<'_>, port: Type) -> Option<String> {
    if port.is_list {
        return some_list(scope, port.element()).map(|list| format!("%{list}"));
    }
    if port == INDEX && !scope.in_body && scope.rng.chance(60) {
        return Some(format!("#{}", scope.rng.below(LARGEST_INDEX + 1)));
    }
    let value = if port == INDEX { scope.index(LARGEST_INDEX + 1) } else { scope.plain(|ty| ty == port) };
    value.map(|value| format!("%{value}"))
}

/// Writes a call. A recurrence may follow it, whose calls read the previous results where they fit.
pub(super) fn call(scope: &mut Scope<'_>, cells: &[Signature]) -> Option<()> {
    let cell = if cells.is_empty() { None } else { Some(&cells[scope.below(cells.len())]) }?;
    let mut params = Vec::new();
    for wanted in &cell.params {
        let fits = |param: &&Param| (param.ty, param.is_table) == (wanted.ty, wanted.is_table);
        let fitting: Vec<&Param> = scope.params.iter().filter(fits).collect();
        params.push(if fitting.is_empty() { None } else { Some(scope.rng.pick(&fitting).name.clone()) }?);
    }
    let params = if params.is_empty() { String::new() } else { format!("[{}]", params.join(", ")) };
    let mut arguments = Vec::new();
    for &port in &cell.ports {
        arguments.push(argument(scope, port)?);
    }
    let again = if scope.in_body || scope.rng.chance(50) { 0 } else { 1 + scope.below(3) };
    let fixed: Vec<bool> = cell.ports.iter().map(|_| scope.rng.chance(50)).collect();
    for _ in 0..=again {
        let first = scope.values.len();
        let right = format!("call {}{params}({})", cell.name, arguments.join(", "));
        scope.line(&cell.results, UNKNOWN, &right);
        for (place, port) in cell.ports.iter().enumerate().filter(|&(place, _)| !fixed[place]) {
            let result = cell.results.iter().position(|ty| ty == port && *ty != INDEX);
            if let Some(result) = result {
                arguments[place] = format!("%{}", first + result);
            }
        }
    }
    Some(())
}
