//! Terms: the definition of each element of a value, such that equal terms imply equal bits.
//!
//! A term is a function of an index. Terms are hash-consed, so comparing them compares ids. A value is a sequence of
//! [`Piece`]s, each a range of a term's elements. `concat`, `split`, `slice`, `reshape`, `stack` and copies only build
//! sequences and need no terms. The normal form:
//! * Adjacent pieces that continue each other are joined.
//! * An elementwise term reads its operands at the index plus an offset; the offset of the first operand is 0. So the
//!   term does not depend on how a stage splits a range or how many elements it covers.
//! * A product is a chain: its start, then ranges of sources, multiplied by consecutive rows of a weight. Adjacent
//!   parts are joined, and a product that starts from a product is one chain. The index is the column of the first
//!   part.
//! * Constants and elementwise functions of constants and single elements do not depend on the index; their pieces all
//!   start at 0.
//! * Elementwise functions of constants are constants.
//!
//! The head of [`equivalent`](crate::equivalent) explains why that proof has terms of its own.

use autobatch_ir::graph::Op;
use autobatch_ir::hash::BuildMix;
use autobatch_ir::plan::row_ops::map_element;
use autobatch_ir::plan::{Code, ParamPort, RegId};
use autobatch_ir::types::{DType, Type};
use std::collections::HashMap;

/// The maximum number of terms and pieces of a check.
const BUDGET: u64 = 1 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TermId(u32);

/// A range of a term's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) term: TermId,
    pub(super) start: i64,
    pub(super) width: u32,
}

/// A value: a sequence of pieces, with adjacent ones joined.
pub(super) type Seq = Vec<Piece>;

/// An operand of an elementwise term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    /// The element at the index plus this offset.
    At(TermId, i64),
    /// One element, for every index.
    One(TermId, i64),
}

/// The start of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Start {
    Zero,
    /// The element of a vector parameter at the index.
    Bias(ParamPort),
    /// The element of a term at the index plus this offset.
    At(TermId, i64),
}

/// The weight of a part of a product: a parameter from a row on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Weight {
    pub(super) param: ParamPort,
    pub(super) row: u32,
    pub(super) transposed: bool,
    /// The offset from the index to the column of the weight.
    pub(super) offset: i64,
}

/// A part of a product: consecutive elements of a source, and the weight that the first one multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Factor {
    source: Piece,
    weight: Weight,
}

/// A list operand of a fold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListTerm {
    Port(RegId),
    Items(Vec<Seq>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Port(RegId),
    Const(u32),
    Param(ParamPort),
    Elementwise(Code, DType, Vec<Arg>),
    Product(Start, Vec<Factor>),
    Lookup(ParamPort, Seq),
    /// The rows of the labels, `x`, and the label.
    LabelLoss(ParamPort, Seq, Seq),
    Fold(Op, Option<Seq>, Vec<ListTerm>),
    /// One of the results of an op on whole operands.
    Row(Op, Vec<(Seq, Type)>, u32),
}

/// An elementwise operand before it becomes part of a term.
#[derive(Clone, Debug)]
pub(super) enum TermOperand {
    Value(Seq),
    Const(u32),
}

/// All terms of a check.
#[derive(Debug, Default)]
pub(super) struct Terms {
    known: HashMap<Term, TermId, BuildMix>,
    terms: Vec<Term>,
    spent: u64,
}

impl Terms {
    pub(super) fn intern(&mut self, term: Term) -> TermId {
        self.spent += 1;
        if let Some(&id) = self.known.get(&term) {
            return id;
        }
        let id = TermId(self.terms.len() as u32);
        self.terms.push(term.clone());
        self.known.insert(term, id);
        id
    }

    /// Returns whether the check has exceeded its budget.
    pub(super) fn is_exhausted(&self) -> bool {
        self.spent > BUDGET
    }

    /// Counts work that creates no terms.
    pub(super) fn spend(&mut self, work: usize) {
        self.spent += work as u64;
    }

    /// All elements of a term.
    pub(super) fn whole(&mut self, term: Term, width: usize) -> Seq {
        vec![Piece { term: self.intern(term), start: 0, width: width as u32 }]
    }

    fn is_constant(&self, term: TermId) -> bool {
        match &self.terms[term.0 as usize] {
            Term::Const(_) => true,
            Term::Elementwise(_, _, args) => args.iter().all(|arg| matches!(arg, Arg::One(..))),
            _ => false,
        }
    }

    /// Appends a piece in normal form.
    pub(super) fn push(&mut self, seq: &mut Seq, mut piece: Piece) {
        self.spent += 1;
        let constant = self.is_constant(piece.term);
        if constant {
            piece.start = 0;
        }
        match seq.last_mut() {
            Some(last)
                if last.term == piece.term
                    && (constant || last.start + i64::from(last.width) == piece.start) =>
            {
                last.width += piece.width;
            }
            _ => seq.push(piece),
        }
    }

