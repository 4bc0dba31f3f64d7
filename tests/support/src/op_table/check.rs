//! The checks that the tests run on every entry of the table.

use super::model::{Handles, model, parameters};
use super::{Attempt, Build, Example, Gradient, Kind, OpCase, case};
use autobatch_ir::graph::infer::infer;
use autobatch_ir::graph::{Arena, Callee, OutputKind};
use autobatch_ir::{DType, Graph, GraphData, Value};

/// Executes graphs in inference mode, in which dropout is the identity.
pub trait Evaluate {
    /// Returns the elements of every output in order, row by row. Integers and booleans become numbers.
    /// `params` holds the module's parameters in the order of their ids. The evaluator chooses its
    /// precision. Float inputs are the graph's bindings.
    fn run(&self, graph: &GraphData, params: &[Vec<f64>]) -> Vec<Vec<f64>>;
}

/// The derivatives of the sum of a graph's losses.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// One derivative per element of each parameter.
    pub params: Vec<Vec<f64>>,
    /// One derivative per float binding, in the order of the graph's bindings.
    pub floats: Vec<f64>,
}

/// Executes graphs forward and in reverse.
pub trait Differentiate: Evaluate {
    /// Returns the derivatives of the sum of the graph's losses.
    fn gradients(&self, graph: &GraphData, params: &[Vec<f64>]) -> Gradients;
}

/// Half the distance of finite differences. Adding it to the table's numbers is exact in f32.
const STEP: f64 = 1.0 / 1024.0;

fn emit(example: &Example) -> Result<GraphData, String> {
    let (module, handles) = model();
    let g = Graph::new(&module);
    g.instance(0);
    for (place, value) in (example.build)(&g, &handles).into_iter().enumerate() {
        g.output(&place.to_string(), value);
    }
    g.finish().map_err(|error| error.to_string())
}

/// Emits every example. Checks that the results have the entry's types and that the graph contains the op.
///
/// # Errors
/// Returns the first difference.
pub fn check_inference(kind: Kind) -> Result<(), String> {
    let OpCase { examples, .. } = case(kind);
    if examples.is_empty() {
        return Err(format!("{kind:?}: the entry has no example"));
    }
    for example in &examples {
        let graph = emit(example).map_err(|error| format!("{kind:?}: {error}"))?;
        let types: Vec<String> =
            graph.outputs.iter().map(|output| graph.type_of(output.value).to_string()).collect();
        if types != example.types {
            return Err(format!("{kind:?}: expected results {:?}, found {types:?}", example.types));
        }
        if !applies(&graph, kind) {
            return Err(format!("{kind:?}: the example does not contain the op\n{graph}"));
        }
        let elements = graph.outputs.iter().map(|output| graph.type_of(output.value).shape.elements());
        let listed = example.numbers.iter().map(Vec::len);
        if !elements.clone().eq(listed) {
            let elements: Vec<usize> = elements.collect();
            return Err(format!("{kind:?}: the entry must list {elements:?} numbers"));
        }
    }
    Ok(())
}

/// Returns whether the graph, or the body of a cell that it calls, contains an op of this kind.
fn applies(graph: &GraphData, kind: Kind) -> bool {
    let has = |arena: &Arena| {
        arena.nodes().iter().any(|node| match graph.sigs.get(node.sig).callee {
            Callee::Op(op) => Kind::of(&op) == kind,
            Callee::Cell(_) => false,
        })
    };
    let called = graph.arena.ids().filter_map(|id| match graph.signature(id).callee {
        Callee::Cell(cell) => Some(&graph.module.cell_decl(cell).body.arena),
        Callee::Op(_) => None,
    });
    has(&graph.arena) || called.into_iter().any(has)
}

/// Emits the invalid use. Checks that the error has the entry's message and names the line that emitted it.
///
/// # Errors
/// Returns the difference.
pub fn check_errors(kind: Kind) -> Result<(), String> {
    let bad = case(kind).bad;
    let found = match bad.attempt {
        Attempt::Infer(op, operands) => infer(&op, &operands, &[]).err().map(|error| error.message),
        Attempt::Emit(build) => refusal(kind, build)?,
    };
    match found {
        None => Err(format!("{kind:?}: the emitter accepts the invalid use")),
        Some(message) if message == bad.message => Ok(()),
        Some(message) => Err(format!("{kind:?}: expected {:?}, found {message:?}", bad.message)),
    }
}

fn refusal(kind: Kind, build: Build) -> Result<Option<String>, String> {
    let (module, handles) = model();
    let g = Graph::new(&module);
    g.instance(0);
    let results = build(&g, &handles);
    let Some(error) = g.check().err() else { return Ok(None) };
    if results.last().is_some_and(|value| value.id().is_some()) {
        return Err(format!("{kind:?}: the result of the invalid use is not poison"));
    }
    if !error.site.file.contains("op_table") {
        return Err(format!("{kind:?}: the error names {}, not the line that emitted the op", error.site));
    }
    Ok(Some(error.message.clone()))
}

