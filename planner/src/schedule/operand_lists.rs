//! Lists of operands that several jobs share.
//!
//! All words of a sentence may read the list of its keys, so the operands of jobs, written out, grow with the square of the
//! sentence. A job therefore names a long list by its number. Policies see the operands written out; what they compute from
//! whole lists, they compute once for each list.

use autobatch_ir::hash::BuildMix;
use std::collections::HashMap;

/// Marks an operand that is the number of a list.
const LIST: u32 = 1 << 31;

/// Lists of operands. An item is a job, or a list with a smaller number.
#[derive(Debug, Default)]
pub(crate) struct OperandLists {
    start: Vec<u32>,
    items: Vec<u32>,
    /// The jobs of each list with all lists in it.
    jobs: Vec<u32>,
}

impl OperandLists {
    /// The operand that names a list; `None` for a job.
    #[inline]
    pub(super) const fn number(operand: u32) -> Option<usize> {
        if operand & LIST != 0 { Some((operand & !LIST) as usize) } else { None }
    }

    pub(crate) fn clear(&mut self) {
        self.start.clear();
        self.items.clear();
        self.jobs.clear();
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Appends a list of jobs and operands that name lists. Returns the operand that names it.
    pub(crate) fn push(&mut self, items: impl Iterator<Item = u32>) -> u32 {
        let first = self.items.len();
        self.items.extend(items);
        let jobs =
            self.items[first..].iter().map(|&item| Self::number(item).map_or(1, |list| self.jobs[list]));
        let jobs = jobs.fold(0, u32::saturating_add);
        self.start.push(first as u32);
        self.jobs.push(jobs);
        LIST | (self.jobs.len() - 1) as u32
    }

    /// The items of a list.
    fn items(&self, list: usize) -> &[u32] {
        let end = self.start.get(list + 1).map_or(self.items.len(), |&end| end as usize);
        &self.items[self.start[list] as usize..end]
    }

    /// How many jobs an operand stands for.
    pub(super) fn jobs_of(&self, operand: u32) -> u32 {
        Self::number(operand).map_or(1, |list| self.jobs[list])
    }

    /// The jobs that operands stand for, in order.
    pub(super) fn written_out<'a>(&'a self, operands: &'a [u32]) -> impl Iterator<Item = u32> + Clone + 'a {
        // Without lists this allocates nothing.
        let (mut rest, mut open) = (operands.iter(), Vec::new());
        std::iter::from_fn(move || {
            loop {
                match rest.next() {
                    None => rest = open.pop()?,
                    Some(&operand) => match Self::number(operand) {
                        None => return Some(operand),
                        Some(list) => open.push(std::mem::replace(&mut rest, self.items(list).iter())),
                    },
                }
            }
        })
    }
}

/// The largest of some number of the jobs of a list, kept for each list and reader's kind.
#[derive(Debug, Default)]
pub(crate) struct ListMaxima {
    /// Per list the kind that asked first, as most lists have readers of one kind, and the number.
    first: Vec<Option<(u32, u32)>>,
    /// The numbers for other kinds.
    others: HashMap<(usize, u32), u32, BuildMix>,
    open: Vec<usize>,
}

impl ListMaxima {
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.others.clear();
    }

    #[inline]
    fn known(&self, list: usize, kind: u32) -> Option<u32> {
        match self.first.get(list).copied().flatten()? {
            (first, number) if first == kind => Some(number),
            _ => self.others.get(&(list, kind)).copied(),
        }
    }

    fn keep(&mut self, list: usize, kind: u32, number: u32) {
        if self.first.len() <= list {
            self.first.resize(list + 1, None);
        }
        match &mut self.first[list] {
            first @ None => *first = Some((kind, number)),
            Some(_) => drop(self.others.insert((list, kind), number)),
        }
    }

    /// The largest `of` of the jobs that an operand stands for, which is not asked again for the same list and kind.
    #[inline]
    pub(crate) fn of(
        &mut self,
        lists: &OperandLists,
        operand: u32,
        kind: u32,
        mut of: impl FnMut(u32) -> u32,
    ) -> u32 {
        match OperandLists::number(operand) {
            None => of(operand),
            Some(list) => self.of_list(lists, list, kind, &mut of),
        }
    }

    fn of_list(
        &mut self,
        lists: &OperandLists,
        list: usize,
        kind: u32,
        of: &mut dyn FnMut(u32) -> u32,
    ) -> u32 {
        if let Some(known) = self.known(list, kind) {
            return known;
        }
        let mut open = std::mem::take(&mut self.open);
        open.push(list);
        let mut last = 0;
        // Lists of lists may be deep, so this is a loop.
        while let Some(&top) = open.last() {
            let (mut largest, mut unknown) = (0, None);
            for &item in lists.items(top) {
                let number = match OperandLists::number(item) {
                    None => of(item),
                    Some(inner) => match self.known(inner, kind) {
                        Some(known) => known,
                        None => {
                            unknown = Some(inner);
                            break;
                        }
                    },
                };
                largest = largest.max(number);
            }
            if let Some(inner) = unknown {
                open.push(inner);
                continue;
            }
            open.pop();
            self.keep(top, kind, largest);
            last = largest;
        }
        self.open = open;
        last
    }
}

/// No lists.
pub(super) static NO_LISTS: OperandLists =
    OperandLists { start: Vec::new(), items: Vec::new(), jobs: Vec::new() };