    pub(super) fn concat<'a>(&mut self, parts: impl IntoIterator<Item = &'a Seq>) -> Seq {
        let mut whole = Seq::new();
        for &piece in parts.into_iter().flatten() {
            self.push(&mut whole, piece);
        }
        whole
    }

    /// A range of a value's elements.
    pub(super) fn slice(&mut self, seq: &[Piece], start: u32, width: u32) -> Seq {
        let (mut skip, mut left) = (start, width);
        let mut taken = Seq::new();
        for piece in seq {
            self.spent += 1;
            if left == 0 {
                break;
            }
            let from = skip.min(piece.width);
            let width = (piece.width - from).min(left);
            if width > 0 {
                let start = piece.start + i64::from(from);
                self.push(&mut taken, Piece { start, width, ..*piece });
            }
            skip -= from;
            left -= width;
        }
        taken
    }

    /// An elementwise function over `width` elements; operands of one element are broadcast.
    pub(super) fn elementwise(
        &mut self,
        code: Code,
        dtype: DType,
        operands: &[TermOperand],
        width: u32,
    ) -> Seq {
        if code == Code::Copy
            && let [TermOperand::Value(seq)] = operands
            && seq_width(seq) == u64::from(width)
        {
            return seq.clone();
        }
        let mut result = Seq::new();
        let mut at = 0;
        while at < width {
            let (args, run) = self.args(operands, at, width);
            let piece = self.element_piece(code, dtype, args, run);
            self.push(&mut result, piece);
            at += run;
        }
        result
    }

    /// The operands from element `at`, and the number of elements until one of them changes its term.
    fn args(&mut self, operands: &[TermOperand], at: u32, width: u32) -> (Vec<Arg>, u32) {
        let mut run = width - at;
        let mut args = Vec::with_capacity(operands.len());
        for operand in operands {
            let arg = match operand {
                TermOperand::Const(bits) => Arg::One(self.intern(Term::Const(*bits)), 0),
                TermOperand::Value(seq) if width > 1 && seq_width(seq) == 1 => {
                    Arg::One(seq[0].term, seq[0].start)
                }
                TermOperand::Value(seq) => {
                    let (piece, left) = self.piece_at(seq, at);
                    run = run.min(left);
                    Arg::At(piece.term, piece.start)
                }
            };
            args.push(match arg {
                Arg::At(term, _) if self.is_constant(term) => Arg::One(term, 0),
                other => other,
            });
        }
        (args, run)
    }

    /// The rest of the piece that contains element `at`.
    fn piece_at(&mut self, seq: &[Piece], at: u32) -> (Piece, u32) {
        let mut before = 0;
        for piece in seq {
            self.spent += 1;
            if at < before + piece.width {
                let skip = at - before;
                let left = piece.width - skip;
                return (Piece { start: piece.start + i64::from(skip), width: left, ..*piece }, left);
            }
            before += piece.width;
        }
        // The verifier checks widths. A value that is too short continues with a unique constant.
        let term = self.intern(Term::Const(u32::MAX));
        (Piece { term, start: 0, width: u32::MAX }, u32::MAX)
    }

    fn element_piece(&mut self, code: Code, dtype: DType, mut args: Vec<Arg>, width: u32) -> Piece {
        let first = args.iter().find_map(|arg| match arg {
            Arg::At(_, at) => Some(*at),
            Arg::One(..) => None,
        });
        for arg in &mut args {
            if let Arg::At(_, at) = arg {
                *at -= first.unwrap_or(0);
            }
        }
        let term = match self.folded(code, dtype, &args) {
            Some(bits) => Term::Const(bits),
            None => Term::Elementwise(code, dtype, args),
        };
        Piece { term: self.intern(term), start: first.unwrap_or(0), width }
    }

    /// The value of a function of constants.
    fn folded(&self, code: Code, dtype: DType, args: &[Arg]) -> Option<u32> {
        let mut bits = [0; 3];
        for (bits, arg) in bits.iter_mut().zip(args) {
            match arg {
                Arg::One(term, _) => match self.terms[term.0 as usize] {
                    Term::Const(constant) => *bits = constant,
                    _ => return None,
                },
                Arg::At(..) => return None,
            }
        }
        Some(map_element(code, dtype, bits))
    }

    /// A product of values with `rows` rows each: one product per row. `None` if a source is empty or the budget is spent.
    pub(super) fn product(
        &mut self,
        rows: u32,
        start: ProductStart<'_>,
        parts: &[(Seq, Weight)],
        column: u32,
        columns: u32,
    ) -> Option<Seq> {
        let mut whole = Seq::new();
        for row in 0..rows {
            let mut own = Vec::with_capacity(parts.len());
            for (source, weight) in parts {
                let width = seq_width(source) as u32 / rows;
                own.push((self.slice(source, row * width, width), *weight));
            }
            if self.is_exhausted() || own.iter().any(|(source, _)| source.is_empty()) {
                return None;
            }
            let row = match start {
                ProductStart::View(view) => {
                    let view = self.slice(view, row * columns, columns);
                    self.product_row(ProductStart::View(&view), &own, column, columns)
                }
                start => self.product_row(start, &own, column, columns),
            };
            row.into_iter().for_each(|piece| self.push(&mut whole, piece));
        }
        Some(whole)
    }

    /// One row of a product: `columns` elements, of which the first belongs to column `column` of the first weight.
    pub(super) fn product_row(
        &mut self,
        start: ProductStart<'_>,
        parts: &[(Seq, Weight)],
        column: u32,
        columns: u32,
    ) -> Seq {
        let mut chain: Vec<Factor> = Vec::with_capacity(parts.len());
        for (pieces, weight) in parts {
            let mut row = weight.row;
            for &source in pieces {
                self.spent += 1;
                let factor = Factor { source, weight: Weight { row, ..*weight } };
                append(&mut chain, factor, self.is_constant(source.term));
                row += source.width;
            }
        }
        let column = i64::from(column);
        let view = match start {
            ProductStart::Zero => return self.chain(Start::Zero, chain, column, columns),
            ProductStart::Bias(param) => return self.chain(Start::Bias(param), chain, column, columns),
            ProductStart::View(view) => view,
        };
        let mut result = Seq::new();
        let mut done = 0;
        for &piece in view {
            let at = column + done;
            let from = match &self.terms[piece.term.0 as usize] {
                Term::Product(start, before) => Some((*start, before.clone())),
                _ => None,
            };
            let part = match from {
                Some((start, mut whole)) => {
                    // The index becomes that of the earlier product.
                    for &Factor { source, weight } in &chain {
                        let weight = Weight { offset: weight.offset + at - piece.start, ..weight };
                        append(&mut whole, Factor { source, weight }, self.is_constant(source.term));
                    }
                    self.chain(start, whole, piece.start, piece.width)
                }
                None => {
                    let offset = if self.is_constant(piece.term) { 0 } else { piece.start - at };
                    self.chain(Start::At(piece.term, offset), chain.clone(), at, piece.width)
                }
            };
            part.into_iter().for_each(|piece| self.push(&mut result, piece));
            done += i64::from(piece.width);
        }
        result
    }

    fn chain(&mut self, start: Start, chain: Vec<Factor>, at: i64, width: u32) -> Seq {
        vec![Piece { term: self.intern(Term::Product(start, chain)), start: at, width }]
    }

    /// The results of an op on whole operands. Ops that only select elements create no terms.
    pub(super) fn row(&mut self, op: Op, sources: Vec<(Seq, Type)>, results: &[Type]) -> Vec<Seq> {
        match op {
            Op::Concat { axis: 0 } | Op::Stack | Op::Reshape(_) => {
                vec![self.concat(sources.iter().map(|(seq, _)| seq))]
            }
            Op::Split { axis: 0, .. } => {
                let mut at = 0;
                let mut parts = Vec::with_capacity(results.len());
                for ty in results {
                    let width = ty.shape.elements() as u32;
                    parts.push(self.slice(&sources[0].0, at, width));
                    at += width;
                }
                parts
            }
            Op::Slice { axis: 0, start, .. } => {
                let width = results[0].shape.elements() as u32;
                let inner = width / results[0].shape.dims()[0];
                vec![self.slice(&sources[0].0, start * inner, width)]
            }
            _ => (0..)
                .zip(results)
                .map(|(number, ty)| self.whole(Term::Row(op, sources.clone(), number), ty.shape.elements()))
                .collect(),
        }
    }
}

/// The start of a product before normalisation.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProductStart<'a> {
    Zero,
    Bias(ParamPort),
    View(&'a [Piece]),
}

/// Appends a factor, joined to the last one if it continues it.
fn append(chain: &mut Vec<Factor>, factor: Factor, constant: bool) {
    if let Some(last) = chain.last_mut()
        && last.source.term == factor.source.term
        && factor.weight == (Weight { row: last.weight.row + last.source.width, ..last.weight })
        && (constant || last.source.start + i64::from(last.source.width) == factor.source.start)
    {
        last.source.width += factor.source.width;
        return;
    }
    chain.push(factor);
}

fn seq_width(seq: &[Piece]) -> u64 {
    seq.iter().map(|piece| u64::from(piece.width)).sum()
}
