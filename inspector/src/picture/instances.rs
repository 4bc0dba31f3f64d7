//! Picture of small instances: each is drawn by itself, colours are batches, and numbers are their steps in the plan.
//!
//! The nodes of an instance stand in rows by their height: a node stands above everything that it reads. Nodes of one
//! colour are computed together, whatever instance they belong to. The legend lists the batches in order.

use super::graph::operand_nodes;
use super::svg::{Anchor, INK, SOFT, Svg, WASH, colour, escaped, ink_on};
use crate::steps::{Kinds, computing};
use crate::text::{count, plural};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::plan::Plan;
use std::collections::HashMap;

/// Maximum number of drawn nodes. Further instances are counted only.
const MAX_NODES: usize = 400;
/// Distance between neighbouring nodes of a row, and between rows.
const PITCH: [f64; 2] = [38.0, 52.0];
const RADIUS: f64 = 13.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 78.0;
/// Width at which instances wrap into another row.
const MAX_WIDTH: f64 = 900.0;
const MIN_WIDTH: f64 = 520.0;

/// A node in the picture of its instance.
struct Dot {
    node: NodeId,
    /// The batch that computes it, from 0.
    batch: usize,
    x: f64,
    height: usize,
}

/// An instance with the size of its picture.
struct Drawing {
    name: String,
    dots: Vec<Dot>,
    width: f64,
    rows: usize,
}

/// Draws the instances of a verified graph with the batches of its plan.
#[must_use]
pub fn instances(graph: &GraphData, plan: &Plan) -> String {
    let steps: Vec<usize> = computing(plan).map(|(number, _)| number).collect();
    let mut batch_of = HashMap::new();
    for (batch, &step) in steps.iter().enumerate() {
        batch_of.extend(plan.lanes(&plan.steps[step]).iter().map(|&node| (node, batch)));
    }
    let (drawings, hidden) = drawings(graph, &batch_of);
    let mut svg = Svg::default();
    let rows: u64 = steps.iter().map(|&step| u64::from(plan.steps[step].rows)).sum();
    let instances = plural(graph.instances() as u64, "instance");
    let batches = plural(steps.len() as u64, "batch");
    let title = format!("{instances}, {} in {batches}", plural(rows, "node"));
    svg.styled_text([MARGIN, 32.0], 18.0, INK, Anchor::Start, r#"font-weight="bold""#, &title);
    let more = if hidden == 0 { String::new() } else { format!("; {hidden} more not drawn") };
    let note =
        format!("nodes of one colour and number are one batch; the number is its step in the plan{more}");
    svg.text([MARGIN, 54.0], 12.0, SOFT, Anchor::Start, &note);
    let [width, bottom] = place(&mut svg, graph, plan, &drawings);
    let bottom = legend(&mut svg, plan, &steps, width, bottom + 30.0);
    svg.finish(width, bottom + 18.0, &title)
}

/// Lays out each instance. Returns the number of instances that are left out.
fn drawings(graph: &GraphData, batch_of: &HashMap<NodeId, usize>) -> (Vec<Drawing>, usize) {
    let mut nodes: Vec<(String, Vec<NodeId>)> = Vec::new();
    for (instance, range) in graph.numbered_stretches() {
        let name = instance.map_or_else(|| "common".to_owned(), |(number, _)| format!("instance {number}"));
        let computed = range.map(NodeId::new).filter(|node| batch_of.contains_key(node));
        // All stretches of an instance are one picture.
        match nodes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(computed),
            None => nodes.push((name, computed.collect())),
        }
    }
    nodes.retain(|(_, nodes)| !nodes.is_empty());
    let (mut drawn, all) = (0, nodes.len());
    let fitting = nodes.into_iter().take_while(|(_, nodes)| {
        drawn += nodes.len();
        drawn == nodes.len() || drawn <= MAX_NODES
    });
    let drawings: Vec<Drawing> =
        fitting.map(|(name, nodes)| lay_out(graph, batch_of, name, &nodes)).collect();
    let hidden = all - drawings.len();
    (drawings, hidden)
}

/// Places nodes above the middle of what they read, and moves nodes of a row apart.
fn lay_out(graph: &GraphData, batch_of: &HashMap<NodeId, usize>, name: String, nodes: &[NodeId]) -> Drawing {
    let mut known: HashMap<NodeId, (f64, usize)> = HashMap::new();
    let mut next: Vec<f64> = Vec::new();
    let mut dots: Vec<Dot> = Vec::with_capacity(nodes.len());
    for &node in nodes {
        let operands: Vec<(f64, usize)> =
            operand_nodes(graph, node).filter_map(|operand| known.get(&operand).copied()).collect();
        let height = operands.iter().map(|operand| operand.1 + 1).max().unwrap_or(0);
        if next.len() <= height {
            next.resize(height + 1, 0.0);
        }
        let middle = operands.iter().map(|operand| operand.0).sum::<f64>() / operands.len().max(1) as f64;
        let x = middle.max(next[height]);
        next[height] = x + PITCH[0];
        known.insert(node, (x, height));
        dots.push(Dot { node, batch: batch_of[&node], x, height });
    }
    let width = dots.iter().map(|dot| dot.x).fold(0.0, f64::max) + 2.0 * RADIUS;
    Drawing { name, dots, width, rows: next.len() }
}

