//! Text to steps; [`print_step`](super::print_step) shows the form.

use super::parse::{Parser, is_mark};
use crate::graph::text::cursor::span;
use crate::graph::text::error::{Parsed, TextProblem};
use crate::graph::text::lex::{FROM, Kind, THROUGH, TO, Token};
use crate::graph::text::number::unsigned;
use crate::id::NodeId;
use crate::plan::{
    Address, Group, GroupRange, GroupRule, Origin, Place, Reduction, ReductionPart, ReductionSum, Step,
    StepOperand,
};

impl Parser<'_> {
    /// `wave 3` and its steps.
    pub(super) fn wave(&mut self) -> Parsed<()> {
        let token = self.cursor.token;
        let number = self.cursor.number()?;
        let wanted = self.plan.waves.len();
        if number as usize != wanted {
            let message = format!("expected wave {wanted}, found wave {number}");
            return Err(self.cursor.at_token(token, message, "out of order").help("waves count from 0"));
        }
        while self.cursor.at(Kind::Word) && self.cursor.spelling(self.cursor.token).starts_with('f') {
            self.step()?;
        }
        self.plan.waves.push(self.plan.steps.len() as u32);
        Ok(())
    }

    /// `f1 k1[@w] x2 -> s0.a[5..7] <- s0.a[0..2] = n3 n7`
    fn step(&mut self) -> Parsed<()> {
        self.next_id('f', self.plan.steps.len())?;
        let kernel = self.kernel_id()?;
        let stores = self.plan.store_args.len() as u32;
        if self.cursor.eat(b'[') {
            while self.cursor.next_item(b']', self.plan.store_args.len() as u32 == stores)? {
                let store = self.store_name()?;
                self.plan.store_args.push(store);
            }
        }
        let rows = self.id('x', "a number of rows such as x5")?.0;
        let places = self.plan.places.len() as u32;
        if self.cursor.eat(TO) {
            while self.lettered(self.cursor.token, 's').is_some() || self.cursor.at_word("edges") {
                let place = self.place(rows)?;
                self.plan.places.push(place);
            }
        }
        let operands = self.plan.operands.len() as u32;
        if self.cursor.eat(FROM) {
            while self.at_operand() {
                let operand = self.operand(rows, operands)?;
                self.plan.operands.push(operand);
            }
        }
        let lanes = self.plan.lanes.len() as u32;
        if self.cursor.eat(b'=') {
            while self.lettered(self.cursor.token, 'n').is_some() {
                self.lane_run()?;
            }
        }
        self.plan.steps.push(Step {
            kernel,
            rows,
            operands: operands..self.plan.operands.len() as u32,
            places: places..self.plan.places.len() as u32,
            stores: stores..self.plan.store_args.len() as u32,
            lanes: lanes..self.plan.lanes.len() as u32,
        });
        Ok(())
    }

    /// An operand of a reduction, whose table may be that of an earlier one.
    fn reduced(&mut self, lanes: u32) -> Parsed<StepOperand> {
        let mut operand = self.operand(lanes, u32::MAX)?;
        if let Address::Table { at } = &mut operand.address {
            *at = self.of_reductions.share(&mut self.plan.tables, *at, lanes);
        }
        Ok(operand)
    }

    /// `sum @w.grad wgrad row 0 col 0 k 4 n 8`, then a line for each part: `x3 each 1 s0.a[0..3] s1.a[0..3] cut 2`
    pub(super) fn sum(&mut self) -> Parsed<()> {
        let store = self.store_name()?;
        let word = self.cursor.expect(Kind::Word, "wgrad, colsum, tgrad or lgrad")?;
        let sum = match self.cursor.spelling(word) {
            "wgrad" => {
                let mut block = [0; 4];
                for (name, number) in ["row", "col", "k", "n"].into_iter().zip(&mut block) {
                    *number = self.number_of(name)?;
                }
                let [row, col, k, n] = block;
                ReductionSum::Wgrad { row, col, k, n }
            }
            "colsum" => ReductionSum::Colsum,
            "tgrad" => ReductionSum::Tgrad,
            "lgrad" => ReductionSum::Lgrad,
            _ => {
                return Err(self.cursor.other_word(
                    word,
                    "wgrad, colsum, tgrad or lgrad",
                    "no sum over rows",
                ));
            }
        };
        let mut parts = Vec::new();
        while let Some(lanes) = self.lettered(self.cursor.token, 'x') {
            self.cursor.advance();
            let each = self.number_of("each")?;
            let x = if sum == ReductionSum::Colsum { None } else { Some(self.reduced(lanes)?) };
            let dy = self.reduced(lanes)?;
            let mut cuts = Vec::new();
            if self.cursor.eat_word("cut") {
                while self.cursor.at(Kind::Number) {
                    cuts.push(self.cursor.number()?);
                }
                cuts.shrink_to_fit();
            }
            parts.push(ReductionPart { lanes, each, x, dy, cuts });
        }
        parts.shrink_to_fit();
        self.plan.reductions.push(Reduction { store, sum, parts });
        Ok(())
    }

    /// Whether an operand comes next: a field, bindings, a list or a shared row.
    #[inline]
    fn at_operand(&self) -> bool {
        let token = self.cursor.token;
        token.kind == Kind::Word
            && (matches!(self.cursor.spelling(token), "u" | "x" | "seg" | "group" | "shared")
                || self.lettered(token, 's').is_some())
    }

    #[inline]
    fn origin(&mut self) -> Parsed<Origin> {
        if self.cursor.eat_word("u") {
            return Ok(Origin::Words);
        }
        if self.cursor.eat_word("x") {
            return Ok(Origin::Floats);
        }
        self.field().map(Origin::Field)
    }

    fn place(&mut self, rows: u32) -> Parsed<Place> {
        let token = self.cursor.token;
        if self.cursor.eat_word("edges") {
            let field = self.field()?;
            let start = self.cursor.number_in_brackets()?;
            return Ok(Place::Edges { field, start, offsets: self.table(rows.saturating_add(1))? });
        }
        let field = self.field()?;
        if self.cursor.at(Kind::Mark(b'{')) {
            return Ok(Place::Table { field, at: self.table(rows)? });
        }
        let (start, stride) = self.range(rows)?;
        if stride != 1 {
            let problem = self.cursor.at_token(token, "results lie in neighbouring rows", "not with 'by'");
            return Err(problem.help("name the rows one by one: s0.a{0 2 4}"));
        }
        Ok(Place::Rows { field, start })
    }

    /// An operand of a step whose operands begin at `first`.
    fn operand(&mut self, rows: u32, first: u32) -> Parsed<StepOperand> {
        if self.cursor.eat_word("seg") {
            return self.segments(rows);
        }
        if self.cursor.eat_word("group") {
            return self.groups(rows, first);
        }
        if self.cursor.eat_word("shared") {
            let (origin, start) = (self.origin()?, self.cursor.number_in_brackets()?);
            return Ok(StepOperand { origin, address: Address::Steps { start, stride: 0 } });
        }
        let origin = self.origin()?;
        let address = if self.cursor.at(Kind::Mark(b'{')) {
            Address::Table { at: self.table(rows)? }
        } else {
            let (start, stride) = self.range(rows)?;
            Address::Steps { start, stride }
        };
        Ok(StepOperand { origin, address })
    }

    /// `[0..5]`, `[0..10 by 2]` or, for one row, `[3]`.
    #[inline]
    fn range(&mut self, rows: u32) -> Parsed<(u32, u32)> {
        let open = self.cursor.expect_mark(b'[')?;
        let start = self.cursor.number()?;
        if !self.cursor.eat(THROUGH) {
            let close = self.cursor.expect_mark(b']')?;
            if rows != 1 {
                return Err(wrong_count(open, close, rows, 1));
            }
            return Ok((start, 1));
        }
        let end = self.cursor.long_number()?;
        let stride = if self.cursor.eat_word("by") { self.cursor.number()? } else { 1 };
        let close = self.cursor.expect_mark(b']')?;
        if u64::from(start) + u64::from(stride) * u64::from(rows) != end {
            let found = end.saturating_sub(u64::from(start)) / u64::from(stride.max(1));
            return Err(wrong_count(open, close, rows, found));
        }
        if stride == 0 {
            let problem = TextProblem::new(span(open).start..span(close).end, "the rows are one row", "by 0");
            return Err(problem.help("write shared s0.a[3]"));
        }
        Ok((start, stride))
    }

    /// `{0 2 5..8}`; where the numbers begin in the tables.
    fn table(&mut self, rows: u32) -> Parsed<u32> {
        let at = self.plan.tables.len();
        let open = self.cursor.expect_mark(b'{')?;
        while self.cursor.at(Kind::Number) {
            self.number_run()?;
        }
        let close = self.cursor.expect_mark(b'}')?;
        let found = self.plan.tables.len() - at;
        if found != rows as usize {
            return Err(wrong_count(open, close, rows, found as u64));
        }
        self.table_start(at, open)
    }

    /// `seg s0.a[0 1|4|]`
    fn segments(&mut self, rows: u32) -> Parsed<StepOperand> {
        let field = self.field()?;
        let open = self.cursor.expect_mark(b'[')?;
        // Offsets lie before the rows, so they are counted first. Each lane takes a byte of text.
        let bars = self.count_until(is_mark(b']'), is_mark(b'|'));
        let empty = self.cursor.at(Kind::Mark(b']'));
        let found = if empty && rows == 0 { 0 } else { bars + 1 };
        if found != rows as usize {
            return Err(
                wrong_count(open, open, rows, found as u64).help("'|' stands between the lists of lanes")
            );
        }
        let at = self.plan.tables.len();
        let items = at + found + 1;
        self.plan.tables.resize(items, 0);
        for lane in 0..found {
            while self.cursor.at(Kind::Number) {
                self.number_run()?;
            }
            self.plan.tables[at + lane + 1] = (self.plan.tables.len() - items) as u32;
            if lane + 1 < found {
                self.cursor.expect_mark(b'|')?;
            }
        }
        self.cursor.expect_mark(b']')?;
        let offsets = self.table_start(at, open)?;
        let items = self.table_start(items, open)?;
        Ok(StepOperand::of_field(field, Address::Lists { offsets, items }))
    }

    /// `group s0.a[0..5 all x3 | 7 9 prefix x2]`
    fn groups(&mut self, rows: u32, first_operand: u32) -> Parsed<StepOperand> {
        let field = self.field()?;
        let open = self.cursor.expect_mark(b'[')?;
        let (first, table, mut end) = (self.plan.groups.len(), self.plan.tables.len(), 0u32);
        while !self.cursor.at(Kind::Mark(b']')) {
            if self.plan.groups.len() > first {
                self.cursor.expect_mark(b'|')?;
            }
            let at = self.plan.tables.len();
            while self.cursor.at(Kind::Number) {
                self.number_run()?;
            }
            let len = (self.plan.tables.len() - at) as u32;
            self.table_start(at, open)?;
            let range = GroupRange::of_last(&mut self.plan.tables, at);
            let word = self.cursor.expect(Kind::Word, "all, prefix or suffix")?;
            let spelling = self.cursor.spelling(word);
            let Some(rule) = GroupRule::ALL.into_iter().find(|rule| rule.spelling() == spelling) else {
                return Err(self.cursor.other_word(word, "all, prefix or suffix", "no part of a group"));
            };
            let lanes = self.id('x', "a number of lanes such as x5")?.0;
            end = end.saturating_add(lanes);
            self.plan.groups.push(Group { end, len, range, rule });
        }
        self.cursor.expect_mark(b']')?;
        if end != rows {
            return Err(wrong_count(open, open, rows, end.into())
                .help("the lanes of the groups add up to the step's"));
        }
        let earlier = self.plan.operands.get(first_operand as usize..).unwrap_or(&[]);
        let earlier = earlier.iter().map(|operand| operand.address);
        let (groups, tables) = (&mut self.plan.groups, &mut self.plan.tables);
        Ok(StepOperand::of_field(field, Address::of_last_groups(groups, tables, first, table, earlier)))
    }

    fn table_start(&self, at: usize, token: Token) -> Parsed<u32> {
        u32::try_from(at).map_err(|_| self.cursor.at_token(token, "the tables are full", "beyond 2^32 words"))
    }

    /// A number, `5..8`, `0..12 by 4` or `7 x3`, into the tables.
    #[inline]
    fn number_run(&mut self) -> Parsed<()> {
        let token = self.cursor.token;
        let start = self.cursor.number()?;
        if self.cursor.eat(THROUGH) {
            let end = self.cursor.long_number()?;
            let (stride, count) = self.run_rest(token, start, end)?;
            self.plan.tables.extend((0..count).map(|i| start + i * stride));
        } else if let Some(count) = self.lettered(self.cursor.token, 'x') {
            self.cursor.advance();
            self.unspelled(token, count)?;
            self.plan.tables.extend(std::iter::repeat_n(start, count as usize));
        } else {
            self.plan.tables.push(start);
        }
        Ok(())
    }

    /// `n3`, `n3..n9`, `n0..n12 by 4` or `n3 x4`, into the lanes.
    fn lane_run(&mut self) -> Parsed<()> {
        let (start, token) = self.id('n', "a node such as n3")?;
        let (stride, count) = if self.cursor.eat(THROUGH) {
            let end = self.cursor.expect(Kind::Word, "the node where the run ends, such as n9")?;
            let Ok(end) = unsigned(self.cursor.spelling(end).strip_prefix('n').unwrap_or("").as_bytes())
            else {
                return Err(self.cursor.at_token(end, "expected a node such as n9", "not one"));
            };
            self.run_rest(token, start, end)?
        } else if let Some(count) = self.lettered(self.cursor.token, 'x') {
            self.cursor.advance();
            self.unspelled(token, count)?;
            (0, count)
        } else {
            (1, 1)
        };
        let last = u64::from(start) + u64::from(stride) * u64::from(count.saturating_sub(1));
        if NodeId::try_new(last as usize).is_none() {
            return Err(self.cursor.at_token(token, "the number of a node is too large", "beyond 2^30"));
        }
        self.plan.lanes.extend((0..count).map(|i| NodeId::new((start + i * stride) as usize)));
        Ok(())
    }

    /// Parses the rest after `start..end`: the stride and count of the run.
    fn run_rest(&mut self, token: Token, start: u32, end: u64) -> Parsed<(u32, u32)> {
        let stride = if self.cursor.eat_word("by") { self.cursor.number()? } else { 1 };
        let length = end.checked_sub(u64::from(start)).filter(|length| *length > 0);
        let count = length.zip(u64::from(stride).into()).and_then(|(length, stride)| {
            let even = stride > 0 && length.is_multiple_of(stride);
            let last = even.then(|| end - stride)?;
            u32::try_from(last).ok()?;
            u32::try_from(length / stride).ok()
        });
        let Some(count) = count else {
            let problem = self.cursor.at_token(token, "the run has no numbers or ends between two", "here");
            return Err(problem.help("3..9 is 3 4 5 6 7 8, and 0..12 by 4 is 0 4 8"));
        };
        self.unspelled(token, count)?;
        Ok((stride, count))
    }

    /// Counts the numbers of a run that text does not spell.
    fn unspelled(&mut self, token: Token, count: u32) -> Parsed<()> {
        let Some(left) = self.allowance.checked_sub((count as usize).saturating_sub(1)) else {
            let message = "the runs of this text hold too many numbers";
            let problem = self.cursor.at_token(token, message, "too long a run");
            return Err(
                problem.help("cut long runs into shorter ones, or keep large plans in the binary form")
            );
        };
        self.allowance = left;
        Ok(())
    }
}

#[cold]
fn wrong_count(open: Token, close: Token, rows: u32, found: u64) -> Box<TextProblem> {
    let message = format!("the step has {rows} lanes, found {found}");
    TextProblem::new(span(open).start..span(close).end, message, "one for each lane goes here")
}
