//! The normal form identifies what has equal bits, and nothing else.

use super::terms::{Piece, ProductStart, Seq, Term, TermOperand, Terms, Weight};
use autobatch_ir::graph::{Binary, Unary};
use autobatch_ir::plan::{Code, ParamPort, RegId};
use autobatch_ir::types::DType;

fn tanh(terms: &mut Terms, seq: &[Piece]) -> Seq {
    let width = seq.iter().map(|piece| piece.width).sum();
    terms.elementwise(Code::Unary(Unary::Tanh), DType::F32, &[TermOperand::Value(seq.to_vec())], width)
}

#[test]
fn an_elementwise_term_does_not_depend_on_where_it_was_cut() {
    let mut terms = Terms::default();
    let x = terms.whole(Term::Port(RegId(0)), 8);
    let whole = tanh(&mut terms, &x);
    let (left, right) = (terms.slice(&x, 0, 3), terms.slice(&x, 3, 5));
    let parts = [tanh(&mut terms, &left), tanh(&mut terms, &right)];
    assert_eq!(terms.concat(&parts), whole);
    assert_ne!(terms.concat([&parts[1], &parts[0]]), whole);
}

#[test]
fn a_product_continued_is_one_chain() {
    let mut terms = Terms::default();
    let (x, y) = (terms.whole(Term::Port(RegId(0)), 2), terms.whole(Term::Port(RegId(1)), 3));
    let weight = |row| Weight { param: ParamPort(0), row, transposed: false, offset: 0 };
    let both = [(x.clone(), weight(0)), (y.clone(), weight(2))];
    let whole = terms.product_row(ProductStart::Bias(ParamPort(1)), &both, 4, 4);
    let first = terms.product_row(ProductStart::Bias(ParamPort(1)), &both[..1], 4, 4);
    let second = terms.product_row(ProductStart::View(&first), &both[1..], 4, 4);
    assert_eq!(whole, second);
    let swapped = terms.product_row(ProductStart::View(&first), &both[..1], 4, 4);
    assert_ne!(whole, swapped);
    // The columns one by one are the columns together.
    let columns: Vec<Seq> =
        (4..8).map(|column| terms.product_row(ProductStart::Bias(ParamPort(1)), &both, column, 1)).collect();
    assert_eq!(terms.concat(&columns), whole);
}

#[test]
fn a_product_that_starts_from_a_constant_does_not_depend_on_where_it_was_cut() {
    let mut terms = Terms::default();
    let (x, constant) = (terms.whole(Term::Port(RegId(0)), 3), terms.whole(Term::Const(2f32.to_bits()), 4));
    let factors = [(x, Weight { param: ParamPort(0), row: 0, transposed: false, offset: 0 })];
    let whole = terms.product_row(ProductStart::View(&constant), &factors, 0, 4);
    let halves: Vec<Seq> = [0, 2]
        .map(|column| {
            let half = terms.slice(&constant, column, 2);
            terms.product_row(ProductStart::View(&half), &factors, column, 2)
        })
        .into();
    assert_eq!(terms.concat(&halves), whole);
}

#[test]
fn constants_fold_and_have_no_position() {
    let mut terms = Terms::default();
    let two = TermOperand::Const(2f32.to_bits());
    let sum = terms.elementwise(Code::Binary(Binary::Add), DType::F32, &[two.clone(), two.clone()], 4);
    let four = terms.whole(Term::Const(4f32.to_bits()), 4);
    assert_eq!(sum, four);
    let x = terms.whole(Term::Port(RegId(0)), 4);
    let splat = terms.whole(Term::Const(2f32.to_bits()), 4);
    let add = Code::Binary(Binary::Add);
    let a = terms.elementwise(add, DType::F32, &[TermOperand::Value(x.clone()), two], 4);
    let b = terms.elementwise(add, DType::F32, &[TermOperand::Value(x), TermOperand::Value(splat)], 4);
    assert_eq!(a, b);
}
