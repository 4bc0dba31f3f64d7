//! Steps to text, wave by wave.
//!
//! ```text
//! wave 0  f0 k0[@embed] x5 -> s0.a[0..5] s0.b[0..5] <- u[0..5] = n0 n1 n3..n6
//! wave 1  f1 k1[@w, @b] x2 -> s0.a[5..7] s0.b[5..7] <- s0.a[0..2] s0.a{2 3} = n2 n7
//! ```
//! A step that fits stands on one line; one that does not has lines of its own for its results, operands and lanes.

use super::print::{COLUMNS, push_field, store_name};
use super::runs::runs;
use crate::graph::text::number::push_number;
use crate::graph::text::write::put;
use crate::plan::normal::{segments, table, within};
use crate::plan::{
    Address, GroupRange, Origin, Place, Plan, Reduction, ReductionPart, ReductionSum, Step, StepOperand,
};

pub(super) struct Steps<'a> {
    plan: &'a Plan,
    reach: usize,
    /// How every field is spelled.
    fields: Vec<String>,
    /// The step, kernel and rows of each step, end to end, and where each ends.
    heads: String,
    ends: Vec<(usize, usize, usize)>,
    unspelled: usize,
    places: String,
    operands: String,
    lanes: String,
}

impl<'a> Steps<'a> {
    pub(super) fn new(plan: &'a Plan, reach: usize) -> Self {
        let spelled = |field| {
            let mut out = String::new();
            push_field(&mut out, plan, field);
            out
        };
        Self {
            plan,
            reach,
            fields: (0..plan.fields.len()).map(spelled).collect(),
            heads: String::new(),
            ends: Vec::with_capacity(plan.steps.len()),
            unspelled: 0,
            places: String::new(),
            operands: String::new(),
            lanes: String::new(),
        }
    }

    /// Writes all waves; how many numbers runs left unspelled.
    pub(super) fn print(mut self, out: &mut String) -> usize {
        self.spell_heads();
        let widths = self.widths();
        let digits = self.plan.waves.len().saturating_sub(1).max(1).ilog10() as usize + 1;
        out.push_str(if self.plan.waves.is_empty() { "" } else { "\n" });
        let mut start = 0;
        for (wave, &end) in self.plan.waves.iter().enumerate() {
            put(out, format_args!("wave {wave:<digits$}"));
            let end = end as usize;
            for (step, number) in self.plan.steps.iter().take(end).skip(start).zip(start..) {
                if number > start {
                    put(out, format_args!("     {:digits$}", ""));
                }
                self.step(out, step, number, widths);
            }
            if end <= start {
                out.push('\n');
            }
            start = start.max(end);
        }
        out.push_str(if self.plan.reductions.is_empty() { "" } else { "\n" });
        for sum in &self.plan.reductions {
            self.sum(out, sum);
        }
        self.unspelled
    }

    fn spell_heads(&mut self) {
        for (number, step) in self.plan.steps.iter().enumerate() {
            let start = self.heads.len();
            put(&mut self.heads, format_args!("f{number}"));
            let id = self.heads.len() - start;
            put(&mut self.heads, step.kernel);
            for (place, &store) in within(&self.plan.store_args, &step.stores).iter().enumerate() {
                self.heads.push_str(if place == 0 { "[@" } else { ", @" });
                self.heads.push_str(store_name(&self.plan.stores, store));
            }
            self.heads.push_str(if step.stores.is_empty() { "" } else { "]" });
            let kernel = self.heads.len() - start - id;
            put(&mut self.heads, format_args!("x{}", step.rows));
            self.ends.push((start, id, kernel));
        }
    }

    /// The widths of the columns; a few wide entries do not push all the others apart.
    fn widths(&self) -> [usize; 3] {
        let mut widths = [0, 0, 0];
        for (number, &(start, id, kernel)) in self.ends.iter().enumerate() {
            let end = self.ends.get(number + 1).map_or(self.heads.len(), |next| next.0);
            let found = [id, kernel, end - start - id - kernel];
            for (width, found) in widths.iter_mut().zip(found) {
                *width = found.min(24).max(*width);
            }
        }
        widths
    }

