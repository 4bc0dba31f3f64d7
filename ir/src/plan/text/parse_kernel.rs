//! Text to kernels; [`print_kernel`](super::print_kernel) shows the form. [`parse_stage`](super::parse_stage) reads stages of
//! rows, lists and tables.

use super::parse::{Parser, is_mark};
use crate::graph::Op;
use crate::graph::text::error::{Parsed, nearest};
use crate::graph::text::lex::{Kind, THROUGH, TO, Token};
use crate::graph::text::number::unsigned32;
use crate::graph::text::vocabulary::{prototype, spellings};
use crate::plan::{
    Code, Instr, Kernel, ParamPort, PortRole, ProdInit, ProductPart, Reg, RegId, RegKind, ResultRole, Roles,
    Source, Stage, View,
};
use crate::types::{DType, Type};
use std::sync::Arc;

impl Parser<'_> {
    /// `kernel k0 @node (%0: f32[4]) [@0: f32[4,4]] { .. return %1 }`
    pub(super) fn kernel(&mut self) -> Parsed<()> {
        self.next_id('k', self.plan.kernels.len())?;
        let source = self.cursor.eat_word("source");
        let name = if self.cursor.at(Kind::At) {
            let token = self.cursor.advance();
            self.cursor.spelling(token).to_owned()
        } else {
            self.name("the name of a cell or op, such as @node")?
        };
        let mut kernel = Kernel {
            name,
            ports: 0,
            params: Vec::new(),
            regs: Vec::new(),
            stages: Vec::new(),
            results: Vec::new(),
            source,
            roles: None,
        };
        self.cursor.expect_mark(b'(')?;
        while self.cursor.next_item(b')', kernel.regs.is_empty())? {
            self.register(&mut kernel, "port")?;
        }
        kernel.ports = kernel.regs.len() as u32;
        if self.cursor.eat(b'[') {
            while self.cursor.next_item(b']', kernel.params.is_empty())? {
                self.numbered(Kind::At, "@", kernel.params.len())?;
                self.cursor.expect_mark(b':')?;
                kernel.params.push(self.cursor.ty()?);
            }
        }
        self.cursor.expect_mark(b'{')?;
        kernel.roles = self.roles()?;
        self.registers(&mut kernel)?;
        let is_stage = |token| self.is_one_of(token, &STAGES);
        kernel.stages.reserve_exact(self.capacity(|token| self.is_one_of(token, &["return"]), is_stage, 9));
        while !self.cursor.eat_word("return") {
            let stage = self.stage(&kernel)?;
            kernel.stages.push(stage);
        }
        if !self.cursor.at(Kind::Mark(b'}')) {
            kernel.results = self.views(&kernel)?;
        }
        self.cursor.expect_mark(b'}')?;
        kernel.regs.shrink_to_fit();
        self.plan.kernels.push(Arc::new(kernel));
        Ok(())
    }

    /// `reverse gradient 0, operand 1 -> to 0, to 1 use 2, part`, if the kernel declares roles.
    fn roles(&mut self) -> Parsed<Option<Roles>> {
        if !self.cursor.eat_word("reverse") {
            return Ok(None);
        }
        let mut roles = Roles::default();
        while self.cursor.next_item(TO, roles.ports.is_empty())? {
            roles.ports.push(self.port_role()?);
        }
        while self.is_one_of(self.cursor.token, &["to", "part", "gradient", "seed"]) {
            roles.results.push(self.result_role()?);
            if !self.cursor.eat(b',') {
                break;
            }
        }
        roles.ports.shrink_to_fit();
        roles.results.shrink_to_fit();
        Ok(Some(roles))
    }

    fn port_role(&mut self) -> Parsed<PortRole> {
        let word = self.cursor.expect(Kind::Word, "the role of a port such as operand 0")?;
        Ok(match self.cursor.spelling(word) {
            "operand" => PortRole::Operand(self.cursor.number()?),
            "result" => PortRole::Result(self.cursor.number()?),
            "saved" => PortRole::Saved(self.cursor.number()?),
            "gradient" => PortRole::Gradient(self.cursor.number()?),
            "arriving" => PortRole::Arriving,
            "contributions" => PortRole::Contributions,
            "item" => PortRole::Item(self.cursor.number()?),
            "readers" => PortRole::Readers(self.cursor.number()?),
            _ => {
                let expected = "operand, result, saved, gradient, arriving, contributions, item or readers";
                return Err(self.cursor.other_word(word, expected, "no role of a port"));
            }
        })
    }

    fn result_role(&mut self) -> Parsed<ResultRole> {
        let word = self.cursor.expect(Kind::Word, "the role of a result such as to 0")?;
        Ok(match self.cursor.spelling(word) {
            "to" => {
                let operand = self.cursor.number()?;
                let number = if self.cursor.eat_word("use") { self.cursor.number()? } else { 0 };
                ResultRole::Contribution { operand, number }
            }
            "part" => ResultRole::Part,
            "gradient" => ResultRole::Gradient,
            "seed" => ResultRole::Seed,
            _ => {
                return Err(self.cursor.other_word(
                    word,
                    "to, part, gradient or seed",
                    "no role of a result",
                ));
            }
        })
    }

    pub(super) fn is_one_of(&self, token: Token, words: &[&str]) -> bool {
        token.kind == Kind::Word && words.contains(&self.cursor.spelling(token))
    }

    /// A sigil with the number that must stand here.
    fn numbered(&mut self, kind: Kind, sigil: &str, number: usize) -> Parsed<()> {
        let token = self.cursor.token;
        if token.kind == kind && unsigned32(self.cursor.name(token).as_bytes()) == Ok(number as u32) {
            self.cursor.advance();
            return Ok(());
        }
        let problem = self.cursor.unexpected(&format!("'{sigil}{number}'"));
        Err(problem.help("registers and parameter ports of a kernel are numbered in order, from 0"))
    }

    /// The registers behind the ports.
    fn registers(&mut self, kernel: &mut Kernel) -> Parsed<()> {
        loop {
            let word = ["temp", "const", "param", "port", "edges"]
                .into_iter()
                .find(|word| self.cursor.eat_word(word));
            let Some(word) = word else { return Ok(()) };
            self.register(kernel, word)?;
            while self.cursor.eat(b',') {
                self.register(kernel, word)?;
            }
        }
    }

    /// `%4: f32[640]`, for some kinds with `= ..` behind it.
    fn register(&mut self, kernel: &mut Kernel, word: &str) -> Parsed<()> {
        self.numbered(Kind::Value, "%", kernel.regs.len())?;
        self.cursor.expect_mark(b':')?;
        let ty = self.cursor.ty()?;
        let kind = match word {
            "temp" => RegKind::Temp,
            "edges" => RegKind::Edges,
            "const" => {
                self.cursor.expect_mark(b'=')?;
                RegKind::Const(self.constant(ty.dtype)?)
            }
            "param" => {
                self.cursor.expect_mark(b'=')?;
                RegKind::Param(self.param(kernel)?)
            }
            _ => RegKind::Port,
        };
        kernel.regs.push(Reg { kind, ty });
        Ok(())
    }

    /// `@0`: a parameter port of the kernel.
    pub(super) fn param(&mut self, kernel: &Kernel) -> Parsed<ParamPort> {
        let token = self.cursor.at_name("a parameter port such as @0")?;
        match unsigned32(self.cursor.name(token).as_bytes()) {
            Ok(number) if (number as usize) < kernel.params.len() => Ok(ParamPort(number)),
            _ => {
                let message = format!("the kernel has no parameter port @{:.40}", self.cursor.name(token));
                let problem = self.cursor.at_token(token, message, "not declared in its head");
                Err(problem.help("a kernel takes stores as ports: kernel k0 @f (..) [@0: f32[4,4]]"))
            }
        }
    }

    fn stage(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let wanted = "prod, map, row, seg, unseg, unmean, unattend, pull, lookup, label_loss or return";
        let token = self.cursor.expect(Kind::Word, wanted)?;
        match self.cursor.spelling(token) {
            "prod" => self.prod(kernel),
            "map" => self.map(kernel),
            "row" => self.row(kernel),
            "seg" => self.seg(kernel),
            "unseg" => self.unseg(kernel),
            "unmean" => self.unmean(kernel),
            "unattend" => self.unattend(kernel),
            "pull" => self.pull(kernel),
            "lookup" => self.lookup(kernel),
            "label_loss" => self.label_loss(kernel),
            word => {
                let problem = self.cursor.other_word(token, wanted, "no stage");
                Err(match nearest(word, STAGES.into_iter().chain(["return"])) {
                    Some(near) => problem.help(format!("did you mean '{near}'?")),
                    None => problem.help("elementwise instructions stand inside 'map <width> { t0 = .. }'"),
                })
            }
        }
    }

    /// `%4`, `%4[128..256]` or `%4[3]`
    #[inline]
    pub(super) fn view(&mut self, kernel: &Kernel) -> Parsed<View> {
        let (reg, ty) = self.declared(kernel)?;
        if !self.cursor.eat(b'[') {
            return Ok(View { reg, start: 0, width: ty.shape.elements() as u32 });
        }
        let place = self.cursor.token;
        let start = self.cursor.number()?;
        let end = if self.cursor.eat(THROUGH) { self.cursor.number()? } else { start.saturating_add(1) };
        self.cursor.expect_mark(b']')?;
        match end.checked_sub(start) {
            Some(width) => Ok(View { reg, start, width }),
            None => Err(self.cursor.at_token(place, "the range ends before it begins", "begins here")),
        }
    }

    /// `%4`: a register.
    #[inline]
    pub(super) fn declared(&mut self, kernel: &Kernel) -> Parsed<(RegId, Type)> {
        let token = self.cursor.expect(Kind::Value, "a register such as %3")?;
        let number = unsigned32(self.cursor.name(token).as_bytes()).ok();
        match number.and_then(|number| Some((RegId(number), kernel.regs.get(number as usize)?.ty))) {
            Some(found) => Ok(found),
            None => {
                let message = format!("the kernel has no register %{:.40}", self.cursor.name(token));
                let problem = self.cursor.at_token(token, message, "not declared above");
                Err(problem.help(format!("declare it: temp %{}: f32[..]", kernel.regs.len())))
            }
        }
    }

    /// Views between commas, at least one.
    pub(super) fn views(&mut self, kernel: &Kernel) -> Parsed<Vec<View>> {
        let mut views = vec![self.view(kernel)?];
        while self.cursor.eat(b',') {
            views.push(self.view(kernel)?);
        }
        views.shrink_to_fit();
        Ok(views)
    }

    /// An op that is no instruction of a map, with its attributes.
    pub(super) fn stage_op(&mut self) -> Parsed<Op> {
        let token = self.cursor.expect(Kind::Word, "an op")?;
        self.op(token)
    }

    fn op(&mut self, token: Token) -> Parsed<Op> {
        let word = self.cursor.spelling(token);
        let Some(mut op) = prototype(word) else {
            let problem =
                self.cursor.at_token(token, format!("unknown op '{word:.40}'"), "no op has this name");
            return Err(match nearest(word, spellings()) {
                Some(near) => problem.help(format!("did you mean '{near}'?")),
                None => problem,
            });
        };
        self.cursor.positional(&mut op)?;
        self.cursor.braces(&mut op, token)?;
        Ok(op)
    }

    /// `prod %2 = @1 + %0 . @0[0..2] + %1 . transposed @0[2..4, 8..]`
    fn prod(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let mut rows = 1;
        if self.cursor.at(Kind::Number) {
            rows = self.cursor.number()?;
            self.keyword("x")?;
        }
        let dst = self.view(kernel)?;
        self.cursor.expect_mark(b'=')?;
        let token = self.cursor.token;
        let init = match token.kind {
            Kind::At => ProdInit::Bias(self.param(kernel)?),
            Kind::Number if self.cursor.spelling(token) == "0" => {
                self.cursor.advance();
                ProdInit::Zero
            }
            Kind::Value => ProdInit::View(self.view(kernel)?),
            _ => return Err(self.cursor.unexpected("what the sums start from: 0, @1 or %2")),
        };
        let mut parts = Vec::new();
        while self.cursor.eat(b'+') {
            parts.push(self.part(kernel, rows)?);
        }
        parts.shrink_to_fit();
        Ok(Stage::Prod { dst, rows, init, parts })
    }

    fn part(&mut self, kernel: &Kernel, rows: u32) -> Parsed<ProductPart> {
        let source = self.view(kernel)?;
        self.cursor.expect_mark(b'.')?;
        let transposed = self.cursor.eat_word("transposed");
        let param = self.param(kernel)?;
        self.cursor.expect_mark(b'[')?;
        let place = self.cursor.token;
        let row = self.cursor.number()?;
        self.cursor.expect_mark(THROUGH)?;
        let end = self.cursor.long_number()?;
        let width = source.width / rows.max(1);
        if end != u64::from(row) + u64::from(width) {
            let message = format!("the operand meets {width} rows of {param}, not {row}..{end}");
            return Err(self.cursor.at_token(place, message, "the rows begin here"));
        }
        let mut col = 0;
        if self.cursor.eat(b',') {
            col = self.cursor.number()?;
            self.cursor.expect_mark(THROUGH)?;
        }
        self.cursor.expect_mark(b']')?;
        Ok(ProductPart { source, param, row, col, transposed })
    }

    /// `map 4 { t0 = tanh %2   t1 = add.i32 t0, 1 -> %3 }`
    fn map(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let width = self.cursor.number()?;
        let open = self.cursor.expect_mark(b'{')?;
        let mut code = Vec::with_capacity(self.capacity(is_mark(b'}'), is_mark(b'='), 8));
        while !self.cursor.eat(b'}') {
            let instr = self.instr(kernel, code.len())?;
            code.push(instr);
        }
        if code.is_empty() {
            let message = "a map holds at least one instruction";
            return Err(self.cursor.at_token(open, message, "nothing in here"));
        }
        code.shrink_to_fit();
        Ok(Stage::Map { width, code })
    }

    fn instr(&mut self, kernel: &Kernel, number: usize) -> Parsed<Instr> {
        self.next_id('t', number)?;
        self.cursor.expect_mark(b'=')?;
        let token = self.cursor.expect(Kind::Word, "an elementwise op")?;
        let code = match self.cursor.spelling(token) {
            "copy" => Code::Copy,
            "slope" => match self.stage_op()? {
                Op::Unary(unary) => Code::Slope(unary),
                other => {
                    let message = format!("{} has no slope in a map", other.spelling());
                    return Err(self.cursor.at_token(token, message, "no slope"));
                }
            },
            _ => match Code::of(self.op(token)?) {
                Some(found) => found,
                None => {
                    let message = format!("{} is not elementwise", self.cursor.spelling(token));
                    let problem = self.cursor.at_token(token, message, "not inside a map");
                    return Err(problem.help("write it as a stage of its own: row %3 = softmax %2"));
                }
            },
        };
        let dtype = if self.cursor.eat(b'.') { self.cursor.dtype()? } else { DType::F32 };
        let mut sources = Vec::with_capacity(code.arity());
        for place in 0..code.arity() {
            if place > 0 {
                self.cursor.expect_mark(b',')?;
            }
            sources.push(self.source(kernel, number, dtype)?);
        }
        let store = if self.cursor.eat(TO) { Some(self.view(kernel)?) } else { None };
        Ok(Instr { code, dtype, sources, store })
    }

    fn source(&mut self, kernel: &Kernel, number: usize, dtype: DType) -> Parsed<Source> {
        let token = self.cursor.token;
        if token.kind == Kind::Value {
            return self.view(kernel).map(Source::View);
        }
        if self.cursor.eat_word("shared") {
            return self.view(kernel).map(Source::Scalar);
        }
        match self.lettered(token, 't') {
            Some(local) if (local as usize) < number => {
                self.cursor.advance();
                Ok(Source::Local(local))
            }
            Some(local) => {
                let message = format!("t{local} is not computed yet");
                let problem = self.cursor.at_token(token, message, "used here");
                Err(problem.help("an instruction reads earlier ones of its map, t0 first"))
            }
            None => self.constant(dtype).map(Source::Const),
        }
    }

    /// The bits of a constant. Which words are truth values is for the verifier to say.
    fn constant(&mut self, dtype: DType) -> Parsed<u32> {
        self.cursor.element(if dtype == DType::Bool { DType::U32 } else { dtype })
    }
}

/// The words that begin stages.
pub(super) const STAGES: [&str; 10] =
    ["prod", "map", "row", "seg", "unseg", "unmean", "unattend", "pull", "lookup", "label_loss"];
