//! Random graphs: cells of several types that read two earlier values each.

use super::sound;
use crate::args::EmitArgs;
use crate::failure::Failure;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::module::{Cell, Init, ModuleBuilder};
use autobatch_ir::types::f32;
use autobatch_models::data::random::Random;

/// How far back an operand lies at most; the smaller, the deeper the graph.
const REACH: usize = 6;
/// Nodes of an instance, if the command line does not say.
const NODES: u32 = 20;

/// More nodes than this are not emitted: a graph lies in memory as a whole.
const MOST_APPLICATIONS: u64 = 1 << 22;

pub(super) fn emit(args: &EmitArgs) -> Result<GraphData, Failure> {
    let (h, nodes) = (args.hidden as usize, args.nodes.unwrap_or(NODES));
    let nodes = u64::from(args.instances) * u64::from(nodes);
    if nodes > MOST_APPLICATIONS {
        let EmitArgs { instances, .. } = args;
        let message = format!(
            "{instances} instances of {nodes} nodes are {nodes}, at most {MOST_APPLICATIONS} are emitted"
        );
        return Err(Failure::usage(message).help("ask for fewer --instances or --nodes"));
    }
    let mut m = ModuleBuilder::new("random");
    let cells: Vec<Cell<2, 1>> = (0..args.cells.unwrap_or(1))
        .map(|number| {
            let w = m.param(&format!("w{number}"), [2 * h, h], Init::Glorot(1.0));
            m.cell(&format!("cell{number}"), [f32(h); 2], |g, [a, b]| [g.affine([a, b], w, None).tanh()])
        })
        .collect();
    let g = Graph::new(&sound(m.build())?);
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
        for (place, value) in last.into_iter().enumerate() {
            g.output(&format!("graph{key}.{place}"), value);
        }
    }
    sound(g.finish())
}
