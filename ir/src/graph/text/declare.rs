//! Parsing declarations of a module other than cells: sites, parameters, tables and exports.

use super::UNKNOWN;
use super::error::{Parsed, TextProblem, nearest};
use super::lex::{Kind, Token};
use super::names::Names;
use super::number::unsigned32;
use super::parse::Parser;
use crate::graph::Site;
use crate::id::{CellId, SiteId};
use crate::module::{Export, Init, ParamDecl, ParamKind, check_declaration, check_name};

impl Parser<'_> {
    /// `site !3 "src/model.rs" 31:21`
    pub(super) fn sites(&mut self) -> Parsed<()> {
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

    /// `!3`; a missing site means the unknown site.
    #[inline]
    pub(super) fn site(&mut self) -> Parsed<SiteId> {
        if !self.cursor.at(Kind::Site) {
            let sites = &mut self.sites;
            return Ok(*self.unknown_site.get_or_insert_with(|| sites.push(UNKNOWN)));
        }
        let token = self.cursor.advance();
        let number = unsigned32(self.cursor.name(token).as_bytes());
        match number {
            Ok(number) if (number as usize) < self.sites.items().len() => Ok(SiteId::new(number as usize)),
            _ => {
                let message = format!("unknown site {}", self.cursor.spelling(token));
                let help = "declare it above: site !0 \"src/model.rs\" 31:21";
                Err(self.cursor.at_token(token, message, "not in the table of sites").help(help))
            }
        }
    }

    /// Parses `@` and a well-formed name.
    pub(super) fn new_name(&mut self, what: &str) -> Parsed<Token> {
        let token = self.cursor.at_name(&format!("the name of a {what}, such as @w"))?;
        match check_name(self.cursor.name(token)) {
            Ok(()) => Ok(token),
            Err(message) => Err(self.cursor.at_token(token, message, "not a name")),
        }
    }

    pub(super) fn taken(&self, token: Token, what: &str) -> Box<TextProblem> {
        let message = format!("the {what} @{} is declared twice", self.cursor.name(token));
        self.cursor.at_token(token, message, "here again").help("use unique names")
    }

    /// `param @w f32[256,640] = glorot(1.0) !3`
    pub(super) fn param(&mut self) -> Parsed<()> {
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
            let message = format!("a parameter cannot be a list, found {ty}");
            return Err(self.cursor.at_token(token, message, "declared here"));
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
            while self.cursor.next_item(b')', numbers.is_empty())? {
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
    fn unknown_init(&self, token: Token, count: usize) -> Box<TextProblem> {
        const WORDS: [&str; 7] = ["constant", "uniform", "normal", "glorot", "he", "saxe", "values"];
        let word = self.cursor.spelling(token);
        if WORDS.contains(&word) {
            let expected = if word == "he" { "no number" } else { "one number" };
            let message = format!("{word} takes {expected}, found {count}");
            return self.cursor.at_token(token, message, "this initialiser");
        }
        let problem =
            self.cursor.at_token(token, format!("unknown initialiser '{word}'"), "no such initialiser");
        let near = nearest(word, WORDS.into_iter()).map(|near| format!("'{near}'"));
        problem.suggest(near, format!("the initialisers are {}", WORDS.join(", ")))
    }

    /// `export @fwd = @lstm[@w_fw, @b_fw]`
    pub(super) fn export(&mut self, exports: &mut Names) -> Parsed<()> {
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
}
