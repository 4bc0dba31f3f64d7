//! What a text's author reads when it is wrong: every message as it is shown.

mod applications;
mod operands;
mod statements;
mod words;

use autobatch_ir::GraphData;

fn refusal(text: &str) -> String {
    GraphData::from_text(text).expect_err("the text is wrong").in_file("model.graph").to_string()
}

/// Tests that a text is refused with just this message.
macro_rules! shows {
    ($($name:ident: $text:expr => @$shown:literal;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(crate::refusal($text), @$shown);
        }
    )*};
}
pub(crate) use shows;
