//! Parsing nodes: `%3, %4 = call @node[@w, @b](%1, %2) !7` and `%2 = slice{axis=0 start=2 len=4}(%1)`.
//!
//! The parser uses the same [`infer`] as the emitter and compares the result types with the types in
//! the text. It appends operands directly to the arena; an error drops the whole arena.

use super::error::{Parsed, TextProblem, nearest};
use super::lex::{Kind, Token, token};
use super::parse::Parser;
use super::vocabulary::{prototype, spellings};
use super::write::{push_list, put};
use crate::graph::data::hash_node;
use crate::graph::infer::{InferError, infer};
use crate::graph::op::Op;
use crate::graph::{Callee, Operand, ParamArg, Signature};
use crate::hash::hash_of;
use crate::id::{SigId, TypeId};
use crate::types::Type;

/// The number of entries of the signature cache in front of the interner.
pub(super) const SIG_CACHE: usize = 256;

impl Parser<'_> {
    /// One node with its results.
    #[inline]
    pub(super) fn node(&mut self) -> Parsed<()> {
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
            let label = "too many operands, values or bindings";
            return Err(self.cursor.at_token(callee, "the graph is full", label));
        }
        if !self.in_cell {
            hash_node(&mut self.hash, self.sigs.hash(sig), &self.arena.operand_pool()[mark as usize..]);
        }
        let first = self.arena.push(sig, mark, &self.sigs.get(sig).results, site);
        self.check_lengths(sig, callee)?;
        let mut names = std::mem::take(&mut self.result_names);
        for (place, &name) in names.iter().enumerate() {
            self.declare_value(name, first + place as u32)?;
        }
        names.clear();
        self.result_names = names;
        Ok(())
    }

    /// `%a, %b: f32[4] =`, stored until the types of the results are known.
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
        for &(place, expected) in &self.annotations {
            let found = self.types.get(self.sigs.get(sig).results[place as usize]);
            if found != expected {
                let name = token(self.cursor.bytes(), self.result_names[place as usize] as usize);
                let message = format!("%{} is {found}, not {expected}", self.cursor.name(name));
                let problem = self.cursor.at_token(name, message, format!("its type is {found}"));
                return Err(problem.help("correct the type, or leave it out: types follow from the operands"));
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong_results(&self, callee: Token, results: usize) -> Box<TextProblem> {
        let named = self.result_names.len();
        let message = format!("this node has {results} results, {named} are named");
        self.cursor.at_token(callee, message, "name each result").help("write %a, %b = .. for two results")
    }

    fn op(&mut self, callee: Token, word: &str) -> Parsed<SigId> {
        let Some(mut op) = prototype(word) else { return Err(self.unknown_op(callee, word)) };
        if matches!(op, Op::Port(_)) {
            let problem = self.cursor.at_token(callee, "a port is not a node", "not here");
            return Err(problem.help("declare ports in the head of a cell: cell @f(%x: f32[4])"));
        }
        if op == Op::Append && self.in_cell {
            let problem = self.cursor.at_token(callee, "a cell does not append to lists", "not here");
            return Err(problem.help("write a whole list: %3 = list(%1, %2)"));
        }
        self.cursor.positional(&mut op)?;
        let element = match op {
            Op::List if self.cursor.at(Kind::Word) => Some(self.cursor.ty()?),
            _ => None,
        };
        self.cursor.braces(&mut op, callee)?;
        self.param_args()?;
        if let Op::Affine { bias, .. } | Op::AffineRows { bias, .. } = &mut op {
            *bias = self.args.len() == 2;
        }
        match op {
            Op::Input(ty) => self.input(ty)?,
            Op::List => self.list(callee, element)?,
            _ => self.operands()?,
        }
        self.op_sig(op, callee)
    }

    #[cold]
    fn unknown_op(&self, callee: Token, word: &str) -> Box<TextProblem> {
        let problem = self.cursor.at_token(callee, format!("unknown op '{word}'"), "no op has this name");
        if self.cells.find(self.cursor.bytes(), word.as_bytes()).is_some() {
            return problem.help(format!("call a cell with 'call @{word}(..)'"));
        }
        let near = nearest(word, spellings().chain(["call"])).map(|near| format!("'{near}'"));
        problem.suggest(near, "call a cell with 'call @name(..)'")
    }

    /// Checks that the lists of the last node have equal lengths, because signatures do not contain lengths.
    fn check_lengths(&mut self, sig: SigId, callee: Token) -> Parsed<()> {
        if !matches!(
            self.sigs.get(sig).callee,
            Callee::Op(Op::WeightedSum { .. } | Op::Attend { .. } | Op::GraphAttend { .. })
        ) {
            return Ok(());
        }
        let [.., a, b] = self.arena.operand_pool() else { return Ok(()) };
        let mut length =
            |operand: &Operand| self.list_lengths.of(&self.arena, self.sigs.items(), operand.as_value()?);
        match (length(a), length(b)) {
            (Some(a), Some(b)) if a != b => {
                let message = format!("the lists must have equal lengths, found {a} and {b} values");
                Err(self.cursor.at_token(callee, message, "over these lists").help("give each value a score"))
            }
            _ => Ok(()),
        }
    }

    /// The signature of an op on the current operands and arguments.
    fn op_sig(&mut self, op: Op, callee: Token) -> Parsed<SigId> {
        let key = hash_of(&(Callee::Op(op), &*self.operand_types, &*self.args));
        if let Some(sig) = self.cached(key, Callee::Op(op)) {
            return Ok(sig);
        }
        // A text must name every part, so a short text cannot make a large split.
        if let Op::Split { parts, .. } = op
            && parts as usize != self.result_names.len()
        {
            return Err(self.wrong_results(callee, parts as usize));
        }
        let operands: Vec<Type> = self.operand_types.iter().map(|&ty| self.types.get(ty)).collect();
        let params: Vec<Type> = self.args.iter().map(|&arg| self.types.get(self.param_type(arg))).collect();
        let results = infer(&op, &operands, &params)
            .map_err(|error| self.inference_problem(op, callee, error, &operands, &params))?;
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
    fn inference_problem(
        &self,
        op: Op,
        callee: Token,
        error: InferError,
        operands: &[Type],
        params: &[Type],
    ) -> Box<TextProblem> {
        let mut found = String::new();
        push_list(&mut found, params.iter().chain(operands).take(12), put);
        let label = if found.is_empty() { "here".to_owned() } else { format!("applied to {found}") };
        let problem = self.cursor.at_token(callee, format!("{}: {}", op.spelling(), error.message), label);
        match error.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }

    #[inline]
    fn cached(&self, key: u64, callee: Callee) -> Option<SigId> {
        let (cached, sig) = self.sig_cache[key as usize % SIG_CACHE]?;
        let known = self.sigs.get(sig);
        let same = cached == key
            && known.callee == callee
            && *known.operands == *self.operand_types
            && *known.params == *self.args
            // Parameter ports with the same number have different types in different cells.
            && known.param_types.iter().copied().eq(self.args.iter().map(|&arg| self.param_type(arg)));
        same.then_some(sig)
    }

    pub(super) fn remember(&mut self, key: u64, signature: Signature) -> SigId {
        let sig = self.sigs.intern(signature, &self.types);
        self.sig_cache[key as usize % SIG_CACHE] = Some((key, sig));
        sig
    }

    pub(super) fn param_type(&self, arg: ParamArg) -> TypeId {
        match arg {
            ParamArg::Module(id) => self.param_types[id.index()],
            ParamArg::Port(number) => self.port_types[number as usize],
        }
    }
}
