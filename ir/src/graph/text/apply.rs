//! Applications: `%3, %4 = call @node[@w, @b](%1, %2) !7` and `%2 = slice{axis=0 start=2 len=4}(%1)`.
//!
//! The result types come from the same [`infer`] as the emitter's and are compared with those that
//! the text gives. Operands go straight into the arena; a refused text drops it as a whole.

use super::attributes::{braces, positional};
use super::cursor::span;
use super::error::{Parsed, Problem, nearest};
use super::lex::{Kind, Token, token};
use super::parse::Parser;
use super::vocabulary::{prototype, spellings};
use crate::graph::data::hash_app;
use crate::graph::infer::{InferError, infer};
use crate::graph::op::Op;
use crate::graph::{Arity, Callee, Operand, ParamArg, Signature};
use crate::hash::hash_of;
use crate::id::{CellId, ParamId, SigId, TypeId, ValueId};
use crate::module::Module;
use crate::types::{DType, Type};
use std::fmt::Write as _;

/// How many signatures the cache in front of the table remembers.
pub(super) const SIG_CACHE: usize = 256;

impl Parser<'_> {
    /// One application with its results.
    #[inline]
    pub(super) fn application(&mut self) -> Parsed<()> {
        self.results()?;
        let mark = self.arena.operand_mark();
        let callee = self.cursor.expect(Kind::Word, "an op or 'call'")?;
        self.args.clear();
        self.operand_types.clear();
        let sig = match self.cursor.spelling(callee) {
            "call" => self.call()?,
            word => self.op(callee, word)?,
        };
        let site = self.site()?;
        let results = self.sigs.get(sig).results.len();
        if results != self.result_names.len() {
            return Err(self.wrong_results(callee, results));
        }
        self.check_annotations(sig)?;
        let operands = self.arena.operand_pool().len();
        let (words, floats) = (self.bindings.words.len(), self.bindings.floats.len());
        let fullest = operands.max(words).max(floats).max(self.arena.values() + results);
        if fullest > self.limit {
            return Err(self.cursor.at_token(
                callee,
                "the graph is full",
                "too many operands, values or bound numbers",
            ));
        }
        if !self.in_cell {
            let words = self.arena.operand_pool()[mark as usize..].iter().map(|operand| operand.word());
            hash_app(&mut self.hash, self.sigs.hash(sig), words);
        }
        let first = self.arena.push(sig, mark, &self.sigs.get(sig).results, site);
        let mut names = std::mem::take(&mut self.result_names);
        for (place, &name) in names.iter().enumerate() {
            self.declare_value(name, first + place as u32)?;
        }
        names.clear();
        self.result_names = names;
        Ok(())
    }

    /// `%a, %b: f32[4] =`, kept until it is known what they are.
    #[inline]
    fn results(&mut self) -> Parsed<()> {
        self.annotations.clear();
        self.result_names.clear();
        if !self.cursor.at(Kind::Value) {
            return Ok(());
        }
        loop {
            let name = self.cursor.expect(Kind::Value, "the name of a result")?;
            if self.cursor.eat(b':') {
                let place = self.result_names.len() as u32;
                self.annotations.push((place, self.cursor.ty()?));
            }
            self.result_names.push(name.start);
            if !self.cursor.eat(b',') {
                break;
            }
        }
        self.cursor.expect_mark(b'=').map(|_| ())
    }

    #[inline]
    fn check_annotations(&self, sig: SigId) -> Parsed<()> {
        for &(place, wanted) in &self.annotations {
            let found = self.types.get(self.sigs.get(sig).results[place as usize]);
            if found != wanted {
                let name = token(self.cursor.bytes(), self.result_names[place as usize] as usize);
                let message = format!("%{} is {found}, not {wanted}", self.cursor.name(name));
                return Err(self
                    .cursor
                    .at_token(name, message, format!("its type is {found}"))
                    .help("correct the type, or leave it out: types follow from the operands"));
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong_results(&self, callee: Token, results: usize) -> Box<Problem> {
        let named = self.result_names.len();
        let message = format!("this application has {results} results, {named} are named");
        self.cursor.at_token(callee, message, "name each result").help("write %a, %b = .. for two results")
    }

    fn op(&mut self, callee: Token, word: &str) -> Parsed<SigId> {
        let Some(mut op) = prototype(word) else { return Err(self.unknown_op(callee, word)) };
        if matches!(op, Op::Port(_)) {
            let message = "a port is no application";
            return Err(self
                .cursor
                .at_token(callee, message, "not here")
                .help("ports stand in the head of a cell: cell @f(%x: f32[4])"));
        }
        positional(&mut self.cursor, &mut op)?;
        let element = match op {
            Op::List if self.cursor.at(Kind::Word) => Some(self.cursor.ty()?),
            _ => None,
        };
        braces(&mut self.cursor, &mut op, callee)?;
        self.param_args()?;
        if let Op::Affine { bias, .. } = &mut op {
            *bias = self.args.len() == 2;
        }
        match op {
            Op::Input(ty) => self.input(ty)?,
            Op::List => self.list(callee, element)?,
            _ => self.operands()?,
        }
        self.check_lengths(op, callee)?;
        self.op_sig(op, callee)
    }

    #[cold]
    fn unknown_op(&self, callee: Token, word: &str) -> Box<Problem> {
        let problem = self.cursor.at_token(callee, format!("unknown op '{word}'"), "no op has this name");
        match nearest(word, spellings().chain(["call"])) {
            Some(near) => problem.help(format!("did you mean '{near}'?")),
            None if self.cells.find(self.cursor.bytes(), word.as_bytes()).is_some() => {
                problem.help(format!("cells are called by 'call @{word}(..)'"))
            }
            None => problem.help("cells are called by 'call @name(..)'"),
        }
    }

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
    fn operands(&mut self) -> Parsed<()> {
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
    fn operand(&mut self) -> Parsed<TypeId> {
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
    fn input(&mut self, ty: Type) -> Parsed<()> {
        let start = self.cursor.expect_mark(b'(')?;
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
        if !self.cursor.eat(b')') {
            let problem = self.cursor.unexpected("')'");
            return Err(problem.help(format!("input takes one operand, from byte {} on", start.start)));
        }
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
    fn list(&mut self, callee: Token, element: Option<Type>) -> Parsed<()> {
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

    /// Ops over two lists need lists of one length, which no signature knows.
    fn check_lengths(&self, op: Op, callee: Token) -> Parsed<()> {
        let pending = match op {
            Op::WeightedSum { .. } => 2,
            Op::Attend { .. } => 3,
            _ => return Ok(()),
        };
        let [.., a, b] = self.arena.operand_pool() else { return Ok(()) };
        if self.operand_types.len() != pending {
            return Ok(());
        }
        // The operands of the application at hand lie behind those of the last one in the arena,
        // which does not know yet that its own have ended.
        let length = |operand: &Operand| {
            let producer = self.arena.producer(operand.as_value()?);
            let is_list = self.sigs.get(self.arena.app(producer).sig).is_list();
            let beyond = if producer.index() + 1 == self.arena.len() { pending } else { 0 };
            is_list.then(|| self.arena.operands(producer).len() - beyond)
        };
        match (length(a), length(b)) {
            (Some(a), Some(b)) if a != b => {
                let message = format!("the lists must be equally long, found {a} and {b} values");
                Err(self
                    .cursor
                    .at_token(callee, message, "over these lists")
                    .help("give each value its score"))
            }
            _ => Ok(()),
        }
    }

    /// The signature of an op on the operands and arguments at hand.
    fn op_sig(&mut self, op: Op, callee: Token) -> Parsed<SigId> {
        let key = hash_of(&(Callee::Op(op), &*self.operand_types, &*self.args));
        if let Some(sig) = self.cached(key, Callee::Op(op)) {
            return Ok(sig);
        }
        // A text must name every part before memory is spent on parts.
        if let Op::Split { parts, .. } = op
            && parts as usize != self.result_names.len()
        {
            return Err(self.wrong_results(callee, parts as usize));
        }
        let operands: Vec<Type> = self.operand_types.iter().map(|&ty| self.types.get(ty)).collect();
        let params: Vec<Type> = self.args.iter().map(|&arg| self.types.get(self.param_type(arg))).collect();
        let results = infer(&op, &operands, &params)
            .map_err(|error| self.refused_op(op, callee, error, &operands, &params))?;
        drop(operands);
        let signature = Signature {
            callee: Callee::Op(op),
            operands: self.operand_types.as_slice().into(),
            params: self.args.as_slice().into(),
            param_types: self.args.iter().map(|&arg| self.param_type(arg)).collect(),
            results: results.into_iter().map(|ty| self.types.intern(ty)).collect(),
        };
        Ok(self.remember(key, signature))
    }

    #[cold]
    fn refused_op(
        &self,
        op: Op,
        callee: Token,
        error: InferError,
        operands: &[Type],
        params: &[Type],
    ) -> Box<Problem> {
        let takes_no = matches!(op.arity(), Arity::Exactly(0)) && operands.is_empty();
        let mut found = String::new();
        for (place, ty) in params.iter().chain(operands).take(12).enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(found, "{comma}{ty}").expect("writing to a string does not fail");
        }
        let label =
            if takes_no || found.is_empty() { "here".to_owned() } else { format!("applied to {found}") };
        let problem = self.cursor.at_token(callee, format!("{}: {}", op.spelling(), error.message), label);
        match error.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    /// `call @node[@w, @b](%1, #2)`
    fn call(&mut self) -> Parsed<SigId> {
        let name = self.cursor.at_name("a cell such as @node")?;
        let cell = self.cell_named(name)?;
        self.param_args()?;
        self.check_args(cell, name)?;
        let ports = self.module.cells[cell.index()].body.ports;
        self.cursor.expect_mark(b'(')?;
        let mut count = 0;
        while !self.cursor.eat(b')') {
            if count > 0 {
                self.cursor.expect_mark(b',')?;
            }
            let token = self.cursor.token;
            let found = self.operand()?;
            if count < ports {
                let wanted = self.module.cells[cell.index()].body.arena.value_types()[count];
                if found != wanted {
                    return Err(self.wrong_port(name, token, count, found, wanted));
                }
            }
            count += 1;
        }
        if count != ports {
            let body = &self.module.cells[cell.index()].body;
            let message = format!("@{} has {ports} ports, found {count} operands", self.cursor.name(name));
            let problem = self.cursor.at_token(name, message, "called here");
            return Err(if body.noise {
                problem.help("its last two ports are the noise key: bind two numbers, #1, #2")
            } else {
                problem
            });
        }
        self.cell_sig(cell)
    }

    #[cold]
    fn wrong_port(
        &self,
        cell: Token,
        token: Token,
        place: usize,
        found: TypeId,
        wanted: TypeId,
    ) -> Box<Problem> {
        let (wanted, found) = (self.types.get(wanted), self.types.get(found));
        let message = format!("port {place} of @{} takes {wanted}, found {found}", self.cursor.name(cell));
        Problem::new(span(token), message, format!("this is {found}"))
    }

    /// The cell behind a name.
    pub(super) fn cell_named(&self, token: Token) -> Parsed<CellId> {
        let name = self.cursor.name(token);
        if let Some(number) = self.cells.find(self.cursor.bytes(), name.as_bytes()) {
            return Ok(CellId::new(number as usize));
        }
        let problem = self.cursor.at_token(token, format!("unknown cell @{name}"), "not declared above");
        Err(match nearest(name, self.cells.recent(self.cursor.bytes())) {
            Some(near) => problem.help(format!("did you mean @{near}?")),
            None => problem.help("cells stand above the 'graph' line; a body calls earlier cells only"),
        })
    }

    /// Whether the parameter arguments at hand are those that a cell takes.
    pub(super) fn check_args(&self, cell: CellId, name: Token) -> Parsed<()> {
        let wanted = &self.module.cells[cell.index()].body.param_types;
        let (count, found) = (wanted.len(), self.args.len());
        let named = self.cursor.name(name);
        if count != found {
            let message = format!("@{named} takes {count} parameter arguments, found {found}");
            return Err(self.cursor.at_token(name, message, "in brackets behind this name"));
        }
        for (place, (&wanted, &arg)) in wanted.iter().zip(&self.args).enumerate() {
            let found = self.param_type(arg);
            if found != wanted {
                let (wanted, found) = (self.types.get(wanted), self.types.get(found));
                let message =
                    format!("parameter argument {place} of @{named} must be {wanted}, found {found}");
                return Err(self.cursor.at_token(name, message, "in brackets behind this name"));
            }
        }
        Ok(())
    }

    /// The signature of calls of `cell` with the arguments at hand.
    pub(super) fn cell_sig(&mut self, cell: CellId) -> Parsed<SigId> {
        let key = hash_of(&(Callee::Cell(cell), &*self.args));
        if let Some(sig) = self.cached_call(key, cell) {
            return Ok(sig);
        }
        let body = &self.module.cells[cell.index()].body;
        let signature = Signature {
            callee: Callee::Cell(cell),
            operands: body.port_types().collect(),
            params: self.args.as_slice().into(),
            param_types: body.param_types.as_slice().into(),
            results: body.results.iter().map(|&value| body.arena.type_of(value)).collect(),
        };
        Ok(self.remember(key, signature))
    }

    #[inline]
    fn cached(&self, key: u64, callee: Callee) -> Option<SigId> {
        let (cached, sig) = self.sig_cache[key as usize % SIG_CACHE]?;
        let known = self.sigs.get(sig);
        let same = cached == key
            && known.callee == callee
            && *known.operands == *self.operand_types
            && *known.params == *self.args;
        same.then_some(sig)
    }

    #[inline]
    fn cached_call(&self, key: u64, cell: CellId) -> Option<SigId> {
        let (cached, sig) = self.sig_cache[key as usize % SIG_CACHE]?;
        let known = self.sigs.get(sig);
        (cached == key && known.callee == Callee::Cell(cell) && *known.params == *self.args).then_some(sig)
    }

    fn remember(&mut self, key: u64, signature: Signature) -> SigId {
        let sig = self.sigs.intern(signature, &self.types);
        self.sig_cache[key as usize % SIG_CACHE] = Some((key, sig));
        sig
    }

    fn param_type(&self, arg: ParamArg) -> TypeId {
        match arg {
            ParamArg::Module(id) => self.param_types[id.index()],
            ParamArg::Port(number) => self.port_types[number as usize],
        }
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
            None => problem.help("an application names only values of the lines above it"),
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
