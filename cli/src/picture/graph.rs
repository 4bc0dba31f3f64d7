//! A graph laid out by its plan: instances are bands, steps are columns, nodes are dots.
//!
//! All dots of a column are one batch. Colours are kernels, in two shades that take turns, so that
//! neighbouring batches of one kernel keep apart; the histogram above says how large each is. When
//! it executes, batches appear in their order.

use super::memory::pitch_of;
use super::svg::{Anchor, HAIR, INK, SOFT, Svg, WASH, appears, colour, escaped, flashes, lighter, loop_of};
use crate::steps::{Kinds, computing};
use crate::text::{count, plural};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::Plan;
use std::collections::BTreeSet;

/// Instances and edges that are drawn at most.
const BANDS: usize = 16;
const EDGES: usize = 4000;
const LEFT: f64 = 96.0;
const HISTOGRAM: f64 = 64.0;
const TOP: f64 = 84.0;
/// How much lighter every second batch of a kernel is.
const LIGHT: f64 = 0.38;
/// Beyond this length an edge is drawn fainter.
const FAR: f64 = 240.0;
/// The least width of the drawing, for the title and legend.
const NARROWEST: f64 = 560.0;

/// Where everything goes.
struct Layout {
    /// Left edge and width of each step's column.
    columns: Vec<(f64, f64)>,
    /// Dots side by side in each column.
    across: Vec<usize>,
    /// Top edge, height and name of each band.
    bands: Vec<(f64, f64, String)>,
    /// The centre of each drawn node.
    dots: Vec<Option<(f64, f64)>>,
    /// From dot to dot.
    pitch: f64,
    hidden: usize,
}

/// The picture of a verified graph and its plan, with the name of the policy that made it.
#[must_use]
pub fn graph(graph: &GraphData, plan: &Plan, policy: &str) -> String {
    let steps: Vec<(usize, &autobatch_ir::plan::Step)> = computing(plan).collect();
    let layout = Layout::new(graph, plan);
    let width = layout.columns.last().map_or(0.0, |(x, width)| x + width).max(NARROWEST) + 28.0;
    let body = TOP + HISTOGRAM + 18.0;
    let bottom = layout.bands.last().map_or(body, |(y, height, _)| y + height);
    let mut svg = Svg::default();
    let rows: u64 = steps.iter().map(|(_, step)| u64::from(step.rows)).sum();
    let title =
        format!("{}: {} in {} batches", graph.module.name, plural(rows, "node"), count(steps.len() as u64));
    svg.styled_text([24.0, 32.0], 18.0, INK, Anchor::Start, r#"font-weight="bold""#, &title);
    let certificate = &plan.certificate;
    let hidden = match layout.hidden {
        0 => String::new(),
        hidden => format!("; {hidden} more not drawn"),
    };
    let note = format!(
        "a column is a batch; policy {policy}, bound {}, gap {:.0} %; {}{hidden}",
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
                if let Some(place) = column_of.get_mut(node.index()) {
                    *place = Some(column);
                }
            }
        }
        // Dots by band and column.
        let mut cells: Vec<(String, Vec<Vec<NodeId>>)> = Vec::new();
        let mut hidden = BTreeSet::new();
        for (instance, range) in graph.numbered_stretches() {
            if range.clone().all(|node| column_of[node].is_none()) {
                continue;
            }
            let name = match instance {
                Some((number, _)) => format!("instance {number}"),
                None => "common".to_owned(),
            };
            // An instance that was interrupted goes on in its band.
            let known = cells.iter().position(|(known, _)| *known == name);
            if known.is_none() && cells.len() == BANDS {
                hidden.insert(instance);
                continue;
            }
            let known = known.unwrap_or_else(|| {
                cells.push((name, vec![Vec::new(); steps.len()]));
                cells.len() - 1
            });
            let band = &mut cells[known].1;
            for node in range {
                if let Some(column) = column_of[node] {
                    band[column].push(NodeId::new(node));
                }
            }
        }
        let drawn: usize = cells.iter().flat_map(|(_, band)| band).map(Vec::len).sum();
        let pitch = if drawn <= 120 {
            22.0
        } else if drawn <= 600 {
            13.0
        } else {
            10.0
        };
        let mut layout = Self {
            columns: Vec::new(),
            across: Vec::new(),
            bands: Vec::new(),
            dots: vec![None; graph.arena.len()],
            pitch,
            hidden: hidden.len(),
        };
        layout.place(&cells, steps.len());
        layout
    }

    fn place(&mut self, cells: &[(String, Vec<Vec<NodeId>>)], steps: usize) {
        let pitch = self.pitch;
        let mut x = LEFT;
        for column in 0..steps {
            let most = cells.iter().map(|(_, band)| band[column].len()).max().unwrap_or(0);
            let across = (1..).find(|side| side * side >= most).unwrap_or(1).max(1);
            let width = across as f64 * pitch + pitch * 0.8;
            self.columns.push((x, width));
            self.across.push(across);
            x += width;
        }
        let mut y = TOP + HISTOGRAM + 18.0;
        for (name, band) in cells {
            let down = band
                .iter()
                .zip(&self.across)
                .map(|(cell, &across)| cell.len().div_ceil(across))
                .max()
                .unwrap_or(1);
            let height = down as f64 * pitch + pitch * 0.9;
            for (column, cell) in band.iter().enumerate() {
                let across = self.across[column];
                let lines = cell.len().div_ceil(across);
                for (place, node) in cell.iter().enumerate() {
                    let in_line = across.min(cell.len() - place / across * across);
                    let (left, width) = self.columns[column];
                    let dx = (place % across) as f64 - (in_line as f64 - 1.0) / 2.0;
                    let dy = (place / across) as f64 - (lines as f64 - 1.0) / 2.0;
                    self.dots[node.index()] =
                        Some((left + width / 2.0 + dx * pitch, y + height / 2.0 + dy * pitch));
                }
            }
            self.bands.push((y, height, name.clone()));
            y += height;
        }
    }
}

