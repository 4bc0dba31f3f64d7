//! Text to plans: the sections around kernels and steps.
//!
//! Recursive descent without recursion. Sections come in one order, in which later ones name entries of earlier ones. Lists in
//! brackets are counted before their memory is reserved, so a text costs at most sixteen times its size.

use super::runs::allowance;
use super::{HEADER, UPDATE_HEADER};
use crate::graph::text::ParseError;
use crate::graph::text::cursor::{Cursor, decoded};
use crate::graph::text::error::{Parsed, nearest};
use crate::graph::text::lex::{Kind, Token, token};
use crate::graph::text::names::Names;
use crate::graph::text::number::unsigned;
use crate::id::{NodeId, ValueId};
use crate::plan::normal::ReductionTables;
use crate::plan::{
    Certificate, Mode, OTHER_VERSION_HELP, OutputKey, Pause, Plan, PlanOutput, StoreId, Update, UpdatePlan,
    VERSION,
};
use smol_str::SmolStr;

/// The plan that a text describes.
pub(super) fn plan(text: &[u8]) -> Result<Plan, ParseError> {
    Ok(parsed(text, Parser::sections)?.plan)
}

/// The update plan that a text describes.
pub(super) fn update_plan(text: &[u8]) -> Result<UpdatePlan, ParseError> {
    let Parser { plan, updates, .. } = parsed(text, Parser::update_sections)?;
    let Plan { module, stores, floats, kernels, .. } = plan;
    Ok(UpdatePlan { module, stores, floats, kernels, updates })
}

