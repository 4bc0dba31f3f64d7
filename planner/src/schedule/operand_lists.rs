//! Lists of operands that several jobs share.
//!
//! All words of a sentence may read the list of its keys, so the operands of jobs, written out, grow with the square of the
//! sentence. A job therefore names a long list by its number. Policies see the operands written out; what they compute from
//! whole lists, they compute once for each list.

use crate::ids::{JobId, JobListId, KindId};
use crate::index_vec::IndexVec;
use autobatch_ir::hash::BuildMix;
use bytemuck::TransparentWrapper;
use std::collections::HashMap;

/// An operand of a job as a problem stores it: a job, or the name of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TransparentWrapper)]
#[repr(transparent)]
pub(crate) struct JobOperand(JobId);

impl JobOperand {
    /// Instead of an operand that no job computes.
    pub(crate) const NONE: Self = Self(JobId(u32::MAX));

    /// Instead of the name of a list that nothing has read by name yet.
    pub(crate) const UNNAMED: Self = Self(JobId(u32::MAX - 1));

    /// Marks the name of a list.
    const LIST: u32 = 1 << 31;

    /// A job as an operand.
    #[inline]
    pub(crate) const fn job(job: JobId) -> Self {
        Self(job)
    }

    /// The name of a list by the list's number.
    const fn list(JobListId(number): JobListId) -> Self {
        Self(JobId(Self::LIST | number))
    }

    /// The job, or the number of the list that the operand names.
    #[inline]
    pub(super) const fn named(self) -> Result<JobId, JobListId> {
        let number = self.0.0;
        if number & Self::LIST == 0 { Ok(self.0) } else { Err(JobListId(number & !Self::LIST)) }
    }
}

/// Lists of operands. An item is a job, or a list with a smaller number.
#[derive(Debug, Default)]
pub(crate) struct OperandLists {
    start: IndexVec<JobListId, u32>,
    items: Vec<JobOperand>,
    /// The jobs of each list with all lists in it.
    jobs: IndexVec<JobListId, u32>,
}

impl OperandLists {
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
    pub(crate) fn push(&mut self, items: impl Iterator<Item = JobOperand>) -> JobOperand {
        let first = self.items.len();
        self.items.extend(items);
        let jobs = self.items[first..].iter().map(|&item| self.jobs_of(item)).fold(0, u32::saturating_add);
        self.start.push(first as u32);
        let list = self.jobs.push(jobs);
        JobOperand::list(list)
    }

    /// The items of a list.
    fn items(&self, list: JobListId) -> &[JobOperand] {
        let end = self.start.get(JobListId(list.0 + 1)).map_or(self.items.len(), |&end| end as usize);
        &self.items[self.start[list] as usize..end]
    }

    /// How many jobs an operand stands for.
    pub(super) fn jobs_of(&self, operand: JobOperand) -> u32 {
        operand.named().map_or_else(|list| self.jobs[list], |_| 1)
    }

    /// The jobs that operands stand for, in order.
    pub(super) fn written_out<'a>(
        &'a self,
        operands: &'a [JobOperand],
    ) -> impl Iterator<Item = JobId> + Clone + 'a {
        // Without lists this allocates nothing.
        let (mut rest, mut open) = (operands.iter(), Vec::new());
        std::iter::from_fn(move || {
            loop {
                match rest.next() {
                    None => rest = open.pop()?,
                    Some(&operand) => match operand.named() {
                        Ok(job) => return Some(job),
                        Err(list) => open.push(std::mem::replace(&mut rest, self.items(list).iter())),
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
    first: IndexVec<JobListId, Option<(KindId, u32)>>,
    /// The numbers for other kinds.
    others: HashMap<(JobListId, KindId), u32, BuildMix>,
    open: Vec<JobListId>,
}

impl ListMaxima {
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.others.clear();
    }

    #[inline]
    fn known(&self, list: JobListId, kind: KindId) -> Option<u32> {
        match self.first.get(list).copied().flatten()? {
            (first, number) if first == kind => Some(number),
            _ => self.others.get(&(list, kind)).copied(),
        }
    }

    fn keep(&mut self, list: JobListId, kind: KindId, number: u32) {
        self.first.grow_with(list.index() + 1, || None);
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
        operand: JobOperand,
        kind: KindId,
        mut of: impl FnMut(JobId) -> u32,
    ) -> u32 {
        match operand.named() {
            Ok(job) => of(job),
            Err(list) => self.of_list(lists, list, kind, &mut of),
        }
    }

    fn of_list(
        &mut self,
        lists: &OperandLists,
        list: JobListId,
        kind: KindId,
        of: &mut dyn FnMut(JobId) -> u32,
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
                let number = match item.named() {
                    Ok(job) => of(job),
                    Err(inner) => match self.known(inner, kind) {
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
    OperandLists { start: IndexVec::new(), items: Vec::new(), jobs: IndexVec::new() };
