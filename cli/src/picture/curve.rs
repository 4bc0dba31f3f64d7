//! Pictures of learning curves: one panel for each quantity, over epochs.
//!
//! A quantity has a colour, a name and a unit throughout. Several lines of one quantity differ in their dashes. The
//! names stand beside the ends of the lines, in their order. A vertical line marks the best epoch, and each name
//! carries the value of its line there.

use autobatch_inspector::picture::axis::{Axis, round_step};
use autobatch_inspector::picture::svg::{Anchor, HAIR, INK, SOFT, Svg, WASH, colour, lighter};

/// A quantity with its lines, which share an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The name of the axis, with its unit.
    pub name: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The number of its colour. One quantity has one colour in all pictures.
    pub colour: usize,
    /// Whether the line is dashed, to distinguish it from another line of its colour.
    pub is_dashed: bool,
    /// Epochs and values, ascending by epoch.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 700.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 170.0;
const PANEL: f64 = 170.0;
const TOP: f64 = 78.0;
const GAP: f64 = 52.0;
/// Distance between the names of neighbouring lines.
const NAME_ROW: f64 = 30.0;

/// The horizontal axis, which all panels share.
struct Epochs {
    first: f64,
    last: f64,
    best: Option<f64>,
}

impl Epochs {
    fn x(&self, epoch: f64) -> f64 {
        let width = WIDTH - LEFT - RIGHT;
        if self.last > self.first {
            LEFT + width * (epoch - self.first) / (self.last - self.first)
        } else {
            LEFT + width / 2.0
        }
    }
}

