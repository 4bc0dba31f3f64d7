//! Random graphs: cells of several types, each of which reads two earlier values.

use super::emitted;
use crate::args::EmitArgs;
use crate::failure::Failure;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Cell, Init, ModuleBuilder};
use autobatch_ir::types::f32;
use autobatch_models::data::random::Random;

/// Maximum distance between a node and its operands. Smaller distances make deeper graphs.
const REACH: usize = 6;
/// Default width of values.
const DEFAULT_WIDTH: u32 = 100;
/// Default number of nodes of an instance.
const DEFAULT_NODES: u32 = 20;

/// Maximum number of nodes of a graph, because graphs are built in memory.
const MAX_NODES: u64 = 1 << 22;

pub(super) fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    let (h, nodes) = (args.hidden.unwrap_or(DEFAULT_WIDTH) as usize, args.nodes.unwrap_or(DEFAULT_NODES));
    let total = u64::from(args.instances) * u64::from(nodes);
    if total > MAX_NODES {
        let EmitArgs { instances, .. } = args;
        let message =
            format!("{instances} instances of {nodes} nodes have {total} nodes, the maximum is {MAX_NODES}");
        return Err(Failure::usage(message).help("reduce --instances or --nodes"));
    }
    let mut m = ModuleBuilder::new("random");
    let cells: Vec<Cell<2, 1>> = (0..args.cells.unwrap_or(1))
        .map(|number| {
            let w = m.param(&format!("w{number}"), [2 * h, h], Init::Glorot(1.0));
            m.cell(&format!("cell{number}"), [f32(h); 2], |g, [a, b]| [g.affine([a, b], w, None).tanh()])
        })
        .collect();
    let g = Graph::new(&emitted(m.build())?);
    let start = g.zeros(h);
    for key in 0..args.instances {
        let mut random =
            Random::stream(args.seed, u64::from(key) + u64::from(args.batch) * u64::from(args.instances));
        g.instance(u64::from(key));
        let mut values: Vec<Value<'_>> = vec![start];
        for _ in 0..nodes {
            let mut pick = || values[values.len() - 1 - random.index(values.len().min(REACH))];
            let operands = [pick(), pick()];
            let [value] = g.call(cells[random.index(cells.len())], operands);
            values.push(value);
        }
        let last = values[values.len().saturating_sub(REACH)..].to_vec();
        for (number, value) in last.into_iter().enumerate() {
            g.output(&format!("graph{key}.{number}"), value);
        }
    }
    emitted(g.finish())
}
