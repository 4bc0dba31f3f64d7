//! The parser of graphs and modules: declarations and statements around the nodes.
//!
//! A recursive-descent parser without recursion, because no construct contains itself. Sections have a fixed order: sites,
//! parameters, cells, exports, graph. So parsing a printed text interns types and signatures in the same order every time.

use super::HEADER;
use super::apply::SIG_CACHE;
use super::cursor::{Cursor, decoded};
use super::error::{ParseError, Parsed, TextProblem, nearest};
use super::lex::Kind;
use super::names::Names;
use crate::graph::data::hash_cut;
use crate::graph::lists::ListLengths;
use crate::graph::{
    Arena, Bindings, Cut, FORMAT_VERSION, GraphData, Output, OutputKind, ParamArg, Signatures, Sites,
};
use crate::hash::StructureHash;
use crate::id::{MAX_INDEX, NodeId, SigId, SiteId, TypeId, ValueId};
use crate::module::Module;
use crate::types::{DType, Type, Types};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Parses a module without a graph.
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

/// Parses a graph.
pub(super) fn graph(text: &[u8]) -> Result<GraphData, ParseError> {
    graph_within(text, MAX_INDEX)
}

/// Parses a graph with at most `limit` operands, values and bindings.
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
    let valid = decoded(text)?;
    rules(&mut Parser::new(valid, limit)).map_err(|problem| ParseError::new(text, *problem))
}

/// The state of the parser.
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) limit: usize,
    pub(super) module: Module,
    pub(super) types: Types,
    pub(super) sigs: Signatures,
    pub(super) sites: Sites,
    /// The unknown site, once it is in the table.
    pub(super) unknown_site: Option<SiteId>,
    /// The names and types of the parameters of the module.
    pub(super) params: Names,
    pub(super) param_types: Vec<TypeId>,
    pub(super) cells: Names,
    /// The current arena, of the graph or a body, and the names of its values.
    pub(super) arena: Arena,
    pub(super) values: Names,
    pub(super) bindings: Bindings,
    pub(super) hash: StructureHash,
    pub(super) in_cell: bool,
    /// The names and types of the parameter ports of the current cell.
    pub(super) ports: Names,
    pub(super) port_types: Vec<TypeId>,
    /// The parts of the current node.
    pub(super) result_names: Vec<u32>,
    pub(super) annotations: Vec<(u32, Type)>,
    pub(super) operand_types: Vec<TypeId>,
    pub(super) args: Vec<ParamArg>,
    pub(super) sig_cache: Vec<Option<(u64, SigId)>>,
    pub(super) list_lengths: ListLengths,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, limit: usize) -> Self {
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
            list_lengths: ListLengths::default(),
        }
    }

    fn header(&mut self) -> Parsed<()> {
        let first = self.cursor.token;
        if !self.cursor.eat_word("autobatch") {
            let problem = self.cursor.at_token(first, "the version line is missing", "the text begins here");
            return Err(problem.help(format!("begin the text with '{HEADER}'")));
        }
        if self.cursor.at_word("plan") {
            let message = "this is a plan, not a graph";
            let problem = self.cursor.at_token(self.cursor.token, message, "the kind of the text");
            return Err(problem.help("plans are read by the plan reader"));
        }
        if !self.cursor.eat_word("graph") {
            return Err(self.cursor.unexpected("'graph'").help(format!("the version line is '{HEADER}'")));
        }
        let token = self.cursor.token;
        let version = self.cursor.long_number()?;
        let known = u64::from(FORMAT_VERSION);
        if version == known {
            return Ok(());
        }
        let message = format!("the text has format version {version}, this autobatch reads {known}");
        let help = match version {
            1 => "remove every '{dense}' after 'lookup' and write 'autobatch graph 2' in the first line",
            0 => "begin the text with 'autobatch graph 2'",
            _ => "update autobatch",
        };
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

    /// The problem that the next token begins no section.
    #[cold]
    fn misplaced(&self) -> Box<TextProblem> {
        const ORDER: &str = "the order is: module, sites, parameters and tables, cells, exports, graph";
        let problem = self.cursor.unexpected("a declaration or 'graph'");
        let word = self.cursor.spelling(self.cursor.token);
        let known = ["module", "site", "param", "table", "cell", "export", "graph"];
        match nearest(word, known.into_iter()) {
            Some(near) if near != word && self.cursor.at(Kind::Word) => {
                problem.help(format!("did you mean '{near}'?"))
            }
            None if self.cursor.at(Kind::Value) || self.cursor.at(Kind::Word) => {
                problem.help("nodes follow the line 'graph'")
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

    fn graph(&mut self) -> Parsed<GraphData> {
        self.module.types = self.types.clone();
        self.module.sigs = self.sigs.clone();
        self.module.sites = self.sites.clone();
        let (mut cuts, mut outputs) = (Vec::new(), Outputs::default());
        let (mut shared, mut alone): (Vec<ValueId>, Vec<NodeId>) = (Vec::new(), Vec::new());
        if self.cursor.eat_word("graph") {
            self.sites()?;
            self.pools()?;
        }
        loop {
            match self.cursor.token.kind {
                Kind::End => break,
                Kind::Value => self.node()?,
                Kind::Word => match self.cursor.spelling(self.cursor.token) {
                    "call" => self.node()?,
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
    fn unknown_statement(&self, word: &str) -> Box<TextProblem> {
        let problem = self.cursor.unexpected("a statement such as %3 = add(%1, %2)");
        let known = ["call", "instance", "common", "output", "loss", "shared", "alone"];
        let otherwise = match super::vocabulary::prototype(word) {
            Some(_) => format!("name the result: %x = {word}(..)"),
            None => format!("statements begin with a value or one of {}", known.join(", ")),
        };
        problem.suggest(nearest(word, known.into_iter()).map(|near| format!("'{near}'")), otherwise)
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
            let message = format!("an output cannot be a list, found {ty}");
            return Err(self.cursor.at_token(token, message, "this is a list"));
        }
        if kind == OutputKind::Loss && ty != Type::scalar(DType::F32) {
            let message = format!("a loss is a scalar f32, found {ty}");
            let problem = self.cursor.at_token(token, message, format!("this is {ty}"));
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

/// The outputs, with a set of their names to find duplicates.
#[derive(Default)]
struct Outputs<'t> {
    list: Vec<Output>,
    names: BTreeSet<Cow<'t, str>>,
}

#[cfg(test)]
#[path = "tests/parse.rs"]
mod tests;
