//! The operands of steps: what a port reads, and which rows of it each lane reads.
//!
//! Only this folder knows how lanes are addressed. Everyone else asks an operand: for the row of a lane, the list of a lane,
//! the runs of all rows, or the constant distance between lanes, if there is one. So a form of addressing is added here, in
//! the text and in the verifier, and nowhere else.

mod groups;
mod operand;

pub use groups::{Group, GroupRange, GroupRule};

use super::FieldId;
use serde::{Deserialize, Serialize};

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
    /// A list of its own for each lane: numbers `tables[items + i]` for `i` in
    /// `tables[offsets + lane]..tables[offsets + lane + 1]`.
    Lists { offsets: u32, items: u32 },
    /// Lists of the groups `groups[first..first + count]`, which follow each other over the lanes.
    Groups { first: u32, count: u32 },
}

/// Where a port of a kernel reads, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StepOperand {
    /// The memory that it reads.
    pub origin: Origin,
    /// Which rows of that each lane reads.
    pub address: Address,
}

/// The rows of a lane's list.
#[derive(Clone, Copy, Debug, Default)]
pub struct List<'a> {
    /// The rows, unless they are neighbours.
    table: &'a [u32],
    /// The first of neighbours.
    start: u32,
    len: u32,
}

impl<'a> List<'a> {
    fn of_table(table: &'a [u32]) -> Self {
        Self { table, start: 0, len: table.len() as u32 }
    }

    /// The number of rows.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Whether it has no row.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The row at a place. Panics if a table has no such place.
    #[inline]
    #[must_use]
    pub fn row(self, at: usize) -> u32 {
        if self.table.is_empty() { self.start + at as u32 } else { self.table[at] }
    }

    /// The last row.
    #[must_use]
    pub fn last(self) -> Option<u32> {
        Some(self.row(self.len().checked_sub(1)?))
    }

    /// Whether another list begins with the rows of this one.
    #[inline]
    #[must_use]
    pub fn begins(self, other: List<'_>) -> bool {
        if self.len > other.len {
            return false;
        }
        match (self.table, other.table) {
            ([], []) => self.is_empty() || self.start == other.start,
            ([_, ..], [_, ..]) => {
                // Lanes of a group read one table.
                self.table.as_ptr() == other.table.as_ptr() || self.table == &other.table[..self.len()]
            }
            _ => self.iter().eq(other.iter().take(self.len())),
        }
    }

    /// Whether another list ends with the rows of this one.
    #[inline]
    #[must_use]
    pub fn ends(self, other: List<'_>) -> bool {
        let Some(cut) = other.len().checked_sub(self.len()) else { return false };
        match (self.table, other.table) {
            ([], []) => self.is_empty() || self.start == other.start + cut as u32,
            ([_, ..], [_, ..]) => {
                let rest = &other.table[cut..];
                // Lanes of a group read one table.
                self.table.as_ptr() == rest.as_ptr() || self.table == rest
            }
            _ => self.iter().eq(other.iter().skip(cut)),
        }
    }

    /// The rows in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        let is_run = self.table.is_empty();
        (0..self.len as usize).map(move |at| if is_run { self.start + at as u32 } else { self.table[at] })
    }
}

/// The maximum number of addresses of a step that new groups are compared with.
const MOST_COMPARED: usize = 64;

impl Address {
    /// The address of some numbers, one per lane: their constant distance, else a table. A single lane has stride 1.
    #[must_use]
    pub fn of(tables: &mut Vec<u32>, numbers: impl Iterator<Item = u32> + Clone) -> Self {
        Self::steady(numbers.clone()).unwrap_or_else(|| {
            let at = tables.len() as u32;
            tables.extend(numbers);
            Self::Table { at }
        })
    }

    /// The address of numbers with a constant distance that is not negative.
    #[inline]
    pub fn steady(mut numbers: impl Iterator<Item = u32>) -> Option<Self> {
        let start = numbers.next().unwrap_or(0);
        let Some(second) = numbers.next() else { return Some(Self::Steps { start, stride: 1 }) };
        let stride = second.checked_sub(start)?;
        let mut expected = u64::from(second);
        let steady = numbers.all(|number| {
            expected += u64::from(stride);
            u64::from(number) == expected
        });
        steady.then_some(Self::Steps { start, stride })
    }

