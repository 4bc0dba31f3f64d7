//! What nodes take: parameter arguments, values, bound numbers, the elements of lists.

use super::error::{Parsed, Problem, nearest};
use super::lex::{Kind, Token, token};
use super::parse::Parser;
use crate::graph::{Operand, ParamArg};
use crate::id::{ParamId, TypeId, ValueId};
use crate::module::Module;
use crate::types::{DType, Type};

impl Parser<'_> {
    /// `[@w, @b]`
    #[inline]
    pub(super) fn param_args(&mut self) -> Parsed<()> {
        self.args.clear();
        if !self.cursor.eat(b'[') {
            return Ok(());
        }
        while !self.cursor.eat(b']') {
            if !self.args.is_empty() {
                self.cursor.expect_mark(b',')?;
            }
            let token = self.cursor.at_name("a parameter such as @w")?;
            let arg = self.param_arg(token)?;
            self.args.push(arg);
        }
        Ok(())
    }

    /// In the body of a cell, parameters are those of its head.
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
        Err(match nearest(name, names.recent(self.cursor.text.as_bytes())) {
            Some(near) => problem.help(format!("did you mean @{near}?")),
            None => problem.help(format!("declare it: param @{name} f32[..] = glorot(1)")),
        })
    }

    /// `(%1, #17, %2)`; no parentheses mean no operands.
    #[inline]
    pub(super) fn operands(&mut self) -> Parsed<()> {
        if !self.cursor.eat(b'(') {
            return Ok(());
        }
        while !self.cursor.eat(b')') {
            if !self.operand_types.is_empty() {
                self.cursor.expect_mark(b',')?;
            }
            let ty = self.operand()?;
            self.operand_types.push(ty);
        }
        Ok(())
    }

    /// One operand, which goes into the arena; its type.
    #[inline]
    pub(super) fn operand(&mut self) -> Parsed<TypeId> {
        if self.cursor.at(Kind::Value) {
            let token = self.cursor.advance();
            let value = self.value(token)?;
            self.arena.push_operand(Operand::value(value));
            return Ok(self.arena.type_of(value));
        }
        let sigil = self.cursor.expect(Kind::Hash, "a value such as %3 or an index such as #17")?;
        self.refuse_in_cell(sigil)?;
        if self.cursor.at(Kind::Mark(b'[')) {
            let message = "only input binds several numbers";
            let help = "write %x = input f32[2] (#[1.0, 2.0]) and name %x here";
            return Err(self.cursor.at_token(self.cursor.token, message, "one index goes here").help(help));
        }
        let word = self.cursor.number()?;
        let slot = self.bindings.words.len() as u32;
        self.bindings.words.push(word);
        self.arena.push_operand(Operand::index(slot));
        Ok(Module::index_type())
    }

    fn refuse_in_cell(&self, sigil: Token) -> Parsed<()> {
        if !self.in_cell {
            return Ok(());
        }
        let message = "a cell has no bound numbers of its own";
        Err(self.cursor.at_token(sigil, message, "bound here").help("take it as a port: cell @f(%i: u32)"))
    }

    /// `(#17)`, `(#[1.0, 2.0])`
    pub(super) fn input(&mut self, ty: Type) -> Parsed<()> {
        self.cursor.expect_mark(b'(')?;
        let sigil = self.cursor.expect(Kind::Hash, "bound numbers such as #3 or #[1.0, 2.0]")?;
        self.refuse_in_cell(sigil)?;
        let float = ty.dtype == DType::F32;
        let (words, floats) = (self.bindings.words.len(), self.bindings.floats.len());
        if ty.shape.rank() == 0 {
            self.bound(ty.dtype)?;
        } else {
            self.cursor.expect_mark(b'[')?;
            let mut count = 0u64;
            while !self.cursor.eat(b']') {
                if count > 0 {
                    self.cursor.expect_mark(b',')?;
                }
                self.bound(ty.dtype)?;
                count += 1;
            }
            if count != ty.shape.elements() as u64 {
                let message = format!("{ty} wants {} numbers, found {count}", ty.shape.elements());
                return Err(self.cursor.at_token(sigil, message, format!("{count} numbers begin here")));
            }
        }
        self.cursor.expect_mark(b')')?;
        if floats.max(words) > self.limit {
            return Err(self.cursor.at_token(sigil, "the graph is full", "too many bound numbers"));
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
        let mut wanted = element.map(|ty| self.types.intern(ty));
        let mut count = 0usize;
        if self.cursor.eat(b'(') {
            while !self.cursor.eat(b')') {
                if count > 0 {
                    self.cursor.expect_mark(b',')?;
                }
                let token = self.cursor.expect(Kind::Value, "a value such as %3")?;
                let value = self.value(token)?;
                let found = self.arena.type_of(value);
                if *wanted.get_or_insert(found) != found {
                    let wanted = self.types.get(wanted.unwrap_or(found));
                    let found = self.types.get(found);
                    let message = format!("element {count} must be {wanted} like the first, found {found}");
                    return Err(self.cursor.at_token(token, message, format!("this is {found}")));
                }
                self.arena.push_operand(Operand::value(value));
                count += 1;
            }
        }
        let Some(wanted) = wanted else {
            let message = "the element type of an empty list is unknown";
            return Err(self.cursor.at_token(callee, message, "no elements").help("write list f32[4] ()"));
        };
        self.operand_types.push(wanted);
        Ok(())
    }

    /// The value that a token names.
    #[inline]
    pub(super) fn value(&self, token: Token) -> Parsed<ValueId> {
        let name = self.cursor.name(token);
        match self.values.find(self.cursor.bytes(), name.as_bytes()) {
            Some(number) => Ok(ValueId::new(number as usize)),
            None => Err(self.unknown_value(token, name)),
        }
    }

    #[cold]
    fn unknown_value(&self, token: Token, name: &str) -> Box<Problem> {
        let problem = self.cursor.at_token(token, format!("%{name} is not defined"), "used here");
        match nearest(name, self.values.recent(self.cursor.bytes())) {
            Some(near) => problem.help(format!("did you mean %{near}?")),
            None if self.in_cell => problem.help("a body names its ports and earlier values of its own only"),
            None => problem.help("a node names only values of the lines above it"),
        }
    }

    #[inline]
    pub(super) fn declare_value(&mut self, place: u32, number: u32) -> Parsed<()> {
        if self.values.declare(self.cursor.bytes(), place, number) {
            return Ok(());
        }
        let token = token(self.cursor.bytes(), place as usize);
        let message = format!("the name %{} is taken", self.cursor.name(token));
        Err(self
            .cursor
            .at_token(token, message, "defined again")
            .help("a value is defined once: choose another name"))
    }
}
