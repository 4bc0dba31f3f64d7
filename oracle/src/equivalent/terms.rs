//! The pool of terms and views, and the laws of the normal form that apply to elements.

use crate::reference::{self, Argument, Datum, Noise};
use autobatch_ir::graph::{Binary, Op};
use autobatch_ir::id::{CellId, ParamId};
use autobatch_ir::intern::Interner;
use autobatch_ir::types::{DType, Shape, Type};
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of ranges of a view. An op that would need more stays a term.
const MAX_PIECES: usize = 1 << 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TermId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ViewId(u32);

/// The callee of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Op(Op),
    /// A cell that both modules have with this id.
    Cell(CellId),
}

/// The expansion of a value, an operand of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    View(ViewId),
    List(Rc<[ViewId]>),
}

/// The views of operands; `None` if one is a list.
pub(super) fn views_of(args: &[Arg]) -> Option<Vec<ViewId>> {
    let view = |arg: &Arg| if let Arg::View(view) = arg { Some(*view) } else { None };
    args.iter().map(view).collect()
}

/// A computation with elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    /// Bound words, starting at this slot.
    Words(u32),
    /// Bound floats, starting at this slot.
    Floats(u32),
    /// The elements of a parameter, widened to `f32`.
    Param(ParamId),
    /// An op or cell with operands of these types.
    Apply { what: What, types: Box<[Type]>, params: Box<[ParamId]>, args: Box<[Arg]> },
}

/// A range of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    /// Elements of one result of a term.
    Part {
        term: TermId,
        result: u32,
        start: u32,
        len: u32,
    },
    Fill {
        bits: u32,
        len: u32,
    },
}

impl Piece {
    const fn len(self) -> u32 {
        match self {
            Self::Part { len, .. } | Self::Fill { len, .. } => len,
        }
    }

    /// A range within this range.
    const fn cut(self, from: u32, count: u32) -> Self {
        match self {
            Self::Part { term, result, start, .. } => {
                Self::Part { term, result, start: start + from, len: count }
            }
            Self::Fill { bits, .. } => Self::Fill { bits, len: count },
        }
    }

    /// The union of two ranges, if the second continues the first.
    fn joined(self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Fill { bits, len }, Self::Fill { bits: more, len: count }) if bits == more => {
                Some(Self::Fill { bits, len: len + count })
            }
            (
                Self::Part { term, result, start, len },
                Self::Part { term: other, result: place, start: from, len: count },
            ) if (term, result, start + len) == (other, place, from) => {
                Some(Self::Part { term, result, start, len: len + count })
            }
            _ => None,
        }
    }
}

/// A view under construction; adjacent pieces are joined.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn push(&mut self, piece: Piece) {
        match self.0.last_mut().and_then(|last| last.joined(piece).map(|both| (last, both))) {
            Some((last, both)) => *last = both,
            None => self.0.push(piece),
        }
    }

    /// Appends the elements `from..from + count` of a view.
    fn push_range(&mut self, view: &[Piece], mut from: u32, mut count: u32) {
        for &piece in view {
            if from >= piece.len() {
                from -= piece.len();
                continue;
            }
            let taken = count.min(piece.len() - from);
            if taken > 0 {
                self.push(piece.cut(from, taken));
            }
            (from, count) = (0, count - taken);
            if count == 0 {
                return;
            }
        }
    }
}

/// All terms and views of a proof.
#[derive(Debug, Default)]
pub(super) struct Terms {
    terms: Interner<Term>,
    views: Interner<Box<[Piece]>>,
}

impl Terms {
    pub(super) fn len(&self) -> usize {
        self.terms.items().len()
    }

    pub(super) fn term(&self, id: TermId) -> &Term {
        &self.terms.items()[id.0 as usize]
    }

    pub(super) fn view(&self, id: ViewId) -> &[Piece] {
        &self.views.items()[id.0 as usize]
    }

    /// The number of elements of a view.
    pub(super) fn elements(&self, id: ViewId) -> u32 {
        self.view(id).iter().map(|piece| piece.len()).sum()
    }

    fn intern_view(&mut self, pieces: Vec<Piece>) -> ViewId {
        ViewId(self.views.intern(pieces.into()).0 as u32)
    }

    /// The id of a term, which is added if it is new.
    pub(super) fn intern(&mut self, term: Term) -> TermId {
        TermId(self.terms.intern(term).0 as u32)
    }

    /// All elements of one result of a term.
    pub(super) fn result(&mut self, term: TermId, result: usize, ty: Type) -> ViewId {
        let len = ty.shape.elements() as u32;
        self.intern_view(vec![Piece::Part { term, result: result as u32, start: 0, len }])
    }

    /// All elements of the only result of a term.
    pub(super) fn whole(&mut self, term: Term, ty: Type) -> ViewId {
        let term = self.intern(term);
        self.result(term, 0, ty)
    }

    /// A repeated constant. All NaN become one, since payloads do not count.
    pub(super) fn fill(&mut self, bits: u32, ty: Type) -> ViewId {
        let nan = ty.dtype == DType::F32 && f32::from_bits(bits).is_nan();
        let bits = if nan { f32::NAN.to_bits() } else { bits };
        self.intern_view(vec![Piece::Fill { bits, len: ty.shape.elements() as u32 }])
    }