    /// The address of the numbers at the end of the tables. Numbers with a constant distance leave the tables.
    #[must_use]
    pub fn of_last(tables: &mut Vec<u32>, first: usize) -> Self {
        match Self::steady(tables[first..].iter().copied()) {
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
    pub fn of_lanes(self, tables: &mut Vec<u32>, groups: &[Group], lanes: &[u32]) -> Self {
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
            Self::Groups { .. } => Self::of_lists(tables, lanes.iter(), |tables, &lane| {
                let list: Vec<u32> =
                    self.list_of_lane(tables, groups, lane).map_or(Vec::new(), |list| list.iter().collect());
                tables.extend(list);
            }),
        }
    }

    /// Groups that were appended as the last, from `first` on, with their tables from `table` on. Groups that an earlier
    /// address of the same step names already are named again, and leave the pools.
    #[must_use]
    pub fn of_last_groups(
        groups: &mut Vec<Group>,
        tables: &mut Vec<u32>,
        first: usize,
        table: usize,
        earlier: impl IntoIterator<Item = Self>,
    ) -> Self {
        let groups_of = |address: &Self| matches!(address, Self::Groups { .. });
        for known in earlier.into_iter().filter(groups_of).take(MOST_COMPARED) {
            let own = &groups[first..];
            if let Self::Groups { first: known_first, count } = known
                && count as usize == own.len()
                && let Some(known_groups) = groups.get(known_first as usize..(known_first + count) as usize)
                && own.iter().zip(known_groups).all(|(own, known)| own.matches(tables, *known))
            {
                groups.truncate(first);
                tables.truncate(table);
                return known;
            }
        }
        Self::Groups { first: first as u32, count: (groups.len() - first) as u32 }
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
            _ => None,
        }
    }

    /// Where its table begins, if it has one number per lane there.
    #[inline]
    #[must_use]
    pub const fn table(self) -> Option<u32> {
        match self {
            Self::Table { at } => Some(at),
            _ => None,
        }
    }

    /// Where the offsets and the items of its lists begin, if each lane has a list of its own.
    #[inline]
    #[must_use]
    pub const fn lists(self) -> Option<(u32, u32)> {
        match self {
            Self::Lists { offsets, items } => Some((offsets, items)),
            _ => None,
        }
    }

    /// The number that a lane reads; `None` for lists.
    #[inline]
    #[must_use]
    pub fn of_lane(self, tables: &[u32], lane: u32) -> Option<u32> {
        match self {
            Self::Steps { start, stride } => Some(start + lane * stride),
            Self::Table { at } => Some(tables[(at + lane) as usize]),
            Self::Lists { .. } | Self::Groups { .. } => None,
        }
    }

    /// Whether each lane reads a list.
    #[inline]
    #[must_use]
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Lists { .. } | Self::Groups { .. })
    }

    /// The list that a lane reads; `None` for single numbers.
    #[inline]
    #[must_use]
    pub fn list_of_lane<'t>(self, tables: &'t [u32], groups: &[Group], lane: u32) -> Option<List<'t>> {
        match self {
            Self::Steps { .. } | Self::Table { .. } => None,
            Self::Lists { offsets, items } => {
                let offset = |lane: u32| (items + tables[(offsets + lane) as usize]) as usize;
                Some(List::of_table(&tables[offset(lane)..offset(lane + 1)]))
            }
            Self::Groups { first, count } => {
                let own = &groups[first as usize..][..count as usize];
                let number = own.partition_point(|group| group.end <= lane);
                let begin = number.checked_sub(1).map_or(0, |before| own[before].end);
                Some(own[number].list(tables, begin, lane))
            }
        }
    }

    /// Its groups with the first lane of each; none for other addresses.
    pub fn groups(self, groups: &[Group]) -> impl Iterator<Item = (u32, Group)> + Clone + '_ {
        let (first, count) = if let Self::Groups { first, count } = self { (first, count) } else { (0, 0) };
        let own = groups.get(first as usize..(first as usize).saturating_add(count as usize)).unwrap_or(&[]);
        let begins = std::iter::once(0).chain(own.iter().map(|group| group.end));
        begins.zip(own.iter().copied())
    }

    /// The number of values of the lists of all lanes; 0 for single numbers.
    #[must_use]
    pub fn listed(self, tables: &[u32], groups: &[Group], lanes: u32) -> u64 {
        match self {
            Self::Steps { .. } | Self::Table { .. } => 0,
            Self::Lists { offsets, .. } => {
                let at = |lane: u32| u64::from(tables[offsets as usize + lane as usize]);
                at(lanes) - at(0)
            }
            Self::Groups { .. } => {
                self.groups(groups).map(|(first, group)| group.listed(first)).fold(0, u64::saturating_add)
            }
        }
    }
}

/// The smallest and the largest of some rows.
pub(in crate::plan) fn ends(rows: &[u32]) -> Option<(u32, u32)> {
    let ends = rows.iter().fold((u32::MAX, 0), |(low, high), &row| (low.min(row), high.max(row)));
    (!rows.is_empty()).then_some(ends)
}
