//! Waves: grouping of units into dispatches.
//!
//! wgpu inserts a barrier between two dispatches that write the same buffer, even if they write different rows. Every
//! dispatch therefore costs a barrier. Steps of a wave are independent (rules P25 and P26), so their units are merged:
//! all units of one level that run one program become segments of one dispatch. The level of a unit is the length of
//! the longest chain of units of its step that it depends on. A wave then has as many dispatches as its deepest step
//! has levels, unless its steps run different programs.

use super::iterations::Loops;
use super::record::Record;
use super::{Build, Dispatch, MAX_THREADS};
use crate::error::GpuError;
use crate::module::{GROUP, Program};
use std::sync::Arc;

/// Maximum number of groups in a dimension.
const MAX_GROUPS: u64 = 65_535;
/// Multiply-adds of one dispatch, about. A single segment may exceed it.
const MAX_WORK: u64 = 1 << 37;

/// The threads of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub(super) first_lane: u32,
    /// The number of threads; of tiled programs, the number of rows.
    pub(super) count: u64,
    /// The number of columns of tiled programs, else 1.
    pub(super) columns: u64,
}

impl Threads {
    /// `count` threads that start with lane 0.
    pub(super) const fn of(count: u64) -> Self {
        Self { first_lane: 0, count, columns: 1 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    level: u32,
    program: u32,
    record: u32,
    threads: u32,
    first_lane: u32,
    groups: u64,
    work: u64,
    step: Option<u32>,
}

/// The segments of the wave that is being compiled.
#[derive(Default)]
pub(super) struct Wave {
    entries: Vec<Entry>,
    /// Scratch words that the wave has taken so far.
    pub(super) scratch: u64,
}

impl Wave {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Build<'_> {
    /// Adds a segment of a program at a level. A segment without threads is dropped.
    pub(super) fn segment(
        &mut self,
        program: Program,
        record: &Record,
        level: u32,
        threads: Threads,
    ) -> Result<(), GpuError> {
        if threads.count == 0 || program.groups(threads.count, threads.columns) == 0 {
            return Ok(());
        }
        let program = self.cache.program(program);
        let number = self.number_of(program);
        self.segment_of(number, record, level, threads)
    }

    /// The number of a cached program in this plan.
    pub(super) fn number_of(&mut self, program: Arc<Program>) -> u32 {
        let next = self.programs.len() as u32;
        let number = *self.numbers.entry(Arc::as_ptr(&program) as usize).or_insert(next);
        if number == next {
            self.programs.push(program);
        }
        number
    }

    /// As [`segment`](Self::segment), by the number of the program.
    pub(super) fn segment_of(
        &mut self,
        number: u32,
        record: &Record,
        level: u32,
        threads: Threads,
    ) -> Result<(), GpuError> {
        let program = &self.programs[number as usize];
        let Threads { first_lane, count, columns } = threads;
        let groups = program.groups(count, columns);
        if count == 0 || groups == 0 {
            return Ok(());
        }
        let down = groups.div_ceil(MAX_GROUPS);
        if count > MAX_THREADS || groups * GROUP > 2 * MAX_THREADS || down > MAX_GROUPS {
            return Err(GpuError::TooLarge {
                what: "the elements of a lane",
                needed: count.saturating_mul(4),
                limit: MAX_THREADS * 4,
            });
        }
        self.check_loops(program, record, threads)?;
        let record = self.add_words(record.words())?;
        self.wave.entries.push(Entry {
            level,
            program: number,
            record,
            threads: count as u32,
            first_lane,
            groups,
            work: count,
            step: self.step,
        });
        Ok(())
    }

    /// Rejects a program whose loops the device would abort.
    fn check_loops(&self, program: &Program, record: &Record, threads: Threads) -> Result<(), GpuError> {
        let Some(limit) = self.iterations else { return Ok(()) };
        let (record, tables) = (record.words(), [self.plan.tables.as_slice(), &self.records]);
        let needed = Loops { record, tables, records_at: self.records_at, threads }.of(program);
        match needed <= limit.max() {
            true => Ok(()),
            false => Err(GpuError::Loops { step: self.step, what: program.template().name, needed, limit }),
        }
    }

    /// Sets the work of the last segment.
    pub(super) fn set_last_work(&mut self, work: u64) {
        if let Some(last) = self.wave.entries.last_mut() {
            last.work = work;
        }
    }

    /// Ends the wave: its segments become dispatches, and its scratch rows are free.
    pub(super) fn end_wave(&mut self) -> Result<(), GpuError> {
        self.scratch = self.scratch.max(self.wave.scratch);
        self.wave.scratch = 0;
        let mut entries = std::mem::take(&mut self.wave.entries);
        // Sorting is stable: segments stay in the order of their steps.
        entries.sort_by_key(|entry| (entry.level, entry.program));
        let mut rest = entries.as_mut_slice();
        while let [first, ..] = rest {
            // Within a level, the program of the last dispatch comes first, which saves a pipeline change.
            let (level, last) = (first.level, self.dispatches.last().map(|dispatch| dispatch.program));
            let of_level = rest.partition_point(|entry| entry.level == level);
            rest[..of_level].sort_by_key(|entry| (Some(entry.program) != last, entry.program));
            let first = rest[0];
            let (mut groups, mut work, mut count) = (0, 0u64, 0);
            for entry in rest.iter() {
                let same = (entry.level, entry.program) == (first.level, first.program);
                let fits = groups + entry.groups <= 2 * MAX_THREADS / GROUP
                    && work.saturating_add(entry.work) <= MAX_WORK;
                if !same || (count > 0 && !fits) {
                    break;
                }
                (groups, work, count) = (groups + entry.groups, work.saturating_add(entry.work), count + 1);
            }
            let (these, others) = rest.split_at_mut(count);
            self.dispatch(these, groups, work)?;
            rest = others;
        }
        entries.clear();
        self.wave.entries = entries;
        Ok(())
    }

    fn dispatch(&mut self, entries: &[Entry], groups: u64, work: u64) -> Result<(), GpuError> {
        let mut words = Vec::with_capacity(4 * entries.len());
        let mut at = 0u64;
        for entry in entries {
            words.extend([at as u32, entry.record, entry.threads, entry.first_lane]);
            at += entry.groups;
            if let Some(step) = entry.step {
                let (count, seen) = &mut self.of_steps[step as usize];
                if *seen != self.dispatches.len() as u32 + 1 {
                    (*count, *seen) = (*count + 1, self.dispatches.len() as u32 + 1);
                }
            }
        }
        let segments = self.add_words(&words)?;
        let (across, down) = (groups.min(MAX_GROUPS), groups.div_ceil(MAX_GROUPS));
        self.dispatches.push(Dispatch {
            program: entries[0].program,
            segments,
            count: entries.len() as u32,
            groups: [across as u32, down as u32],
            work,
        });
        Ok(())
    }

    /// Appends words to the tables. Returns the position of the first.
    pub(super) fn add_words(&mut self, words: &[u32]) -> Result<u32, GpuError> {
        let at = self.records_at + self.records.len() as u64;
        let end = at + words.len() as u64;
        if end > u64::from(u32::MAX) {
            return Err(GpuError::beyond_addresses("the tables", end));
        }
        self.records.extend_from_slice(words);
        Ok(at as u32)
    }
}