    /// The bits of a view that consists of one constant.
    fn constant(&self, view: ViewId) -> Option<u32> {
        match *self.view(view) {
            [Piece::Fill { bits, .. }] => Some(bits),
            _ => None,
        }
    }

    /// The concatenation of views along an axis; `None` if it needs too many ranges.
    pub(super) fn concat(&mut self, axis: usize, operands: &[(ViewId, Type)]) -> Option<ViewId> {
        let rows: u32 = operands.first()?.1.shape.dims().iter().take(axis).product();
        if rows as usize * operands.len() > MAX_PIECES {
            return None;
        }
        let mut pieces = Pieces::default();
        for row in 0..rows {
            for &(view, ty) in operands {
                let run = ty.shape.elements() as u32 / rows;
                pieces.push_range(self.view(view), row * run, run);
            }
        }
        self.bounded(pieces)
    }

    /// The indices `start..start + len` along an axis; `None` if they need too many ranges.
    pub(super) fn slice(
        &mut self,
        axis: usize,
        start: u32,
        len: u32,
        view: ViewId,
        ty: Type,
    ) -> Option<ViewId> {
        let dims = ty.shape.dims();
        let rows: u32 = dims.iter().take(axis).product();
        let inner: u32 = dims.iter().skip(axis + 1).product();
        if rows as usize > MAX_PIECES {
            return None;
        }
        let mut pieces = Pieces::default();
        for row in 0..rows {
            pieces.push_range(self.view(view), (row * dims[axis] + start) * inner, len * inner);
        }
        self.bounded(pieces)
    }

    fn bounded(&mut self, pieces: Pieces) -> Option<ViewId> {
        (pieces.0.len() <= MAX_PIECES).then(|| self.intern_view(pieces.0))
    }

    /// The result of an elementwise op if it is a constant or one of the operands.
    pub(super) fn known(&mut self, op: Op, views: &[ViewId], types: &[Type], result: Type) -> Option<ViewId> {
        let constants: Vec<Option<u32>> = views.iter().map(|&view| self.constant(view)).collect();
        match op {
            Op::Binary(binary) => {
                let same = |place: usize| (types[place] == result).then(|| views[place]);
                let neutral =
                    |place: usize| constants[place].is_some_and(|b| is_neutral(binary, place, b, result));
                if neutral(1) && same(0).is_some() {
                    return same(0);
                }
                if neutral(0) && same(1).is_some() {
                    return same(1);
                }
            }
            Op::Select => {
                let chosen = constants[0].map(|flag| if flag != 0 { 1 } else { 2 });
                if let Some(place) = chosen.filter(|&place| types[place] == result) {
                    return Some(views[place]);
                }
            }
            Op::Cast(to) if to == types[0].dtype => return Some(views[0]),
            Op::Broadcast(_) | Op::Transpose(_) => return constants[0].map(|bits| self.fill(bits, result)),
            Op::Unary(_) | Op::LeakyRelu { .. } | Op::Elu { .. } | Op::Clamp { .. } => {}
            Op::Compare(_) | Op::Cast(_) => {}
            _ => return None,
        }
        let bits: Vec<u32> = constants.into_iter().collect::<Option<_>>()?;
        let bits = element(op, &bits, types, result)?;
        Some(self.fill(bits, result))
    }
}

/// Returns whether `x op c` (`operand` 1) or `c op x` (`operand` 0) is `x` for every `x`, where `c` has these bits.
fn is_neutral(binary: Binary, operand: usize, bits: u32, ty: Type) -> bool {
    let float = ty.dtype == DType::F32;
    match (binary, operand) {
        (Binary::Add, _) => bits == if float { (-0.0f32).to_bits() } else { 0 },
        (Binary::Sub, 1) => bits == 0,
        (Binary::Mul, _) => bits == if float { 1.0f32.to_bits() } else { 1 },
        (Binary::Div, 1) => bits == 1.0f32.to_bits(),
        _ => false,
    }
}

/// One element of an elementwise op, computed by the reference interpreter.
fn element(op: Op, bits: &[u32], types: &[Type], result: Type) -> Option<u32> {
    let single = |ty: &Type| ty.with_shape(Shape::SCALAR);
    let datum = |(&bits, ty): (&u32, &Type)| {
        Argument::One(match ty.dtype {
            DType::F32 => Datum::Floats(Arc::from([f32::from_bits(bits)])),
            _ => Datum::Words(Arc::from([bits])),
        })
    };
    let call = reference::Call::<f32> {
        args: bits.iter().zip(types).map(datum).collect(),
        types: types.iter().map(single).collect(),
        results: vec![single(&result)],
        params: Vec::new(),
        noise: Noise::Off,
        clamps: false,
    };
    match reference::ops::evaluate(&op, &call).ok()?.first()? {
        Datum::Floats(elements) => elements.first().map(|x| x.to_bits()),
        Datum::Words(words) => words.first().copied(),
        Datum::List(_) => None,
    }
}
