//! Picture of a graph with its batches: instances are bands, batches are columns, nodes are dots.
//!
//! Columns that exceed the width of a page continue in further lines. Of many instances, the largest are drawn.
//!
//! Each kernel has a colour in two alternating shades, so neighbouring batches of one kernel are
//! distinguishable. A histogram above the columns shows the batch sizes; the heights grow with their square
//! roots, so small batches stay visible beside large ones. Edges that skip columns run along the upper edge
//! of their band, so that chains stay readable. The picture is animated: the batches appear in the order of
//! execution.

mod layout;

use super::memory::pitch_of;
use super::svg::{Anchor, HAIR, INK, SOFT, Svg, WASH, appears, colour, escaped, flashes, lighter, loop_of};
use crate::steps::{Kinds, computing};
use crate::text::{count, plural};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::{Plan, Step};
use layout::{Band, Column, Dot, HISTOGRAM, LEFT, Layout, Line};

/// Number of edges after which the edges of further batches are left out.
const MAX_EDGES: usize = 4000;
/// Share of white in the second shade of a kernel.
const SECOND_SHADE: f64 = 0.38;
/// Edges over at least this many columns run along the edge of their band.
const SKIPPED_COLUMNS: usize = 3;
/// Estimated width of a digit of a bar's value.
const DIGIT: f64 = 6.0;
/// Minimum width of the drawing, for the title and the legend.
const MIN_WIDTH: f64 = 560.0;

/// A step that computes nodes, with its number in the plan.
type NumberedStep<'p> = (usize, &'p Step);

/// Draws a verified graph with its plan. `policy` is the name of the policy of the plan.
#[must_use]
pub fn graph(graph: &GraphData, plan: &Plan, policy: &str) -> String {
    let steps: Vec<NumberedStep<'_>> = computing(plan).collect();
    let layout = Layout::new(graph, plan);
    let width = layout.right().max(MIN_WIDTH) + 28.0;
    let mut svg = Svg::default();
    let rows: u64 = steps.iter().map(|(_, step)| u64::from(step.rows)).sum();
    let batches = plural(steps.len() as u64, "batch");
    let title = format!("{}: {} in {batches}", graph.module.name, plural(rows, "node"));
    svg.styled_text([24.0, 32.0], 18.0, INK, Anchor::Start, r#"font-weight="bold""#, &title);
    let kinds = Kinds::of(plan);
    let shades = shades(&kinds, &steps);
    let most = steps.iter().map(|(_, step)| step.rows).max().unwrap_or(1).max(1);
    let drawing = Drawing { graph, plan, steps: &steps, layout: &layout, kinds: &kinds, shades, most };
    for line in &layout.lines {
        bands(&mut svg, line, width);
        drawing.columns(&mut svg, line);
    }
    let last_edges = drawing.edges(&mut svg);
    drawing.dots(&mut svg);
    let hidden = match layout.hidden {
        0 => String::new(),
        _ => format!(", the {} largest drawn", layout.drawn),
    };
    let edges = last_edges.map_or_else(String::new, |step| format!("; edges up to step {step}"));
    let certificate = &plan.certificate;
    let note = format!(
        "columns are batches; policy {policy}, bound {}, gap {:.0} %; {}{hidden}{edges}",
        certificate.bound,
        certificate.gap() * 100.0,
        plural(graph.instances() as u64, "instance")
    );
    svg.text([24.0, 54.0], 12.0, SOFT, Anchor::Start, &note);
    let bottom = layout.lines.last().map_or(0.0, |line| line.bottom);
    let end = legend(&mut svg, plan, &kinds, width, bottom + 62.0);
    svg.finish(width, end + 10.0, &title)
}

/// The inputs of every part of the picture.
struct Drawing<'d> {
    graph: &'d GraphData,
    plan: &'d Plan,
    steps: &'d [NumberedStep<'d>],
    layout: &'d Layout,
    kinds: &'d Kinds,
    /// The colour of each column.
    shades: Vec<String>,
    /// The size of the largest batch.
    most: u32,
}

