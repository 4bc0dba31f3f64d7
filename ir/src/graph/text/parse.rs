//! Text to graphs and modules: the declarations and statements around the applications.
//!
//! Recursive descent without recursion: no construct nests in itself. Sections come in one order
//! (sites, parameters, cells, exports, then the graph), so that what is interned on the way gets the
//! same numbers whenever a printed text is read again.

use super::apply::SIG_CACHE;
use super::cursor::Cursor;
use super::error::{ParseError, Parsed, Problem, nearest};
use super::lex::{Kind, Token};
use super::names::Names;
use super::{HEADER, UNKNOWN, VERSION};
use crate::graph::data::hash_cut;
use crate::graph::op::Op;
use crate::graph::{
    Arena, Bindings, Callee, Cut, GraphData, Output, OutputKind, ParamArg, Signature, Signatures, Site, Sites,
};
use crate::hash::StructureHash;
use crate::id::{AppId, CellId, MAX_INDEX, SigId, SiteId, TypeId, ValueId};
use crate::module::{
    Body, CellDecl, Export, Init, Module, ParamDecl, ParamKind, check_declaration, check_name,
};
use crate::types::{DType, INDEX, Type, Types};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The module that a text declares, without a graph.
pub(super) fn module(text: &[u8]) -> Result<Arc<Module>, ParseError> {
    read(text, MAX_INDEX, |parser| {
        parser.module()?;
        if parser.cursor.at(Kind::End) {
            return Ok(Arc::new(parser.finish_module()));
        }
        let problem = parser.cursor.unexpected("a declaration or the end of the module");
        Err(problem.help("a text with a 'graph' section is read as a graph, which holds its module"))
    })
}

/// The graph that a text describes.
pub(super) fn graph(text: &[u8]) -> Result<GraphData, ParseError> {
    graph_within(text, MAX_INDEX)
}

/// The graph that a text describes, with at most `limit` operands, values and bound numbers.
fn graph_within(text: &[u8], limit: usize) -> Result<GraphData, ParseError> {
    read(text, limit, |parser| {
        parser.module()?;
        parser.graph()
    })
}

