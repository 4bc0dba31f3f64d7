//! Rules P15 to P23: the operands, places, stores and lanes of steps.

use super::{AtStep, Rule, VerifyErrors};
use crate::plan::address::ends;
use crate::plan::{
    Address, FieldId, Group, GroupRange, GroupRule, Kernel, ListSource, Origin, Place, Plan, RegId, RegKind,
    Stage, Step, StepOperand,
};
use crate::types::{DType, Type};
use std::fmt::Display;
use std::ops::Range;

/// Verifies the steps from `since` on, and all outputs.
pub(super) fn verify(plan: &Plan, since: usize, findings: &mut VerifyErrors) {
    let pairs: Vec<Vec<Pair>> = plan.kernels.iter().map(|kernel| pairs(kernel)).collect();
    let given = plan.given_stores();
    let (pause, all_floats) = (plan.steps_before_pause(), plan.all_floats() as u32);
    for (number, step) in plan.steps.iter().enumerate().skip(since) {
        if findings.is_full() {
            return;
        }
        let floats = if number < pause { plan.floats } else { all_floats };
        let mut at = StepCheck { plan, given, floats, number, step, kernel: plan.kernel(step), findings };
        if at.arity() {
            at.operands();
            at.places();
            at.stores();
            at.lengths(&pairs[step.kernel.index()]);
        }
    }
    for (number, output) in plan.outputs.iter().enumerate() {
        let rows = plan.slabs[plan.field(output.field).slab.index()].rows;
        if output.row >= rows {
            let message = format!("row {} must be below {rows}, the rows of {}", output.row, output.field);
            findings.report(Rule::Bounds, &format_args!("output {number}"), message);
        }
    }
}

/// Two lists that a kernel folds together.
#[derive(Clone, Copy)]
enum Pair {
    Ports(RegId, RegId),
    PortOf(RegId, usize),
}

fn pairs(kernel: &Kernel) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for stage in &kernel.stages {
        match stage {
            Stage::SegGrad { lists, .. } => {
                pairs.extend(lists.windows(2).map(|pair| Pair::Ports(pair[0], pair[1])));
            }
            Stage::AttendGrad { keys, values, .. } => pairs.push(Pair::Ports(*keys, *values)),
            _ => {}
        }
        let Stage::Seg { lists, .. } = stage else { continue };
        match &lists[..] {
            [ListSource::Port(a), ListSource::Port(b)] => pairs.push(Pair::Ports(*a, *b)),
            [ListSource::Port(port), ListSource::Views(views)]
            | [ListSource::Views(views), ListSource::Port(port)] => {
                pairs.push(Pair::PortOf(*port, views.len()));
            }
            _ => {}
        }
    }
    pairs
}

struct StepCheck<'a> {
    plan: &'a Plan,
    /// How many stores precede the gradients.
    given: usize,
    /// How many floats are bound when the step is executed.
    floats: u32,
    number: usize,
    step: &'a Step,
    kernel: &'a Kernel,
    findings: &'a mut VerifyErrors,
}

