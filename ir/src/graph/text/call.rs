//! Parsing calls of cells. The parser checks operand by operand, so a message points at the wrong one.

use super::apply::SIG_CACHE;
use super::cursor::span;
use super::error::{Parsed, TextProblem, nearest};
use super::lex::Token;
use super::parse::Parser;
use crate::graph::{Callee, Signature};
use crate::hash::hash_of;
use crate::id::{CellId, SigId, TypeId};

impl Parser<'_> {
    /// `call @node[@w, @b](%1, #2)`
    pub(super) fn call(&mut self) -> Parsed<SigId> {
        let name = self.cursor.at_name("a cell such as @node")?;
        let cell = self.cell_named(name)?;
        self.param_args()?;
        self.check_args(cell, name)?;
        let ports = self.module.cells[cell.index()].body.ports;
        self.cursor.expect_mark(b'(')?;
        let mut count = 0;
        while self.cursor.next_item(b')', count == 0)? {
            let token = self.cursor.token;
            let found = self.operand()?;
            if count < ports {
                let expected = self.module.cells[cell.index()].body.arena.value_types()[count];
                if found != expected {
                    return Err(self.wrong_port(name, token, count, found, expected));
                }
            }
            count += 1;
        }
        if count != ports {
            let body = &self.module.cells[cell.index()].body;
            let message = format!("@{} has {ports} ports, found {count} operands", self.cursor.name(name));
            let problem = self.cursor.at_token(name, message, "called here");
            return Err(if body.noise {
                problem.help("its last two ports are the noise key: pass two numbers, #1, #2")
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
        expected: TypeId,
    ) -> Box<TextProblem> {
        let (expected, found) = (self.types.get(expected), self.types.get(found));
        let message = format!("port {place} of @{} takes {expected}, found {found}", self.cursor.name(cell));
        TextProblem::new(span(token), message, format!("this is {found}"))
    }

    /// The cell with a name.
    pub(super) fn cell_named(&self, token: Token) -> Parsed<CellId> {
        let name = self.cursor.name(token);
        if let Some(number) = self.cells.find(self.cursor.bytes(), name.as_bytes()) {
            return Ok(CellId::new(number as usize));
        }
        let problem = self.cursor.at_token(token, format!("unknown cell @{name}"), "not declared above");
        let near = nearest(name, self.cells.recent(self.cursor.bytes())).map(|near| format!("@{near}"));
        Err(problem.suggest(near, "declare cells above the 'graph' line; a body calls earlier cells only"))
    }

    /// Checks the current parameter arguments against the parameter ports of a cell.
    pub(super) fn check_args(&self, cell: CellId, name: Token) -> Parsed<()> {
        let expected = &self.module.cells[cell.index()].body.param_types;
        let (count, found) = (expected.len(), self.args.len());
        let named = self.cursor.name(name);
        if count != found {
            let message = format!("@{named} takes {count} parameter arguments, found {found}");
            return Err(self.cursor.at_token(name, message, "in brackets after this name"));
        }
        for (place, (&expected, &arg)) in expected.iter().zip(&self.args).enumerate() {
            let found = self.param_type(arg);
            if found != expected {
                let (expected, found) = (self.types.get(expected), self.types.get(found));
                let message =
                    format!("parameter argument {place} of @{named} must be {expected}, found {found}");
                return Err(self.cursor.at_token(name, message, "in brackets after this name"));
            }
        }
        Ok(())
    }

    /// The signature of calls of `cell` with the current arguments.
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
    fn cached_call(&self, key: u64, cell: CellId) -> Option<SigId> {
        let (cached, sig) = self.sig_cache[key as usize % SIG_CACHE]?;
        let known = self.sigs.get(sig);
        (cached == key && known.callee == Callee::Cell(cell) && *known.params == *self.args).then_some(sig)
    }
}
