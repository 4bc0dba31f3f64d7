//! The operands of steps: what a port reads, and which rows of it each lane reads.
//!
//! Only this folder knows how lanes are addressed. Everyone else asks an operand: for the row of a lane, the list of a lane,
//! the runs of all rows, or the constant distance between lanes, if there is one. So a form of addressing is added here, in
//! the text and in the verifier, and nowhere else.

use super::{FieldId, Plan};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The memory that a port of a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Rows of a field.
    Field(FieldId),
    /// Bound words.
    Words,
    /// Bound floats.
    Floats,
}

/// Which rows of a field, or which bound words or floats, each lane reads. A bound value begins at the number given here.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// Number `start + lane * stride`. Stride 1 reads neighbours directly, stride 0 reads one shared row.
    Steps { start: u32, stride: u32 },
    /// Number `tables[at + lane]`.
    Table { at: u32 },
    /// A list: numbers `tables[items + i]` for `i` in `tables[offsets + lane]..tables[offsets + lane + 1]`.
    Lists { offsets: u32, items: u32 },
}

/// Where a port of a kernel reads, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operand {
    /// The memory that it reads.
    pub origin: Origin,
    /// Which rows of that each lane reads.
    pub address: Address,
}

/// The rows of a lane's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<'a>(&'a [u32]);

impl<'a> List<'a> {
    /// The number of rows.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether it has no row.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The rows in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        self.0.iter().copied()
    }
}

impl Address {
    /// The address of some numbers, one per lane: their constant distance, else a table. A single lane has stride 1.
    #[must_use]
    pub fn of(tables: &mut Vec<u32>, numbers: impl Iterator<Item = u32> + Clone) -> Self {
        steady(numbers.clone()).unwrap_or_else(|| {
            let at = tables.len() as u32;
            tables.extend(numbers);
            Self::Table { at }
        })
    }

    /// The address of the numbers at the end of the tables. Numbers with a constant distance leave the tables.
    #[must_use]
    pub fn of_last(tables: &mut Vec<u32>, first: usize) -> Self {
        match steady(tables[first..].iter().copied()) {
            Some(steady) => {
                tables.truncate(first);
                steady
            }
            None => Self::Table { at: first as u32 },
        }
    }

    /// The address of the lists that `append` makes of each item.
    #[inline]
    #[must_use]
    pub fn of_lists<T>(
        tables: &mut Vec<u32>,
        items: impl ExactSizeIterator<Item = T>,
        append: impl Fn(&mut Vec<u32>, T),
    ) -> Self {
        let offsets = tables.len();
        let first = offsets + items.len() + 1;
        tables.resize(first, 0);
        for (end, item) in (offsets + 1..first).zip(items) {
            append(tables, item);
            tables[end] = (tables.len() - first) as u32;
        }
        Self::Lists { offsets: offsets as u32, items: first as u32 }
    }

    /// The address of some of its lanes.
    #[must_use]
    pub fn of_lanes(self, tables: &mut Vec<u32>, lanes: &[u32]) -> Self {
        match self {
            Self::Steps { start, stride } => Self::of(tables, lanes.iter().map(|lane| start + lane * stride)),
            Self::Table { at } => {
                let first = tables.len();
                for lane in lanes {
                    tables.push(tables[(at + lane) as usize]);
                }
                Self::of_last(tables, first)
            }
            Self::Lists { offsets, items } => Self::of_lists(tables, lanes.iter(), |tables, lane| {
                let bound = |at: u32| (items + tables[(offsets + at) as usize]) as usize;
                tables.extend_from_within(bound(*lane)..bound(lane + 1));
            }),
        }
    }

    /// The same address over tables of its own, at the end of the tables.
    #[must_use]
    pub fn copied(self, tables: &mut Vec<u32>, lanes: u32) -> Self {
        match self {
            Self::Table { at } => {
                let copy = tables.len() as u32;
                tables.extend_from_within(at as usize..(at + lanes) as usize);
                Self::Table { at: copy }
            }
            other => other,
        }
    }

    /// The number of lane 0 and the distance between lanes, if it is constant.
    #[inline]
    #[must_use]
    pub const fn steps(self) -> Option<(u32, u32)> {
        match self {
            Self::Steps { start, stride } => Some((start, stride)),
            Self::Table { .. } | Self::Lists { .. } => None,
        }
    }

    /// Where its table begins, if it has one number per lane there.
    #[inline]
    #[must_use]
    pub const fn table(self) -> Option<u32> {
        match self {
            Self::Table { at } => Some(at),
            Self::Steps { .. } | Self::Lists { .. } => None,
        }
    }

    /// Where the offsets and the items of its lists begin.
    #[inline]
    #[must_use]
    pub const fn lists(self) -> Option<(u32, u32)> {
        match self {
            Self::Lists { offsets, items } => Some((offsets, items)),
            Self::Steps { .. } | Self::Table { .. } => None,
        }
    }

    /// The number that a lane reads; `None` for lists.
    #[inline]
    #[must_use]
    pub fn of_lane(self, tables: &[u32], lane: u32) -> Option<u32> {
        match self {
            Self::Steps { start, stride } => Some(start + lane * stride),
            Self::Table { at } => Some(tables[(at + lane) as usize]),
            Self::Lists { .. } => None,
        }
    }

