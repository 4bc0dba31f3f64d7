//! Positions in the picture of a graph with its batches.

use crate::steps::computing;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::NodeId;
use autobatch_ir::plan::Plan;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of instances in a picture of one line. Pictures of more lines show fewer.
const MAX_BANDS: usize = 16;
/// Number of instances that a picture of any number of lines may show.
const MIN_BANDS: usize = 4;
/// Maximum number of nodes. The largest instance is drawn in any case.
const MAX_NODES: usize = 3000;
/// Width at which the columns continue in another line.
const MAX_WIDTH: f64 = 1180.0;
/// The smallest distance between neighbouring dots.
const MIN_PITCH: f64 = 10.0;
/// Width of a column beside its dots, as a share of the pitch.
const COLUMN_GAP: f64 = 0.8;
/// Space between a histogram and the bands below it.
const BELOW_HISTOGRAM: f64 = 18.0;
/// Space between the bands of a line and the histogram of the next, with the numbers of steps.
const BETWEEN_LINES: f64 = 44.0;
/// Left edge of the columns.
pub(super) const LEFT: f64 = 96.0;
/// Height of a histogram.
pub(super) const HISTOGRAM: f64 = 64.0;
/// Upper edge of the first line.
const TOP: f64 = 84.0;

/// Positions of all elements.
pub(super) struct Layout {
    pub(super) lines: Vec<Line>,
    pub(super) columns: Vec<Column>,
    /// The centre of each drawn node.
    pub(super) dots: Vec<Option<Dot>>,
    /// Distance between the centres of neighbouring dots.
    pub(super) pitch: f64,
    /// The number of drawn instances, without the nodes that all share.
    pub(super) drawn: usize,
    /// The number of instances that are left out.
    pub(super) hidden: usize,
}

/// Neighbouring columns with the parts of instances that they compute.
pub(super) struct Line {
    pub(super) columns: Range<usize>,
    pub(super) bands: Vec<Band>,
    /// The upper edge of its histogram.
    pub(super) top: f64,
    /// The lower edge of its bands.
    pub(super) bottom: f64,
    /// The right edge of its columns.
    pub(super) right: f64,
}

/// The position of a node.
#[derive(Clone, Copy)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) column: usize,
    pub(super) line: usize,
    /// The upper edge of its band.
    pub(super) rail: f64,
}

/// The column of a batch.
pub(super) struct Column {
    pub(super) x: f64,
    pub(super) width: f64,
    /// Maximum number of dots side by side.
    across: usize,
}

/// The band of an instance.
pub(super) struct Band {
    pub(super) y: f64,
    pub(super) height: f64,
    pub(super) name: String,
}

/// An instance, or the nodes that all share, with the column of each node in order of nodes.
struct Instance {
    /// The number of the instance.
    number: Option<usize>,
    nodes: Vec<(usize, NodeId)>,
}

impl Instance {
    fn name(&self) -> String {
        self.number.map_or_else(|| "common".to_owned(), |number| format!("instance {number}"))
    }
}

impl Layout {
    pub(super) fn new(graph: &GraphData, plan: &Plan) -> Self {
        let columns = computing(plan).count();
        let mut instances = instances(graph, plan);
        let all = instances.len();
        let lines = (columns as f64 * (1.0 + COLUMN_GAP) * MIN_PITCH / (MAX_WIDTH - LEFT)).ceil() as usize;
        keep_largest(&mut instances, (MAX_BANDS / lines.max(1)).max(MIN_BANDS));
        let pitch = match instances.iter().map(|instance| instance.nodes.len()).sum() {
            0..=120 => 22.0,
            121..=600 => 13.0,
            _ => MIN_PITCH,
        };
        let mut layout = Self {
            lines: Vec::new(),
            columns: Vec::new(),
            dots: vec![None; graph.arena.len()],
            pitch,
            drawn: instances.iter().filter(|instance| instance.number.is_some()).count(),
            hidden: all - instances.len(),
        };
        let bands: Vec<Vec<Vec<NodeId>>> =
            instances.iter().map(|instance| by_column(&instance.nodes, columns)).collect();
        for columns in layout.place_columns(&bands, columns) {
            layout.place_line(columns, &instances, &bands);
        }
        layout
    }

    /// The right edge of the widest line.
    pub(super) fn right(&self) -> f64 {
        self.lines.iter().map(|line| line.right).fold(LEFT, f64::max)
    }

