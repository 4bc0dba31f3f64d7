//! Attributes from text: `{axis=0 start=2 len=4}`, in any order, each once, flags at will.
//!
//! Three visitors of the one walk over an op's attributes: the type behind the op's word, the value
//! of one named attribute, and the names, for what is missing or misspelt.

use super::cursor::Cursor;
use super::error::{Parsed, Problem, nearest};
use super::lex::{Kind, Token};
use super::vocabulary::{Visitor, attributes};
use crate::graph::op::{Float, Fold, Op, Over, Permutation};
use crate::types::{DType, Shape, Type};

impl Cursor<'_> {
    /// The type behind an op's word, where the op has one.
    #[inline]
    pub(crate) fn positional(&mut self, op: &mut Op) -> Parsed<()> {
        attributes(op, &mut Positional(self))
    }

    /// `{axis=0 start=2 len=4}`, in any order.
    #[inline]
    pub(crate) fn braces(&mut self, op: &mut Op, callee: Token) -> Parsed<()> {
        let mut seen = 0u32;
        if self.eat(b'{') {
            while !self.eat(b'}') {
                let name = self.expect(Kind::Word, "an attribute or '}'")?;
                let mut assign = Assign { cursor: self, name, place: 0, hit: None };
                attributes(op, &mut assign)?;
                let Some(place) = assign.hit else { return Err(self.unknown_attribute(op, name)) };
                if seen & (1 << place) != 0 {
                    let message = format!("the attribute '{}' is given twice", self.spelling(name));
                    return Err(self.at_token(name, message, "here again"));
                }
                seen |= 1 << place;
            }
        }
        let mut names = Names { seen, ..Names::default() };
        let Ok(()) = attributes(op, &mut names);
        match names.missing {
            None => Ok(()),
            Some(missing) => {
                let message = format!("{} needs the attribute '{missing}'", op.spelling());
                let help = format!("write {}{{{}}}", op.spelling(), names.example());
                Err(self.at_token(callee, message, "it is missing").help(help))
            }
        }
    }

    #[cold]
    fn unknown_attribute(&self, op: &mut Op, name: Token) -> Box<Problem> {
        let word = self.spelling(name);
        let mut names = Names::default();
        let Ok(()) = attributes(op, &mut names);
        let problem =
            self.at_token(name, format!("{} has no attribute '{word}'", op.spelling()), "unknown attribute");
        match nearest(word, names.all().iter().copied()) {
            Some(near) => problem.help(format!("did you mean '{near}'?")),
            None if names.all().is_empty() => problem.help(format!("{} has no attributes", op.spelling())),
            None => problem.help(format!("write {}{{{}}}", op.spelling(), names.example())),
        }
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

macro_rules! ignore {
    ($($visit:ident: $of:ty,)*) => {
        $(fn $visit(&mut self, _: &'static str, _: &mut $of) -> Parsed<()> {
            Ok(())
        })*
    };
}

impl Visitor for Positional<'_, '_> {
    type Error = Box<Problem>;
    ignore! {
        axis: u8, number: u32, float: Float, flag: bool, dtype: DType, shape: Shape, order: Permutation,
        fold: Fold, over: Over,
    }
    fn ty(&mut self, ty: &mut Type) -> Parsed<()> {
        *ty = self.0.ty()?;
        Ok(())
    }
    fn element(&mut self, _: &'static str, _: DType, _: &mut u32) -> Parsed<()> {
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

#[cfg(test)]
mod tests {
    use super::super::vocabulary::{prototype, spellings};
    use super::super::write::push_op;
    use super::*;

    /// Fills attributes in with anything that their types can hold.
    struct Random(u64);

    impl Random {
        fn word(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let small = self.0 >> 62 == 0;
            (self.0 >> 29) as u32 % if small { 5 } else { u32::MAX }
        }

        fn of<T: Copy>(&mut self, all: &[T]) -> T {
            all[self.word() as usize % all.len()]
        }
    }

    macro_rules! fill {
        ($($visit:ident: $of:ty = |$random:ident| $value:expr;)*) => {
            $(fn $visit(&mut self, _: &'static str, to: &mut $of) -> Result<(), Self::Error> {
                let $random = self;
                *to = $value;
                Ok(())
            })*
        };
    }

    impl Visitor for Random {
        type Error = std::convert::Infallible;
        fill! {
            axis: u8 = |random| random.word() as u8;
            number: u32 = |random| random.word();
            float: Float = |random| Float::new(f32::from_bits(random.word()));
            flag: bool = |random| random.word() & 1 == 0;
            dtype: DType = |random| random.of(&DType::ALL);
            order: Permutation = |random| Permutation([0; 4].map(|_: u8| (random.word() % 6) as u8));
            fold: Fold = |random| random.of(Fold::ALL);
            over: Over = |random| random.of(Over::ALL);
            shape: Shape = |random| {
                let dims = [0; 4].map(|_| random.word() % 90 + 1);
                let rank = random.word() as usize % 5;
                Shape::new(&dims[..rank]).expect("four small extents are a shape")
            };
        }
        fn ty(&mut self, ty: &mut Type) -> Result<(), Self::Error> {
            self.dtype("", &mut ty.dtype)?;
            self.flag("", &mut ty.is_list)?;
            self.shape("", &mut ty.shape)
        }
        fn element(&mut self, _: &'static str, of: DType, bits: &mut u32) -> Result<(), Self::Error> {
            *bits = if of == DType::Bool { self.word() % 2 } else { self.word() };
            Ok(())
        }
    }

    #[test]
    fn any_attributes_of_any_op_read_back() {
        let mut random = Random(0x5eed_0002);
        for (round, word) in (0..200).flat_map(|round| spellings().map(move |word| (round, word))) {
            let mut op = prototype(word).expect("the word is an op's");
            let Ok(()) = attributes(&mut op, &mut random);
            let mut text = String::new();
            push_op(&mut text, op);
            let mut cursor = Cursor::new(&text);
            let callee = cursor.advance();
            let mut back = prototype(word).expect("the word is an op's");
            let read = cursor.positional(&mut back).and_then(|()| cursor.braces(&mut back, callee));
            assert!(
                read.is_ok() && back == op,
                "seed 0x5eed0002, round {round}: {text} read as {back:?}: {read:?}"
            );
            assert!(cursor.at(Kind::End), "{text}");
        }
    }
}