/// Draws the instances side by side, in as many rows as needed. Returns the width and the lower edge.
fn place(svg: &mut Svg, graph: &GraphData, plan: &Plan, drawings: &[Drawing]) -> [f64; 2] {
    let gap = 40.0;
    let (mut x, mut y, mut right): (f64, f64, f64) = (MARGIN, TOP, MIN_WIDTH);
    let mut line: Vec<(&Drawing, f64)> = Vec::new();
    let mut flush = |line: &mut Vec<(&Drawing, f64)>, y: f64| {
        let rows = line.iter().map(|(drawing, _)| drawing.rows).max().unwrap_or(0);
        let height = rows as f64 * PITCH[1] + 16.0;
        for (drawing, x) in line.drain(..) {
            draw(svg, graph, plan, drawing, [x, y, height]);
        }
        height + 14.0
    };
    for drawing in drawings {
        if !line.is_empty() && x + drawing.width > MAX_WIDTH {
            y += flush(&mut line, y);
            x = MARGIN;
        }
        line.push((drawing, x + 12.0));
        x += drawing.width.max(70.0) + gap;
        right = right.max(x - gap + 12.0 + MARGIN);
    }
    y += flush(&mut line, y);
    [right, y]
}

/// Draws an instance with its lowest nodes at the bottom.
fn draw(svg: &mut Svg, graph: &GraphData, plan: &Plan, drawing: &Drawing, [left, top, height]: [f64; 3]) {
    let Drawing { name, dots, width, .. } = drawing;
    svg.rect([left - 12.0, top, width.max(70.0) + 24.0, height], WASH, r#"rx="6""#);
    svg.text([left - 2.0, top + 16.0], 11.0, SOFT, Anchor::Start, name);
    let at = |dot: &Dot| [left + RADIUS + dot.x, top + height - 26.0 - dot.height as f64 * PITCH[1]];
    let places: HashMap<NodeId, [f64; 2]> = dots.iter().map(|dot| (dot.node, at(dot))).collect();
    for dot in dots {
        let to = places[&dot.node];
        for from in operand_nodes(graph, dot.node).filter_map(|operand| places.get(&operand)) {
            svg.line([from[0], from[1], to[0], to[1]], "#8a96a3", r#"stroke-width="1.2""#);
        }
    }
    let kinds = Kinds::of(plan);
    let steps: Vec<usize> = computing(plan).map(|(number, _)| number).collect();
    for dot in dots {
        let [x, y] = at(dot);
        let values: Vec<String> =
            graph.arena.results(dot.node).map(|value| ValueId::new(value).to_string()).collect();
        let step = steps[dot.batch];
        let tip = escaped(&format!("{} = {}, step {step}", values.join(", "), kinds.step_name(step)));
        svg.raw(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\" fill=\"{}\"><title>{tip}</title></circle>",
            colour(dot.batch)
        ));
        number(svg, [x, y + 4.0], 11.0, step, dot.batch);
    }
}

/// Writes the number of a step into the circle of its batch.
fn number(svg: &mut Svg, at: [f64; 2], size: f64, step: usize, batch: usize) {
    let bold = r#"font-weight="bold""#;
    svg.styled_text(at, size, ink_on(batch), Anchor::Middle, bold, &step.to_string());
}

/// Lists the batches. Returns the lower edge.
fn legend(svg: &mut Svg, plan: &Plan, steps: &[usize], width: f64, top: f64) -> f64 {
    const MAX_ENTRIES: usize = 30;
    let kinds = Kinds::of(plan);
    let (mut x, mut y) = (MARGIN, top);
    for (batch, &step) in steps.iter().enumerate().take(MAX_ENTRIES) {
        let text = format!("{} x {}", kinds.step_name(step), count(plan.steps[step].rows));
        let needed = 30.0 + text.chars().count() as f64 * 7.4 + 18.0;
        if x + needed > width - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + 26.0);
        }
        let fill = colour(batch);
        svg.raw(&format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"10\" fill=\"{fill}\"/>", x + 10.0, y - 4.0));
        number(svg, [x + 10.0, y], 10.0, step, batch);
        svg.text([x + 26.0, y], 12.0, INK, Anchor::Start, &text);
        x += needed;
    }
    if steps.len() > MAX_ENTRIES {
        y += 26.0;
        let more = plural((steps.len() - MAX_ENTRIES) as u64, "further batch");
        svg.text([MARGIN, y], 12.0, SOFT, Anchor::Start, &more);
    }
    y
}
