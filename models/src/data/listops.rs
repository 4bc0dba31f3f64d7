//! ListOps: nested list operations on digits with a left-branching binary parse.
//!
//! A line is `answer<TAB>expression`. The tokens of the expression are digits, `[MIN`, `[MAX`,
//! `[FIRST`, `[LAST` and `]`, grouped by binary brackets. Without the binary brackets, an expression is a digit,
//! or an operator with one or more expressions and `]`. Its value is a digit.

use std::fmt;
use std::path::Path;

use super::binary_tree::{BinaryTree, parse_bracketed};
use super::error::DataError;
use super::text::{Piece, each_filled_line, each_line, join_lines, read_with};

/// An operation on a list of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// The smallest element.
    Min,
    /// The largest element.
    Max,
    /// The first element.
    First,
    /// The last element.
    Last,
}

impl Operator {
    /// All operators.
    pub const ALL: [Operator; 4] = [Operator::Min, Operator::Max, Operator::First, Operator::Last];

    /// Returns the result of a list from `so_far`, the result without its last element, and `next`, that element.
    fn step(self, so_far: u8, next: u8) -> u8 {
        match self {
            Operator::Min => so_far.min(next),
            Operator::Max => so_far.max(next),
            Operator::First => so_far,
            Operator::Last => next,
        }
    }
}

/// A token of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Token {
    /// A digit 0..9.
    Digit(u8),
    /// The opening bracket of a list with its operator.
    Open(Operator),
    /// The closing bracket of a list.
    Close,
}

impl Token {
    /// The number of different tokens.
    pub const COUNT: u32 = 15;

    /// Returns a number below [`Token::COUNT`]: digits are themselves, then come operators, then `]`.
    pub fn index(self) -> u32 {
        match self {
            Token::Digit(digit) => u32::from(digit),
            Token::Open(operator) => 10 + operator as u32,
            Token::Close => 14,
        }
    }

    /// Returns the token with the spelling `text`.
    pub fn from_text(text: &str) -> Option<Token> {
        Some(match text {
            "[MIN" => Token::Open(Operator::Min),
            "[MAX" => Token::Open(Operator::Max),
            "[FIRST" => Token::Open(Operator::First),
            "[LAST" => Token::Open(Operator::Last),
            "]" => Token::Close,
            _ => match text.as_bytes() {
                [digit @ b'0'..=b'9'] => Token::Digit(digit - b'0'),
                _ => return None,
            },
        })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Digit(digit) => write!(f, "{digit}"),
            Token::Open(Operator::Min) => f.write_str("[MIN"),
            Token::Open(Operator::Max) => f.write_str("[MAX"),
            Token::Open(Operator::First) => f.write_str("[FIRST"),
            Token::Open(Operator::Last) => f.write_str("[LAST"),
            Token::Close => f.write_str("]"),
        }
    }
}

/// An expression with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The answer 0..9 that the corpus states; [`evaluate`] computes it.
    pub answer: u8,
    /// The tokens and their binary parse.
    pub tree: BinaryTree<Token>,
}

/// Writes one line of the format, without the line end.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}", self.answer, self.tree)
    }
}

/// Returns the value of an expression, or `None` if the tokens are not an expression. The list brackets
/// determine the value; the binary brackets do not affect it.
pub fn evaluate(tokens: &[Token]) -> Option<u8> {
    // The operators of the open lists, with the results of their elements so far.
    let mut open: Vec<(Operator, Option<u8>)> = Vec::new();
    for (position, &token) in tokens.iter().enumerate() {
        let value = match token {
            Token::Open(operator) => {
                open.push((operator, None));
                continue;
            }
            Token::Digit(digit) => digit,
            Token::Close => open.pop()?.1?,
        };
        match open.last_mut() {
            Some((operator, so_far)) => {
                *so_far = Some(so_far.map_or(value, |before| operator.step(before, value)));
            }
            None => return (position + 1 == tokens.len()).then_some(value),
        }
    }
    None
}

