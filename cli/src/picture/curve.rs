//! Pictures of learning curves: scores in the upper panel, losses in the lower panel, over epochs.

use super::svg::{Anchor, HAIR, INK, SOFT, Svg, colour};

/// A line with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Epochs and values, ascending by epoch.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 150.0;
const PANEL: f64 = 170.0;
const TOP: f64 = 44.0;
const GAP: f64 = 40.0;

/// Draws the scores above the losses, over the same epochs.
#[must_use]
pub fn curve(title: &str, scores: &[Line], losses: &[Line]) -> String {
    let mut svg = Svg::default();
    let all = scores.iter().chain(losses).flat_map(|line| &line.points);
    let last = all.map(|&(epoch, _)| epoch).fold(1.0, f64::max);
    svg.text([LEFT, 22.0], 14.0, INK, Anchor::Start, title);
    panel(&mut svg, TOP, scores, last, 0);
    panel(&mut svg, TOP + PANEL + GAP, losses, last, scores.len());
    let bottom = TOP + 2.0 * PANEL + GAP;
    svg.text([(LEFT + WIDTH - RIGHT) / 2.0, bottom + 34.0], 11.0, SOFT, Anchor::Middle, "epoch");
    svg.finish(WIDTH, bottom + 46.0, title)
}

/// Draws one panel with its axes. `first` is the number of its first colour.
fn panel(svg: &mut Svg, top: f64, lines: &[Line], last: f64, first: usize) {
    let values =
        || lines.iter().flat_map(|line| &line.points).map(|&(_, value)| value).filter(|v| v.is_finite());
    let (low, high) =
        scale(values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let width = WIDTH - LEFT - RIGHT;
    let x = |epoch: f64| LEFT + width * epoch / last;
    let y = |value: f64| top + PANEL * (1.0 - (value - low) / (high - low));
    for tick in 0..=4 {
        let value = low + (high - low) * f64::from(tick) / 4.0;
        svg.line([LEFT, y(value), LEFT + width, y(value)], HAIR, "");
        svg.text([LEFT - 6.0, y(value) + 4.0], 10.0, SOFT, Anchor::End, &tick_label(value, high - low));
    }
    let every = (last / 8.0).ceil().max(1.0);
    let mut epoch = 0.0;
    while epoch <= last {
        svg.text([x(epoch), top + PANEL + 14.0], 10.0, SOFT, Anchor::Middle, &format!("{epoch:.0}"));
        epoch += every;
    }
    for (number, line) in lines.iter().enumerate() {
        let colour = colour(first + number);
        let points: Vec<String> = line
            .points
            .iter()
            .filter(|(_, value)| value.is_finite())
            .map(|&(epoch, value)| format!("{:.1},{:.1}", x(epoch), y(value)))
            .collect();
        let points = points.join(" ");
        svg.raw(&format!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>"
        ));
        // A dot marks the last point; it also makes a line of one epoch visible.
        if let Some((x, y)) = points.rsplit(' ').next().and_then(|last| last.split_once(',')) {
            svg.raw(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"2.6\" fill=\"{colour}\"/>"));
        }
        let at = top + 12.0 + 30.0 * number as f64;
        svg.text([LEFT + width + 12.0, at], 11.0, &colour, Anchor::Start, &line.name);
        if let Some((_, value)) = line.points.last() {
            svg.text(
                [LEFT + width + 12.0, at + 13.0],
                10.0,
                SOFT,
                Anchor::Start,
                &format!("last {value:.4}"),
            );
        }
    }
}

/// The range of an axis, with a margin around the values.
fn scale(low: f64, high: f64) -> (f64, f64) {
    if !low.is_finite() || !high.is_finite() {
        return (0.0, 1.0);
    }
    let margin = ((high - low) * 0.05).max(high.abs() * 1e-3).max(1e-6);
    (low - margin, high + margin)
}

/// The label of a tick, with enough digits to differ from neighbouring ticks on an axis of this length.
fn tick_label(value: f64, length: f64) -> String {
    let digits = (1.0 - (length / 4.0).log10().floor()).clamp(0.0, 7.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line { name: name.to_owned(), points: points.to_vec() }
    }

    #[test]
    fn every_line_is_drawn_with_its_name() {
        let picture = curve(
            "a <model>",
            &[line("accuracy", &[(1.0, 0.2), (2.0, 0.7)])],
            &[line("loss", &[(0.5, 3.0), (2.0, 1.0)])],
        );
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(picture.contains(">accuracy<") && picture.contains("a &lt;model&gt;"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }

    #[test]
    fn tick_labels_have_enough_digits_to_differ() {
        assert_eq!([0.5, 8.0, 1234.0].map(|length| tick_label(2.70012, length)), ["2.70", "2.7", "3"]);
        for length in [1e-5, 0.0011, 0.3, 7.0, 4e4] {
            let ticks: Vec<String> =
                (0..=4).map(|tick| tick_label(2.7 + length * f64::from(tick) / 4.0, length)).collect();
            assert!(ticks.windows(2).all(|pair| pair[0] != pair[1]), "{ticks:?}");
        }
    }

    #[test]
    fn a_single_epoch_is_visible() {
        assert_eq!(curve("t", &[], &[line("loss", &[(1.0, 2.7)])]).matches("<circle").count(), 1);
    }

    #[test]
    fn empty_lines_and_non_finite_values_give_a_valid_picture() {
        for points in [&[][..], &[(1.0, 5.0)], &[(1.0, f64::NAN), (2.0, f64::INFINITY)]] {
            let picture = curve("t", &[line("m", points)], &[]);
            assert!(picture.starts_with("<svg") && !picture.contains("NaN") && !picture.contains("=\"inf"));
        }
    }
}
