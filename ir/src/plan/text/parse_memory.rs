//! Parsing the memory of a plan: stores, slabs and their fields.

use super::parse::{Parser, is_mark};
use crate::graph::text::cursor::span;
use crate::graph::text::error::{Parsed, TextProblem};
use crate::graph::text::lex::{Kind, Token};
use crate::module::ParamKind;
use crate::plan::{Field, FieldId, Slab, SlabId, SlabKind, Store, StoreKind};
use std::cmp::Ordering;
impl Parser<'_> {
    /// `store @w param f32[4,2]`
    pub(super) fn store(&mut self) -> Parsed<()> {
        let name = self.cursor.at_name("the name of a store such as @w")?;
        let word = self.cursor.expect(Kind::Word, "param, table, grad or state")?;
        let kind = match self.cursor.spelling(word) {
            "param" => StoreKind::Param(ParamKind::Param),
            "table" => StoreKind::Param(ParamKind::Table),
            "grad" => StoreKind::Grad(self.store_name()?),
            "state" => StoreKind::State(self.store_name()?),
            _ => return Err(self.cursor.other_word(word, "param, table, grad or state", "no kind of store")),
        };
        let ty = self.cursor.ty()?;
        if !self.stores.declare(self.cursor.bytes(), name.start, self.plan.stores.len() as u32) {
            let message = format!("the name @{:.40} is taken", self.cursor.name(name));
            return Err(self.cursor.at_token(name, message, "declared again"));
        }
        self.plan.stores.push(Store { name: self.cursor.name(name).to_owned(), ty, kind });
        Ok(())
    }

    /// `slab s0 value {a: f32[128], b: f32[128]} x8`
    pub(super) fn slab(&mut self) -> Parsed<()> {
        let number = self.plan.slabs.len();
        self.next_id('s', number)?;
        let word = self.cursor.expect(Kind::Word, "value, node or mirror")?;
        let kind = match self.cursor.spelling(word) {
            "value" => SlabKind::Value,
            "node" => SlabKind::Node,
            "mirror" => SlabKind::Mirror(SlabId(self.id('s', "the slab that is mirrored, such as s0")?.0)),
            _ => return Err(self.cursor.other_word(word, "value, node or mirror", "no kind of slab")),
        };
        let start = self.plan.fields.len() as u32;
        self.cursor.expect_mark(b'{')?;
        self.plan.fields.reserve(self.capacity(is_mark(b'}'), is_mark(b':'), 6));
        while self.cursor.next_item(b'}', self.plan.fields.len() as u32 == start)? {
            let name = self.name("the name of a field")?;
            self.cursor.expect_mark(b':')?;
            let ty = self.cursor.ty()?;
            self.plan.fields.push(Field { slab: SlabId(number as u32), name, ty });
        }
        let rows = self.id('x', "a number of rows such as x8")?.0;
        let fields = start..self.plan.fields.len() as u32;
        self.plan.slabs.push(Slab { kind, rows, fields });
        Ok(())
    }

    pub(super) fn sort_fields(&mut self) -> Parsed<()> {
        let fields = &self.plan.fields;
        self.fields = (0..fields.len() as u32).collect();
        let key = |&id: &u32| (fields[id as usize].slab, fields[id as usize].name.as_str());
        self.fields.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        match self.fields.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
            None => Ok(()),
            Some(pair) => {
                let (slab, name) = key(&pair[0]);
                let message = format!("{slab} has two fields called {name:.40}");
                let problem = self.cursor.at_token(self.cursor.token, message, "found where the slabs end");
                Err(problem.help("give each field of a slab its own name"))
            }
        }
    }

    /// `s0.a`
    #[inline]
    pub(super) fn field(&mut self) -> Parsed<FieldId> {
        let (slab, start) = self.id('s', "a field such as s0.a")?;
        self.cursor.expect_mark(b'.')?;
        let token = self.cursor.token;
        let found = if self.cursor.at(Kind::Text) {
            let name = self.cursor.string()?;
            self.find_field(slab, &name)
        } else {
            let word = self.cursor.expect(Kind::Word, "the name of a field")?;
            self.find_field(slab, self.cursor.spelling(word))
        };
        found.ok_or_else(|| self.unknown_field(slab, start, token))
    }

    #[inline]
    fn find_field(&self, slab: u32, name: &str) -> Option<FieldId> {
        let key = |&id: &u32| -> Ordering {
            let field = &self.plan.fields[id as usize];
            field.slab.0.cmp(&slab).then_with(|| field.name.as_str().cmp(name))
        };
        self.fields.binary_search_by(key).ok().map(|place| FieldId(self.fields[place]))
    }

    #[cold]
    fn unknown_field(&self, slab: u32, start: Token, name: Token) -> Box<TextProblem> {
        let Some(known) = self.plan.slabs.get(slab as usize) else {
            let problem =
                self.cursor.at_token(start, format!("there is no slab s{slab}"), "not declared above");
            return problem.help(format!("the plan has {} slabs, from s0 on", self.plan.slabs.len()));
        };
        let message = format!("s{slab} has no field {:.40}", self.cursor.spelling(name));
        let problem = TextProblem::new(span(name), message, "no such field");
        let fields = &self.plan.fields[known.fields.start as usize..known.fields.end as usize];
        let names: Vec<&str> = fields.iter().take(12).map(|field| field.name.as_str()).collect();
        problem.help(format!("its fields are {:.200}", names.join(", ")))
    }
}
