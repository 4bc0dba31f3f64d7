//! SVG output: elements, escaping, colours and animations.

use std::fmt::Write as _;

/// Ten distinguishable colours. Pictures also convey their meaning by position or text.
const PALETTE: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#2a9d9c", "#c9a227", "#9c755f", "#d37295",
    "#79706e",
];

/// The colour of text.
pub const INK: &str = "#1f2933";
/// The colour of secondary text.
pub const SOFT: &str = "#66717d";
/// The colour of grid lines.
pub const HAIR: &str = "#d9dee3";
/// The colour of backgrounds.
pub const WASH: &str = "#f5f7f9";

/// A picture under construction.
#[derive(Default)]
pub struct Svg {
    body: String,
}

/// The point of a text at its coordinates.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// The text begins here.
    Start,
    /// The middle of the text is here.
    Middle,
    /// The text ends here.
    End,
}

impl Svg {
    /// Appends markup.
    pub fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
        self.body.push('\n');
    }

    /// Draws a rectangle: its corner, its width and its height.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], fill: &str, more: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}" {more}/>"#
        );
    }

    /// Draws a line between two points.
    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], stroke: &str, more: &str) {
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}" {more}/>"#
        );
    }

    /// Writes a text.
    pub fn text(&mut self, [x, y]: [f64; 2], size: f64, fill: &str, anchor: Anchor, text: &str) {
        self.styled_text([x, y], size, fill, anchor, "", text);
    }

    /// Writes a text with more attributes.
    pub fn styled_text(
        &mut self,
        [x, y]: [f64; 2],
        size: f64,
        fill: &str,
        anchor: Anchor,
        style: &str,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" {style}>{text}</text>"#
        );
    }

    /// The document.
    pub fn finish(self, width: f64, height: f64, title: &str) -> String {
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Escapes text for use between tags and in attributes.
pub fn escaped(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    let mut out = String::with_capacity(text.len());
    for c in plain {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Share of white in the second and third ten colours.
const LIGHTER: f64 = 0.3;
/// Number of shades of each colour of the palette.
const SHADES: usize = 3;

/// The colour of a number. The second and third ten colours are lighter; then the colours repeat.
pub fn colour(number: usize) -> String {
    lighter(PALETTE[number % PALETTE.len()], shade(number) as f64 * LIGHTER)
}

/// The colour of text on the colour of a number.
pub fn ink_on(number: usize) -> &'static str {
    if shade(number) == 0 { "#ffffff" } else { INK }
}

fn shade(number: usize) -> usize {
    number / PALETTE.len() % SHADES
}

/// A colour mixed with a share of white, 0 to 1.
pub fn lighter(hex: &str, share: f64) -> String {
    let channel =
        |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
    let mix =
        |value: u8| (f64::from(value) + (255.0 - f64::from(value)) * share.clamp(0.0, 0.85)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(channel(1)), mix(channel(3)), mix(channel(5)))
}

/// An animation that shows its parent element from the time `from` on, a share of the loop.
pub fn appears(from: f64, seconds: f64) -> String {
    let (from, then) = (from.clamp(0.0005, 0.97), (from + 0.012).clamp(0.001, 0.985));
    format!(
        "<animate attributeName=\"opacity\" dur=\"{seconds:.1}s\" repeatCount=\"indefinite\" keyTimes=\"0;{from:.4};{then:.4};1\" values=\"0.13;0.13;1;1\"/>"
    )
}

/// An animation that shows its parent element between two times only, as shares of the loop.
pub fn flashes(from: f64, to: f64, seconds: f64) -> String {
    let (from, to) = (from.clamp(0.0005, 0.97), to.clamp(0.001, 0.99));
    format!(
        "<animate attributeName=\"opacity\" dur=\"{seconds:.1}s\" repeatCount=\"indefinite\" calcMode=\"discrete\" keyTimes=\"0;{from:.4};{to:.4}\" values=\"0;1;0\"/>"
    )
}

/// The duration in seconds of an animation over a number of steps, and the share of it in which the
/// steps appear. The rest of the loop shows the complete picture.
pub fn loop_of(steps: usize) -> (f64, f64) {
    ((steps as f64 * 0.4).clamp(4.0, 24.0), 0.85)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_inject_markup() {
        assert_eq!(escaped("<a href=\"x\">&\u{7}"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }

    #[test]
    fn lighter_mixes_in_white() {
        assert_eq!(lighter("#000000", 0.5), "#808080");
        assert_eq!(lighter("#4e79a7", 0.0), "#4e79a7");
    }
}
