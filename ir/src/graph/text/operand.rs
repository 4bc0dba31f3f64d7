//! Parsing operands: parameter arguments, values, bindings and the elements of lists.

use super::error::{Parsed, TextProblem, nearest};
use super::lex::{Kind, Token, token};
use super::parse::Parser;
use crate::graph::{Operand, ParamArg};
use crate::id::{ParamId, TypeId, ValueId};
use crate::module::Module;
use crate::types::{DType, Type};

/// The word before the bound words of a graph whose nodes name slots.
pub(super) const WORDS: &str = "words";
/// The word before the bound floats.
pub(super) const FLOATS: &str = "floats";
/// The word before the place of a binding.
pub(super) const SLOT: &str = "slot";

impl Parser<'_> {
    /// `[@w, @b]`
    #[inline]
    pub(super) fn param_args(&mut self) -> Parsed<()> {
        self.args.clear();
        if !self.cursor.eat(b'[') {
            return Ok(());
        }
        while self.cursor.next_item(b']', self.args.is_empty())? {
            let token = self.cursor.at_name("a parameter such as @w")?;
            let arg = self.param_arg(token)?;
            self.args.push(arg);
        }
        Ok(())
    }

    /// A parameter argument. The body of a cell names parameter ports of its head.
    fn param_arg(&self, token: Token) -> Parsed<ParamArg> {
        let (text, name) = (self.cursor.bytes(), self.cursor.name(token));
        let names = if self.in_cell { &self.ports } else { &self.params };
        if let Some(number) = names.find(text, name.as_bytes()) {
            return Ok(if self.in_cell {
                ParamArg::Port(number)
            } else {
                ParamArg::Module(ParamId::new(number as usize))
            });
        }
        let problem = self.cursor.at_token(token, format!("unknown parameter @{name}"), "not declared above");
        if self.in_cell && self.params.find(text, name.as_bytes()).is_some() {
            let help = format!("a cell takes its parameters as arguments: cell @name[@{name}: type](..)");
            return Err(problem.help(help));
        }
        let near = nearest(name, names.recent(text)).map(|near| format!("@{near}"));
        Err(problem.suggest(near, format!("declare it: param @{name} f32[..] = glorot(1)")))
    }

    /// `(%1, #17, %2)`. A node without operands may leave out the parentheses.
    #[inline]
    pub(super) fn operands(&mut self) -> Parsed<()> {
        if !self.cursor.eat(b'(') {
            return Ok(());
        }
        while self.cursor.next_item(b')', self.operand_types.is_empty())? {
            let ty = self.operand()?;
            self.operand_types.push(ty);
        }
        Ok(())
    }

    /// Parses one operand, appends it to the arena, and returns its type.
    #[inline]
    pub(super) fn operand(&mut self) -> Parsed<TypeId> {
        if self.cursor.at(Kind::Value) {
            let token = self.cursor.advance();
            let value = self.value(token)?;
            self.arena.push_operand(Operand::value(value));
            return Ok(self.arena.type_of(value));
        }
        if self.cursor.at_word(SLOT) {
            let slot = self.slot()?;
            self.arena.push_operand(Operand::index(slot));
            return Ok(Module::index_type());
        }
        let sigil = self.cursor.expect(Kind::Hash, "a value such as %3 or an index such as #17")?;
        self.check_outside_cell(sigil)?;
        if self.cursor.at(Kind::Mark(b'[')) {
            let message = "only 'input' binds several numbers";
            let help = "write %x = input f32[2] (#[1.0, 2.0]) and name %x here";
            return Err(self.cursor.at_token(self.cursor.token, message, "one index goes here").help(help));
        }
        let word = self.cursor.number()?;
        let slot = self.bindings.words.len() as u32;
        self.bindings.words.push(word);
        self.arena.push_operand(Operand::index(slot));
        Ok(Module::index_type())
    }

    fn check_outside_cell(&self, sigil: Token) -> Parsed<()> {
        if !self.in_cell {
            return Ok(());
        }
        let message = "numbers cannot be bound inside a cell";
        Err(self.cursor.at_token(sigil, message, "bound here").help("declare a port: cell @f(%i: u32)"))
    }

    /// `words [1, 2]` and `floats [0.5]`: the bindings of a graph whose nodes name slots.
    pub(super) fn pools(&mut self) -> Parsed<()> {
        for (word, dtype) in [(WORDS, DType::U32), (FLOATS, DType::F32)] {
            if !self.cursor.eat_word(word) {
                continue;
            }
            self.cursor.expect_mark(b'[')?;
            let mut is_first = true;
            while self.cursor.next_item(b']', is_first)? {
                self.bound(dtype)?;
                is_first = false;
            }
        }
        Ok(())
    }

    /// `slot 17`: the place of a binding in its pool.
    fn slot(&mut self) -> Parsed<u32> {
        let sigil = self.cursor.advance();
        self.check_outside_cell(sigil)?;
        let token = self.cursor.token;
        let slot = self.cursor.number()?;
        if slot as usize > self.limit {
            return Err(self.cursor.at_token(token, "the slot is too large", "beyond every pool"));
        }
        Ok(slot)
    }

    /// `(#17)`, `(#[1.0, 2.0])`, `(slot 3)`
    pub(super) fn input(&mut self, ty: Type) -> Parsed<()> {
        self.cursor.expect_mark(b'(')?;
        if self.cursor.at_word(SLOT) {
            let slot = self.slot()?;
            self.cursor.expect_mark(b')')?;
            let float = ty.dtype == DType::F32;
            self.arena.push_operand(if float { Operand::data(slot) } else { Operand::index(slot) });
            let id = self.types.intern(ty);
            self.operand_types.push(id);
            return Ok(());
        }
        let sigil = self.cursor.expect(Kind::Hash, "bindings such as #3 or #[1.0, 2.0]")?;
        self.check_outside_cell(sigil)?;
        let float = ty.dtype == DType::F32;
        let (words, floats) = (self.bindings.words.len(), self.bindings.floats.len());
        if ty.shape.rank() == 0 {
            self.bound(ty.dtype)?;
        } else {
            self.cursor.expect_mark(b'[')?;
            let mut count = 0u64;
            while self.cursor.next_item(b']', count == 0)? {
                self.bound(ty.dtype)?;
                count += 1;
            }
            if count != ty.shape.elements() as u64 {
                let message = format!("{ty} needs {} numbers, found {count}", ty.shape.elements());
                return Err(self.cursor.at_token(sigil, message, format!("{count} numbers begin here")));
            }
        }
        self.cursor.expect_mark(b')')?;
        if floats.max(words) > self.limit {
            return Err(self.cursor.at_token(sigil, "the graph is full", "too many bindings"));
        }
        let operand = if float { Operand::data(floats as u32) } else { Operand::index(words as u32) };
        self.arena.push_operand(operand);
        let id = self.types.intern(ty);
        self.operand_types.push(id);
        Ok(())
    }

    #[inline]
    fn bound(&mut self, dtype: DType) -> Parsed<()> {
        let bits = self.cursor.element(dtype)?;
        if dtype == DType::F32 {
            self.bindings.floats.push(f32::from_bits(bits));
        } else {
            self.bindings.words.push(bits);
        }
        Ok(())
    }

    /// `(%1, %2, %3)` of one type, or `f32[4] ()`.
    pub(super) fn list(&mut self, callee: Token, element: Option<Type>) -> Parsed<()> {
        let mut expected = element.map(|ty| self.types.intern(ty));
        let mut count = 0usize;
        if self.cursor.eat(b'(') {
            while self.cursor.next_item(b')', count == 0)? {
                let token = self.cursor.expect(Kind::Value, "a value such as %3")?;
                let value = self.value(token)?;
                let found = self.arena.type_of(value);
                if *expected.get_or_insert(found) != found {
                    let expected = self.types.get(expected.unwrap_or(found));
                    let found = self.types.get(found);
                    let message = format!("element {count} must be {expected} like the first, found {found}");
                    return Err(self.cursor.at_token(token, message, format!("this is {found}")));
                }
                self.arena.push_operand(Operand::value(value));
                count += 1;
            }
        }
        let Some(expected) = expected else {
            let message = "the element type of an empty list is unknown";
            return Err(self.cursor.at_token(callee, message, "no elements").help("write list f32[4] ()"));
        };
        self.operand_types.push(expected);
        Ok(())
    }

    /// The value with the name of a token.
    #[inline]
    pub(super) fn value(&self, token: Token) -> Parsed<ValueId> {
        let name = self.cursor.name(token);
        match self.values.find(self.cursor.bytes(), name.as_bytes()) {
            Some(number) => Ok(ValueId::new(number as usize)),
            None => Err(self.unknown_value(token, name)),
        }
    }

    #[cold]
    fn unknown_value(&self, token: Token, name: &str) -> Box<TextProblem> {
        let problem = self.cursor.at_token(token, format!("%{name} is not defined"), "used here");
        let near = nearest(name, self.values.recent(self.cursor.bytes())).map(|near| format!("%{near}"));
        problem.suggest(
            near,
            match self.in_cell {
                true => "a body can read only its ports and its earlier values",
                false => "a node can read only values of the lines above it",
            },
        )
    }

    #[inline]
    pub(super) fn declare_value(&mut self, place: u32, number: u32) -> Parsed<()> {
        if self.values.declare(self.cursor.bytes(), place, number) {
            return Ok(());
        }
        let token = token(self.cursor.bytes(), place as usize);
        let message = format!("the name %{} is taken", self.cursor.name(token));
        let problem = self.cursor.at_token(token, message, "defined again");
        Err(problem.help("choose another name; a value is defined once"))
    }
}