/// Draws the quantities below each other, over the same epochs.
#[must_use]
pub fn curve(title: &str, quantities: &[Quantity], best: Option<f64>) -> String {
    let mut svg = Svg::default();
    let epochs = || {
        let lines = quantities.iter().flat_map(|quantity| &quantity.lines);
        lines.flat_map(|line| &line.points).map(|&(epoch, _)| epoch)
    };
    let first = epochs().fold(f64::INFINITY, f64::min);
    let axis = Epochs {
        first: if first.is_finite() { first } else { 1.0 },
        last: epochs().fold(1.0, f64::max),
        best,
    };
    svg.styled_text([LEFT, 26.0], 15.0, INK, Anchor::Start, r#"font-weight="bold""#, title);
    if let Some(best) = best {
        let note = format!("dashed line and values: epoch {best:.0}, the best on the development part");
        svg.text([LEFT, 44.0], 11.0, SOFT, Anchor::Start, &note);
    }
    for (number, quantity) in quantities.iter().enumerate() {
        panel(&mut svg, TOP + number as f64 * (PANEL + GAP), quantity, &axis);
    }
    let bottom = TOP + quantities.len() as f64 * (PANEL + GAP) - GAP;
    svg.text([(LEFT + WIDTH - RIGHT) / 2.0, bottom + 34.0], 11.0, SOFT, Anchor::Middle, "epoch");
    svg.finish(WIDTH, bottom + 46.0, title)
}

/// Draws one panel with its axes.
fn panel(svg: &mut Svg, top: f64, quantity: &Quantity, epochs: &Epochs) {
    let Quantity { name, lines } = quantity;
    let values = lines.iter().flat_map(|line| &line.points).map(|&(_, value)| value);
    let axis = Axis::of(values, 4);
    let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
    let y = |value: f64| bottom - PANEL * axis.share(value);
    svg.rect([LEFT, top, right - LEFT, PANEL], WASH, "");
    svg.text([LEFT, top - 7.0], 11.0, INK, Anchor::Start, name);
    for (value, label) in axis.ticks() {
        svg.line([LEFT, y(value), right, y(value)], HAIR, "");
        svg.text([LEFT - 6.0, y(value) + 4.0], 10.0, SOFT, Anchor::End, &label);
    }
    let every = round_step((epochs.last - epochs.first) / 10.0).max(1.0);
    let mut epoch = epochs.first;
    while epoch <= epochs.last {
        svg.line([epochs.x(epoch), bottom, epochs.x(epoch), bottom + 4.0], SOFT, "");
        svg.text([epochs.x(epoch), bottom + 16.0], 10.0, SOFT, Anchor::Middle, &format!("{epoch:.0}"));
        // After the first epoch, ticks are multiples of the interval.
        epoch = ((epoch / every).floor() + 1.0) * every;
    }
    if let Some(best) = epochs.best {
        let x = epochs.x(best);
        svg.line([x, top, x, bottom], INK, r#"stroke-width="1" stroke-dasharray="3 3" stroke-opacity="0.6""#);
    }
    let mut ends: Vec<(f64, &Line)> = Vec::new();
    for line in lines {
        let finite = || line.points.iter().filter(|(_, value)| value.is_finite());
        draw(svg, line, finite().map(|&(epoch, value)| [epochs.x(epoch), y(value)]));
        if let Some(&(_, last)) = finite().next_back() {
            ends.push((y(last), line));
        }
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    names(svg, [top, bottom], &ends, epochs);
}

/// Draws a line and a dot at its end, which also makes a line of one epoch visible.
fn draw(svg: &mut Svg, line: &Line, points: impl Iterator<Item = [f64; 2]>) {
    let points: Vec<[f64; 2]> = points.collect();
    let stroke = stroke(line);
    let path: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let dashes = if line.is_dashed { r#" stroke-dasharray="5 4""# } else { "" };
    svg.raw(&format!(
        r#"<polyline points="{}" fill="none" stroke="{stroke}" stroke-width="2"{dashes}/>"#,
        path.join(" ")
    ));
    if let Some([x, y]) = points.last() {
        svg.raw(&format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{stroke}"/>"#));
    }
}

fn stroke(line: &Line) -> String {
    lighter(&colour(line.colour), if line.is_dashed { 0.25 } else { 0.0 })
}

/// Writes the names beside the ends of their lines, at least a row apart and inside the panel.
fn names(svg: &mut Svg, [top, bottom]: [f64; 2], ends: &[(f64, &Line)], epochs: &Epochs) {
    let mut next = top + 10.0;
    for (number, (end, line)) in ends.iter().enumerate() {
        let below = (ends.len() - number) as f64 * NAME_ROW;
        let y = end.min(bottom - below + 16.0).max(next);
        next = y + NAME_ROW;
        let x = WIDTH - RIGHT + 14.0;
        svg.text([x, y], 11.0, &stroke(line), Anchor::Start, &line.name);
        let at = |epoch: f64| line.points.iter().find(|point| point.0 == epoch);
        let shown = epochs.best.and_then(at).or(line.points.last());
        if let Some((epoch, value)) = shown {
            let text = format!("{} at epoch {epoch:.0}", short(*value));
            svg.text([x, y + 13.0], 10.0, SOFT, Anchor::Start, &text);
        }
    }
}

/// A value with about four significant digits.
fn short(value: f64) -> String {
    if value.abs() >= 10.0 { format!("{value:.1}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, colour: usize, points: &[(f64, f64)]) -> Line {
        Line { name: name.to_owned(), colour, is_dashed: false, points: points.to_vec() }
    }

    fn quantity(name: &str, lines: &[Line]) -> Quantity {
        Quantity { name: name.to_owned(), lines: lines.to_vec() }
    }

    fn position(picture: &str, text: &str) -> f64 {
        let line =
            picture.lines().find(|line| line.contains(&format!(">{text}<"))).expect("the text is there");
        let (_, rest) = line.split_once(" y=\"").expect("a text has a position");
        rest.split('"').next().and_then(|y| y.parse().ok()).expect("a number")
    }

    #[test]
    fn names_are_in_the_order_of_their_lines_and_quote_the_best_epoch() {
        let scores = [
            line("accuracy", 0, &[(1.0, 51.0), (2.0, 83.0), (3.0, 82.0)]),
            line("top 3", 1, &[(1.0, 78.0), (2.0, 90.0), (3.0, 91.0)]),
        ];
        let losses = [line("loss", 2, &[(1.0, 2.1), (2.0, 0.7), (3.0, 0.6)])];
        let all = [quantity("score, %", &scores), quantity("loss", &losses)];
        let picture = curve("a <model>", &all, Some(2.0));
        assert_eq!(picture.matches("<polyline").count(), 3);
        assert!(position(&picture, "top 3") < position(&picture, "accuracy"));
        for text in [">83.0 at epoch 2<", ">0.700 at epoch 2<", ">score, %<", "a &lt;model&gt;", ">100<"] {
            assert!(picture.contains(text), "{text} is missing in\n{picture}");
        }
        let start = picture.split("points=\"").nth(1).and_then(|rest| rest.split(',').next());
        assert_eq!(start, Some("64.0"), "the axis begins at the first epoch");
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }

    #[test]
    fn a_single_epoch_is_visible() {
        let picture = curve("t", &[quantity("loss", &[line("loss", 0, &[(1.0, 2.7)])])], None);
        assert_eq!(picture.matches("<circle").count(), 1);
    }

    #[test]
    fn empty_lines_and_non_finite_values_give_a_valid_picture() {
        for points in [&[][..], &[(1.0, 5.0)], &[(1.0, f64::NAN), (2.0, f64::INFINITY)]] {
            let picture = curve("t", &[quantity("m", &[line("m", 0, points)])], Some(1.0));
            assert!(
                picture.starts_with("<svg") && !picture.contains("=\"NaN") && !picture.contains("=\"inf")
            );
        }
    }
}