/// Writes every example and reads it again, as text or as bytes. The graph and its module must stay equal.
///
/// # Errors
/// Returns the reader's error, or the graph that differs.
pub fn check_round_trip(
    kind: Kind,
    through: impl Fn(&GraphData) -> Result<GraphData, String>,
) -> Result<(), String> {
    for (number, example) in case(kind).examples.iter().enumerate() {
        let graph = emit(example)?;
        let back = through(&graph).map_err(|error| format!("{kind:?}, example {number}: {error}"))?;
        if back != graph || back.structure() != graph.structure() {
            return Err(format!("{kind:?}, example {number}: expected\n{graph:?}\nfound\n{back:?}"));
        }
    }
    Ok(())
}

/// Executes every example. Each element must be within `tolerance`, relative for numbers above 1.
///
/// # Errors
/// Returns the first difference.
pub fn check_numbers(kind: Kind, evaluator: &impl Evaluate, tolerance: f64) -> Result<(), String> {
    for (number, example) in case(kind).examples.iter().enumerate() {
        let graph = emit(example)?;
        let found = evaluator.run(&graph, &parameters(&graph.module));
        let same = found.len() == example.numbers.len()
            && found.iter().zip(&example.numbers).all(|(a, b)| close(a, b, tolerance));
        if !same {
            let wanted = &example.numbers;
            return Err(format!("{kind:?}, example {number}: expected {wanted:?}, found {found:?}"));
        }
    }
    Ok(())
}

/// Returns whether numbers are equal within a tolerance. Infinities and NaN are equal to themselves only.
fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    let one = |(&a, &b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1.0)
    };
    a.len() == b.len() && a.iter().zip(b).all(one)
}

/// Compares derivatives with central differences of the evaluator's own forward values, for every
/// float binding and every element of every parameter. The evaluator must compute in f64.
///
/// # Errors
/// Returns the first difference.
pub fn check_gradients(kind: Kind, evaluator: &impl Differentiate, tolerance: f64) -> Result<(), String> {
    let OpCase { examples, gradient, .. } = case(kind);
    let Gradient::TimesTrue(factor) = gradient else { return Ok(()) };
    for (number, example) in examples.iter().enumerate() {
        let Some(graph) = emit_loss(example)? else { continue };
        let params = parameters(&graph.module);
        let found = evaluator.gradients(&graph, &params);
        let wanted = differences(&graph, &params, evaluator);
        // The mixing coefficients are float bindings too, and come last. Their derivatives are values of
        // the op, which the factor does not change.
        let own = emit(example)?.bindings.floats.len();
        let scale = |(place, x): (usize, &f64)| if place < own { factor * x } else { *x };
        let floats: Vec<f64> = wanted.floats.iter().enumerate().map(scale).collect();
        if !close(&found.floats, &floats, tolerance) {
            let found = &found.floats;
            return Err(format!("{kind:?}, example {number}: by inputs {floats:?}, found {found:?}"));
        }
        for (place, (found, wanted)) in found.params.iter().zip(&wanted.params).enumerate() {
            let wanted: Vec<f64> = wanted.iter().map(|x| factor * x).collect();
            if !close(found, &wanted, tolerance) {
                let name = &graph.module.params[place].name;
                return Err(format!("{kind:?}, example {number}: by @{name} {wanted:?}, found {found:?}"));
            }
        }
    }
    Ok(())
}

/// Emits the example with a loss: the weighted sum of all elements of its float results. Returns `None`
/// if the example has no float results.
fn emit_loss(example: &Example) -> Result<Option<GraphData>, String> {
    let (module, handles): (_, Handles) = model();
    let g = Graph::new(&module);
    g.instance(0);
    let results = (example.build)(&g, &handles);
    let floats = results.into_iter().filter(|value| value.ty().dtype == DType::F32);
    let losses: Vec<Value<'_>> = floats
        .enumerate()
        .map(|(place, value)| {
            let count = value.shape().elements();
            let weight = |at: usize| 0.5 + 0.25 * ((at * 3 + place) % 7) as f32;
            let weights: Vec<f32> = (0..count).map(weight).collect();
            (value.reshape([count]) * g.input(&weights)).sum()
        })
        .collect();
    if losses.is_empty() {
        return Ok(None);
    }
    g.loss("loss", g.list(&losses).sum());
    g.finish().map(Some).map_err(|error| error.to_string())
}

fn differences(graph: &GraphData, params: &[Vec<f64>], evaluator: &impl Evaluate) -> Gradients {
    let place = graph.outputs.iter().position(|output| output.kind == OutputKind::Loss);
    let place = place.expect("the graph was given a loss");
    let loss = |graph: &GraphData, params: &[Vec<f64>]| evaluator.run(graph, params)[place][0];
    let slope = |at: &mut dyn FnMut(f64) -> f64| (at(STEP) - at(-STEP)) / (2.0 * STEP);
    let floats = (0..graph.bindings.floats.len()).map(|at| {
        slope(&mut |step| {
            let mut moved = graph.clone();
            moved.bindings.floats[at] += step as f32;
            loss(&moved, params)
        })
    });
    let param = |number: usize| {
        let one = |at: usize| {
            slope(&mut |step| {
                let mut moved = params.to_vec();
                moved[number][at] += step;
                loss(graph, &moved)
            })
        };
        (0..params[number].len()).map(one).collect()
    };
    Gradients { floats: floats.collect(), params: (0..params.len()).map(param).collect() }
}
