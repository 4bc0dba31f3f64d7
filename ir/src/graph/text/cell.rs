//! Parsing cells: a head with ports, a body of nodes, and the results.

use super::error::Parsed;
use super::lex::{Kind, Token};
use super::parse::Parser;
use crate::graph::Signature;
use crate::id::{SiteId, ValueId};
use crate::module::{Body, CellDecl, Module};
use crate::types::{DType, INDEX};

impl Parser<'_> {
    /// `cell @node[@0: f32[8,20]](%0: f32[4], %1: u32) noise !3 { .. return %7 }`
    pub(super) fn cell(&mut self) -> Parsed<()> {
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
            self.node()?;
        }
        let results = self.cell_results()?;
        let param_types = std::mem::take(&mut self.port_types);
        let arena = std::mem::take(&mut self.arena);
        let body = Body { ports, noise: noise.is_some(), param_types, arena, results };
        let cells = &mut self.module.cells;
        if cells.len() == cells.capacity() {
            // A declaration is large and its text can be short, so the vector grows by a quarter.
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
        while self.cursor.next_item(b']', self.port_types.is_empty())? {
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

    /// `(%0: f32[4], %1: u32 !3)`. Returns the ports that have their own site; the others have the site of the cell.
    fn value_ports(&mut self) -> Parsed<Vec<(u32, SiteId)>> {
        let mut own_sites = Vec::new();
        self.cursor.expect_mark(b'(')?;
        while self.cursor.next_item(b')', self.arena.is_empty())? {
            let name = self.cursor.expect(Kind::Value, "a port such as %x: f32[4]")?;
            self.cursor.expect_mark(b':')?;
            let ty = self.cursor.ty()?;
            let id = self.types.intern(ty);
            let number = self.arena.len() as u32;
            if self.cursor.at(Kind::Site) {
                own_sites.push((number, self.site()?));
            }
            let sig = self.sigs.intern(Signature::port(ty, id), &self.types);
            self.arena.push(sig, 0, &[id], SiteId::new(0));
            self.declare_value(name.start, number)?;
        }
        Ok(own_sites)
    }

    fn check_noise(&self, noise: Token) -> Parsed<()> {
        let index = Module::index_type();
        match self.arena.value_types() {
            [.., low, high] if *low == index && *high == index => Ok(()),
            _ => {
                let message = "the last two ports of a cell that draws noise are the noise key, two u32";
                let problem = self.cursor.at_token(noise, message, "draws noise");
                Err(problem.help(format!("write (.., %low: {INDEX}, %high: {INDEX}) noise")))
            }
        }
    }

    /// `return %7, %4 }`
    fn cell_results(&mut self) -> Parsed<Vec<ValueId>> {
        if !self.cursor.eat_word("return") {
            return Err(self.cursor.unexpected("a node or 'return'"));
        }
        let mut results = Vec::new();
        while self.cursor.at(Kind::Value) {
            let token = self.cursor.advance();
            let value = self.value(token)?;
            let ty = self.types.get(self.arena.type_of(value));
            if ty.is_list {
                let message = format!("a cell returns values, found {ty}");
                return Err(self.cursor.at_token(token, message, "this is a list"));
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
}