    /// Computes the horizontal positions of columns. Returns the columns of each line.
    fn place_columns(&mut self, bands: &[Vec<Vec<NodeId>>], columns: usize) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        let (mut x, mut first) = (LEFT, 0);
        for column in 0..columns {
            let most = bands.iter().map(|band| band[column].len()).max().unwrap_or(0);
            let across = (1..).find(|side| side * side >= most).unwrap_or(1).max(1);
            let width = (across as f64 + COLUMN_GAP) * self.pitch;
            if x + width > MAX_WIDTH && column > first {
                lines.push(first..column);
                (x, first) = (LEFT, column);
            }
            self.columns.push(Column { x, width, across });
            x += width;
        }
        lines.push(first..columns);
        lines
    }

    /// Places the parts of instances in the columns of the next line.
    fn place_line(&mut self, columns: Range<usize>, instances: &[Instance], bands: &[Vec<Vec<NodeId>>]) {
        let top = self.lines.last().map_or(TOP, |line| line.bottom + BETWEEN_LINES);
        let mut y = top + HISTOGRAM + BELOW_HISTOGRAM;
        let mut placed = Vec::new();
        for (instance, band) in instances.iter().zip(bands) {
            let parts = &band[columns.clone()];
            if parts.iter().all(Vec::is_empty) {
                continue;
            }
            let rows = |(nodes, column): (&Vec<NodeId>, &Column)| nodes.len().div_ceil(column.across);
            let most = parts.iter().zip(&self.columns[columns.clone()]).map(rows).max().unwrap_or(1);
            let height = (most as f64 + 1.1) * self.pitch;
            for (nodes, column) in parts.iter().zip(columns.clone()) {
                self.place_dots(nodes, column, [y, height]);
            }
            placed.push(Band { y, height, name: instance.name() });
            y += height;
        }
        let right = self.columns[columns.clone()].last().map_or(LEFT, Column::right);
        self.lines.push(Line { columns, bands: placed, top, bottom: y, right });
    }

    /// Places the nodes of an instance in a column of the next line.
    fn place_dots(&mut self, nodes: &[NodeId], column: usize, [y, height]: [f64; 2]) {
        let (pitch, line) = (self.pitch, self.lines.len());
        let across = self.columns[column].across;
        let rows = nodes.len().div_ceil(across);
        for (at, node) in nodes.iter().enumerate() {
            let in_row = across.min(nodes.len() - at / across * across);
            let dx = (at % across) as f64 - (in_row as f64 - 1.0) / 2.0;
            let dy = (at / across) as f64 - (rows as f64 - 1.0) / 2.0;
            let (x, middle) = (self.columns[column].middle() + dx * pitch, y + height / 2.0 + pitch * 0.1);
            self.dots[node.index()] =
                Some(Dot { x, y: middle + dy * pitch, column, line, rail: y + pitch * 0.18 });
        }
    }
}

impl Column {
    pub(super) fn middle(&self) -> f64 {
        self.x + self.width / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }
}

/// The instances with a batched node, in order of their first nodes. All parts of an instance are one.
fn instances(graph: &GraphData, plan: &Plan) -> Vec<Instance> {
    let mut column_of = vec![None; graph.arena.len()];
    for (column, (_, step)) in computing(plan).enumerate() {
        for node in plan.lanes(step) {
            if let Some(slot) = column_of.get_mut(node.index()) {
                *slot = Some(column);
            }
        }
    }
    let mut found: Vec<Instance> = Vec::new();
    let mut place_of: HashMap<Option<usize>, usize> = HashMap::new();
    for (instance, range) in graph.numbered_stretches() {
        let number = instance.map(|(number, _)| number);
        let place = *place_of.entry(number).or_insert_with(|| {
            found.push(Instance { number, nodes: Vec::new() });
            found.len() - 1
        });
        let batched = range.filter_map(|node| column_of[node].map(|column| (column, NodeId::new(node))));
        found[place].nodes.extend(batched);
    }
    found.retain(|instance| !instance.nodes.is_empty());
    found
}

/// Keeps at most so many of the largest instances that fit, and the nodes that all share, in their order.
fn keep_largest(instances: &mut Vec<Instance>, most: usize) {
    let mut order: Vec<usize> = (0..instances.len()).collect();
    order.sort_by_key(|&at| (instances[at].number.is_some(), Reverse(instances[at].nodes.len())));
    let mut is_kept = vec![false; instances.len()];
    let (mut kept, mut nodes) = (0, 0);
    for at in order {
        let more = instances[at].nodes.len();
        if instances[at].number.is_none() {
            is_kept[at] = true;
            nodes += more;
        } else if kept == 0 || kept < most && nodes + more <= MAX_NODES {
            is_kept[at] = true;
            (kept, nodes) = (kept + 1, nodes + more);
        }
    }
    let mut is_kept = is_kept.into_iter();
    instances.retain(|_| is_kept.next().unwrap_or(false));
}

fn by_column(nodes: &[(usize, NodeId)], columns: usize) -> Vec<Vec<NodeId>> {
    let mut sorted = vec![Vec::new(); columns];
    for &(column, node) in nodes {
        sorted[column].push(node);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(number: Option<usize>, nodes: usize) -> Instance {
        Instance { number, nodes: (0..nodes).map(|node| (0, NodeId::new(node))).collect() }
    }

    fn kept(mut instances: Vec<Instance>, most: usize) -> Vec<Option<usize>> {
        keep_largest(&mut instances, most);
        instances.into_iter().map(|instance| instance.number).collect()
    }

    #[test]
    fn the_largest_instances_are_kept_in_their_order() {
        let sizes = [(Some(0), 5), (None, 1), (Some(1), 90), (Some(2), 6), (Some(3), 70)];
        let instances = || sizes.map(|(number, nodes)| instance(number, nodes)).into_iter().collect();
        assert_eq!(kept(instances(), 2), [None, Some(1), Some(3)]);
        assert_eq!(kept(instances(), 9), [Some(0), None, Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn an_instance_beyond_the_limit_of_nodes_is_kept_alone() {
        assert_eq!(kept(vec![instance(Some(0), 4), instance(Some(1), MAX_NODES + 1)], 9), [Some(1)]);
        let shared = vec![instance(Some(0), 4), instance(None, MAX_NODES), instance(Some(1), 5)];
        assert_eq!(kept(shared, 9), [None, Some(1)]);
        assert_eq!(kept(Vec::new(), 9), []);
    }

    #[test]
    fn columns_continue_in_further_lines() {
        let (lines, columns, dots) = (Vec::new(), Vec::new(), Vec::new());
        let mut layout = Layout { lines, columns, dots, pitch: 13.0, drawn: 1, hidden: 0 };
        let lines = layout.place_columns(&[vec![vec![NodeId::new(0)]; 300]], 300);
        assert!(lines.len() > 1 && lines.iter().cloned().flatten().eq(0..300), "{lines:?}");
        for line in lines {
            assert_eq!(layout.columns[line.start].x, LEFT);
            assert!(layout.columns[line.end - 1].right() <= MAX_WIDTH, "{line:?}");
        }
    }
}
