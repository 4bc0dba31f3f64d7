//! Parsing attributes: `{axis=0 start=2 len=4}`, in any order, each at most once, flags optional.

use super::cursor::Cursor;
use super::error::{Parsed, TextProblem, nearest};
use super::lex::{Kind, Token};
use super::vocabulary::{Attr, attributes};
use crate::graph::op::{Float, Fold, Op, Over, Permutation};
use crate::types::Shape;

impl Cursor<'_> {
    /// The type behind the word of an op, if the op has one.
    #[inline]
    pub(crate) fn positional(&mut self, op: &mut Op) -> Parsed<()> {
        attributes(op, &mut |_, attr| {
            if let Attr::Type(ty) = attr {
                *ty = self.ty()?;
            }
            Ok(())
        })
    }

    /// `{axis=0 start=2 len=4}`, in any order.
    #[inline]
    pub(crate) fn braces(&mut self, op: &mut Op, callee: Token) -> Parsed<()> {
        let mut seen = 0u32;
        if self.eat(b'{') {
            while !self.eat(b'}') {
                let name = self.expect(Kind::Word, "an attribute or '}'")?;
                let Some(place) = self.assign(op, name)? else {
                    return Err(self.unknown_attribute(op, name));
                };
                if seen & (1 << place) != 0 {
                    let message = format!("the attribute '{}' is given twice", self.spelling(name));
                    return Err(self.at_token(name, message, "here again"));
                }
                seen |= 1 << place;
            }
        }
        let names = Names::of(op);
        match names.missing(seen) {
            None => Ok(()),
            Some(missing) => {
                let message = format!("{} needs the attribute '{missing}'", op.spelling());
                let help = format!("write {}{{{}}}", op.spelling(), names.example());
                Err(self.at_token(callee, message, "it is missing").help(help))
            }
        }
    }

    /// Reads the value of the attribute that `name` names; its position among the attributes of the
    /// op, if it has such an attribute.
    #[inline]
    fn assign(&mut self, op: &mut Op, name: Token) -> Parsed<Option<u32>> {
        let word = self.spelling(name);
        let (mut place, mut hit) = (0, None);
        attributes(op, &mut |name, attr| {
            if !name.is_empty() {
                if name == word {
                    hit = Some(place);
                    self.value_of(attr)?;
                }
                place += 1;
            }
            Parsed::Ok(())
        })?;
        Ok(hit)
    }

    /// The value behind the name of an attribute; a flag has none.
    fn value_of(&mut self, attr: Attr<'_>) -> Parsed<()> {
        if let Attr::Flag(flag) = attr {
            *flag = true;
            return Ok(());
        }
        self.expect_mark(b'=')?;
        match attr {
            Attr::Type(_) | Attr::Flag(_) => {}
            Attr::Axis(axis) => *axis = self.axis()?,
            Attr::Number(number) => *number = self.number()?,
            Attr::Float(number) => *number = Float::new(self.float()?),
            Attr::Element(dtype, bits) => *bits = self.element(dtype)?,
            Attr::DType(dtype) => *dtype = self.dtype()?,
            Attr::Shape(shape) => *shape = self.shape()?,
            Attr::Order(to) => *to = order(self)?,
            Attr::Fold(fold) => *fold = choice(self, Fold::ALL, Fold::spelling)?,
            Attr::Over(over) => *over = choice(self, Over::ALL, Over::spelling)?,
        }
        Ok(())
    }

    #[cold]
    fn unknown_attribute(&self, op: &mut Op, name: Token) -> Box<TextProblem> {
        let word = self.spelling(name);
        let names = Names::of(op);
        let otherwise = match names.all() {
            [] => format!("{} has no attributes", op.spelling()),
            _ => format!("write {}{{{}}}", op.spelling(), names.example()),
        };
        self.at_token(name, format!("{} has no attribute '{word}'", op.spelling()), "unknown attribute")
            .suggest(nearest(word, names.all().iter().copied()).map(|near| format!("'{near}'")), otherwise)
    }
}

/// The names of the attributes of an op, and which of them are flags.
#[derive(Default)]
struct Names {
    flags: u32,
    count: usize,
    all: [&'static str; 8],
}

impl Names {
    fn of(op: &mut Op) -> Self {
        let mut names = Self::default();
        let Ok(()) = attributes::<std::convert::Infallible>(op, &mut |name, attr| {
            if !name.is_empty() {
                names.flags |= u32::from(matches!(attr, Attr::Flag(_))) << names.count;
                names.all[names.count] = name;
                names.count += 1;
            }
            Ok(())
        });
        names
    }

    fn all(&self) -> &[&'static str] {
        &self.all[..self.count]
    }

    /// The first required attribute that is not in the set `seen`.
    fn missing(&self, seen: u32) -> Option<&'static str> {
        let place = (seen | self.flags).trailing_ones() as usize;
        self.all().get(place).copied()
    }

    fn example(&self) -> String {
        let words = self.all().iter().enumerate().map(|(place, name)| {
            if self.flags & (1 << place) != 0 { (*name).to_owned() } else { format!("{name}=..") }
        });
        words.collect::<Vec<String>>().join(" ")
    }
}

/// Reads one word of a closed set.
fn choice<T: Copy>(cursor: &mut Cursor<'_>, all: &[T], spell: impl Fn(T) -> &'static str) -> Parsed<T> {
    let words = || all.iter().map(|&member| spell(member));
    let expected = || format!("one of {}", words().collect::<Vec<_>>().join(", "));
    if !cursor.at(Kind::Word) {
        return Err(cursor.unexpected(&expected()));
    }
    let word = cursor.spelling(cursor.token);
    match all.iter().find(|&&member| spell(member) == word) {
        Some(&member) => {
            cursor.advance();
            Ok(member)
        }
        None => Err(cursor.unexpected(&expected())),
    }
}

fn order(cursor: &mut Cursor<'_>) -> Parsed<Permutation> {
    let mut axes = [0, 1, 2, 3];
    let start = cursor.expect_mark(b'[')?;
    let mut count = 0;
    while cursor.next_item(b']', count == 0)? {
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

#[cfg(test)]
#[path = "tests/attrs.rs"]
mod tests;
