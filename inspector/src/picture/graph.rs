//! Picture of a graph with its batches: instances are bands, batches are columns, nodes are dots.
//!
//! Each kernel has a colour in two alternating shades, so neighbouring batches of one kernel are
//! distinguishable. A histogram above the columns shows the batch sizes; the heights grow with their square
//! roots, so small batches stay visible beside large ones. Edges that skip columns run along the upper edge
//! of their band, so that chains stay readable. The picture is animated: the batches appear in the order of
//! execution.

use super::memory::pitch_of;
use super::svg::{Anchor, HAIR, INK, SOFT, Svg, WASH, appears, colour, escaped, flashes, lighter, loop_of};
use crate::steps::{Kinds, computing};
use crate::text::{count, plural};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{Plan, Step};
use std::collections::BTreeSet;

/// Maximum number of instances.
const MAX_BANDS: usize = 16;
/// Maximum number of nodes. The first instance is drawn in any case.
const MAX_NODES: usize = 3000;
/// Maximum number of edges.
const MAX_EDGES: usize = 4000;
const LEFT: f64 = 96.0;
const HISTOGRAM: f64 = 64.0;
const TOP: f64 = 84.0;
/// Share of white in the second shade of a kernel.
const SECOND_SHADE: f64 = 0.38;
/// Edges over at least this many columns run along the edge of their band.
const SKIPPED_COLUMNS: usize = 3;
/// Estimated width of a digit of a bar's value.
const DIGIT: f64 = 6.0;
/// Minimum width of the drawing, for the title and the legend.
const MIN_WIDTH: f64 = 560.0;

/// Positions of all elements.
struct Layout {
    columns: Vec<Column>,
    bands: Vec<Band>,
    /// The centre of each drawn node.
    dots: Vec<Option<Dot>>,
    /// Distance between the centres of neighbouring dots.
    pitch: f64,
    /// The number of instances that are left out.
    hidden: usize,
}

/// The position of a node.
#[derive(Clone, Copy)]
struct Dot {
    x: f64,
    y: f64,
    column: usize,
    /// The upper edge of its band.
    rail: f64,
}

/// The column of a batch.
struct Column {
    x: f64,
    width: f64,
    /// Maximum number of dots side by side.
    across: usize,
}

/// The band of an instance.
struct Band {
    y: f64,
    height: f64,
    name: String,
}

/// The nodes of an instance by column.
struct Nodes {
    name: String,
    by_column: Vec<Vec<NodeId>>,
}

/// A step that computes nodes, with its number in the plan.
type NumberedStep<'p> = (usize, &'p Step);

