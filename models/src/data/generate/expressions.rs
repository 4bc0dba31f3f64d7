//! ListOps expressions with exact answers.
//!
//! The outermost expression is a list of two to five elements. Each element is a list with the
//! probability `list_permille` and a digit otherwise, up to the nesting bound. Operators and digits
//! have equal probabilities. [`evaluate`] computes the answer.

use super::instances;
use crate::data::binary_tree::TreeBuilder;
use crate::data::listops::{Expression, Operator, Token, evaluate};
use crate::data::random::Random;

/// The size limits of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of lists that are open at once.
    pub nesting: u32,
    /// The number of lists per 1000 elements.
    pub list_permille: u32,
    /// The number of tokens after which no further list begins.
    pub tokens: usize,
}

impl Limits {
    /// Sizes like the shallow file of the corpus.
    pub const D8: Limits = Limits { nesting: 7, list_permille: 200, tokens: 80 };
    /// Sizes like the deep file of the corpus.
    pub const D20: Limits = Limits { nesting: 19, list_permille: 265, tokens: 780 };
}

fn expression(limits: Limits, random: &mut Random) -> Expression {
    let mut builder = TreeBuilder::default();
    // The number of elements that each open list still needs.
    let mut open: Vec<u32> = Vec::new();
    loop {
        match open.last_mut() {
            Some(0) => {
                open.pop();
                builder.shift(Token::Close);
                builder.reduce();
            }
            Some(left) => {
                *left -= 1;
                let room = (open.len() as u32) < limits.nesting && builder.leaves().len() < limits.tokens;
                if room && random.chance(limits.list_permille) {
                    begin(&mut builder, &mut open, random);
                    continue;
                }
                builder.shift(Token::Digit(random.below(10) as u8));
            }
            None => {
                begin(&mut builder, &mut open, random);
                continue;
            }
        }
        // A digit or a closed list is complete and joins the list that contains it.
        if open.is_empty() {
            break;
        }
        builder.reduce();
    }
    let tree = builder.finish().expect("the outermost list closes last");
    let answer = evaluate(tree.leaves()).expect("every list has elements and is closed");
    Expression { answer, tree }
}

fn begin(builder: &mut TreeBuilder<Token>, open: &mut Vec<u32>, random: &mut Random) {
    let operator = Operator::ALL[random.index(Operator::ALL.len())];
    builder.shift(Token::Open(operator));
    open.push(random.between(2, 5));
}

/// Draws expressions within limits, usually [`Limits::D8`] or [`Limits::D20`].
pub fn expressions(seed: u64, count: usize, limits: Limits) -> Vec<Expression> {
    instances(seed, count, |_, random| expression(limits, random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::listops::nesting;
    use crate::data::{Summary, listops};

    fn tokens(expressions: &[Expression]) -> Summary {
        Summary::of(expressions.iter().map(|e| e.tree.leaves().len()))
    }

    #[test]
    fn sizes_are_like_the_corpus() {
        let shallow = tokens(&expressions(1, 4000, Limits::D8));
        let deep = tokens(&expressions(1, 4000, Limits::D20));
        assert!((12.0..18.0).contains(&shallow.mean()), "{shallow}");
        assert!((36.0..54.0).contains(&deep.mean()), "{deep}");
    }

    #[test]
    fn limits_hold_and_brackets_branch_to_the_left() {
        let limits = Limits { nesting: 3, list_permille: 900, tokens: 30 };
        for expression in expressions(2, 200, limits) {
            assert!(nesting(expression.tree.leaves()) <= 3);
            assert!(expression.tree.leaves().len() < 60);
            assert!(expression.tree.to_string().ends_with("] )"));
        }
        let flat = &expressions(3, 1, Limits { nesting: 0, list_permille: 1000, tokens: 0 })[0];
        assert_eq!(nesting(flat.tree.leaves()), 1);
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let expressions = expressions(4, 300, Limits::D20);
        assert_eq!(listops::parse(listops::write(&expressions), "generated").unwrap(), expressions);
    }
}