/// The greatest number of lists that are open at once.
pub fn nesting(tokens: &[Token]) -> u32 {
    let (mut open, mut deepest) = (0_u32, 0);
    for token in tokens {
        match token {
            Token::Open(_) => open += 1,
            Token::Close => open = open.saturating_sub(1),
            Token::Digit(_) => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Reads the expressions of a file's content. It does not check the answers.
pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Expression>, DataError> {
    each_line(content.as_ref(), file, parse_line)
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Expression>, DataError> {
    read_with(path.as_ref(), |bytes, file| parse(bytes, file))
}

/// Returns the content of a file with these expressions.
pub fn write(expressions: &[Expression]) -> String {
    join_lines(expressions)
}

/// Reads expressions whose lines may lack the column of the answer, which is then computed. Skips blank lines.
///
/// # Errors
/// The first line of another form.
pub fn parse_inputs(content: impl AsRef<[u8]>, file: &str) -> Result<Vec<Expression>, DataError> {
    each_filled_line(content.as_ref(), file, |line| match line.text.contains('\t') {
        true => parse_line(line),
        false => parse_expression(line).map(|(answer, tree)| Expression { answer, tree }),
    })
}

fn parse_line(line: Piece<'_>) -> Result<Expression, DataError> {
    let [answer, expression] = line.fields('\t', "two columns: answer and expression")?;
    let answer = match Token::from_text(answer.text) {
        Some(Token::Digit(digit)) => digit,
        _ => return Err(answer.error("an answer 0..9")),
    };
    Ok(Expression { answer, tree: parse_expression(expression)?.1 })
}

/// Reads an expression, and computes its answer.
fn parse_expression(expression: Piece<'_>) -> Result<(u8, BinaryTree<Token>), DataError> {
    let tree = parse_bracketed(expression, |token| {
        Token::from_text(token.text).ok_or_else(|| token.error("a digit, [MIN, [MAX, [FIRST, [LAST or ]"))
    })?;
    match evaluate(tree.leaves()) {
        Some(answer) => Ok((answer, tree)),
        None => Err(expression.error("an operator, one or more expressions and ]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    const SAMPLE: &str =
        "7\t( ( ( [MAX 2 ) 7 ) ] )\n3\t( ( ( [FIRST ( ( ( [MIN 5 ) 3 ) ] ) ) 9 ) ] )\n4\t4\n";

    fn value(text: &str) -> Option<u8> {
        let tokens: Vec<_> = text.split(' ').filter_map(Token::from_text).collect();
        evaluate(&tokens)
    }

    #[test]
    fn operators_compute_their_result() {
        assert_eq!(value("[MIN 4 2 7 ]"), Some(2));
        assert_eq!(value("[MAX 4 2 7 ]"), Some(7));
        assert_eq!(value("[FIRST 4 2 7 ]"), Some(4));
        assert_eq!(value("[LAST 4 2 7 ]"), Some(7));
        assert_eq!(value("[MAX 1 [MIN 8 6 ] [LAST 0 [FIRST 3 9 ] ] ]"), Some(6));
        assert_eq!(value("5"), Some(5));
    }

    #[test]
    fn invalid_expressions_have_no_value() {
        for text in ["[MIN ]", "]", "[MIN 1", "1 2", "[MIN 1 ] 2", "[MIN 1 ] ]"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn every_token_has_its_own_number_and_spelling() {
        let tokens = (0..10).map(Token::Digit).chain(Operator::ALL.map(Token::Open)).chain([Token::Close]);
        for (index, token) in tokens.enumerate() {
            assert_eq!(token.index() as usize, index);
            assert_eq!(Token::from_text(&token.to_string()), Some(token));
            assert!(token.index() < Token::COUNT);
        }
    }

    #[test]
    fn expressions_keep_their_text_when_read_and_written() {
        let expressions = parse(SAMPLE, "f").unwrap();
        for expression in &expressions {
            assert_eq!(evaluate(expression.tree.leaves()), Some(expression.answer));
        }
        assert_eq!(nesting(expressions[1].tree.leaves()), 2);
        assert_eq!(write(&expressions), SAMPLE);
    }

    #[test]
    fn errors_name_the_place_of_the_mistake() {
        let bad = ["x\t1", "10\t1", "1", "1\t( [MED 1 )", "1\t( [MIN ] )", "1\t( 1 2 )", "1\t"];
        let errors: Vec<_> = bad.iter().map(|text| parse(text, "f").unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        f:1:1: expected an answer 0..9, found "x"
        f:1:1: expected an answer 0..9, found "10"
        f:1:1: expected two columns: answer and expression, found 1 columns
        f:1:5: expected a digit, [MIN, [MAX, [FIRST, [LAST or ], found "[MED"
        f:1:3: expected an operator, one or more expressions and ], found "( [MIN ] )"
        f:1:3: expected an operator, one or more expressions and ], found "( 1 2 )"
        f:1:3: expected a token; tokens are separated by one space, found the end of the line
        "#);
    }

    #[test]
    fn damaged_content_never_panics() {
        survives(SAMPLE.as_bytes(), |bytes| {
            if let Ok(expressions) = parse(bytes, "f") {
                assert_eq!(parse(write(&expressions), "f").unwrap(), expressions);
            }
        });
    }
}
