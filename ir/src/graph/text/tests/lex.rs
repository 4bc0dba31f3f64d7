//! Tests of the lexer.

use super::*;

fn kinds(text: &str) -> Vec<(Kind, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let token = token(text.as_bytes(), at);
        if token.kind == Kind::End {
            return found;
        }
        found.push((token.kind, &text[token.start as usize..token.end as usize]));
        at = token.end as usize;
    }
}

#[test]
fn a_node_is_cut_into_tokens_without_white_space() {
    let expected = [
        (Kind::Value, "%a"),
        (Kind::Mark(b'='), "="),
        (Kind::Word, "elu"),
        (Kind::Mark(b'{'), "{"),
        (Kind::Word, "alpha"),
        (Kind::Mark(b'='), "="),
        (Kind::Number, "-1.5e-3"),
        (Kind::Mark(b'}'), "}"),
        (Kind::Mark(b'('), "("),
        (Kind::Hash, "#"),
        (Kind::Number, "7"),
        (Kind::Mark(b')'), ")"),
        (Kind::Site, "!3"),
    ];
    assert_eq!(kinds("%a=elu{alpha=-1.5e-3}(#7)!3 ; and // so on"), expected);
}

#[test]
fn ranges_and_arrows_are_marks() {
    let expected = [
        (Kind::Word, "s0"),
        (Kind::Mark(b'.'), "."),
        (Kind::Word, "a"),
        (Kind::Mark(b'['), "["),
        (Kind::Number, "0"),
        (Kind::Mark(THROUGH), ".."),
        (Kind::Number, "5"),
        (Kind::Mark(b'|'), "|"),
        (Kind::Mark(b']'), "]"),
        (Kind::Mark(TO), "->"),
        (Kind::Mark(FROM), "<-"),
        (Kind::Mark(b'+'), "+"),
        (Kind::Number, "-1.5"),
    ];
    assert_eq!(kinds("s0.a[0..5|]-><-+ -1.5"), expected);
}

#[test]
fn invalid_input_becomes_bad_tokens() {
    assert_eq!(kinds("\"abc"), [(Kind::OpenText, "\"abc")]);
    assert_eq!(kinds("\"a\\"), [(Kind::OpenText, "\"a\\")]);
    assert_eq!(kinds("% x"), [(Kind::Nameless, "%"), (Kind::Word, "x")]);
    assert_eq!(kinds("é/"), [(Kind::Stray, "é"), (Kind::Stray, "/")]);
}