/// The parser after it read all sections of a text.
fn parsed<'t>(text: &'t [u8], sections: fn(&mut Parser<'t>) -> Parsed<()>) -> Result<Parser<'t>, ParseError> {
    let valid = decoded(text)?;
    let mut parser = Parser::new(valid);
    match sections(&mut parser) {
        Ok(()) => Ok(parser),
        Err(problem) => Err(ParseError::new(text, *problem)),
    }
}

/// The state of a reader.
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) plan: Plan,
    pub(super) stores: Names,
    /// The fields in the order of their slabs and names.
    pub(super) fields: Vec<u32>,
    /// The parts of an update plan besides the stores and kernels of `plan`.
    pub(super) updates: Vec<Update>,
    /// How many scalars the updates so far make.
    pub(super) scalars: u32,
    /// The tables of reductions so far.
    pub(super) of_reductions: ReductionTables,
    /// How many more numbers runs may leave unspelled.
    pub(super) allowance: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            cursor: Cursor::new(text),
            plan: Plan::default(),
            stores: Names::default(),
            fields: Vec::new(),
            updates: Vec::new(),
            scalars: 0,
            of_reductions: ReductionTables::default(),
            allowance: allowance(text.len()),
        }
    }

    fn sections(&mut self) -> Parsed<()> {
        self.plan_header()?;
        while self.cursor.eat_word("store") {
            self.store()?;
        }
        self.keyword("bind")?;
        self.plan.words = self.number_of("words")?;
        self.plan.floats = self.number_of("floats")?;
        while self.cursor.eat_word("slab") {
            self.slab()?;
        }
        self.sort_fields()?;
        while self.cursor.eat_word("kernel") {
            self.kernel()?;
        }
        while self.cursor.eat_word("wave") {
            self.wave()?;
        }
        while self.cursor.eat_word("sum") {
            self.sum()?;
        }
        while self.cursor.eat_word("output") {
            self.output()?;
        }
        if self.cursor.eat_word("pause") {
            self.pause()?;
        }
        self.certificate()?;
        if self.cursor.at(Kind::End) {
            return Ok(());
        }
        Err(self.cursor.unexpected("the end of the plan").help("the certificate is the last line of a plan"))
    }

    fn update_sections(&mut self) -> Parsed<()> {
        self.header("update", UPDATE_HEADER)?;
        while self.cursor.eat_word("store") {
            self.store()?;
        }
        self.keyword("bind")?;
        self.plan.floats = self.number_of("floats")?;
        while self.cursor.eat_word("kernel") {
            self.kernel()?;
        }
        while self.update()? {}
        if self.cursor.at(Kind::End) {
            return Ok(());
        }
        Err(self
            .cursor
            .unexpected("an update or the end")
            .help("an update begins with sumsq, scalars or update"))
    }

    /// The version line and the module: what plans and update plans begin with.
    fn header(&mut self, kind: &str, line: &str) -> Parsed<()> {
        let first = self.cursor.token;
        if !self.cursor.eat_word("autobatch") {
            let problem = self.cursor.at_token(first, "the version line is missing", "the text begins here");
            return Err(problem.help(format!("begin the text with '{line}'")));
        }
        let others = [
            ("graph", "this is a graph, not a plan", "read it as a graph and plan it"),
            ("plan", "this is a plan, not an update plan", "read it as a plan"),
            ("update", "this is an update plan", "read it as an update plan"),
        ];
        for (word, message, help) in others {
            if word != kind && self.cursor.at_word(word) {
                return Err(self.cursor.at_token(self.cursor.token, message, "it begins here").help(help));
            }
        }
        self.keyword(kind)?;
        let version = self.cursor.token;
        if self.cursor.long_number()? != u64::from(VERSION) {
            let found = self.cursor.spelling(version);
            let message = format!("expected version {VERSION}, found {found:.20}");
            let problem = self.cursor.at_token(version, message, "another version");
            return Err(problem.help(OTHER_VERSION_HELP));
        }
        self.keyword("module")?;
        self.plan.module = self.cursor.string()?.into_owned();
        Ok(())
    }

    fn plan_header(&mut self) -> Parsed<()> {
        self.header("plan", HEADER)?;
        self.keyword("structure")?;
        self.plan.structure = self.structure()?;
        self.keyword("mode")?;
        let word = self.cursor.token;
        let wanted = "a mode: infer, train or grow";
        self.cursor.expect(Kind::Word, wanted)?;
        let found = self.cursor.spelling(word);
        let Some(mode) = Mode::ALL.into_iter().find(|mode| mode.spelling() == found) else {
            let problem = self.cursor.at_token(word, format!("unknown mode '{found:.40}'"), "no such mode");
            return Err(problem.help("the modes are infer, train and grow"));
        };
        self.plan.mode = mode;
        if self.cursor.eat_word("shards") {
            while let Some(first) = self.lettered(self.cursor.token, 'n') {
                let Some(first) = NodeId::try_new(first as usize) else {
                    let message = "the number of a node is too large";
                    return Err(self.cursor.at_token(self.cursor.token, message, "beyond 2^30"));
                };
                self.plan.shards.push(first);
                self.cursor.advance();
            }
            self.plan.shards.shrink_to_fit();
        }
        Ok(())
    }

    /// `0x` and at most 32 hexadecimal digits.
    fn structure(&mut self) -> Parsed<u128> {
        let token = self.cursor.expect(Kind::Number, "a hash such as 0x2f")?;
        let digits = self.cursor.spelling(token).strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        match digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()) {
            Some(hash) => Ok(hash),
            None => {
                let message = "the structure is no hash of 128 bits";
                let problem = self.cursor.at_token(token, message, "not such a number");
                Err(problem.help("write 0x and up to 32 hexadecimal digits"))
            }
        }
    }

    /// Steps over a required word.
    pub(super) fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.cursor.eat_word(word) {
            return Ok(());
        }
        let problem = self.cursor.unexpected(&format!("'{word}'"));
        if !self.cursor.at(Kind::Word) {
            return Err(problem);
        }
        let found = self.cursor.spelling(self.cursor.token);
        Err(match nearest(found, SECTIONS.into_iter().filter(|section| *section != found)) {
            Some(near) if near == word => problem.help(format!("did you mean '{near}'?")),
            _ if SECTIONS.contains(&found) => problem.help(format!("the order is {}", SECTIONS.join(", "))),
            _ => problem,
        })
    }

    /// `rows 5`: a number behind a required word.
    pub(super) fn number_of(&mut self, word: &str) -> Parsed<u32> {
        self.keyword(word)?;
        self.cursor.number()
    }

    fn long_number_of(&mut self, word: &str) -> Parsed<u64> {
        self.keyword(word)?;
        self.cursor.long_number()
    }

    /// A store that was declared above.
    pub(super) fn store_name(&mut self) -> Parsed<StoreId> {
        let token = self.cursor.at_name("a store such as @w")?;
        let name = self.cursor.name(token);
        if let Some(number) = self.stores.find(self.cursor.bytes(), name.as_bytes()) {
            return Ok(StoreId(number));
        }
        let problem = self.cursor.at_token(token, format!("unknown store @{name:.40}"), "not declared above");
        Err(match nearest(name, self.stores.recent(self.cursor.bytes())) {
            Some(near) => problem.help(format!("did you mean @{near}?")),
            None => problem.help(format!("declare it: store @{name:.40} param f32[..]")),
        })
    }

    /// Steps over an id, which must be the next one.
    pub(super) fn next_id(&mut self, letter: char, number: usize) -> Parsed<()> {
        let wanted = format!("{letter}{number}");
        if self.cursor.eat_word(&wanted) {
            return Ok(());
        }
        Err(self.cursor.unexpected(&format!("'{wanted}'")).help("they are numbered in order, from 0"))
    }

    /// `k3` as 3.
    pub(super) fn id(&mut self, letter: char, wanted: &str) -> Parsed<(u32, Token)> {
        let token = self.cursor.token;
        match self.lettered(token, letter) {
            Some(number) => {
                self.cursor.advance();
                Ok((number, token))
            }
            None => Err(self.cursor.unexpected(wanted)),
        }
    }

    /// The number of a word that is a letter and a number.
    #[inline]
    pub(super) fn lettered(&self, token: Token, letter: char) -> Option<u32> {
        if token.kind != Kind::Word {
            return None;
        }
        let digits = self.cursor.spelling(token).strip_prefix(letter)?;
        let plain = !digits.starts_with('+') && (digits == "0" || !digits.starts_with('0'));
        digits.parse().ok().filter(|_| plain)
    }

    /// How many tokens of a kind precede the token that ends the count.
    pub(super) fn count_until(&self, ends: impl Fn(Token) -> bool, counts: impl Fn(Token) -> bool) -> usize {
        self.capacity(ends, counts, 1)
    }

    /// The same, as a capacity for items that begin with such tokens. An item takes at least `bytes` bytes of text, which limits
    /// the capacity.
    pub(super) fn capacity(
        &self,
        ends: impl Fn(Token) -> bool,
        counts: impl Fn(Token) -> bool,
        bytes: usize,
    ) -> usize {
        let text = self.cursor.bytes();
        let start = self.cursor.token.start as usize;
        let mut next = self.cursor.token;
        let mut count = 0;
        while !ends(next) && next.kind != Kind::End {
            count += usize::from(counts(next));
            next = token(text, next.end as usize);
        }
        count.min((next.end as usize - start) / bytes + 1)
    }

    /// A word, or any text in quotes.
    pub(super) fn name(&mut self, wanted: &str) -> Parsed<String> {
        if self.cursor.at(Kind::Text) {
            return Ok(self.cursor.string()?.into_owned());
        }
        let token = self.cursor.expect(Kind::Word, wanted)?;
        Ok(self.cursor.spelling(token).to_owned())
    }

    /// `output "loss" s1.a[0]`, `output %12 s0.h[4]` or `output grad %3 s4.dh[1]`
    fn output(&mut self) -> Parsed<()> {
        let key = if self.cursor.eat_word("grad") {
            OutputKey::Gradient(self.value()?)
        } else if self.cursor.at(Kind::Value) {
            OutputKey::Value(self.value()?)
        } else {
            OutputKey::Named(SmolStr::from(self.cursor.string()?))
        };
        let field = self.field()?;
        let row = self.cursor.number_in_brackets()?;
        self.plan.outputs.push(PlanOutput { key, field, row });
        Ok(())
    }

    /// `pause waves 3 outputs 0 1`
    fn pause(&mut self) -> Parsed<()> {
        let waves = self.number_of("waves")?;
        self.keyword("outputs")?;
        let mut outputs = Vec::new();
        while self.cursor.at(Kind::Number) {
            outputs.push(self.cursor.number()?);
        }
        outputs.shrink_to_fit();
        self.plan.pause = Some(Pause { waves, outputs });
        Ok(())
    }

    /// `%12`
    fn value(&mut self) -> Parsed<ValueId> {
        let token = self.cursor.expect(Kind::Value, "a value of the graph such as %12")?;
        let number = unsigned(self.cursor.name(token).as_bytes()).ok();
        match number.and_then(|number| ValueId::try_new(number as usize)) {
            Some(value) => Ok(value),
            None => Err(self.cursor.at_token(token, "expected the number of a value", "not such as %12")),
        }
    }

    /// `certificate batches 4 bound 4 | reverse 3 | rows copied 0 gathered 0 direct 14 | slabs 512 bytes`
    fn certificate(&mut self) -> Parsed<()> {
        self.keyword("certificate")?;
        let batches = self.number_of("batches")?;
        let bound = self.number_of("bound")?;
        self.cursor.expect_mark(b'|')?;
        let mut reverse_batches = 0;
        if self.cursor.eat_word("reverse") {
            reverse_batches = self.cursor.number()?;
            self.cursor.expect_mark(b'|')?;
        }
        self.keyword("rows")?;
        let copied = self.long_number_of("copied")?;
        let gathered = self.long_number_of("gathered")?;
        let direct = self.long_number_of("direct")?;
        self.cursor.expect_mark(b'|')?;
        let slab_bytes = self.long_number_of("slabs")?;
        self.keyword("bytes")?;
        self.plan.certificate =
            Certificate { batches, reverse_batches, bound, copied, gathered, direct, slab_bytes };
        Ok(())
    }
}

pub(super) fn is_mark(mark: u8) -> impl Fn(Token) -> bool {
    move |token| token.kind == Kind::Mark(mark)
}

/// The words that begin sections, in order.
const SECTIONS: [&str; 12] = [
    "module",
    "structure",
    "mode",
    "store",
    "bind",
    "slab",
    "kernel",
    "wave",
    "sum",
    "output",
    "pause",
    "certificate",
];