fn bands(svg: &mut Svg, layout: &Layout, width: f64) {
    for (number, (y, height, name)) in layout.bands.iter().enumerate() {
        if number % 2 == 0 {
            svg.rect([16.0, *y, width - 32.0, *height], WASH, r#"rx="4""#);
        }
        svg.text([24.0, y + height / 2.0 + 4.0], 11.0, SOFT, Anchor::Start, name);
    }
}

/// The shade of a step's colour: steps of one kernel take turns.
fn shades(plan: &Plan, steps: &[(usize, &autobatch_ir::plan::Step)]) -> Vec<String> {
    let kinds = Kinds::of(plan);
    let mut seen = vec![0usize; kinds.names().len()];
    let shade = |(number, _): &(usize, &autobatch_ir::plan::Step)| {
        let kind = kinds.of_step(*number);
        seen[kind] += 1;
        lighter(&colour(kind), if seen[kind] % 2 == 1 { 0.0 } else { LIGHT })
    };
    steps.iter().map(shade).collect()
}

fn columns(
    svg: &mut Svg,
    plan: &Plan,
    steps: &[(usize, &autobatch_ir::plan::Step)],
    layout: &Layout,
    bottom: f64,
) {
    let most = steps.iter().map(|(_, step)| step.rows).max().unwrap_or(1).max(1);
    let (base, kinds, shades) = (TOP + HISTOGRAM, Kinds::of(plan), shades(plan, steps));
    let (seconds, share) = loop_of(steps.len());
    svg.text([24.0, base - 4.0], 11.0, SOFT, Anchor::Start, "batch size");
    let narrowest = layout.columns.iter().map(|(_, width)| *width).fold(f64::INFINITY, f64::min);
    let pitch = pitch_of(26.0 / narrowest.max(1.0));
    let right = layout.columns.last().map_or(LEFT, |(x, width)| x + width);
    svg.line([LEFT, base, right, base], HAIR, r#"stroke-width="1""#);
    for (column, ((number, step), &(x, width))) in steps.iter().zip(&layout.columns).enumerate() {
        let height = (f64::from(step.rows) / f64::from(most) * (HISTOGRAM - 14.0)).max(1.5);
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
            svg.text([x + width / 2.0, bottom + 18.0], 11.0, SOFT, Anchor::Middle, &number.to_string());
        }
        if step.rows == most && steps[..column].iter().all(|(_, earlier)| earlier.rows < most) {
            svg.text([x + width / 2.0, base - height - 3.0], 10.0, INK, Anchor::Middle, &count(step.rows));
        }
    }
    svg.text([24.0, bottom + 18.0], 11.0, SOFT, Anchor::Start, "step");
}

fn edges(
    svg: &mut Svg,
    graph: &GraphData,
    plan: &Plan,
    steps: &[(usize, &autobatch_ir::plan::Step)],
    layout: &Layout,
) {
    let (seconds, share) = loop_of(steps.len());
    let mut drawn = 0;
    for (column, (_, step)) in steps.iter().enumerate() {
        let mut paths = [String::new(), String::new()];
        for &node in plan.lanes(step).iter().filter(|node| node.index() < layout.dots.len()) {
            let Some(to) = layout.dots[node.index()] else { continue };
            for from in read_dots(graph, node).filter_map(|made| layout.dots[made.index()]) {
                drawn += 1;
                let reach = (to.0 - from.0) * 0.45;
                // An edge along a line of dots bows over those that it passes.
                let passes = (to.1 - from.1).abs() < 1.0 && to.0 - from.0 > 2.4 * layout.pitch;
                let bow = if passes { 0.9 * layout.pitch } else { 0.0 };
                paths[usize::from(to.0 - from.0 > FAR)] += &format!(
                    "M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
                    from.0,
                    from.1,
                    from.0 + reach,
                    from.1 - bow,
                    to.0 - reach,
                    to.1 - bow,
                    to.0,
                    to.1
                );
            }
        }
        if drawn > EDGES {
            break;
        }
        for (path, opacity) in paths.iter().zip([0.65, 0.22]).filter(|(path, _)| !path.is_empty()) {
            let appears = appears(column as f64 / steps.len() as f64 * share, seconds);
            svg.raw(&format!(
                "<path d=\"{path}\" fill=\"none\" stroke=\"#8a96a3\" stroke-width=\"0.9\" stroke-opacity=\"{opacity}\">{appears}</path>"
            ));
        }
    }
}

/// The makers of what a node reads, each once, elements of lists included.
fn read_dots(graph: &GraphData, node: NodeId) -> impl Iterator<Item = NodeId> {
    let mut made: Vec<NodeId> = Vec::new();
    let mut todo: Vec<ValueId> =
        graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()).collect();
    while let Some(value) = todo.pop() {
        let producer = graph.arena.producer(value);
        if graph.signature(producer).is_list() {
            todo.extend(graph.arena.operands(producer).iter().filter_map(|operand| operand.as_value()));
        } else if !made.contains(&producer) {
            made.push(producer);
        }
    }
    made.into_iter()
}

