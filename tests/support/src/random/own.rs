//! The recipe's own cells. The recipe decides their ports and results, as it decides their steps.

use super::emit::execute;
use super::kit::{CLASSES, Kit};
use super::recipe::{Body, Reach, Recipe, Step};
use super::stage::{LIMIT, Stage};
use autobatch_ir::{Arg, Cell, DType, Graph, INDEX, ModuleBuilder, Shape, Type, Value, f32, list};
use std::fmt::Debug;

/// One of the recipe's own cells: it has at most four ports and three results.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) ports: Vec<Type>,
    cell: Box<dyn Callable>,
}

/// A cell with any number of ports and results.
trait Callable: Debug {
    fn call<'g>(&self, g: &'g Graph, args: &[Arg<'g>]) -> Vec<Value<'g>>;
}

impl<const IN: usize, const OUT: usize> Callable for Cell<IN, OUT> {
    fn call<'g>(&self, g: &'g Graph, args: &[Arg<'g>]) -> Vec<Value<'g>> {
        let args: [Arg<'g>; IN] = std::array::from_fn(|place| args[place]);
        g.call(*self, args).to_vec()
    }
}

impl Own {
    pub(super) fn declare(m: &mut ModuleBuilder, kit: &Kit, recipe: &Recipe, body: &Body) -> Self {
        let ports = body.ports.iter().map(|&number| port_type(number, kit.width)).collect();
        match body.ports.len() {
            0 => Self::taking::<0>(m, kit, recipe, body, ports),
            1 => Self::taking::<1>(m, kit, recipe, body, ports),
            2 => Self::taking::<2>(m, kit, recipe, body, ports),
            3 => Self::taking::<3>(m, kit, recipe, body, ports),
            _ => Self::taking::<4>(m, kit, recipe, body, ports),
        }
    }

    fn taking<const IN: usize>(
        m: &mut ModuleBuilder,
        kit: &Kit,
        recipe: &Recipe,
        body: &Body,
        ports: Vec<Type>,
    ) -> Self {
        let types: [Type; IN] = std::array::from_fn(|place| ports[place]);
        let cell: Box<dyn Callable> = match body.results.len() {
            0 | 1 => Box::new(trace::<IN, 1>(m, kit, recipe, body, types)),
            2 => Box::new(trace::<IN, 2>(m, kit, recipe, body, types)),
            _ => Box::new(trace::<IN, 3>(m, kit, recipe, body, types)),
        };
        Self { ports, cell }
    }

    pub(super) fn call<'g>(&self, g: &'g Graph, args: &[Arg<'g>]) -> Vec<Value<'g>> {
        self.cell.call(g, args)
    }
}

/// Chooses the type of a port: a vector half of the time, otherwise any type that a port can have.
fn port_type(number: u32, width: usize) -> Type {
    let shaped =
        |dtype, dims: &[u32]| Type::new(dtype, Shape::new(dims).expect("small extents form a shape"));
    match number % 16 {
        0..=7 => f32([width]),
        8 | 9 => list(f32([width])),
        10 => INDEX,
        11 => f32([]),
        12 => f32([2, width]),
        13 => shaped(DType::F32, &[2, 1, 3]),
        14 => shaped(DType::Bool, &[width as u32]),
        _ => shaped(DType::I32, &[2, 3]),
    }
}

fn trace<const IN: usize, const OUT: usize>(
    m: &mut ModuleBuilder,
    kit: &Kit,
    recipe: &Recipe,
    body: &Body,
    types: [Type; IN],
) -> Cell<IN, OUT> {
    m.cell("free", types, |g, ports| {
        let mut stage = Stage::new(g, kit, recipe.options, true);
        for port in ports {
            match port.ty() {
                ty if ty.is_list => stage.keep_list(port, LIMIT),
                INDEX => stage.keep(&Step::choice(1, 0), port, (CLASSES - 1) as f64),
                _ => stage.keep(&Step::choice(1, 0), port, LIMIT),
            }
        }
        execute(&mut stage, &body.steps);
        let mut results: Vec<Value<'_>> = Vec::new();
        for place in 0..OUT {
            let number = body.results.get(place).copied().unwrap_or(0);
            let result = result(&mut stage, &ports, results.last().copied(), number);
            results.push(result);
        }
        std::array::from_fn(|place| results[place])
    })
}

/// Chooses a result. Most results are vectors that the body computes. The others are a port itself, the previous result
/// again, a reshaped result, or any value.
fn result<'g>(
    stage: &mut Stage<'g, '_>,
    ports: &[Value<'g>],
    before: Option<Value<'g>>,
    number: u32,
) -> Value<'g> {
    let newest = Step { reach: Reach::Latest, ..Step::choice(1, 0) };
    let straight: Vec<Value<'g>> = ports.iter().copied().filter(|port| !port.ty().is_list).collect();
    match (number % 8, before) {
        (1, Some(before)) => return before,
        (2, _) if !straight.is_empty() => return straight[number as usize / 8 % straight.len()],
        (3, _) => {
            let vector = stage.vector(&newest, 0).0;
            let width = stage.width();
            return if (number / 8).is_multiple_of(2) {
                vector.reshape([width, 1])
            } else {
                vector.reshape([1, width])
            };
        }
        (4, _) => {
            if let Some(value) = stage.wanted(number) {
                return value;
            }
        }
        (5, _) => return stage.vector(&Step { reach: Reach::Unused, ..newest }, 1).0,
        _ => {}
    }
    stage.vector(&newest, 0).0
}