    fn step(&mut self, out: &mut String, step: &Step, number: usize, widths: [usize; 3]) {
        let Step { kernel: _, rows, operands, places, stores: _, lanes } = step;
        self.places.clear();
        self.operands.clear();
        self.lanes.clear();
        for place in within(&self.plan.places, places) {
            self.place(*place, *rows);
        }
        for operand in within(&self.plan.operands, operands) {
            self.operand(*operand, *rows);
        }
        let ids: Vec<u32> = within(&self.plan.lanes, lanes).iter().map(|lane| lane.index() as u32).collect();
        push_runs(&mut self.lanes, &ids, "n", self.reach, &mut self.unspelled);
        let (start, id, kernel) = self.ends[number];
        let end = self.ends.get(number + 1).map_or(self.heads.len(), |next| next.0);
        let head = &self.heads[start..end];
        let line_start = out.rfind('\n').map_or(0, |newline| newline + 1);
        let indent = out.len() - line_start + 4;
        put(
            out,
            format_args!(
                "  {:w0$} {:w1$} {:w2$}",
                &head[..id],
                &head[id..id + kernel],
                &head[id + kernel..],
                w0 = widths[0],
                w1 = widths[1],
                w2 = widths[2]
            ),
        );
        let parts = [("->", &self.places), ("<-", &self.operands), ("=", &self.lanes)];
        let parts = parts.into_iter().filter(|(_, part)| !part.is_empty());
        let length: usize = parts.clone().map(|(mark, part)| mark.len() + part.len() + 1).sum();
        if out.len() - line_start + length <= COLUMNS {
            parts.for_each(|(mark, part)| put(out, format_args!(" {mark}{part}")));
        } else {
            parts.for_each(|(mark, part)| push_wrapped(out, indent, mark, part));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }

    fn place(&mut self, place: Place, rows: u32) {
        let out = &mut self.places;
        out.push_str(if matches!(place, Place::Edges { .. }) { " edges " } else { " " });
        out.push_str(self.fields.get(place.field().index()).map_or("?", String::as_str));
        match place {
            Place::Rows { start, .. } => push_range(out, start, 1, rows),
            Place::Table { at, .. } => {
                push_table(out, table(&self.plan.tables, at, rows), self.reach, &mut self.unspelled);
            }
            Place::Edges { start, offsets, .. } => {
                put(out, format_args!("[{start}]"));
                let offsets = table(&self.plan.tables, offsets, rows.saturating_add(1));
                push_table(out, offsets, self.reach, &mut self.unspelled);
            }
        }
    }

    /// `sum @w.grad wgrad row 0 col 0 k 4 n 8` and its parts.
    fn sum(&mut self, out: &mut String, sum: &Reduction) {
        put(out, format_args!("sum @{} ", store_name(&self.plan.stores, sum.store)));
        match sum.sum {
            ReductionSum::Wgrad { row, col, k, n } => {
                put(out, format_args!("wgrad row {row} col {col} k {k} n {n}"));
            }
            ReductionSum::Colsum => out.push_str("colsum"),
            ReductionSum::Tgrad => out.push_str("tgrad"),
            ReductionSum::Lgrad => out.push_str("lgrad"),
        }
        out.push('\n');
        for ReductionPart { lanes, each, x, dy, cuts } in &sum.parts {
            self.operands.clear();
            for operand in x.iter().chain([dy]) {
                self.operand(*operand, *lanes);
            }
            put(out, format_args!("  x{lanes} each {each}{}", self.operands));
            out.push_str(if cuts.is_empty() { "" } else { " cut" });
            cuts.iter().for_each(|cut| put(out, format_args!(" {cut}")));
            out.push('\n');
        }
    }

    fn operand(&mut self, operand: StepOperand, rows: u32) {
        let (out, tables) = (&mut self.operands, &self.plan.tables);
        let origin = match operand.origin {
            Origin::Field(field) => self.fields.get(field.index()).map_or("?", String::as_str),
            Origin::Words => "u",
            Origin::Floats => "x",
        };
        out.push_str(match operand.address {
            Address::Steps { stride: 0, .. } => " shared ",
            Address::Steps { .. } | Address::Table { .. } => " ",
            Address::Lists { .. } => " seg ",
            Address::Groups { .. } => " group ",
        });
        out.push_str(origin);
        match operand.address {
            Address::Steps { start, stride: 0 } => put(out, format_args!("[{start}]")),
            Address::Steps { start, stride } => push_range(out, start, stride, rows),
            Address::Table { at } => {
                push_table(out, table(tables, at, rows), self.reach, &mut self.unspelled);
            }
            Address::Lists { offsets, items } => {
                out.push('[');
                let (offsets, items) = segments(tables, offsets, items, rows);
                let first = offsets.first().copied().unwrap_or(0);
                for (lane, pair) in offsets.windows(2).enumerate() {
                    out.push_str(if lane == 0 { "" } else { "|" });
                    let (start, end) = (pair[0].saturating_sub(first), pair[1].saturating_sub(first));
                    let list = items.get(start as usize..end as usize).unwrap_or_default();
                    let mark = out.len();
                    push_runs(out, list, "", self.reach, &mut self.unspelled);
                    if out.len() > mark {
                        out.remove(mark);
                    }
                }
                out.push(']');
            }
            Address::Groups { .. } => {
                out.push('[');
                let mark = out.len();
                for (first, group) in operand.address.groups(&self.plan.groups) {
                    out.push_str(if out.len() > mark { " |" } else { "" });
                    match group.range {
                        GroupRange::Run { .. } if group.len == 0 => {}
                        GroupRange::Run { start } => push_run(out, start, group.len),
                        GroupRange::Table { .. } => {
                            push_runs(out, group.table(tables), "", self.reach, &mut self.unspelled);
                        }
                    }
                    put(out, format_args!(" {} x{}", group.rule.spelling(), group.end.saturating_sub(first)));
                }
                if out.len() > mark {
                    out.remove(mark);
                }
                out.push(']');
            }
        }
    }
}

/// ` 5..8`, or ` 5` for one number.
fn push_run(out: &mut String, start: u32, len: u32) {
    put(out, format_args!(" {start}"));
    if len > 1 {
        put(out, format_args!("..{}", u64::from(start) + u64::from(len)));
    }
}

/// `[0..5]`, `[0..10 by 2]`
fn push_range(out: &mut String, start: u32, stride: u32, rows: u32) {
    let end = u64::from(start) + u64::from(stride) * u64::from(rows);
    out.push('[');
    push_number(out, u64::from(start));
    if (rows, stride) != (1, 1) {
        out.push_str("..");
        push_number(out, end);
    }
    if stride != 1 {
        put(out, format_args!(" by {stride}"));
    }
    out.push(']');
}

fn push_table(out: &mut String, numbers: &[u32], reach: usize, unspelled: &mut usize) {
    out.push('{');
    let mark = out.len();
    push_runs(out, numbers, "", reach, unspelled);
    if out.len() > mark {
        out.remove(mark);
    }
    out.push('}');
}

/// Runs, with a space before each.
fn push_runs(out: &mut String, numbers: &[u32], sigil: &str, reach: usize, unspelled: &mut usize) {
    for run in runs(numbers, reach) {
        out.push(' ');
        out.push_str(sigil);
        push_number(out, u64::from(run.start));
        *unspelled += run.count - 1;
        if run.count == 1 {
            continue;
        }
        if run.stride == 0 {
            put(out, format_args!(" x{}", run.count));
            continue;
        }
        out.push_str("..");
        out.push_str(sigil);
        push_number(out, run.end());
        if run.stride > 1 {
            put(out, format_args!(" by {}", run.stride));
        }
    }
}

/// A part of a step on lines of its own, broken between operands or, where one is too long, inside.
fn push_wrapped(out: &mut String, indent: usize, mark: &str, part: &str) {
    out.truncate(out.trim_end().len());
    put(out, format_args!("\n{:indent$}{mark:2}", ""));
    let (indent, mut column) = (indent + 3, indent + 2);
    let mut push = |out: &mut String, piece: &str, room: usize| {
        if column + 1 + room > COLUMNS && column >= indent {
            put(out, format_args!("\n{:indent$}", ""));
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(piece);
        column += piece.len();
    };
    for unit in units(part.trim_start()) {
        let mut words = unit.split(' ').peekable();
        let mut room = unit.len().min(COLUMNS - indent);
        while let Some(word) = words.next() {
            // These words stay with what they speak of.
            let next = words.peek().map_or(0, |next| next.len() + 1);
            let glued = if matches!(
                word,
                "seg" | "group" | "edges" | "shared" | "by" | "all" | "prefix" | "suffix"
            ) {
                next
            } else {
                0
            };
            push(out, word, room.max(word.len() + glued));
            room = 0;
        }
    }
}

/// The operands of a part: what stands between spaces outside brackets.
fn units(part: &str) -> impl Iterator<Item = &str> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let mut depth = 0;
        let end = rest.bytes().enumerate().position(|(at, byte)| {
            depth += i32::from(matches!(byte, b'[' | b'{')) - i32::from(matches!(byte, b']' | b'}'));
            byte == b' ' && depth == 0 && !matches!(&rest[..at], "seg" | "group" | "edges" | "shared")
        });
        let (unit, left) = rest.split_at(end.unwrap_or(rest.len()));
        rest = left.trim_start();
        (!unit.is_empty()).then_some(unit)
    })
}