fn dots(
    svg: &mut Svg,
    graph: &GraphData,
    plan: &Plan,
    steps: &[(usize, &autobatch_ir::plan::Step)],
    layout: &Layout,
) {
    let (seconds, share) = loop_of(steps.len());
    let radius = layout.pitch * 0.36;
    let shades = shades(plan, steps);
    let mut wanted = vec![false; graph.arena.len()];
    graph.outputs.iter().for_each(|output| wanted[graph.arena.producer(output.value).index()] = true);
    for (column, (number, step)) in steps.iter().enumerate() {
        svg.raw(&format!(
            "<g fill=\"{}\">{}",
            shades[column],
            appears(column as f64 / steps.len() as f64 * share, seconds)
        ));
        for &node in plan.lanes(step).iter().filter(|node| node.index() < layout.dots.len()) {
            let Some((x, y)) = layout.dots[node.index()] else { continue };
            let ring = if wanted[node.index()] {
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

/// Kernels with their colours, as many side by side as fit; gives the lower edge.
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
        let steps = plural(kinds.steps(plan, kind).count() as u64, "step");
        let text = format!("{}: {} in {steps}", kinds.names()[kind], plural(rows, "row"));
        let base = colour(kind);
        last = entry(svg, &text, &|svg, x, y| {
            svg.rect([x, y - 10.0, 12.0, 12.0], &base, r#"rx="2""#);
            svg.rect([x + 13.0, y - 10.0, 12.0, 12.0], &lighter(&base, LIGHT), r#"rx="2""#);
        });
    }
    last = entry(svg, "wanted by an output", &|svg, x, y| {
        svg.raw(&format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5.5\" fill=\"#ffffff\" stroke=\"{INK}\" stroke-width=\"1.4\"/>", x + 12.0, y - 4.0));
    }).max(last);
    last + 14.0
}
