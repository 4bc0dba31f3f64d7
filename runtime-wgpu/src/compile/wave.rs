//! Waves: grouping of units into dispatches.
//!
//! wgpu inserts a barrier between two dispatches that write the same buffer, even if they write different rows. Every
//! dispatch therefore costs a barrier. Steps of a wave are independent (rules P25 and P26), so their units are merged:
//! all units of one level that run one program become segments of one dispatch. The level of a unit is the length of
//! the longest chain of units of its step that it depends on. A wave then has as many dispatches as its deepest step
//! levels, unless its steps run different programs.
//!
//! Drivers reset devices that are busy for seconds. The time of a dispatch is therefore limited, by a prediction for a small
//! integrated GPU: a segment that takes longer is divided by lanes, and its parts are dispatches of their own.

use super::cost::{Cost, Generated};
use super::iterations::Segment;
use super::record::Record;
use super::{Build, Dispatch, MAX_THREADS};
use crate::error::GpuError;
use crate::module::{GROUP, Program};
use crate::predict::Card;
use std::sync::Arc;

/// Maximum number of groups in a dimension.
const MAX_GROUPS: u64 = 65_535;

/// The threads of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    pub(super) first_lane: u32,
    /// The number of threads; of tiled programs, the number of rows.
    pub(super) count: u64,
    /// The number of columns of tiled programs, else 1.
    pub(super) columns: u64,
    /// The number of lanes that may be divided, each with equally many threads.
    pub(super) lanes: u32,
}

impl Threads {
    /// `count` threads that start with lane 0.
    pub(super) const fn of(count: u64) -> Self {
        Self { first_lane: 0, count, columns: 1, lanes: 1 }
    }

    /// These threads in parts, of which there are no more than lanes.
    fn divided(self, parts: u64) -> impl Iterator<Item = Self> {
        let lanes = u64::from(self.lanes);
        let each = self.count / lanes;
        (0..parts).map(move |part| {
            let [first, end] = [part, part + 1].map(|part| lanes * part / parts);
            let (first_lane, lanes) = (self.first_lane + first as u32, (end - first) as u32);
            Self { first_lane, count: u64::from(lanes) * each, lanes, ..self }
        })
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
    cost: Cost,
    step: Option<u32>,
    /// True if it is a part of a segment. Parts use the same scratch rows, so each is a dispatch.
    is_part: bool,
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
            self.generated.push(self.cache.counts_of(&program));
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
        let Threads { count, columns, .. } = threads;
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
        let segment = self.view(record, threads);
        self.check_loops(program, &segment)?;
        let cost = segment.cost(program, groups, self.generated[number as usize]);
        // Fewer lanes have less work, but wait no less.
        let parts = self.parts_of(Card::SMALL.roof_seconds(&cost)).min(threads.lanes.max(1).into());
        let whole = Entry {
            level,
            program: number,
            record: self.add_words(record.words())?,
            threads: count as u32,
            first_lane: threads.first_lane,
            groups,
            cost,
            step: self.step,
            is_part: false,
        };
        if parts == 1 {
            self.wave.entries.push(whole);
            return Ok(());
        }
        let program = &self.programs[number as usize];
        self.wave.entries.extend(threads.divided(parts).map(|part| Entry {
            threads: part.count as u32,
            first_lane: part.first_lane,
            groups: program.groups(part.count, part.columns),
            cost: cost.part(parts),
            is_part: true,
            ..whole
        }));
        Ok(())
    }

    fn view<'s>(&'s self, record: &'s Record, threads: Threads) -> Segment<'s> {
        let tables = [self.plan.tables.as_slice(), &self.records];
        Segment { record: record.words(), tables, records_at: self.records_at, threads }
    }

    /// The cost of a segment.
    pub(super) fn cost_of(&self, program: &Program, record: &Record, threads: Threads) -> Cost {
        let groups = program.groups(threads.count, threads.columns);
        self.view(record, threads).cost(program, groups, Generated::of(program))
    }

    /// The number of dispatches into which something that takes this time is divided.
    pub(super) fn parts_of(&self, seconds: f64) -> u64 {
        (seconds / self.dispatch_seconds).ceil().max(1.0) as u64
    }

    /// Rejects a program whose loops the device would abort.
    fn check_loops(&self, program: &Program, segment: &Segment<'_>) -> Result<(), GpuError> {
        let Some(limit) = self.iterations else { return Ok(()) };
        let needed = segment.iterations(program);
        match needed <= limit.max() {
            true => Ok(()),
            false => Err(GpuError::Loops { step: self.step, what: program.template().name, needed, limit }),
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
            let (mut groups, mut cost, mut count) = (first.groups, first.cost, 1);
            for entry in rest[1..].iter().take_while(|_| !first.is_part) {
                let same = (entry.level, entry.program) == (first.level, first.program) && !entry.is_part;
                let both = cost.beside(entry.cost);
                let fits = groups + entry.groups <= 2 * MAX_THREADS / GROUP
                    && Card::SMALL.roof_seconds(&both) <= self.dispatch_seconds;
                if !same || !fits {
                    break;
                }
                (groups, cost, count) = (groups + entry.groups, both, count + 1);
            }
            let (these, others) = rest.split_at_mut(count);
            self.dispatch(these, groups, cost)?;
            rest = others;
        }
        entries.clear();
        self.wave.entries = entries;
        Ok(())
    }

    fn dispatch(&mut self, entries: &[Entry], groups: u64, cost: Cost) -> Result<(), GpuError> {
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
        let steps = || entries.iter().filter_map(|entry| entry.step);
        let steps = steps().min().zip(steps().max()).map(|(first, last)| [first, last]);
        let segments = self.add_words(&words)?;
        let (across, down) = (groups.min(MAX_GROUPS), groups.div_ceil(MAX_GROUPS));
        self.dispatches.push(Dispatch {
            program: entries[0].program,
            segments,
            count: entries.len() as u32,
            groups: [across as u32, down as u32],
            steps,
            cost,
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
