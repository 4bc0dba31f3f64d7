//! Text to updates; [`print_update`](super::print_update) shows the form.

use super::parse::Parser;
use crate::graph::text::error::Parsed;
use crate::graph::text::lex::{FROM, Kind, TO};
use crate::plan::updates::results_of;
use crate::plan::{KernelId, StoreId, Update, UpdateSource};

impl Parser<'_> {
    /// An update, if one comes next.
    pub(super) fn update(&mut self) -> Parsed<bool> {
        let update = if self.cursor.eat_word("sumsq") {
            self.scalars_made(1)?;
            Update::Sumsq { stores: self.update_stores(FROM)? }
        } else if self.cursor.eat_word("scalars") {
            let kernel = self.kernel_id()?;
            self.scalars_made(results_of(&self.plan.kernels, kernel))?;
            Update::Scalars { kernel, sources: self.update_sources()? }
        } else if self.cursor.eat_word("update") {
            let kernel = self.kernel_id()?;
            let sparse = self.cursor.eat_word("sparse");
            let targets = self.update_stores(TO)?;
            Update::Apply { kernel, sparse, targets, sources: self.update_sources()? }
        } else {
            return Ok(false);
        };
        self.updates.push(update);
        Ok(true)
    }

    /// `-> c3 c4`: the next scalars.
    fn scalars_made(&mut self, count: usize) -> Parsed<()> {
        self.cursor.expect_mark(TO)?;
        for _ in 0..count {
            self.next_id('c', self.scalars as usize)?;
            self.scalars += 1;
        }
        Ok(())
    }

    /// Names of stores behind a mark.
    fn update_stores(&mut self, mark: u8) -> Parsed<Vec<StoreId>> {
        self.cursor.expect_mark(mark)?;
        let mut stores = Vec::new();
        while self.cursor.at(Kind::At) {
            stores.push(self.store_name()?);
        }
        stores.shrink_to_fit();
        Ok(stores)
    }

    /// `<- @w c0 x[3]`
    fn update_sources(&mut self) -> Parsed<Vec<UpdateSource>> {
        self.cursor.expect_mark(FROM)?;
        let mut sources = Vec::new();
        loop {
            if self.cursor.at(Kind::At) {
                sources.push(UpdateSource::Store(self.store_name()?));
            } else if self.cursor.eat_word("x") {
                sources.push(UpdateSource::Float(self.cursor.number_in_brackets()?));
            } else if let Some(scalar) = self.lettered(self.cursor.token, 'c') {
                self.cursor.advance();
                sources.push(UpdateSource::Scalar(scalar));
            } else {
                sources.shrink_to_fit();
                return Ok(sources);
            }
        }
    }

    /// `k3`, declared above.
    pub(super) fn kernel_id(&mut self) -> Parsed<KernelId> {
        let (kernel, token) = self.id('k', "a kernel such as k0")?;
        if (kernel as usize) < self.plan.kernels.len() {
            return Ok(KernelId(kernel));
        }
        let problem = self.cursor.at_token(token, format!("there is no kernel k{kernel}"), "not declared");
        Err(problem.help(format!("the plan has {} kernels, from k0 on", self.plan.kernels.len())))
    }
}
