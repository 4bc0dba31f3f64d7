//! Error messages of the text parser, complete with excerpt and help.

mod nodes;
mod operands;
mod statements;
mod words;

use autobatch_ir::GraphData;

/// The first line of a text.
const HEAD: &str = "autobatch graph 2";
/// Parameters and a cell.
const NODE: &str = "\
param @w f32[4,4]
param @b f32[4]
cell @node[@0: f32[4,4]](%0: f32[4], %1: u32) {
  %2 = affine[@0](%0)
  return %2
}";
/// A weight and a bias.
const WEIGHTS: &str = "param @w f32[4,2]\nparam @b f32[2]";
/// The start of the graph, with a value.
const X: &str = "graph\n%x = input f32[4] (#[1, 2, 3, 4])";
/// A narrower value.
const Y: &str = "%y = input f32[2] (#[1, 2])";

fn refusal(lines: &[&str]) -> String {
    let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    GraphData::from_text(&text).expect_err("the text is invalid").in_file("model.graph").to_string()
}

/// Tests that the parser rejects a text of these lines with exactly this message.
macro_rules! shows {
    ($($name:ident: $($lines:expr),* => @$shown:literal;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(crate::refusal(&[$($lines),*]), @$shown);
        }
    )*};
}
pub(crate) use shows;
