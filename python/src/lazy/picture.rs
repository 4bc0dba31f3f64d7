//! The picture of a flush, for notebooks.

use crate::plan::MAX_DRAWN;
use autobatch::ir::Graph;
use autobatch::ir::graph::ValueKey;
use autobatch::ir::plan::Mode;
use autobatch::planner::Planner;
use autobatch::planner::Request;
use autobatch::planner::passes::Selection;

/// Draws the forward pass of a graph with its batches, as SVG. `None` if it is too large or has no plan.
pub(super) fn picture(graph: &Graph, wanted: &[ValueKey]) -> Option<String> {
    let data = graph.data();
    if data.arena.len() > MAX_DRAWN {
        return None;
    }
    let wanted: Vec<_> = wanted.iter().filter_map(|&key| graph.value(key)?.id()).collect();
    let request = Request { wanted: &wanted, ..Request::default() };
    let mut planner = Planner::default();
    let planned =
        planner.optimize_and_plan(&data, &request, &Selection::of_graph(&data, Mode::Infer)).ok()?;
    Some(autobatch_inspector::picture::graph(&planned.optimized.graph, &planned.plan, "auto"))
}
