//! The questions that verifier, planner, proof and executors ask operands.

use super::{Address, GroupRange, Origin, StepOperand, ends};
use crate::plan::{FieldId, Plan};
use std::ops::Range;

impl Origin {
    /// The field, if rows are read.
    #[inline]
    #[must_use]
    pub const fn field(self) -> Option<FieldId> {
        match self {
            Self::Field(field) => Some(field),
            Self::Words | Self::Floats => None,
        }
    }
}

impl StepOperand {
    /// An operand of a field.
    #[inline]
    #[must_use]
    pub const fn of_field(field: FieldId, address: Address) -> Self {
        Self { origin: Origin::Field(field), address }
    }

    /// Rows of a field, from `start` on, each `stride` behind the one before.
    #[inline]
    #[must_use]
    pub const fn rows(field: FieldId, start: u32, stride: u32) -> Self {
        Self::of_field(field, Address::Steps { start, stride })
    }

    /// The field, if rows are read.
    #[inline]
    #[must_use]
    pub const fn field(self) -> Option<FieldId> {
        self.origin.field()
    }

    /// Whether each lane reads a list.
    #[inline]
    #[must_use]
    pub const fn is_list(self) -> bool {
        self.address.is_list()
    }

    /// Whether rows of a field are read by number, one by one or as lists.
    #[must_use]
    pub const fn is_gathered(self) -> bool {
        self.field().is_some() && self.address.steps().is_none()
    }

    /// Calls `read` with each row that `lanes` lanes read. A row that several lanes read may come once for all. Returns the
    /// field; `None` for bindings.
    pub fn for_each_row(self, plan: &Plan, lanes: u32, mut read: impl FnMut(u32)) -> Option<FieldId> {
        self.for_each_run(plan, lanes, |_, run| run.for_each(|row| read(row as u32)));
        self.field()
    }

    /// The first row and the row after the last that `lanes` lanes read; `None` if no row is read.
    pub(in crate::plan) fn hull(self, plan: &Plan, lanes: u32) -> Option<(FieldId, Range<u64>)> {
        let field = self.field()?;
        let of = |rows: &[u32]| ends(rows).map(|(first, last)| u64::from(first)..u64::from(last) + 1);
        let hull = match self.address {
            Address::Steps { start, stride } => {
                let last = u64::from(start) + (u64::from(lanes) - 1) * u64::from(stride);
                u64::from(start)..last + 1
            }
            Address::Table { at } => of(&plan.tables[at as usize..][..lanes as usize])?,
            Address::Lists { offsets, items } => {
                let total = plan.tables[offsets as usize + lanes as usize] as usize;
                of(&plan.tables[items as usize..][..total])?
            }
            Address::Groups { .. } => {
                let filled = self.address.groups(&plan.groups).filter(|(_, group)| group.len > 0);
                let hulls = filled.filter_map(|(_, group)| match group.range {
                    GroupRange::Run { start } => {
                        Some(u64::from(start)..u64::from(start) + u64::from(group.len))
                    }
                    GroupRange::Table { .. } => of(group.table(&plan.tables)),
                });
                hulls.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?
            }
        };
        Some((field, hull))
    }

    /// The rows that `lanes` lanes read, as runs. The range of a group comes once.
    pub(in crate::plan) fn for_each_run(
        self,
        plan: &Plan,
        lanes: u32,
        mut run: impl FnMut(FieldId, Range<u64>),
    ) {
        let Some(field) = self.field() else { return };
        let mut row = |row: u32| run(field, u64::from(row)..u64::from(row) + 1);
        match self.address {
            Address::Steps { start, stride: 0 } => row(start),
            Address::Steps { start, stride: 1 } => {
                run(field, u64::from(start)..u64::from(start) + u64::from(lanes));
            }
            Address::Steps { start, stride } => (0..lanes).for_each(|lane| row(start + lane * stride)),
            Address::Table { at } => {
                plan.tables[at as usize..][..lanes as usize].iter().for_each(|&number| row(number));
            }
            Address::Lists { offsets, items } => {
                let total = plan.tables[offsets as usize + lanes as usize] as usize;
                plan.tables[items as usize..][..total].iter().for_each(|&number| row(number));
            }
            Address::Groups { .. } => {
                for (_, group) in self.address.groups(&plan.groups) {
                    match group.range {
                        GroupRange::Run { start } if group.len > 0 => {
                            run(field, u64::from(start)..u64::from(start) + u64::from(group.len));
                        }
                        GroupRange::Run { .. } => {}
                        GroupRange::Table { .. } => {
                            for &number in group.table(&plan.tables) {
                                run(field, u64::from(number)..u64::from(number) + 1);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Calls `push` with numbers that tell which rows, words or floats `lanes` lanes read, wherever the tables lie.
    pub fn describe(self, plan: &Plan, lanes: u32, mut push: impl FnMut(u32, u32)) {
        let entries = |at: u32, count: u32| &plan.tables[at as usize..(at + count) as usize];
        match self.origin {
            Origin::Field(field) => push(field.0, plan.field(field).width()),
            Origin::Words => push(1, 0),
            Origin::Floats => push(2, 0),
        }
        match self.address {
            Address::Steps { start, stride } => push(start, stride),
            Address::Table { at } => entries(at, lanes).iter().for_each(|&number| push(3, number)),
            Address::Lists { offsets, items } => {
                let offsets = entries(offsets, lanes + 1);
                offsets.iter().for_each(|&offset| push(4, offset));
                let count = offsets.last().copied().unwrap_or(0);
                entries(items, count).iter().for_each(|&number| push(5, number));
            }
            Address::Groups { .. } => {
                for (_, group) in self.address.groups(&plan.groups) {
                    push(group.end, group.len);
                    push(6, group.rule as u32);
                    match group.range {
                        GroupRange::Run { start } => push(7, start),
                        GroupRange::Table { .. } => {
                            group.table(&plan.tables).iter().for_each(|&number| push(8, number));
                        }
                    }
                }
            }
        }
    }

    /// The rows that `lanes` lanes read directly, and the rows that they gather. The range of a group counts once, and a run of
    /// neighbours is read directly. Bindings are neither.
    #[must_use]
    pub fn direct_and_gathered(self, plan: &Plan, lanes: u32) -> [u64; 2] {
        match (self.field(), self.address) {
            (None, _) => [0, 0],
            (_, Address::Steps { .. }) => [lanes.into(), 0],
            (_, Address::Table { .. }) => [0, lanes.into()],
            (_, Address::Lists { .. }) => [0, self.address.listed(&plan.tables, &plan.groups, lanes)],
            (_, Address::Groups { .. }) => {
                self.address.groups(&plan.groups).fold([0, 0], |[direct, gathered], (_, group)| {
                    match group.range {
                        GroupRange::Run { .. } => [direct + u64::from(group.len), gathered],
                        GroupRange::Table { .. } => [direct, gathered + u64::from(group.len)],
                    }
                })
            }
        }
    }
}