fn bands(svg: &mut Svg, line: &Line, width: f64) {
    for (number, Band { y, height, name }) in line.bands.iter().enumerate() {
        if number % 2 == 0 {
            svg.rect([16.0, *y, width - 32.0, *height], WASH, r#"rx="4""#);
        }
        svg.text([24.0, y + height / 2.0 + 4.0], 11.0, SOFT, Anchor::Start, name);
    }
}

/// The colours of steps: the steps of one kernel alternate between two shades.
fn shades(kinds: &Kinds, steps: &[NumberedStep<'_>]) -> Vec<String> {
    let mut seen = vec![0usize; kinds.names().len()];
    let shade = |(number, _): &NumberedStep<'_>| {
        let kind = kinds.of_step(*number);
        seen[kind] += 1;
        lighter(&colour(kind), if seen[kind] % 2 == 1 { 0.0 } else { SECOND_SHADE })
    };
    steps.iter().map(shade).collect()
}

impl Drawing<'_> {
    /// The share of the animation after which a column is complete.
    fn time(&self, column: usize) -> f64 {
        column as f64 / self.steps.len() as f64 * loop_of(self.steps.len()).1
    }

    /// An animation that shows a column from its batch on.
    fn appearance(&self, column: usize) -> String {
        appears(self.time(column), loop_of(self.steps.len()).0)
    }

    /// The drawn nodes of a column.
    fn drawn(&self, column: usize) -> impl Iterator<Item = (NodeId, Dot)> + '_ {
        let nodes = self.plan.lanes(self.steps[column].1).iter();
        nodes.filter_map(|&node| Some((node, self.dot(node)?)))
    }

    fn dot(&self, node: NodeId) -> Option<Dot> {
        self.layout.dots.get(node.index()).copied().flatten()
    }

    /// Draws the histogram of a line, and the numbers of its steps below the bands.
    fn columns(&self, svg: &mut Svg, line: &Line) {
        let base = line.top + HISTOGRAM;
        svg.text([24.0, base - 16.0], 11.0, SOFT, Anchor::Start, "batch size");
        svg.text([24.0, base - 3.0], 9.0, SOFT, Anchor::Start, "(square root)");
        svg.text([24.0, line.bottom + 18.0], 11.0, SOFT, Anchor::Start, "step");
        svg.line([LEFT, base, line.right, base], HAIR, r#"stroke-width="1""#);
        let placed = || self.layout.columns[line.columns.clone()].iter();
        let narrowest = placed().map(|column| column.width).fold(f64::INFINITY, f64::min);
        let numbered = pitch_of(26.0 / narrowest.max(1.0));
        let mut labelled = 0.0;
        for (column, placed) in line.columns.clone().zip(placed()) {
            let (number, step) = self.steps[column];
            let &Column { x, width, .. } = placed;
            let height = ((f64::from(step.rows) / f64::from(self.most)).sqrt() * (HISTOGRAM - 14.0)).max(1.5);
            let tip = escaped(&format!("step {number}: {} x {}", self.kinds.step_name(number), step.rows));
            let flash = flashes(self.time(column), self.time(column + 1), loop_of(self.steps.len()).0);
            svg.raw(&format!(
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{INK}\" fill-opacity=\"0.08\" opacity=\"0\">{flash}</rect>",
                line.top, line.bottom - line.top,
            ));
            svg.raw(&format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{}\"><title>{tip}</title></rect>",
                x + 1.0, base - height, (width - 2.0).max(1.0), self.shades[column],
            ));
            if column % numbered == 0 {
                let at = [placed.middle(), line.bottom + 18.0];
                svg.text(at, 11.0, SOFT, Anchor::Middle, &number.to_string());
            }
            // A value is written where it differs from the one before and has space.
            let value = count(step.rows);
            let reach = value.chars().count() as f64 * DIGIT / 2.0;
            let repeats = column > line.columns.start && self.steps[column - 1].1.rows == step.rows;
            if !repeats && placed.middle() - reach > labelled {
                svg.text([placed.middle(), base - height - 3.0], 9.0, INK, Anchor::Middle, &value);
                labelled = placed.middle() + reach;
            }
        }
    }

    /// Draws the edges. Returns the last step with edges, if those of further steps are left out.
    fn edges(&self, svg: &mut Svg) -> Option<usize> {
        let mut drawn = 0;
        for column in 0..self.steps.len() {
            let (mut near, mut far) = (String::new(), String::new());
            for (node, to) in self.drawn(column) {
                for from in operand_nodes(self.graph, node).filter_map(|operand| self.dot(operand)) {
                    drawn += 1;
                    if from.line != to.line {
                        far.push_str(&self.over_lines(from, to));
                    } else if to.column.saturating_sub(from.column) < SKIPPED_COLUMNS {
                        near.push_str(&curved(from, to, self.layout.pitch));
                    } else {
                        far.push_str(&along_the_band(from, to, self.layout.pitch));
                    }
                }
            }
            let paths = [(far, "#ccd3da"), (near, "#98a3af")];
            for (path, colour) in paths.into_iter().filter(|(path, _)| !path.is_empty()) {
                let appears = self.appearance(column);
                svg.raw(&format!(
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"0.9\">{appears}</path>"
                ));
            }
            if drawn > MAX_EDGES && column + 1 < self.steps.len() {
                return Some(self.steps[column].0);
            }
        }
        None
    }

    /// The path of an edge that leaves its line at the right and enters another at the left.
    fn over_lines(&self, from: Dot, to: Dot) -> String {
        let (bend, right) = (0.6 * self.layout.pitch, self.layout.lines[from.line].right);
        format!(
            "M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}H{right:.1}M{LEFT:.1} {:.1}H{:.1}Q{:.1} {:.1} {:.1} {:.1}",
            from.x,
            from.y,
            from.x,
            from.rail,
            (from.x + bend).min(right),
            from.rail,
            to.rail,
            (to.x - bend).max(LEFT),
            to.x,
            to.rail,
            to.x,
            to.y
        )
    }

    fn dots(&self, svg: &mut Svg) {
        let graph = self.graph;
        let radius = self.layout.pitch * 0.36;
        let mut is_output = vec![false; graph.arena.len()];
        graph.outputs.iter().for_each(|output| is_output[graph.arena.producer(output.value).index()] = true);
        for (column, (number, _)) in self.steps.iter().enumerate() {
            svg.raw(&format!("<g fill=\"{}\">{}", self.shades[column], self.appearance(column)));
            for (node, Dot { x, y, .. }) in self.drawn(column) {
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

/// Draws the kernels with their colours. Returns the lower edge.
fn legend(svg: &mut Svg, plan: &Plan, kinds: &Kinds, width: f64, top: f64) -> f64 {
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
