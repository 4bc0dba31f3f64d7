//! Picture of a sweep over batch sizes: instances per second at each size.
//!
//! The horizontal axis is logarithmic; the vertical axis starts at zero. Below each size is the number
//! of batches of the plans.

use autobatch_bench::{Sweep, SweepRow};
use autobatch_inspector::picture::svg::{Anchor, HAIR, INK, SOFT, Svg, WASH, colour};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right and bottom of the plot.
const PLOT: [f64; 4] = [86.0, 74.0, 724.0, 340.0];
/// Number of intervals of the vertical axis.
const GRID: usize = 4;

/// Draws a sweep.
#[must_use]
pub fn sweep(sweep: &Sweep) -> String {
    let Sweep { workload, unit, instances, rows } = sweep;
    let mut svg = Svg::default();
    let [left, top, right, bottom] = PLOT;
    let title = format!("{workload}: {unit} per second by batch size");
    svg.styled_text([left, 34.0], 18.0, INK, Anchor::Start, "font-weight=\"bold\"", &title);
    let about = format!("{instances} {unit} at each size; times of complete steps");
    svg.text([left, 56.0], 12.0, SOFT, Anchor::Start, &about);
    svg.rect([left, top, right - left, bottom - top], WASH, "");
    let most = rounded_up(rows.iter().map(|row| row.per_second).fold(0.0, f64::max));
    for line in 0..=GRID {
        let share = line as f64 / GRID as f64;
        let y = bottom - share * (bottom - top);
        svg.line([left, y, right, y], HAIR, "");
        svg.text([left - 8.0, y + 4.0], 11.0, SOFT, Anchor::End, &short_number(share * most));
    }
    let positions = positions(rows);
    let points: Vec<[f64; 2]> = positions
        .iter()
        .zip(rows)
        .map(|(x, row)| [*x, bottom - row.per_second / most * (bottom - top)])
        .collect();
    for pair in points.windows(2) {
        svg.line([pair[0][0], pair[0][1], pair[1][0], pair[1][1]], &colour(0), "stroke-width=\"2.5\"");
    }
    for ([x, y], row) in points.iter().zip(rows) {
        svg.raw(&format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="4.5" fill="{}"/>"#, colour(0)));
        svg.text([*x, y - 10.0], 11.0, INK, Anchor::Middle, &short_number(row.per_second));
        svg.line([*x, bottom, *x, bottom + 5.0], SOFT, "");
        svg.text([*x, bottom + 20.0], 12.0, INK, Anchor::Middle, &row.batch.to_string());
        svg.text([*x, bottom + 36.0], 10.0, SOFT, Anchor::Middle, &short_number(row.batches as f64));
    }
    svg.text([left - 8.0, bottom + 20.0], 11.0, SOFT, Anchor::End, "instances");
    svg.text([left - 8.0, bottom + 36.0], 10.0, SOFT, Anchor::End, "batches");
    let gain = gain(rows).map(|gain| format!("best size {gain:.1} x as fast as the first"));
    svg.text([right, HEIGHT - 16.0], 12.0, INK, Anchor::End, &gain.unwrap_or_default());
    svg.finish(WIDTH, HEIGHT, &title)
}

/// The horizontal position of each size.
fn positions(rows: &[SweepRow]) -> Vec<f64> {
    let [left, _, right, _] = PLOT;
    let margin = 28.0;
    let log = |row: &SweepRow| (row.batch.max(1) as f64).log2();
    let min = rows.iter().map(log).fold(f64::INFINITY, f64::min);
    let max = rows.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
    let position = |row| match max > min {
        true => left + margin + (log(row) - min) / (max - min) * (right - left - 2.0 * margin),
        false => f64::midpoint(left, right),
    };
    rows.iter().map(position).collect()
}

/// The upper end of the axis: the next round number, with space for a label.
fn rounded_up(most: f64) -> f64 {
    let least = (1.12 * most).max(1e-9);
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// A number in short form, such as `19.8k`.
fn short_number(number: f64) -> String {
    match number {
        ..10.0 if number.fract() != 0.0 => format!("{number:.1}"),
        ..10_000.0 => format!("{number:.0}"),
        ..1e6 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

/// The rate of the best size relative to the first.
fn gain(rows: &[SweepRow]) -> Option<f64> {
    let first = rows.first()?.per_second;
    let best = rows.iter().map(|row| row.per_second).fold(0.0, f64::max);
    (first > 0.0 && rows.len() > 1).then(|| best / first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: &[(usize, f64)]) -> Sweep {
        let row = |&(batch, per_second): &(usize, f64)| SweepRow {
            batch,
            per_second,
            seconds: 64.0 / per_second,
            batches: 1000 / batch as u64,
        };
        Sweep {
            workload: "b".into(),
            unit: "trees".into(),
            instances: 64,
            rows: rows.iter().map(row).collect(),
        }
    }

    #[test]
    fn every_size_has_a_point_inside_the_plot() {
        let picture = sweep(&sample(&[(1, 700.0), (4, 2500.0), (64, 19_800.0)]));
        assert_eq!(picture.matches("<circle").count(), 3);
        for word in ["trees per second by batch size", ">19.8k<", ">64<", "28.3 x as fast"] {
            assert!(picture.contains(word), "{word} is missing in\n{picture}");
        }
        for part in picture.split("cy=\"").skip(1) {
            let y: f64 = part.split('"').next().and_then(|word| word.parse().ok()).expect("a number");
            assert!((PLOT[1]..=PLOT[3]).contains(&y), "{y}");
        }
    }

    #[test]
    fn one_size_or_none_gives_a_valid_picture() {
        assert_eq!(sweep(&sample(&[(8, 5.0)])).matches("<circle").count(), 1);
        assert!(!sweep(&sample(&[])).contains("NaN"));
    }
}
