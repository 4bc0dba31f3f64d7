//! Reading the attributes of an op: `{axis=0 start=2 len=4}`.
//!
//! One walk over the attributes serves the printer and this reader; see [`vocabulary`](super::vocabulary).

use super::cursor::Cursor;
use super::error::{Parsed, Problem, nearest};
use super::lex::{Kind, Token};
use super::vocabulary::{Visitor, attributes};
use crate::graph::op::{Float, Fold, Op, Over, Permutation};
use crate::types::{DType, Shape, Type};

/// The type that stands behind the words of some ops.
#[inline]
pub(crate) fn positional(cursor: &mut Cursor<'_>, op: &mut Op) -> Parsed<()> {
    attributes(op, &mut Positional(cursor))
}

/// `{axis=0 start=2 len=4}`, in any order.
#[inline]
pub(crate) fn braces(cursor: &mut Cursor<'_>, op: &mut Op, callee: Token) -> Parsed<()> {
    let mut seen = 0u32;
    if cursor.eat(b'{') {
        while !cursor.eat(b'}') {
            let name = cursor.expect(Kind::Word, "an attribute or '}'")?;
            let mut assign = Assign { cursor, name, place: 0, hit: None };
            attributes(op, &mut assign)?;
            let Some(place) = assign.hit else { return Err(unknown_attribute(cursor, op, name)) };
            if seen & (1 << place) != 0 {
                let message = format!("the attribute '{}' is given twice", cursor.spelling(name));
                return Err(cursor.at_token(name, message, "here again"));
            }
            seen |= 1 << place;
            cursor.eat(b',');
        }
    }
    let mut names = Names { seen, ..Names::default() };
    let Ok(()) = attributes(op, &mut names);
    match names.missing {
        None => Ok(()),
        Some(missing) => {
            let message = format!("{} needs the attribute '{missing}'", op.spelling());
            let help = format!("write {}{{{}}}", op.spelling(), names.example());
            Err(cursor.at_token(callee, message, "it is missing").help(help))
        }
    }
}

#[cold]
fn unknown_attribute(cursor: &Cursor<'_>, op: &mut Op, name: Token) -> Box<Problem> {
    let word = cursor.spelling(name);
    let mut names = Names::default();
    let Ok(()) = attributes(op, &mut names);
    let problem =
        cursor.at_token(name, format!("{} has no attribute '{word}'", op.spelling()), "unknown attribute");
    match nearest(word, names.all().iter().copied()) {
        Some(near) => problem.help(format!("did you mean '{near}'?")),
        None if names.all().is_empty() => problem.help(format!("{} has no attributes", op.spelling())),
        None => problem.help(format!("write {}{{{}}}", op.spelling(), names.example())),
    }
}

/// Reads the type behind an op's word.
struct Positional<'p, 't>(&'p mut Cursor<'t>);

/// Reads the value of the attribute called `name`.
struct Assign<'p, 't> {
    cursor: &'p mut Cursor<'t>,
    name: Token,
    place: u32,
    hit: Option<u32>,
}

impl Assign<'_, '_> {
    /// Whether the attribute at hand is the one.
    #[inline]
    fn is(&mut self, name: &str) -> bool {
        let place = self.place;
        self.place += 1;
        let hit = self.hit.is_none() && self.cursor.spelling(self.name) == name;
        if hit {
            self.hit = Some(place);
        }
        hit
    }

    #[inline]
    fn assign<T>(
        &mut self,
        name: &str,
        to: &mut T,
        read: impl FnOnce(&mut Cursor<'_>) -> Parsed<T>,
    ) -> Parsed<()> {
        if self.is(name) {
            self.cursor.expect_mark(b'=')?;
            *to = read(self.cursor)?;
        }
        Ok(())
    }
}

/// Collects the names of attributes and finds the first required one that was not seen.
#[derive(Default)]
struct Names {
    seen: u32,
    flags: u32,
    count: usize,
    all: [&'static str; 8],
    missing: Option<&'static str>,
}

impl Names {
    fn add(&mut self, name: &'static str) {
        self.all[self.count] = name;
        self.count += 1;
    }

    fn required(&mut self, name: &'static str) {
        if self.seen & (1 << self.count) == 0 {
            self.missing.get_or_insert(name);
        }
        self.add(name);
    }

    fn all(&self) -> &[&'static str] {
        &self.all[..self.count]
    }

