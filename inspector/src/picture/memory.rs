//! Picture of the memory of a plan: the live rows of each slab at each step.
//!
//! Stacked bars show the live bytes, one colour per slab. The dashed line is the total size of the
//! slabs. The space between bars and line is free at that step.

use super::svg::{Anchor, HAIR, INK, SOFT, Svg, colour, flashes, loop_of};
use crate::lifetimes::Lifetimes;
use crate::steps::Kinds;
use crate::text::{byte_size, plural};
use autobatch_ir::plan::Plan;

const LEFT: f64 = 92.0;
const TOP: f64 = 84.0;
const PLOT_HEIGHT: f64 = 300.0;
const PLOT_WIDTH: f64 = 860.0;
const LEGEND_ROW: f64 = 20.0;
/// Maximum number of fields of a slab in the legend.
const MAX_FIELDS: usize = 4;

/// Draws the memory of a verified plan.
#[must_use]
pub fn memory(plan: &Plan) -> String {
    let lifetimes = Lifetimes::of(plan);
    let allocated: u64 = lifetimes.size.iter().sum();
    let steps = plan.steps.len().max(1);
    let unit = PLOT_WIDTH / steps as f64;
    let scale = PLOT_HEIGHT / (allocated.max(1) as f64 * 1.06);
    let base = TOP + PLOT_HEIGHT;
    let mut svg = Svg::default();
    let title = format!("Memory of a plan of {} by step", plan.module);
    svg.styled_text([24.0, 32.0], 18.0, INK, Anchor::Start, r#"font-weight="bold""#, &title);
    let used = 100.0 * lifetimes.peak() as f64 / allocated.max(1) as f64;
    let note = format!(
        "{}; slabs of {}, at most {} live at once ({used:.0} %)",
        plural(plan.steps.len() as u64, "step"),
        byte_size(allocated),
        byte_size(lifetimes.peak()),
    );
    svg.text([24.0, 54.0], 12.0, SOFT, Anchor::Start, &note);
    grid(&mut svg, allocated, scale, base);
    bars(&mut svg, plan, &lifetimes, unit, scale, base);
    let top = base - allocated as f64 * scale;
    svg.line([LEFT, top, LEFT + PLOT_WIDTH, top], INK, r#"stroke-width="1.4" stroke-dasharray="6 4""#);
    svg.text(
        [LEFT + PLOT_WIDTH, top - 6.0],
        11.0,
        INK,
        Anchor::End,
        &format!("size of the slabs: {}", byte_size(allocated)),
    );
    axis(&mut svg, steps, unit, base);
    let bottom = legend(&mut svg, plan, &lifetimes, base + 62.0);
    svg.finish(LEFT + PLOT_WIDTH + 32.0, bottom + 16.0, &title)
}

fn grid(svg: &mut Svg, allocated: u64, scale: f64, base: f64) {
    let mut pitch = 1u64;
    while allocated / pitch > 5 {
        pitch *= 2;
    }
    for tick in 0..=allocated / pitch {
        let bytes = tick * pitch;
        let y = base - bytes as f64 * scale;
        svg.line([LEFT, y, LEFT + PLOT_WIDTH, y], HAIR, r#"stroke-width="1""#);
        svg.text([LEFT - 8.0, y + 4.0], 11.0, SOFT, Anchor::End, &byte_size(bytes));
    }
}

fn bars(svg: &mut Svg, plan: &Plan, lifetimes: &Lifetimes, unit: f64, scale: f64, base: f64) {
    let kinds = Kinds::of(plan);
    let (seconds, share) = loop_of(plan.steps.len());
    let gap = if unit > 6.0 { 1.0 } else { 0.0 };
    for (number, slabs) in lifetimes.live.iter().enumerate() {
        let x = LEFT + number as f64 * unit;
        let mut y = base;
        for (slab, &bytes) in slabs.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            let height = bytes as f64 * scale;
            y -= height;
            svg.rect([x, y, unit - gap, height], &colour(slab), "");
        }
        let step = &plan.steps[number];
        let live: u64 = slabs.iter().sum();
        let tip =
            format!("step {number}: {} x {}, {} live", kinds.step_name(number), step.rows, byte_size(live));
        let at = |number: usize| number as f64 / plan.steps.len() as f64 * share;
        svg.raw(&format!(
            "<rect x=\"{x:.1}\" y=\"{TOP:.1}\" width=\"{unit:.1}\" height=\"{PLOT_HEIGHT:.1}\" fill=\"{INK}\" fill-opacity=\"0.12\" opacity=\"0\"><title>{}</title>{}</rect>",
            super::svg::escaped(&tip),
            flashes(at(number), at(number + 1), seconds),
        ));
    }
}

fn axis(svg: &mut Svg, steps: usize, unit: f64, base: f64) {
    svg.line([LEFT, base, LEFT + PLOT_WIDTH, base], INK, r#"stroke-width="1""#);
    let pitch = pitch_of(30.0 / unit);
    for step in (0..steps).step_by(pitch) {
        let x = LEFT + (step as f64 + 0.5) * unit;
        svg.text([x, base + 16.0], 11.0, SOFT, Anchor::Middle, &step.to_string());
    }
    svg.text([LEFT + PLOT_WIDTH / 2.0, base + 36.0], 12.0, SOFT, Anchor::Middle, "step");
}

/// The smallest of 1, 2, 5, 10, 20, .. that is at least `least`.
pub(super) fn pitch_of(least: f64) -> usize {
    let mut power = 1;
    loop {
        for digit in [1, 2, 5] {
            if (digit * power) as f64 >= least {
                return digit * power;
            }
        }
        power *= 10;
    }
}

/// Draws the legend of slabs, largest first. Returns the lower edge.
fn legend(svg: &mut Svg, plan: &Plan, lifetimes: &Lifetimes, top: f64) -> f64 {
    let mut y = top;
    let most = |group: usize| lifetimes.live.iter().map(|groups| groups[group]).max().unwrap_or(0);
    let mut entry = |group: usize, name: String| {
        svg.rect([LEFT, y - 10.0, 12.0, 12.0], &colour(group), r#"rx="2""#);
        let (size, most) = (byte_size(lifetimes.size[group]), byte_size(most(group)));
        let text = format!("{name}: {size}, at most {most} live");
        svg.text([LEFT + 20.0, y], 12.0, INK, Anchor::Start, &text);
        y += LEGEND_ROW;
    };
    for (group, &slab) in lifetimes.largest.iter().enumerate() {
        let held = &plan.slabs[slab.index()];
        let fields = plan.fields[held.fields.start as usize..held.fields.end as usize].iter();
        let mut fields: Vec<String> = fields.map(|field| format!("{}: {}", field.name, field.ty)).collect();
        if fields.len() > MAX_FIELDS {
            fields.truncate(MAX_FIELDS);
            fields.push("..".to_owned());
        }
        entry(group, format!("{slab} {{{}}} x {}", fields.join(", "), plural(u64::from(held.rows), "row")));
    }
    let others = plan.slabs.len() - lifetimes.largest.len();
    if others > 0 {
        entry(lifetimes.largest.len(), plural(others as u64, "smaller slab"));
    }
    y
}
