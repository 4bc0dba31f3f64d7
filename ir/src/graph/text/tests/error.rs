//! Tests of suggestions and excerpts.

use super::*;

#[test]
fn misspelt_words_have_suggestions() {
    let words = ["sigmoid", "sign", "sin", "softmax"];
    assert_eq!(nearest("sigmod", words.into_iter()), Some("sigmoid"));
    assert_eq!(nearest("softmx", words.into_iter()), Some("softmax"));
    assert_eq!(nearest("convolve", words.into_iter()), None);
}

#[test]
fn a_long_line_is_cut() {
    let text = format!("{}x{}", "a".repeat(400), "b".repeat(400));
    let error = ParseError::new(text.as_bytes(), *TextProblem::new(400..401, "m", "here"));
    assert!(error.to_string().len() < 400, "{error}");
    assert!(error.to_string().contains("aaax"), "{error}");
    assert_eq!((error.line, error.column), (1, 401));
}
