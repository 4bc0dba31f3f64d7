//! Waves: which stages of which steps are one dispatch.
//!
//! wgpu orders any two dispatches that write one buffer, so a dispatch more is a barrier more, whether the
//! plan needs it or not. Steps of a wave do not wait for one another (rules P25 and P26), so their units are
//! put together: all units of one depth (how many others of their step they wait for, one after another)
//! that run one program are the segments of one dispatch. A wave is then as many dispatches as its deepest
//! step has units, unless its steps run different programs.

use super::matrix::Room;
use super::record::Record;
use super::rounds::Loops;
use super::{Build, Dispatch, MAX_THREADS};
use crate::error::GpuError;
use crate::module::{GROUP, Program};
use std::sync::Arc;

/// Groups of a dimension.
const MOST_GROUPS: u64 = 65_535;
/// Multiply-adds that are put into one dispatch, about; a single segment may be more.
const MOST_WORK: u64 = 1 << 37;

/// What is executed by a dispatch of the wave.
#[derive(Clone, Copy, Debug)]
struct Entry {
    level: u32,
    program: u32,
    record: u32,
    threads: u32,
    first: u32,
    groups: u64,
    work: u64,
    step: Option<u32>,
}

/// The dispatches of a wave in the making.
#[derive(Default)]
pub(super) struct Wave {
    entries: Vec<Entry>,
    /// Scratch words that the wave has taken so far.
    pub(super) scratch: u64,
    /// Words of terms and of sums of products on matrix units that the wave has taken so far.
    pub(super) matrix: Room,
}

impl Wave {
    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Build<'_> {
    /// Adds to the wave what a program executes at a level; without threads it is nothing.
    pub(super) fn segment(
        &mut self,
        program: Program,
        record: &Record,
        level: u32,
        (first, threads): (u32, u64),
        columns: u64,
    ) -> Result<(), GpuError> {
        if threads == 0 || program.groups(threads, columns) == 0 {
            return Ok(());
        }
        let number = self.number(program);
        self.segment_of(number, record, level, (first, threads), columns)
    }

    /// The number of a program, which it gets unless it has one.
    fn number(&mut self, program: Program) -> u32 {
        let program = self.known.program(program);
        self.number_of(program)
    }

    /// The number of a program that is known.
    pub(super) fn number_of(&mut self, program: Arc<Program>) -> u32 {
        let next = self.programs.len() as u32;
        let number = *self.numbers.entry(Arc::as_ptr(&program) as usize).or_insert(next);
        if number == next {
            self.programs.push(program);
        }
        number
    }

    /// As [`segment`](Self::segment), of a program that has a number.
    pub(super) fn segment_of(
        &mut self,
        number: u32,
        record: &Record,
        level: u32,
        (first, threads): (u32, u64),
        columns: u64,
    ) -> Result<(), GpuError> {
        let groups = self.programs[number as usize].groups(threads, columns);
        if threads == 0 || groups == 0 {
            return Ok(());
        }
        let down = groups.div_ceil(MOST_GROUPS);
        if threads > MAX_THREADS || groups * GROUP > 2 * MAX_THREADS || down > MOST_GROUPS {
            return Err(GpuError::TooLarge {
                what: "the elements of a lane",
                needed: threads.saturating_mul(4),
                limit: MAX_THREADS * 4,
            });
        }
        self.ends(&self.programs[number as usize], record, (first, threads))?;
        let record = self.table(record.words())?;
        self.wave.entries.push(Entry {
            level,
            program: number,
            record,
            threads: threads as u32,
            first,
            groups,
            work: threads,
            step: self.step,
        });
        Ok(())
    }

    /// Refuses a program whose loops the device would leave early.
    fn ends(&self, program: &Program, record: &Record, lanes: (u32, u64)) -> Result<(), GpuError> {
        let Some(limit) = self.rounds else { return Ok(()) };
        let rounds = Loops { record: record.words(), tables: &self.plan.tables, lanes }.of(program);
        match rounds <= limit.most() {
            true => Ok(()),
            false => {
                Err(GpuError::Loops { step: self.step, what: program.template().name, needed: rounds, limit })
            }
        }
    }

    /// Says how much work the last segment is.
    pub(super) fn last_is_work(&mut self, work: u64) {
        if let Some(last) = self.wave.entries.last_mut() {
            last.work = work;
        }
    }

    /// Ends the wave: what was added becomes dispatches, and scratch rows are free again.
    pub(super) fn end_wave(&mut self) -> Result<(), GpuError> {
        self.scratch = self.scratch.max(self.wave.scratch);
        self.wave.scratch = 0;
        self.matrix.end_wave(std::mem::take(&mut self.wave.matrix));
        let mut entries = std::mem::take(&mut self.wave.entries);
        // Sorting is stable: segments stay in the order of their steps.
        entries.sort_by_key(|entry| (entry.level, entry.program));
        let mut rest = entries.as_mut_slice();
        while let [first, ..] = rest {
            // Of a level, what runs the program that was run last comes first: a pipeline less to be set.
            let (level, last) = (first.level, self.dispatches.last().map(|dispatch| dispatch.program));
            let of_level = rest.partition_point(|entry| entry.level == level);
            rest[..of_level].sort_by_key(|entry| (Some(entry.program) != last, entry.program));
            let first = rest[0];
            let (mut groups, mut work, mut count) = (0, 0u64, 0);
            for entry in rest.iter() {
                let same = (entry.level, entry.program) == (first.level, first.program);
                let fits = groups + entry.groups <= 2 * MAX_THREADS / GROUP
                    && work.saturating_add(entry.work) <= MOST_WORK;
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
            words.extend([at as u32, entry.record, entry.threads, entry.first]);
            at += entry.groups;
            if let Some(step) = entry.step {
                let (count, seen) = &mut self.of_steps[step as usize];
                if *seen != self.dispatches.len() as u32 + 1 {
                    (*count, *seen) = (*count + 1, self.dispatches.len() as u32 + 1);
                }
            }
        }
        let segments = self.table(&words)?;
        let (across, down) = (groups.min(MOST_GROUPS), groups.div_ceil(MOST_GROUPS));
        self.dispatches.push(Dispatch {
            program: entries[0].program,
            segments,
            count: entries.len() as u32,
            groups: [across as u32, down as u32],
            work,
        });
        Ok(())
    }

    /// Adds words behind the tables; gives where they begin.
    fn table(&mut self, words: &[u32]) -> Result<u32, GpuError> {
        let (records, first) = &mut self.records;
        let at = *first + records.len() as u64;
        let end = at + words.len() as u64;
        if end > u64::from(u32::MAX) {
            return Err(GpuError::TooLarge {
                what: "the tables",
                needed: end * 4,
                limit: u64::from(u32::MAX) * 4,
            });
        }
        records.extend_from_slice(words);
        Ok(at as u32)
    }
}
