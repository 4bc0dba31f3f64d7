//! A whole text: parameters, cells, and a graph that calls them.

use super::calls::{self, Signature};
use super::scope::{Known, LARGEST_INDEX, Node, Param, Scope, UNKNOWN};
use super::{Numbers, blocks, elements, products};
use crate::random::Rng;
use autobatch_ir::{DType, INDEX, Shape, Type};

/// Writes a statement if its operands exist.
type Form = fn(&mut Scope<'_>) -> Option<Node>;

/// Every form with its weight.
const FORMS: [(u32, Form); 24] = [
    (4, elements::unary),
    (1, elements::with_attributes),
    (4, elements::binary),
    (1, elements::compare),
    (1, elements::select),
    (1, elements::cast),
    (5, products::affine),
    (3, products::of_values),
    (2, products::rows),
    (1, blocks::broadcast),
    (2, blocks::concat),
    (1, blocks::split),
    (2, blocks::slice),
    (1, blocks::reshape),
    (2, blocks::transpose),
    (1, blocks::pick),
    (1, blocks::stack),
    (2, blocks::reduce),
    (2, blocks::of_rows),
    (3, blocks::loss),
    (2, calls::fold),
    (1, calls::pick),
    (1, calls::weighted_sum),
    (1, calls::attend),
];
/// The weight of a call among the forms.
const CALLS: u32 = 9;

pub(super) fn write(mut rng: Rng, numbers: Numbers) -> String {
    let mut text = String::from("autobatch graph 2\nmodule \"written\"\n");
    let mut params = Vec::new();
    for number in 0..7 {
        let (param, line) = parameter(&mut rng, number);
        text.push_str(&line);
        params.push(param);
    }
    let mut cells = Vec::new();
    for number in 0..rng.below(4) {
        let (signature, lines) = cell(&mut rng, numbers, number, &params, &cells);
        text.push_str(&lines);
        cells.push(signature);
    }
    text.push_str("graph\n");
    text.push_str(&graph(&mut rng, numbers, params, &cells));
    text
}

/// Writes a parameter: the first are weights, then come vectors, a table and one of any shape. Each has some storage
/// format.
fn parameter(rng: &mut Rng, number: u32) -> (Param, String) {
    let rank = match number {
        0..=2 | 5 => 2,
        3 | 4 => 1,
        _ => rng.below(5),
    };
    let mut dims: Vec<u32> = (0..rank).map(|_| rng.pick(&[1, 1, 2, 2, 2, 3, 3, 4])).collect();
    if number == 5 {
        dims[0] = LARGEST_INDEX + 1 + rng.below(2);
    }
    let dtype = rng.pick(&[DType::F32, DType::F32, DType::F32, DType::F16, DType::BF16]);
    let ty = Type::new(dtype, Shape::new(&dims).expect("small extents form a shape"));
    let name = format!("@p{number}");
    let is_table = number == 5;
    let line = format!("{} {name} {ty} = uniform(1.0)\n", if is_table { "table" } else { "param" });
    (Param { name, ty, is_table }, line)
}

/// Writes one more statement: a node or call whose operands exist, otherwise a leaf.
fn statement(scope: &mut Scope<'_>, cells: &[Signature]) {
    let all: u32 = FORMS.iter().map(|form| form.0).sum::<u32>() + CALLS;
    for _ in 0..60 {
        let mut lot = scope.rng.below(all);
        let form = FORMS.iter().find(|form| {
            let found = lot < form.0;
            lot = lot.saturating_sub(form.0);
            found
        });
        let done = match form {
            Some((_, form)) => form(scope).and_then(|node| scope.apply(&node)),
            None => calls::call(scope, cells),
        };
        if done.is_some() {
            return;
        }
    }
    scope.leaf();
}

fn port(scope: &mut Scope<'_>) -> Type {
    let form = scope.below(10);
    let shape = scope.shape();
    match form {
        0 => INDEX,
        1 => Type { is_list: true, ..Type::new(DType::F32, shape) },
        2 => Type::new(scope.rng.pick(&[DType::I32, DType::U32, DType::Bool]), shape),
        3 => Type::scalar(DType::F32),
        _ => Type::new(DType::F32, shape),
    }
}

/// Writes a cell with any ports, parameters and results. Sometimes it returns a port itself, or one value twice.
fn cell(
    rng: &mut Rng,
    numbers: Numbers,
    number: u32,
    params: &[Param],
    cells: &[Signature],
) -> (Signature, String) {
    let own: Vec<Param> = (0..rng.below(3))
        .map(|place| {
            let of = &params[rng.below(params.len() as u32) as usize];
            Param { name: format!("@{place}"), ..of.clone() }
        })
        .collect();
    let mut scope = Scope { rng, numbers, in_body: true, params: own, values: Vec::new(), lines: Vec::new() };
    for _ in 0..scope.below(5) {
        let ty = port(&mut scope);
        let most = if ty == INDEX { LARGEST_INDEX } else { UNKNOWN };
        scope.values.push(Known { ty, most });
    }
    let ports: Vec<Type> = scope.values.iter().map(|value| value.ty).collect();
    for _ in 0..scope.below(7) {
        statement(&mut scope, cells);
    }
    if scope.plain(|_| true).is_none() {
        scope.leaf();
    }
    let results: Vec<usize> = (0..1 + scope.below(3)).filter_map(|_| scope.plain(|_| true)).collect();
    let declared = |open: &str, parts: Vec<String>, close: &str| match parts.is_empty() {
        true if open == "[" => String::new(),
        _ => format!("{open}{}{close}", parts.join(", ")),
    };
    let of_params = scope.params.iter().map(|param| format!("{}: {}", param.name, param.ty)).collect();
    let of_ports = ports.iter().enumerate().map(|(place, ty)| format!("%{place}: {ty}")).collect();
    let returned: Vec<String> = results.iter().map(|value| format!("%{value}")).collect();
    let name = format!("@c{number}");
    let head = format!("cell {name}{}{} {{\n", declared("[", of_params, "]"), declared("(", of_ports, ")"));
    let lines: String = scope.lines.iter().map(|line| format!("{line}\n")).collect();
    let text = format!("{head}{lines}  return {}\n}}\n", returned.join(", "));
    let params = scope.params.clone();
    let results = results.iter().map(|&value| scope.ty(value)).collect();
    (Signature { name, params, ports, results }, text)
}

/// Writes leaves, statements, occasional cuts, and at the end some outputs and one to three losses.
fn graph(rng: &mut Rng, numbers: Numbers, params: Vec<Param>, cells: &[Signature]) -> String {
    let mut scope = Scope { rng, numbers, in_body: false, params, values: Vec::new(), lines: Vec::new() };
    for _ in 0..3 + scope.below(4) {
        scope.leaf();
    }
    for number in 0..scope.rng.pick(&[4, 8, 15, 30]) {
        if scope.rng.chance(15) {
            let cut = if scope.rng.chance(25) { "common:".to_owned() } else { format!("instance {number}:") };
            scope.lines.push(cut);
        }
        if scope.rng.chance(15) { scope.leaf() } else { statement(&mut scope, cells) }
    }
    let mut asked = Vec::new();
    for number in 0..1 + scope.below(4) {
        if let Some(value) = scope.plain(|_| true) {
            asked.push(format!("output \"o{number}\" %{value}"));
        }
    }
    for number in 0..1 + scope.below(3) {
        let Some(value) = scope.float() else { continue };
        // The proof mistakes the gradient seed of a bare constant loss for another copy of the constant.
        let constant = scope.lines.iter().any(|line| line.starts_with(&format!("  %{value} = fill ")));
        let right = match scope.ty(value).shape.rank() {
            0 if constant => Some(format!("neg(%{value})")),
            0 => None,
            _ => Some(format!("reduce{{fold=sum over=all}}(%{value})")),
        };
        let loss = if right.is_some() { scope.values.len() } else { value };
        if let Some(right) = right {
            scope.line(&[Type::scalar(DType::F32)], UNKNOWN, &right);
        }
        asked.push(format!("loss \"l{number}\" %{loss}"));
    }
    scope.lines.extend(asked);
    scope.lines.iter().map(|line| format!("{line}\n")).collect()
}