    /// The list that a lane reads; `None` for single numbers.
    #[inline]
    #[must_use]
    pub fn list_of_lane(self, tables: &[u32], lane: u32) -> Option<List<'_>> {
        let Self::Lists { offsets, items } = self else { return None };
        let offset = |lane: u32| (items + tables[(offsets + lane) as usize]) as usize;
        Some(List(&tables[offset(lane)..offset(lane + 1)]))
    }

    /// The numbers of all lanes together, as a slice of the tables; `None` if they have a constant distance.
    pub(super) fn all(self, tables: &[u32], lanes: u32) -> Option<&[u32]> {
        match self {
            Self::Steps { .. } => None,
            Self::Table { at } => Some(&tables[at as usize..][..lanes as usize]),
            Self::Lists { offsets, items } => {
                let total = tables[offsets as usize + lanes as usize] as usize;
                Some(&tables[items as usize..][..total])
            }
        }
    }

    /// The number of values of the lists of all lanes; 0 for single numbers.
    #[must_use]
    pub fn listed(self, tables: &[u32], lanes: u32) -> u64 {
        let Self::Lists { offsets, .. } = self else { return 0 };
        let at = |lane: u32| u64::from(tables[offsets as usize + lane as usize]);
        at(lanes) - at(0)
    }
}

/// Recognises numbers with a constant distance that is not negative.
#[inline]
fn steady(mut numbers: impl Iterator<Item = u32>) -> Option<Address> {
    let start = numbers.next().unwrap_or(0);
    let Some(second) = numbers.next() else { return Some(Address::Steps { start, stride: 1 }) };
    let stride = second.checked_sub(start)?;
    let mut expected = u64::from(second);
    let steady = numbers.all(|number| {
        expected += u64::from(stride);
        u64::from(number) == expected
    });
    steady.then_some(Address::Steps { start, stride })
}

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

impl Operand {
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
        self.address.lists().is_some()
    }

    /// Whether rows of a field are read by number, one by one or as lists.
    #[must_use]
    pub const fn is_gathered(self) -> bool {
        self.field().is_some() && self.address.steps().is_none()
    }

    /// Calls `read` with the lane and number of each row that `lanes` lanes read. Returns the field; `None` for bindings.
    pub fn for_each_row(self, plan: &Plan, lanes: u32, mut read: impl FnMut(u32, u32)) -> Option<FieldId> {
        let field = self.field()?;
        for lane in 0..lanes {
            match self.address.list_of_lane(&plan.tables, lane) {
                Some(list) => list.iter().for_each(|row| read(lane, row)),
                None => self.address.of_lane(&plan.tables, lane).into_iter().for_each(|row| read(lane, row)),
            }
        }
        Some(field)
    }

    /// The first row and the row after the last that `lanes` lanes read; `None` if no row is read.
    pub(super) fn hull(self, plan: &Plan, lanes: u32) -> Option<(FieldId, Range<u64>)> {
        let field = self.field()?;
        let hull = match (self.address, self.address.all(&plan.tables, lanes)) {
            (_, Some(rows)) => {
                let (first, last) = ends(rows)?;
                u64::from(first)..u64::from(last) + 1
            }
            (Address::Steps { start, stride }, None) => {
                let last = u64::from(start) + (u64::from(lanes) - 1) * u64::from(stride);
                u64::from(start)..last + 1
            }
            (_, None) => return None,
        };
        Some((field, hull))
    }

    /// The rows that `lanes` lanes read, as runs.
    pub(super) fn for_each_run(self, plan: &Plan, lanes: u32, mut run: impl FnMut(FieldId, Range<u64>)) {
        let Some(field) = self.field() else { return };
        let mut row = |row: u32| run(field, u64::from(row)..u64::from(row) + 1);
        match (self.address, self.address.all(&plan.tables, lanes)) {
            (_, Some(rows)) => rows.iter().for_each(|&number| row(number)),
            (Address::Steps { start, stride: 0 }, None) => row(start),
            (Address::Steps { start, stride: 1 }, None) => {
                run(field, u64::from(start)..u64::from(start) + u64::from(lanes));
            }
            (Address::Steps { start, stride }, None) => {
                (0..lanes).for_each(|lane| row(start + lane * stride))
            }
            (_, None) => {}
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
        }
    }

    /// The rows that `lanes` lanes read directly, and those that they gather. Bindings are neither.
    #[must_use]
    pub fn direct_and_gathered(self, plan: &Plan, lanes: u32) -> [u64; 2] {
        match (self.field(), self.address) {
            (None, _) => [0, 0],
            (_, Address::Steps { .. }) => [lanes.into(), 0],
            (_, Address::Table { .. }) => [0, lanes.into()],
            (_, Address::Lists { .. }) => [0, self.address.listed(&plan.tables, lanes)],
        }
    }
}

/// The smallest and the largest of some rows.
pub(super) fn ends(rows: &[u32]) -> Option<(u32, u32)> {
    let ends = rows.iter().fold((u32::MAX, 0), |(low, high), &row| (low.min(row), high.max(row)));
    (!rows.is_empty()).then_some(ends)
}