    fn example(&self) -> String {
        let words = self.all().iter().enumerate().map(|(place, name)| {
            if self.flags & (1 << place) != 0 { (*name).to_owned() } else { format!("{name}=..") }
        });
        words.collect::<Vec<String>>().join(" ")
    }
}

/// The word next in the text, if it is one of a closed set.
fn choice<T: Copy>(cursor: &mut Cursor<'_>, all: &[T], spell: impl Fn(T) -> &'static str) -> Parsed<T> {
    let words = || all.iter().map(|&member| spell(member));
    let wanted = || format!("one of {}", words().collect::<Vec<_>>().join(", "));
    if !cursor.at(Kind::Word) {
        return Err(cursor.unexpected(&wanted()));
    }
    let word = cursor.spelling(cursor.token);
    match all.iter().find(|&&member| spell(member) == word) {
        Some(&member) => {
            cursor.advance();
            Ok(member)
        }
        None => Err(cursor.unexpected(&wanted())),
    }
}

fn order(cursor: &mut Cursor<'_>) -> Parsed<Permutation> {
    let mut axes = [0, 1, 2, 3];
    let start = cursor.expect_mark(b'[')?;
    let mut count = 0;
    while !cursor.eat(b']') {
        if count > 0 {
            cursor.expect_mark(b',')?;
        }
        let axis = cursor.axis()?;
        let Some(place) = axes.get_mut(count) else {
            let message = format!("an order has at most {} axes", Shape::MAX_RANK);
            return Err(cursor.at_token(start, message, "too many axes"));
        };
        *place = axis;
        count += 1;
    }
    Ok(Permutation(axes))
}

impl Visitor for Positional<'_, '_> {
    type Error = Box<Problem>;
    fn ty(&mut self, ty: &mut Type) -> Parsed<()> {
        *ty = self.0.ty()?;
        Ok(())
    }
    fn axis(&mut self, _: &'static str, _: &mut u8) -> Parsed<()> {
        Ok(())
    }
    fn number(&mut self, _: &'static str, _: &mut u32) -> Parsed<()> {
        Ok(())
    }
    fn float(&mut self, _: &'static str, _: &mut Float) -> Parsed<()> {
        Ok(())
    }
    fn element(&mut self, _: &'static str, _: DType, _: &mut u32) -> Parsed<()> {
        Ok(())
    }
    fn flag(&mut self, _: &'static str, _: &mut bool) -> Parsed<()> {
        Ok(())
    }
    fn dtype(&mut self, _: &'static str, _: &mut DType) -> Parsed<()> {
        Ok(())
    }
    fn shape(&mut self, _: &'static str, _: &mut Shape) -> Parsed<()> {
        Ok(())
    }
    fn order(&mut self, _: &'static str, _: &mut Permutation) -> Parsed<()> {
        Ok(())
    }
    fn fold(&mut self, _: &'static str, _: &mut Fold) -> Parsed<()> {
        Ok(())
    }
    fn over(&mut self, _: &'static str, _: &mut Over) -> Parsed<()> {
        Ok(())
    }
}

impl Visitor for Assign<'_, '_> {
    type Error = Box<Problem>;
    fn ty(&mut self, _: &mut Type) -> Parsed<()> {
        Ok(())
    }
    fn axis(&mut self, name: &'static str, axis: &mut u8) -> Parsed<()> {
        self.assign(name, axis, |cursor| cursor.axis())
    }
    fn number(&mut self, name: &'static str, number: &mut u32) -> Parsed<()> {
        self.assign(name, number, |cursor| cursor.number())
    }
    fn float(&mut self, name: &'static str, number: &mut Float) -> Parsed<()> {
        self.assign(name, number, |cursor| cursor.float().map(Float::new))
    }
    fn element(&mut self, name: &'static str, of: DType, bits: &mut u32) -> Parsed<()> {
        self.assign(name, bits, |cursor| cursor.element(of))
    }
    fn flag(&mut self, name: &'static str, flag: &mut bool) -> Parsed<()> {
        *flag |= self.is(name);
        Ok(())
    }
    fn dtype(&mut self, name: &'static str, dtype: &mut DType) -> Parsed<()> {
        self.assign(name, dtype, |cursor| cursor.dtype())
    }
    fn shape(&mut self, name: &'static str, shape: &mut Shape) -> Parsed<()> {
        self.assign(name, shape, |cursor| cursor.shape())
    }
    fn order(&mut self, name: &'static str, to: &mut Permutation) -> Parsed<()> {
        self.assign(name, to, order)
    }
    fn fold(&mut self, name: &'static str, fold: &mut Fold) -> Parsed<()> {
        self.assign(name, fold, |cursor| choice(cursor, Fold::ALL, Fold::spelling))
    }
    fn over(&mut self, name: &'static str, over: &mut Over) -> Parsed<()> {
        self.assign(name, over, |cursor| choice(cursor, Over::ALL, Over::spelling))
    }
}

macro_rules! require {
    ($($visit:ident: $of:ty,)*) => {
        $(fn $visit(&mut self, name: &'static str, _: &mut $of) -> Result<(), Self::Error> {
            self.required(name);
            Ok(())
        })*
    };
}

impl Visitor for Names {
    type Error = std::convert::Infallible;
    require! {
        axis: u8, number: u32, float: Float, dtype: DType, shape: Shape, order: Permutation, fold: Fold,
        over: Over,
    }
    fn ty(&mut self, _: &mut Type) -> Result<(), Self::Error> {
        Ok(())
    }
    fn element(&mut self, name: &'static str, _: DType, _: &mut u32) -> Result<(), Self::Error> {
        self.required(name);
        Ok(())
    }
    fn flag(&mut self, name: &'static str, _: &mut bool) -> Result<(), Self::Error> {
        self.flags |= 1 << self.count;
        self.add(name);
        Ok(())
    }
}