impl StepCheck<'_> {
    #[cold]
    fn report(&mut self, rule: Rule, message: impl Into<String>) {
        self.findings.report(rule, &AtStep { plan: self.plan, step: self.number }, message);
    }

    /// P16. Gives whether the other rules can be verified.
    fn arity(&mut self) -> bool {
        let (plan, step, kernel) = (self.plan, self.step, self.kernel);
        let counts: [(&dyn Display, usize, usize); 4] = [
            (&"operands", kernel.ports as usize, plan.operands(step).len()),
            (&"places", kernel.results.len(), plan.places(step).len()),
            (&"stores", kernel.params.len(), plan.stores(step).len()),
            (&"lanes", step.rows as usize, plan.lanes(step).len()),
        ];
        let mut fits = true;
        for (what, wanted, found) in counts {
            if wanted != found {
                fits = false;
                self.report(Rule::Arity, format!("it must have {wanted} {what}, found {found}"));
            }
        }
        if step.rows == 0 {
            fits = false;
            self.report(Rule::Arity, "it must have at least one row");
        }
        fits
    }

    fn operands(&mut self) {
        let (plan, step, kernel) = (self.plan, self.step, self.kernel);
        for (place, &operand) in plan.operands(step).iter().enumerate() {
            let port = kernel.regs[place].ty;
            self.operand_type(place, operand, port);
            self.operand_bounds(place, operand, port);
            if kernel.source && operand.field().is_some() {
                self.report(Rule::Sources, format!("operand {place} of a source must be bindings"));
            }
        }
    }

    fn operand_type(&mut self, place: usize, operand: StepOperand, port: Type) {
        let field_type = |field: FieldId| self.plan.field(field).ty;
        let is_list = operand.is_list();
        let fits = port.is_list == is_list
            && match operand.origin {
                // Lists without items name no row, so any field serves.
                Origin::Field(field) => self.is_empty(operand.address) || field_type(field) == port.element(),
                Origin::Words => !is_list && matches!(port.dtype, DType::U32 | DType::I32 | DType::Bool),
                Origin::Floats => !is_list && port.dtype == DType::F32,
            };
        if fits {
            return;
        }
        let found = match operand.origin {
            Origin::Field(field) if is_list => format!("lists of {field}: {}", field_type(field)),
            Origin::Field(field) => format!("rows of {field}: {}", field_type(field)),
            Origin::Words | Origin::Floats if is_list => "lists of bindings".to_owned(),
            Origin::Words => "bound words".to_owned(),
            Origin::Floats => "bound floats".to_owned(),
        };
        self.report(Rule::OperandTypes, format!("operand {place} must be {port}, found {found}"));
    }

    /// Whether all lists of an operand are empty.
    fn is_empty(&self, address: Address) -> bool {
        match address {
            Address::Steps { .. } | Address::Table { .. } => false,
            Address::Lists { offsets, .. } => {
                let last = offsets as usize + self.step.rows as usize;
                self.plan.tables.get(last).is_some_and(|&end| end == 0)
            }
            Address::Groups { .. } => address.groups(&self.plan.groups).all(|(_, group)| group.len == 0),
        }
    }

    fn operand_bounds(&mut self, place: usize, operand: StepOperand, port: Type) {
        let last = match operand.address {
            Address::Lists { offsets, items } => {
                // Lists of bindings fit no port (P17).
                if let Some(field) = operand.field() {
                    self.segments(place, field, offsets, items);
                }
                return;
            }
            Address::Groups { first, count } => {
                if let Some(field) = operand.field() {
                    self.groups(place, field, first..first.saturating_add(count));
                }
                return;
            }
            Address::Steps { start, stride } => Some(self.last(start, stride)),
            Address::Table { at } => self.table(&format_args!("operand {place}"), at),
        };
        let (Some(last), width) = (last, port.shape.elements() as u64) else { return };
        match operand.origin {
            Origin::Words => self.pool(place, "words", last, width, self.plan.words),
            Origin::Floats => self.pool(place, "floats", last, width, self.floats),
            Origin::Field(field) => self.row_bounds(&format_args!("operand {place}"), field, last),
        }
    }

    /// The row or number of the last lane of a progression.
    fn last(&self, start: u32, stride: u32) -> u64 {
        u64::from(start) + u64::from(self.step.rows - 1) * u64::from(stride)
    }

    /// P23
    fn pool(&mut self, place: usize, what: &str, last: u64, width: u64, bound: u32) {
        let end = last + width;
        if end > u64::from(bound) {
            self.report(
                Rule::Bindings,
                format!("operand {place} reads up to {what} {end} of {bound} that are bound"),
            );
        }
    }

    /// P20
    fn row_bounds(&mut self, what: &dyn Display, field: FieldId, highest: u64) {
        let slab = self.plan.field(field).slab;
        let rows = self.plan.slabs[slab.index()].rows;
        if highest >= u64::from(rows) {
            self.report(Rule::Bounds, format!("{what} names row {highest} of {slab}, which has {rows} rows"));
        }
    }

    /// The largest entry of a table from `at` on, one entry per lane, if all lie inside the tables.
    fn table(&mut self, what: &dyn Display, at: u32) -> Option<u64> {
        let entries = self.entries(what, at, u64::from(self.step.rows))?;
        ends(entries).map(|(_, highest)| u64::from(highest))
    }

    fn entries(&mut self, what: &dyn Display, at: u32, count: u64) -> Option<&[u32]> {
        let tables = &self.plan.tables;
        let (start, end) = (at as usize, u64::from(at) + count);
        if end <= tables.len() as u64 {
            return Some(&tables[start..end as usize]);
        }
        let message = format!("{what} reads the table entries {at}..{end} of {}", tables.len());
        self.report(Rule::Bounds, message);
        None
    }

    /// P20 and P21
    fn segments(&mut self, place: usize, field: FieldId, offsets: u32, items: u32) {
        let rows = u64::from(self.step.rows);
        let what = format_args!("operand {place}");
        let Some(entries) = self.entries(&what, offsets, rows + 1) else { return };
        if entries[0] != 0 || !entries.is_sorted() {
            self.report(Rule::Segments, format!("the offsets of operand {place} must ascend from 0"));
            return;
        }
        let total = u64::from(entries[entries.len() - 1]);
        let Some(items) = self.entries(&what, items, total) else { return };
        if let Some((_, highest)) = ends(items) {
            self.row_bounds(&what, field, u64::from(highest));
        }
    }

    /// P20 and P21
    fn groups(&mut self, place: usize, field: FieldId, own: Range<u32>) {
        let (plan, what) = (self.plan, format_args!("operand {place}"));
        let Some(groups) = plan.groups.get(own.start as usize..own.end as usize) else {
            let message =
                format!("{what} reads the groups {}..{} of {}", own.start, own.end, plan.groups.len());
            return self.report(Rule::Bounds, message);
        };
        let mut begin = 0;
        for group in groups {
            let lanes = group.end.saturating_sub(begin);
            let fits = group.rule == GroupRule::All || u64::from(lanes) <= u64::from(group.len) + 1;
            if lanes == 0 || !fits {
                let message = format!(
                    "a group of operand {place} must have lanes, and a prefix or suffix at most one more than numbers, found {lanes} lanes from {begin} on with {} numbers",
                    group.len
                );
                return self.report(Rule::Segments, message);
            }
            begin = group.end;
            if group.len == 0 {
                continue;
            }
            let highest = match group.range {
                GroupRange::Run { start } => Some(u64::from(start) + u64::from(group.len) - 1),
                GroupRange::Table { at } => {
                    let Some(rows) = self.entries(&what, at, group.len.into()) else { return };
                    ends(rows).map(|(_, highest)| u64::from(highest))
                }
            };
            highest.into_iter().for_each(|highest| self.row_bounds(&what, field, highest));
        }
        if begin != self.step.rows {
            let message =
                format!("the groups of operand {place} must end with lane {}, found {begin}", self.step.rows);
            self.report(Rule::Segments, message);
        }
    }

    fn places(&mut self) {
        let (plan, step, kernel) = (self.plan, self.step, self.kernel);
        for (number, (place, result)) in plan.places(step).iter().zip(&kernel.results).enumerate() {
            let what = format_args!("result {number}");
            let field = place.field();
            let (ty, dtype) = (plan.field(field).ty, kernel.regs[result.reg.index()].ty.dtype);
            if ty.dtype != dtype || ty.shape.elements() != result.width as usize {
                let message =
                    format!("{what} has {} elements of {dtype}, its place {field} takes {ty}", result.width);
                self.report(Rule::PlaceTypes, message);
            }
            match *place {
                Place::Rows { start, .. } => {
                    let last = self.last(start, 1);
                    self.row_bounds(&what, field, last);
                }
                Place::Table { at, .. } => {
                    if let Some(highest) = self.table(&what, at) {
                        self.row_bounds(&what, field, highest);
                    }
                }
                Place::Edges { start, offsets, .. } => self.edges(&what, field, start, offsets, result.reg),
            }
            let edges = kernel.regs[result.reg.index()].kind == RegKind::Edges;
            if edges != matches!(place, Place::Edges { .. }) {
                self.report(Rule::Edges, format!("{what} must be edges exactly if its place takes edges"));
            }
        }
    }

    /// P30: the offsets are those of the list that the edges belong to.
    fn edges(&mut self, what: &dyn Display, field: FieldId, start: u32, offsets: u32, reg: RegId) {
        let (plan, rows) = (self.plan, u64::from(self.step.rows));
        let list = self.kernel.stages.iter().find_map(|stage| match stage {
            Stage::SegGrad { lists, dsts, .. } => {
                let at = dsts.iter().position(|dst| *dst == Some(reg))?;
                lists.get(at).copied()
            }
            _ => None,
        });
        let of_list = list.and_then(|list| plan.operands(self.step)[list.index()].address.lists());
        let Some(own) = self.entries(what, offsets, rows + 1).map(<[u32]>::to_vec) else { return };
        let Some((of_list, _)) = of_list else {
            let message = format!("{what} must be the edges of a list with offsets");
            return self.report(Rule::Edges, message);
        };
        let Some(wanted) = self.entries(what, of_list, rows + 1) else { return };
        if own != wanted {
            self.report(Rule::Edges, format!("{what} must have the offsets of its list"));
            return;
        }
        let total = u64::from(own[own.len() - 1]);
        if total > 0 {
            self.row_bounds(what, field, u64::from(start) + total - 1);
        }
    }

    fn stores(&mut self) {
        let (plan, step, kernel) = (self.plan, self.step, self.kernel);
        for (port, (&store, &wanted)) in plan.stores(step).iter().zip(&kernel.params).enumerate() {
            let found = plan.stores[store.index()].ty;
            if found != wanted {
                let message = format!("parameter port {port} takes {wanted}, {store} is {found}");
                self.report(Rule::StoreTypes, message);
            }
            if store.index() >= self.given {
                let message =
                    format!("parameter port {port} takes {store}, a gradient, which reductions make later");
                self.report(Rule::StoreTypes, message);
            }
        }
    }

    /// P22, after P20 and P21 hold.
    fn lengths(&mut self, pairs: &[Pair]) {
        for &pair in pairs {
            let equal = match pair {
                Pair::Ports(a, b) => self.equally_long(a, b),
                Pair::PortOf(port, count) => self
                    .lists(port)
                    .is_none_or(|lists| lists.lanes(self.step.rows).all(|len| len as usize == count)),
            };
            if !equal {
                self.report(
                    Rule::Lengths,
                    "lists that are folded together must be equally long in every lane",
                );
            }
        }
    }

    /// Whether two lists are equally long in every lane. Ports that hold no lists count as equal.
    fn equally_long(&self, a: RegId, b: RegId) -> bool {
        let address = |port: RegId| self.plan.operands(self.step).get(port.index()).map(|own| own.address);
        if address(a) == address(b) {
            return true;
        }
        match (self.lists(a), self.lists(b)) {
            (Some(Lengths::Offsets(a)), Some(Lengths::Offsets(b))) => a == b,
            (Some(a), Some(b)) => a.lanes(self.step.rows).eq(b.lanes(self.step.rows)),
            _ => true,
        }
    }

    /// The lists of a port; `None` if it holds none, or its offsets leave the tables.
    fn lists(&self, port: RegId) -> Option<Lengths<'_>> {
        let plan = self.plan;
        match plan.operands(self.step).get(port.index())?.address {
            Address::Steps { .. } | Address::Table { .. } => None,
            Address::Lists { offsets, .. } => {
                let end = offsets as usize + self.step.rows as usize + 1;
                plan.tables.get(offsets as usize..end).map(Lengths::Offsets)
            }
            Address::Groups { first, count } => {
                let own = first as usize..first as usize + count as usize;
                plan.groups.get(own).map(Lengths::Groups)
            }
        }
    }
}

/// The lengths of the lists of a port.
enum Lengths<'a> {
    Offsets(&'a [u32]),
    Groups(&'a [Group]),
}

impl<'a> Lengths<'a> {
    /// The length of the list of each lane, for at most `rows` lanes. Groups may break P21.
    fn lanes(self, rows: u32) -> impl Iterator<Item = u32> + 'a {
        let (offsets, groups): (&[u32], &[Group]) = match self {
            Self::Offsets(offsets) => (offsets, &[]),
            Self::Groups(groups) => (&[], groups),
        };
        let of_offsets = offsets.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        let begins = std::iter::once(0).chain(groups.iter().map(|group| group.end));
        let of_groups = begins.zip(groups).flat_map(|(begin, group)| {
            (begin..group.end).map(move |lane| match group.rule {
                GroupRule::All => group.len,
                GroupRule::Prefix => group.len.saturating_sub(group.end - 1 - lane),
                GroupRule::Suffix => group.len.saturating_sub(lane - begin),
            })
        });
        of_offsets.chain(of_groups).take(rows as usize)
    }
}