fn read<T>(
    text: &[u8],
    limit: usize,
    rules: impl FnOnce(&mut Parser<'_>) -> Parsed<T>,
) -> Result<T, ParseError> {
    let valid = match std::str::from_utf8(text) {
        Ok(valid) if text.len() < u32::MAX as usize => valid,
        Ok(_) => {
            let problem = Problem::new(0..0, "a text must be shorter than 4 GiB", "the text begins here");
            return Err(ParseError::new(b"", *problem.help("keep large graphs in the binary form")));
        }
        Err(error) => {
            let place = error.valid_up_to();
            let problem = Problem::new(place..place + 1, "the text is not UTF-8", "not a character");
            return Err(ParseError::new(text, *problem));
        }
    };
    rules(&mut Parser::new(valid, limit)).map_err(|problem| ParseError::new(text, *problem))
}

/// All that is known while a text is read.
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) limit: usize,
    pub(super) module: Module,
    pub(super) types: Types,
    pub(super) sigs: Signatures,
    sites: Sites,
    unknown_site: Option<SiteId>,
    /// The names of the module's parameters, and their types.
    pub(super) params: Names,
    pub(super) param_types: Vec<TypeId>,
    pub(super) cells: Names,
    /// The arena being filled, the graph's or a body's, and the names of its values.
    pub(super) arena: Arena,
    pub(super) values: Names,
    pub(super) bindings: Bindings,
    pub(super) hash: StructureHash,
    pub(super) in_cell: bool,
    /// The names of the parameter ports of the cell at hand, and their types.
    pub(super) ports: Names,
    pub(super) port_types: Vec<TypeId>,
    /// The application at hand.
    pub(super) result_names: Vec<u32>,
    pub(super) annotations: Vec<(u32, Type)>,
    pub(super) operand_types: Vec<TypeId>,
    pub(super) args: Vec<ParamArg>,
    pub(super) sig_cache: Vec<Option<(u64, SigId)>>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, limit: usize) -> Self {
        let module = Module::empty("");
        Self {
            cursor: Cursor::new(text),
            limit,
            types: module.types.clone(),
            module,
            sigs: Signatures::default(),
            sites: Sites::default(),
            unknown_site: None,
            params: Names::default(),
            param_types: Vec::new(),
            cells: Names::default(),
            arena: Arena::default(),
            values: Names::default(),
            bindings: Bindings::default(),
            hash: StructureHash::default(),
            in_cell: false,
            ports: Names::default(),
            port_types: Vec::new(),
            result_names: Vec::new(),
            annotations: Vec::new(),
            operand_types: Vec::new(),
            args: Vec::new(),
            sig_cache: vec![None; SIG_CACHE],
        }
    }

    fn header(&mut self) -> Parsed<()> {
        let first = self.cursor.token;
        if !self.cursor.eat_word("autobatch") {
            let problem = self.cursor.at_token(first, "the version line is missing", "the text begins here");
            return Err(problem.help(format!("begin the text with '{HEADER}'")));
        }
        if self.cursor.at_word("plan") {
            let problem = self.cursor.at_token(
                self.cursor.token,
                "this is a plan, not a graph",
                "the kind of the text",
            );
            return Err(problem.help("plans are read by the plan reader"));
        }
        if !self.cursor.eat_word("graph") {
            return Err(self.cursor.unexpected("'graph'").help(format!("the version line is '{HEADER}'")));
        }
        let token = self.cursor.token;
        let version = self.cursor.long_number()?;
        if version == VERSION {
            return Ok(());
        }
        let message = format!("this text has version {version}, this reader knows version {VERSION}");
        let help = if version > VERSION { "read it with a newer autobatch" } else { "versions count from 1" };
        Err(self.cursor.at_token(token, message, "the version of the text").help(help))
    }

    fn module(&mut self) -> Parsed<()> {
        self.header()?;
        if self.cursor.eat_word("module") {
            self.module.name = self.cursor.string()?.into_owned();
        }
        self.sites()?;
        while self.cursor.at_word("param") || self.cursor.at_word("table") {
            self.param()?;
        }
        while self.cursor.at_word("cell") {
            self.cell()?;
        }
        let mut exports = Names::default();
        while self.cursor.at_word("export") {
            self.export(&mut exports)?;
        }
        match self.cursor.token.kind {
            Kind::End => Ok(()),
            Kind::Word if self.cursor.at_word("graph") => Ok(()),
            _ => Err(self.misplaced()),
        }
    }

    /// What a section does not begin with.
    #[cold]
    fn misplaced(&self) -> Box<Problem> {
        const ORDER: &str = "the order is: module, sites, parameters and tables, cells, exports, graph";
        let problem = self.cursor.unexpected("a declaration or 'graph'");
        let word = self.cursor.spelling(self.cursor.token);
        let known = ["module", "site", "param", "table", "cell", "export", "graph"];
        match nearest(word, known.into_iter()) {
            Some(near) if near != word && self.cursor.at(Kind::Word) => {
                problem.help(format!("did you mean '{near}'?"))
            }
            None if self.cursor.at(Kind::Value) || self.cursor.at(Kind::Word) => {
                problem.help("applications stand behind the line 'graph'")
            }
            _ => problem.help(ORDER),
        }
    }

    fn finish_module(&mut self) -> Module {
        let mut module = std::mem::replace(&mut self.module, Module::empty(""));
        module.types = std::mem::take(&mut self.types);
        module.sigs = std::mem::take(&mut self.sigs);
        module.sites = std::mem::take(&mut self.sites);
        module
    }

    /// `site !3 "src/model.rs" 31:21`
    fn sites(&mut self) -> Parsed<()> {
        while self.cursor.eat_word("site") {
            let token = self.cursor.expect(Kind::Site, "the number of a site, such as !3")?;
            let next = self.sites.items().len();
            if self.cursor.name(token) != next.to_string() {
                let message = format!("site !{next} comes next, found {}", self.cursor.spelling(token));
                return Err(self.cursor.at_token(token, message, "out of order").help("sites count from !0"));
            }
            let file = self.cursor.string()?.into_owned();
            let (line, column) = self.cursor.line_and_column()?;
            let site = Site { file, line, column };
            let unknown = site == UNKNOWN;
            if unknown && self.unknown_site.is_some() {
                return Err(self.cursor.at_token(token, "the unknown site is declared twice", "here again"));
            }
            let id = self.sites.push(site);
            if unknown {
                self.unknown_site = Some(id);
            }
        }
        Ok(())
    }

    /// `!3`, or nothing for the unknown site.
    #[inline]
    pub(super) fn site(&mut self) -> Parsed<SiteId> {
        if !self.cursor.at(Kind::Site) {
            let sites = &mut self.sites;
            return Ok(*self.unknown_site.get_or_insert_with(|| sites.push(UNKNOWN)));
        }
        let token = self.cursor.advance();
        let number = super::number::unsigned32(self.cursor.name(token).as_bytes());
        match number {
            Ok(number) if (number as usize) < self.sites.items().len() => Ok(SiteId::new(number as usize)),
            _ => {
                let message = format!("unknown site {}", self.cursor.spelling(token));
                let help = "declare it above: site !0 \"src/model.rs\" 31:21";
                Err(self.cursor.at_token(token, message, "not in the table of sites").help(help))
            }
        }
    }

    /// A declared name behind `@`, which must be a legal and a new one.
    fn new_name(&mut self, what: &str) -> Parsed<Token> {
        let token = self.cursor.at_name(&format!("the name of a {what}, such as @w"))?;
        match check_name(self.cursor.name(token)) {
            Ok(()) => Ok(token),
            Err(message) => Err(self.cursor.at_token(token, message, "not a name")),
        }
    }

    fn taken(&self, token: Token, what: &str) -> Box<Problem> {
        let message = format!("the {what} @{} is declared twice", self.cursor.name(token));
        self.cursor.at_token(token, message, "here again").help("give each its own name")
    }

    /// `param @w f32[256,640] = glorot(1.0) !3`
    fn param(&mut self) -> Parsed<()> {
        let table = self.cursor.at_word("table");
        self.cursor.advance();
        let kind = if table { ParamKind::Table } else { ParamKind::Param };
        let token = self.new_name("parameter")?;
        let number = self.module.params.len();
        if !self.params.declare(self.cursor.bytes(), token.start, number as u32) {
            return Err(self.taken(token, "parameter"));
        }
        let ty = self.cursor.ty()?;
        let init = if self.cursor.eat(b'=') { self.init()? } else { Init::ZEROS };
        if ty.is_list {
            return Err(self.cursor.at_token(
                token,
                format!("a parameter is no list, found {ty}"),
                "declared here",
            ));
        }
        check_declaration(kind, ty, &init)
            .map_err(|message| self.cursor.at_token(token, message, "declared here"))?;
        let site = self.site()?;
        self.param_types.push(self.types.intern(ty));
        let name = self.cursor.name(token).to_owned();
        self.module.params.push(ParamDecl { name, kind, ty, init, site });
        Ok(())
    }

    /// `glorot(1.0)`, `he`, `values(1.0, 2.0)`
    fn init(&mut self) -> Parsed<Init> {
        let token = self.cursor.expect(Kind::Word, "an initialiser such as glorot(1.0)")?;
        let mut numbers = Vec::new();
        if self.cursor.eat(b'(') {
            while !self.cursor.eat(b')') {
                if !numbers.is_empty() {
                    self.cursor.expect_mark(b',')?;
                }
                numbers.push(self.cursor.float()?);
            }
        }
        let word = self.cursor.spelling(token);
        let init = match (word, &*numbers) {
            ("constant", &[number]) => Init::Constant(number),
            ("uniform", &[bound]) => Init::Uniform(bound),
            ("normal", &[deviation]) => Init::Normal(deviation),
            ("glorot", &[gain]) => Init::Glorot(gain),
            ("he", &[]) => Init::He,
            ("saxe", &[gain]) => Init::Saxe(gain),
            ("values", _) => Init::Values(numbers.into()),
            _ => return Err(self.unknown_init(token, numbers.len())),
        };
        Ok(init)
    }

    #[cold]
    fn unknown_init(&self, token: Token, count: usize) -> Box<Problem> {
        const WORDS: [&str; 7] = ["constant", "uniform", "normal", "glorot", "he", "saxe", "values"];
        let word = self.cursor.spelling(token);
        if WORDS.contains(&word) {
            let wanted = if word == "he" { "no number" } else { "one number" };
            return self.cursor.at_token(
                token,
                format!("{word} takes {wanted}, found {count}"),
                "this initialiser",
            );
        }
        let problem =
            self.cursor.at_token(token, format!("unknown initialiser '{word}'"), "no such initialiser");
        match nearest(word, WORDS.into_iter()) {
            Some(near) => problem.help(format!("did you mean '{near}'?")),
            None => problem.help(format!("the initialisers are {}", WORDS.join(", "))),
        }
    }

    /// `cell @node[@0: f32[8,20]](%0: f32[4], %1: u32) noise !3 { .. return %7 }`
    fn cell(&mut self) -> Parsed<()> {
        self.cursor.advance();
        let token = self.new_name("cell")?;
        self.in_cell = true;
        self.values.clear();
        self.ports.clear();
        self.port_types.clear();
        self.param_ports()?;
        let port_sites = self.value_ports()?;
        let ports = self.arena.len();
        let noise = self.cursor.at_word("noise").then(|| self.cursor.advance());
        if let Some(noise) = noise {
            self.check_noise(noise)?;
        }
        let site = self.site()?;
        self.arena.set_sites(&port_sites, site);
        self.cursor.expect_mark(b'{')?;
        while self.cursor.at(Kind::Value) || self.cursor.at_word("call") {
            self.application()?;
        }
        let results = self.returned()?;
        let param_types = std::mem::take(&mut self.port_types);
        let arena = std::mem::take(&mut self.arena);
        let body = Body { ports, noise: noise.is_some(), param_types, arena, results };
        let cells = &mut self.module.cells;
        if cells.len() == cells.capacity() {
            // Declarations are large and their text can be short: grow by a quarter, not twofold.
            cells.reserve_exact(cells.len() / 4 + 8);
        }
        let number = cells.len() as u32;
        cells.push(CellDecl { name: self.cursor.name(token).to_owned(), body, site });
        self.in_cell = false;
        self.values.clear();
        if !self.cells.declare(self.cursor.bytes(), token.start, number) {
            return Err(self.taken(token, "cell"));
        }
        Ok(())
    }

    /// `[@0: f32[8,20], @b: f32[20]]`
    fn param_ports(&mut self) -> Parsed<()> {
        if !self.cursor.eat(b'[') {
            return Ok(());
        }
        while !self.cursor.eat(b']') {
            if !self.port_types.is_empty() {
                self.cursor.expect_mark(b',')?;
            }
            let token = self.cursor.at_name("the name of a parameter port, such as @0")?;
            self.cursor.expect_mark(b':')?;
            let place = self.cursor.token;
            let ty = self.cursor.ty()?;
            if ty.is_list || !matches!(ty.dtype, DType::F32 | DType::F16 | DType::BF16) {
                let message = format!("a parameter is stored as f32, f16 or bf16, found {ty}");
                return Err(self.cursor.at_token(place, message, "this type"));
            }
            if !self.ports.declare(self.cursor.bytes(), token.start, self.port_types.len() as u32) {
                return Err(self.taken(token, "parameter port"));
            }
            self.port_types.push(self.types.intern(ty));
        }
        Ok(())
    }

    /// `(%0: f32[4], %1: u32 !3)`. The sites that are told; the others are the cell's.
    fn value_ports(&mut self) -> Parsed<Vec<(u32, SiteId)>> {
        let mut told = Vec::new();
        self.cursor.expect_mark(b'(')?;
        while !self.cursor.eat(b')') {
            if !self.arena.is_empty() {
                self.cursor.expect_mark(b',')?;
            }
            let name = self.cursor.expect(Kind::Value, "a port such as %x: f32[4]")?;
            self.cursor.expect_mark(b':')?;
            let ty = self.cursor.ty()?;
            let id = self.types.intern(ty);
            let number = self.arena.len() as u32;
            if self.cursor.at(Kind::Site) {
                told.push((number, self.site()?));
            }
            let signature = Signature {
                callee: Callee::Op(Op::Port(ty)),
                operands: Box::default(),
                params: Box::default(),
                param_types: Box::default(),
                results: [id].into(),
            };
            let sig = self.sigs.intern(signature, &self.types);
            self.arena.push(sig, 0, &[id], SiteId::new(0));
            self.declare_value(name.start, number)?;
        }
        Ok(told)
    }

    fn check_noise(&self, noise: Token) -> Parsed<()> {
        let index = Module::index_type();
        match self.arena.value_types() {
            [.., low, high] if *low == index && *high == index => Ok(()),
            _ => {
                let message = "a cell that draws noise ends its ports with the noise key, two u32";
                Err(self
                    .cursor
                    .at_token(noise, message, "draws noise")
                    .help(format!("write (.., %low: {INDEX}, %high: {INDEX}) noise")))
            }
        }
    }

    /// `return %7, %4 }`
    fn returned(&mut self) -> Parsed<Vec<ValueId>> {
        if !self.cursor.eat_word("return") {
            return Err(self.cursor.unexpected("an application or 'return'"));
        }
        let mut results = Vec::new();
        while self.cursor.at(Kind::Value) {
            let token = self.cursor.advance();
            let value = self.value(token)?;
            let ty = self.types.get(self.arena.type_of(value));
            if ty.is_list {
                return Err(self.cursor.at_token(
                    token,
                    format!("a cell returns values, found {ty}"),
                    "this is a list",
                ));
            }
            results.push(value);
            if !self.cursor.eat(b',') {
                break;
            }
            if !self.cursor.at(Kind::Value) {
                return Err(self.cursor.unexpected("a value such as %3"));
            }
        }
        self.cursor.expect_mark(b'}')?;
        Ok(results)
    }

    /// `export @fwd = @lstm[@w_fw, @b_fw]`
    fn export(&mut self, exports: &mut Names) -> Parsed<()> {
        self.cursor.advance();
        let token = self.new_name("cell")?;
        if !exports.declare(self.cursor.bytes(), token.start, self.module.exports.len() as u32) {
            return Err(self.taken(token, "export"));
        }
        self.cursor.expect_mark(b'=')?;
        let name = self.cursor.at_name("a cell such as @node")?;
        let cell: CellId = self.cell_named(name)?;
        self.param_args()?;
        self.check_args(cell, name)?;
        let sig = self.cell_sig(cell)?;
        self.module.exports.push(Export { name: self.cursor.name(token).to_owned(), sig });
        Ok(())
    }

    fn graph(&mut self) -> Parsed<GraphData> {
        self.module.types = self.types.clone();
        self.module.sigs = self.sigs.clone();
        self.module.sites = self.sites.clone();
        let (mut cuts, mut outputs) = (Vec::new(), Outputs::default());
        let (mut shared, mut alone): (Vec<ValueId>, Vec<AppId>) = (Vec::new(), Vec::new());
        if self.cursor.eat_word("graph") {
            self.sites()?;
        }
        loop {
            match self.cursor.token.kind {
                Kind::End => break,
                Kind::Value => self.application()?,
                Kind::Word => match self.cursor.spelling(self.cursor.token) {
                    "call" => self.application()?,
                    "instance" | "common" => cuts.push(self.cut()?),
                    "output" => self.output(OutputKind::Value, &mut outputs)?,
                    "loss" => self.output(OutputKind::Loss, &mut outputs)?,
                    "shared" => shared.push(self.marked()?),
                    "alone" => alone.push(self.marked().map(|value| self.arena.producer(value))?),
                    word => return Err(self.unknown_statement(word)),
                },
                _ => return Err(self.cursor.unexpected("a statement such as %3 = add(%1, %2)")),
            }
        }
        let module = Arc::new(std::mem::replace(&mut self.module, Module::empty("")));
        Ok(GraphData {
            module,
            types: std::mem::take(&mut self.types),
            sigs: std::mem::take(&mut self.sigs),
            sites: std::mem::take(&mut self.sites),
            arena: std::mem::take(&mut self.arena),
            cuts,
            outputs: outputs.list,
            shared,
            alone,
            bindings: std::mem::take(&mut self.bindings),
            hash: self.hash,
        })
    }

    #[cold]
    fn unknown_statement(&self, word: &str) -> Box<Problem> {
        let problem = self.cursor.unexpected("a statement such as %3 = add(%1, %2)");
        let known = ["call", "instance", "common", "output", "loss", "shared", "alone"];
        match nearest(word, known.into_iter()) {
            Some(near) => problem.help(format!("did you mean '{near}'?")),
            None if super::vocabulary::prototype(word).is_some() => {
                problem.help(format!("name the result: %x = {word}(..)"))
            }
            None => problem.help(format!("statements begin with a value or one of {}", known.join(", "))),
        }
    }

    /// `instance 7:` or `common:`
    fn cut(&mut self) -> Parsed<Cut> {
        let instance = self.cursor.at_word("instance");
        self.cursor.advance();
        let key = if instance { Some(self.cursor.long_number()?) } else { None };
        self.cursor.expect_mark(b':')?;
        let cut = Cut { first: self.arena.len() as u32, key };
        hash_cut(&mut self.hash, cut);
        Ok(cut)
    }

    /// `output "h" %5` or `loss "nll" %7`
    fn output(&mut self, kind: OutputKind, outputs: &mut Outputs<'t>) -> Parsed<()> {
        self.cursor.advance();
        let place = self.cursor.token;
        let name = self.cursor.string()?;
        let token = self.cursor.expect(Kind::Value, "a value such as %3")?;
        let value = self.value(token)?;
        let ty = self.types.get(self.arena.type_of(value));
        if ty.is_list {
            return Err(self.cursor.at_token(
                token,
                format!("a list is no output, found {ty}"),
                "this is a list",
            ));
        }
        if kind == OutputKind::Loss && ty != Type::scalar(DType::F32) {
            let problem = self.cursor.at_token(
                token,
                format!("a loss is a scalar f32, found {ty}"),
                format!("this is {ty}"),
            );
            return Err(problem.help("reduce it: %l = reduce{fold=sum over=all}(%x)"));
        }
        outputs.list.push(Output { name: name.clone().into_owned(), value, kind });
        if !outputs.names.insert(name) {
            let message = format!("the output name {} is taken", self.cursor.spelling(place));
            return Err(self.cursor.at_token(place, message, "here again"));
        }
        Ok(())
    }

    /// The value behind `shared` or `alone`.
    fn marked(&mut self) -> Parsed<ValueId> {
        self.cursor.advance();
        let token = self.cursor.expect(Kind::Value, "a value such as %3")?;
        self.value(token)
    }
}

/// Wanted values, with their names once more to find doubles.
#[derive(Default)]
struct Outputs<'t> {
    list: Vec<Output>,
    names: BTreeSet<Cow<'t, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_holds_no_more_than_ids_can_name() {
        let text = "autobatch graph 1\ngraph\n%a = input f32[3] (#[1, 2, 3])\n%b = add(%a, %a)\n";
        assert!(graph_within(text.as_bytes(), 3).is_ok());
        let error = graph_within(text.as_bytes(), 2).expect_err("three floats are bound");
        assert_eq!(error.message, "the graph is full");
    }
}
