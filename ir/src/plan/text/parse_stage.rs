//! Text to stages that read whole rows, lists or tables.

use super::parse::Parser;
use super::parse_kernel::STAGES;
use super::print_kernel::{element_type, whole_type};
use crate::graph::Op;
use crate::graph::text::error::Parsed;
use crate::graph::text::lex::Kind;
use crate::plan::{Kernel, ListSource, Stage, View};
use crate::types::Type;

/// A limit above the number of lists of any fold.
const MAX_LISTS: usize = 8;

impl Parser<'_> {
    /// `row %5, %6 = top_k{k=2} %4: f32[2,4]`
    pub(super) fn row(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let dsts = self.views(kernel)?;
        self.cursor.expect_mark(b'=')?;
        let op = self.stage_op()?;
        let ends = |token| self.is_one_of(token, &STAGES) || self.is_one_of(token, &["return"]);
        let mut sources = Vec::with_capacity(self.capacity(ends, |token| token.kind == Kind::Value, 3));
        while sources.is_empty() && self.cursor.at(Kind::Value)
            || !sources.is_empty() && self.cursor.eat(b',')
        {
            let view = self.view(kernel)?;
            let known = whole_type(kernel, view);
            sources.push((view, self.told(known)?));
        }
        sources.shrink_to_fit();
        Ok(Stage::Row { op, sources, dsts })
    }

    /// The type behind a colon, or the default.
    fn told(&mut self, known: Option<Type>) -> Parsed<Type> {
        match known {
            Some(known) if !self.cursor.at(Kind::Mark(b':')) => Ok(known),
            _ if self.cursor.at(Kind::Mark(b':')) => {
                self.cursor.expect_mark(b':')?;
                self.cursor.ty()
            }
            _ => Err(self.cursor.unexpected("':' and a type").help("a part of a register tells its type")),
        }
    }

    /// `seg %5 = attend{scale=0.5} %4 over %0, [%1, %2]`
    pub(super) fn seg(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let dst = self.view(kernel)?;
        self.cursor.expect_mark(b'=')?;
        let (op, query) = self.fold(kernel)?;
        self.keyword("over")?;
        let (mut lists, mut elements) = (Vec::new(), Vec::new());
        loop {
            let list = self.list_source(kernel)?;
            let known = element_type(kernel, &list);
            elements.push(self.told(known)?);
            lists.push(list);
            if !self.cursor.eat(b',') {
                break;
            }
            self.check_count(lists.len())?;
        }
        lists.shrink_to_fit();
        elements.shrink_to_fit();
        Ok(Stage::Seg { op, query, lists, elements, dst })
    }

    /// `unseg %8, none = wsum over %0, %1 from %7`
    pub(super) fn unseg(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let mut taken = Vec::new();
        loop {
            taken.push(self.taken(kernel)?);
            if !self.cursor.eat(b',') {
                break;
            }
            self.check_count(taken.len())?;
        }
        self.cursor.expect_mark(b'=')?;
        let (op, query) = self.fold(kernel)?;
        let dsts = taken.into_iter().map(|view| view.map(|view| view.reg)).collect();
        self.keyword("over")?;
        let (mut lists, mut elements) = (Vec::new(), Vec::new());
        loop {
            let list = self.declared(kernel)?.0;
            elements.push(self.told(element_type(kernel, &ListSource::Port(list)))?);
            lists.push(list);
            if lists.len() == MAX_LISTS || !self.cursor.eat(b',') {
                break;
            }
        }
        self.keyword("from")?;
        let dy = self.view(kernel)?;
        Ok(Stage::SegGrad { op, query, lists, elements, dy, dsts })
    }

    /// `unmean %8 = %7 over %0`
    pub(super) fn unmean(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let dst = self.view(kernel)?;
        self.cursor.expect_mark(b'=')?;
        let dy = self.view(kernel)?;
        self.keyword("over")?;
        Ok(Stage::MeanGrad { list: self.declared(kernel)?.0, dy, dst })
    }

    /// `unattend %8, none = attend{scale=0.5} %4 over %0, %1 from %7`
    pub(super) fn unattend(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let [dst, reader] = self.two_taken(kernel)?;
        let op = self.attention()?;
        let query = self.view(kernel)?;
        self.keyword("over")?;
        let keys = self.declared(kernel)?.0;
        self.cursor.expect_mark(b',')?;
        let values = self.declared(kernel)?.0;
        self.keyword("from")?;
        let dy = self.view(kernel)?;
        Ok(Stage::AttendGrad { op, query, keys, values, dy, dst, reader })
    }

    /// `pull %8, none = attend{scale=0.5} %0, %1 by %2`
    pub(super) fn pull(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let [key_dst, value_dst] = self.two_taken(kernel)?;
        let op = self.attention()?;
        let key = self.view(kernel)?;
        self.cursor.expect_mark(b',')?;
        let value = self.view(kernel)?;
        self.keyword("by")?;
        let readers = self.declared(kernel)?.0;
        Ok(Stage::AttendPull { op, key, value, readers, key_dst, value_dst })
    }

    /// `%8, none =`: two views, each of which may be absent.
    fn two_taken(&mut self, kernel: &Kernel) -> Parsed<[Option<View>; 2]> {
        let first = self.taken(kernel)?;
        self.cursor.expect_mark(b',')?;
        let second = self.taken(kernel)?;
        self.cursor.expect_mark(b'=')?;
        Ok([first, second])
    }

    fn taken(&mut self, kernel: &Kernel) -> Parsed<Option<View>> {
        Ok(if self.cursor.eat_word("none") { None } else { Some(self.view(kernel)?) })
    }

    /// `attend{scale=0.5}`
    fn attention(&mut self) -> Parsed<Op> {
        let token = self.cursor.token;
        match self.stage_op()? {
            op @ (Op::Attend { .. } | Op::GraphAttend { .. }) => Ok(op),
            _ => Err(self.cursor.other_word(token, "attend", "no attention")),
        }
    }

    /// `attend{scale=0.5} %4`: the op of a fold and its query, if it has one.
    fn fold(&mut self, kernel: &Kernel) -> Parsed<(Op, Option<View>)> {
        let op = self.stage_op()?;
        Ok((op, if self.cursor.at(Kind::Value) { Some(self.view(kernel)?) } else { None }))
    }

    /// Checks that a fold may take another list.
    fn check_count(&self, lists: usize) -> Parsed<()> {
        match lists < MAX_LISTS {
            true => Ok(()),
            false => {
                Err(self.cursor.unexpected("the end of the stage").help("no op takes this number of lists"))
            }
        }
    }

    fn list_source(&mut self, kernel: &Kernel) -> Parsed<ListSource> {
        if !self.cursor.eat(b'[') {
            return Ok(ListSource::Port(self.declared(kernel)?.0));
        }
        let views = if self.cursor.at(Kind::Mark(b']')) { Vec::new() } else { self.views(kernel)? };
        self.cursor.expect_mark(b']')?;
        Ok(ListSource::Views(views))
    }

    /// `label_loss %6, %7, none = @0 %4 at %5`
    pub(super) fn label_loss(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let dst = self.view(kernel)?;
        self.cursor.expect_mark(b',')?;
        let [log_sum, slope] = self.two_taken(kernel)?;
        let param = self.param(kernel)?;
        let x = self.view(kernel)?;
        self.keyword("at")?;
        let label = self.view(kernel)?;
        Ok(Stage::LabelLoss { param, x, label, dst, log_sum, slope })
    }

    /// `lookup %5 = @0[%4]`
    pub(super) fn lookup(&mut self, kernel: &Kernel) -> Parsed<Stage> {
        let dst = self.view(kernel)?;
        self.cursor.expect_mark(b'=')?;
        let param = self.param(kernel)?;
        self.cursor.expect_mark(b'[')?;
        let index = self.view(kernel)?;
        self.cursor.expect_mark(b']')?;
        Ok(Stage::Lookup { param, index, dst })
    }
}