/// Draws a verified graph with its plan. `policy` is the name of the policy of the plan.
#[must_use]
pub fn graph(graph: &GraphData, plan: &Plan, policy: &str) -> String {
    let steps: Vec<NumberedStep<'_>> = computing(plan).collect();
    let layout = Layout::new(graph, plan);
    let width = layout.columns.last().map_or(0.0, Column::right).max(MIN_WIDTH) + 28.0;
    let body = TOP + HISTOGRAM + 18.0;
    let bottom = layout.bands.last().map_or(body, |band| band.y + band.height);
    let mut svg = Svg::default();
    let rows: u64 = steps.iter().map(|(_, step)| u64::from(step.rows)).sum();
    let batches = plural(steps.len() as u64, "batch");
    let title = format!("{}: {} in {batches}", graph.module.name, plural(rows, "node"));
    svg.styled_text([24.0, 32.0], 18.0, INK, Anchor::Start, r#"font-weight="bold""#, &title);
    let certificate = &plan.certificate;
    let hidden = match layout.hidden {
        0 => String::new(),
        hidden => format!(", the last {hidden} not drawn"),
    };
    let note = format!(
        "columns are batches; policy {policy}, bound {}, gap {:.0} %; {}{hidden}",
        certificate.bound,
        certificate.gap() * 100.0,
        plural(graph.instances() as u64, "instance")
    );
    svg.text([24.0, 54.0], 12.0, SOFT, Anchor::Start, &note);
    bands(&mut svg, &layout, width);
    columns(&mut svg, plan, &steps, &layout, bottom);
    edges(&mut svg, graph, plan, &steps, &layout);
    dots(&mut svg, graph, plan, &steps, &layout);
    let end = legend(&mut svg, plan, width, bottom + 62.0);
    svg.finish(width, end + 10.0, &title)
}

impl Layout {
    fn new(graph: &GraphData, plan: &Plan) -> Self {
        let steps: Vec<_> = computing(plan).map(|(_, step)| step).collect();
        let mut column_of = vec![None; graph.arena.len()];
        for (column, step) in steps.iter().enumerate() {
            for node in plan.lanes(step) {
                if let Some(slot) = column_of.get_mut(node.index()) {
                    *slot = Some(column);
                }
            }
        }
        let mut bands: Vec<Nodes> = Vec::new();
        let mut drawn = 0;
        let mut hidden = BTreeSet::new();
        for (instance, range) in graph.numbered_stretches() {
            if range.clone().all(|node| column_of[node].is_none()) {
                continue;
            }
            let name = match instance {
                Some((number, _)) => format!("instance {number}"),
                None => "common".to_owned(),
            };
            // All parts of an instance share a band.
            let known = bands.iter().position(|known| known.name == name);
            let is_full = bands.len() == MAX_BANDS || drawn + range.len() > MAX_NODES;
            if known.is_none() && is_full && !bands.is_empty() {
                hidden.insert(instance);
                continue;
            }
            let known = known.unwrap_or_else(|| {
                bands.push(Nodes { name, by_column: vec![Vec::new(); steps.len()] });
                bands.len() - 1
            });
            let by_column = &mut bands[known].by_column;
            for node in range {
                if let Some(column) = column_of[node] {
                    drawn += 1;
                    by_column[column].push(NodeId::new(node));
                }
            }
        }
        let pitch = if drawn <= 120 {
            22.0
        } else if drawn <= 600 {
            13.0
        } else {
            10.0
        };
        let mut layout = Self {
            columns: Vec::new(),
            bands: Vec::new(),
            dots: vec![None; graph.arena.len()],
            pitch,
            hidden: hidden.len(),
        };
        layout.place(&bands, steps.len());
        layout
    }

    /// Computes the positions of columns, bands and dots.
    fn place(&mut self, bands: &[Nodes], steps: usize) {
        let pitch = self.pitch;
        let mut x = LEFT;
        for column in 0..steps {
            let most = bands.iter().map(|band| band.by_column[column].len()).max().unwrap_or(0);
            let across = (1..).find(|side| side * side >= most).unwrap_or(1).max(1);
            let width = across as f64 * pitch + pitch * 0.8;
            self.columns.push(Column { x, width, across });
            x += width;
        }
        let mut y = TOP + HISTOGRAM + 18.0;
        for Nodes { name, by_column } in bands {
            let lines = |(nodes, column): (&Vec<NodeId>, &Column)| nodes.len().div_ceil(column.across);
            let down = by_column.iter().zip(&self.columns).map(lines).max().unwrap_or(1);
            let height = down as f64 * pitch + pitch * 1.1;
            for (number, (nodes, column)) in by_column.iter().zip(&self.columns).enumerate() {
                let across = column.across;
                let lines = nodes.len().div_ceil(across);
                for (at, node) in nodes.iter().enumerate() {
                    let in_line = across.min(nodes.len() - at / across * across);
                    let dx = (at % across) as f64 - (in_line as f64 - 1.0) / 2.0;
                    let dy = (at / across) as f64 - (lines as f64 - 1.0) / 2.0;
                    let (x, middle) = (column.middle() + dx * pitch, y + height / 2.0 + pitch * 0.1);
                    self.dots[node.index()] =
                        Some(Dot { x, y: middle + dy * pitch, column: number, rail: y + pitch * 0.18 });
                }
            }
            self.bands.push(Band { y, height, name: name.clone() });
            y += height;
        }
    }
}

impl Column {
    fn middle(&self) -> f64 {
        self.x + self.width / 2.0
    }

    fn right(&self) -> f64 {
        self.x + self.width
    }
}

fn bands(svg: &mut Svg, layout: &Layout, width: f64) {
    for (number, Band { y, height, name }) in layout.bands.iter().enumerate() {
        if number % 2 == 0 {
            svg.rect([16.0, *y, width - 32.0, *height], WASH, r#"rx="4""#);
        }
        svg.text([24.0, y + height / 2.0 + 4.0], 11.0, SOFT, Anchor::Start, name);
    }
}

/// The colours of steps: the steps of one kernel alternate between two shades.
fn shades(plan: &Plan, steps: &[NumberedStep<'_>]) -> Vec<String> {
    let kinds = Kinds::of(plan);
    let mut seen = vec![0usize; kinds.names().len()];
    let shade = |(number, _): &NumberedStep<'_>| {
        let kind = kinds.of_step(*number);
        seen[kind] += 1;
        lighter(&colour(kind), if seen[kind] % 2 == 1 { 0.0 } else { SECOND_SHADE })
    };
    steps.iter().map(shade).collect()
}

fn columns(svg: &mut Svg, plan: &Plan, steps: &[NumberedStep<'_>], layout: &Layout, bottom: f64) {
    let most = steps.iter().map(|(_, step)| step.rows).max().unwrap_or(1).max(1);
    let (base, kinds, shades) = (TOP + HISTOGRAM, Kinds::of(plan), shades(plan, steps));
    let (seconds, share) = loop_of(steps.len());
    svg.text([24.0, base - 16.0], 11.0, SOFT, Anchor::Start, "batch size");
    svg.text([24.0, base - 3.0], 9.0, SOFT, Anchor::Start, "(square root)");
    let mut labelled = 0.0;
    let narrowest = layout.columns.iter().map(|column| column.width).fold(f64::INFINITY, f64::min);
    let pitch = pitch_of(26.0 / narrowest.max(1.0));
    let right = layout.columns.last().map_or(LEFT, Column::right);
    svg.line([LEFT, base, right, base], HAIR, r#"stroke-width="1""#);
    for (column, ((number, step), placed)) in steps.iter().zip(&layout.columns).enumerate() {
        let &Column { x, width, .. } = placed;
        let height = ((f64::from(step.rows) / f64::from(most)).sqrt() * (HISTOGRAM - 14.0)).max(1.5);
        let tip = escaped(&format!("step {number}: {} x {}", kinds.step_name(*number), step.rows));
        let at = |column: usize| column as f64 / steps.len() as f64 * share;
        svg.raw(&format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{INK}\" fill-opacity=\"0.08\" opacity=\"0\">{}</rect>",
            TOP, bottom - TOP, flashes(at(column), at(column + 1), seconds),
        ));
        svg.raw(&format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{}\"><title>{tip}</title></rect>",
            x + 1.0, base - height, (width - 2.0).max(1.0), shades[column],
        ));
        if column % pitch == 0 {
            svg.text([placed.middle(), bottom + 18.0], 11.0, SOFT, Anchor::Middle, &number.to_string());
        }
        // A value is written where it differs from the one before and has space.
        let value = count(step.rows);
        let reach = value.chars().count() as f64 * DIGIT / 2.0;
        let repeats = column > 0 && steps[column - 1].1.rows == step.rows;
        if !repeats && placed.middle() - reach > labelled {
            svg.text([placed.middle(), base - height - 3.0], 9.0, INK, Anchor::Middle, &value);
            labelled = placed.middle() + reach;
        }
    }
    svg.text([24.0, bottom + 18.0], 11.0, SOFT, Anchor::Start, "step");
}

fn edges(svg: &mut Svg, graph: &GraphData, plan: &Plan, steps: &[NumberedStep<'_>], layout: &Layout) {
    let (seconds, share) = loop_of(steps.len());
    let mut drawn = 0;
    for (column, (_, step)) in steps.iter().enumerate() {
        let (mut near, mut far) = (String::new(), String::new());
        for &node in plan.lanes(step).iter().filter(|node| node.index() < layout.dots.len()) {
            let Some(to) = layout.dots[node.index()] else { continue };
            for from in operand_nodes(graph, node).filter_map(|operand| layout.dots[operand.index()]) {
                drawn += 1;
                match to.column.saturating_sub(from.column) < SKIPPED_COLUMNS {
                    true => near.push_str(&curved(from, to, layout.pitch)),
                    false => far.push_str(&along_the_band(from, to, layout.pitch)),
                }
            }
        }
        if drawn > MAX_EDGES {
            break;
        }
        for (path, colour) in [(far, "#ccd3da"), (near, "#98a3af")] {
            if path.is_empty() {
                continue;
            }
            let appears = appears(column as f64 / steps.len() as f64 * share, seconds);
            svg.raw(&format!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"0.9\">{appears}</path>"
            ));
        }
    }
}

/// The path of an edge between neighbouring columns.
fn curved(from: Dot, to: Dot, pitch: f64) -> String {
    let reach = (to.x - from.x) * 0.45;
    // An edge along a line of dots bends around the dots in between.
    let passes = (to.y - from.y).abs() < 1.0 && to.x - from.x > 2.4 * pitch;
    let bow = if passes { 0.9 * pitch } else { 0.0 };
    format!(
        "M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
        from.x,
        from.y,
        from.x + reach,
        from.y - bow,
        to.x - reach,
        to.y - bow,
        to.x,
        to.y
    )
}

/// The path of an edge that skips columns. Edges to one column cover each other on the edge of the band.
fn along_the_band(from: Dot, to: Dot, pitch: f64) -> String {
    let (bend, rail) = (0.6 * pitch, to.rail);
    format!(
        "M{:.1} {:.1}Q{:.1} {rail:.1} {:.1} {rail:.1}H{:.1}Q{:.1} {rail:.1} {:.1} {:.1}",
        from.x,
        from.y,
        from.x,
        from.x + bend,
        to.x - bend,
        to.x,
        to.x,
        to.y
    )
}

/// The nodes that compute the operands of a node, without repetition. A list contributes its elements.
pub(super) fn operand_nodes(graph: &GraphData, node: NodeId) -> impl Iterator<Item = NodeId> {
    let mut found: Vec<NodeId> = Vec::new();
    let mut todo: Vec<ValueId> =
        graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()).collect();
    while let Some(value) = todo.pop() {
        let producer = graph.arena.producer(value);
        if graph.signature(producer).is_list() {
            todo.extend(graph.arena.operands(producer).iter().filter_map(|operand| operand.as_value()));
        } else if !found.contains(&producer) {
            found.push(producer);
        }
    }
    found.into_iter()
}

fn dots(svg: &mut Svg, graph: &GraphData, plan: &Plan, steps: &[NumberedStep<'_>], layout: &Layout) {
    let (seconds, share) = loop_of(steps.len());
    let radius = layout.pitch * 0.36;
    let shades = shades(plan, steps);
    let mut is_output = vec![false; graph.arena.len()];
    graph.outputs.iter().for_each(|output| is_output[graph.arena.producer(output.value).index()] = true);
    for (column, (number, step)) in steps.iter().enumerate() {
        svg.raw(&format!(
            "<g fill=\"{}\">{}",
            shades[column],
            appears(column as f64 / steps.len() as f64 * share, seconds)
        ));
        for &node in plan.lanes(step).iter().filter(|node| node.index() < layout.dots.len()) {
            let Some(Dot { x, y, .. }) = layout.dots[node.index()] else { continue };
            let ring = if is_output[node.index()] {
                format!(" stroke=\"{INK}\" stroke-width=\"1.4\"")
            } else {
                String::new()
            };
            let name = graph.module.callee_name(graph.signature(node).callee);
            let values: Vec<String> =
                graph.arena.results(node).map(|value| ValueId::new(value).to_string()).collect();
            let tip = escaped(&format!("{} = {name}, step {number}", values.join(", ")));
            svg.raw(&format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"{ring}><title>{tip}</title></circle>"
            ));
        }
        svg.raw("</g>");
    }
}

/// Draws the kernels with their colours. Returns the lower edge.
fn legend(svg: &mut Svg, plan: &Plan, width: f64, top: f64) -> f64 {
    let (mut x, mut y) = (24.0, top);
    let mut entry = |svg: &mut Svg, text: &str, paint: &dyn Fn(&mut Svg, f64, f64)| {
        let needed = 30.0 + text.chars().count() as f64 * 7.2 + 18.0;
        if x + needed > width - 16.0 && x > 24.0 {
            (x, y) = (24.0, y + 22.0);
        }
        paint(svg, x, y);
        svg.text([x + 32.0, y], 12.0, INK, Anchor::Start, text);
        x += needed;
        y
    };
    let mut last = top;
    let kinds = Kinds::of(plan);
    let computes = |kind: &usize| !kinds.kernel(plan, *kind).source;
    for kind in (0..kinds.names().len()).filter(computes) {
        let rows: u64 = kinds.steps(plan, kind).map(|(_, step)| u64::from(step.rows)).sum();
        let batches = plural(kinds.steps(plan, kind).count() as u64, "batch");
        let text = format!("{}: {} in {batches}", kinds.names()[kind], plural(rows, "row"));
        let base = colour(kind);
        last = entry(svg, &text, &|svg, x, y| {
            svg.rect([x, y - 10.0, 12.0, 12.0], &base, r#"rx="2""#);
            svg.rect([x + 13.0, y - 10.0, 12.0, 12.0], &lighter(&base, SECOND_SHADE), r#"rx="2""#);
        });
    }
    last = entry(svg, "second shade: the next batch of the same kernel", &|svg, x, y| {
        svg.rect([x, y - 10.0, 12.0, 12.0], SOFT, r#"rx="2""#);
        svg.rect([x + 13.0, y - 10.0, 12.0, 12.0], &lighter(SOFT, SECOND_SHADE), r#"rx="2""#);
    })
    .max(last);
    last = entry(svg, "output", &|svg, x, y| {
        svg.raw(&format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5.5\" fill=\"#ffffff\" stroke=\"{INK}\" stroke-width=\"1.4\"/>", x + 12.0, y - 4.0));
    }).max(last);
    last + 14.0
}
