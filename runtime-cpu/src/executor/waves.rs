//! Executes the waves of a plan on one thread or several.
//!
//! The steps of a wave are independent, so their lanes form one sequence. If a wave has enough work, the sequence is
//! cut into shares of equal work: a wave of one large step is split, the steps of a wave overlap, and the threads of a
//! [`Crew`] meet once per wave. Each takes a few shares, one after the other. A thread that starts late or loses its core
//! then delays the others by one share, not by half of the wave. Steps with many lanes are cut at whole register tiles.
//! The assignment of lanes to threads does not change the bits.

use super::RunError;
use super::clock::{Clock, TimedPart};
use super::interrupt::Interruptible;
use super::prepared::StepArgs;
use super::program::TILE_STEP;
use super::tile::{ExecutionContext, LaneFault, TileMemory};
use super::watch;
use crate::crew::Crew;
use autobatch_ir::plan::ComputedIndex;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Floating-point operations below which one thread executes a wave: about 4 µs of one core. The example `sharing`
/// measures the work from which sharing is faster.
pub(super) const SHARED_WORK: usize = 400_000;

/// Starting or waking threads is worth the work of this many of the smallest shared waves.
const WAKING: usize = 8;

/// Shares of a large wave per thread.
const SHARES: usize = 4;
/// Lanes of a share, on average, at least: each share reads all weights of its steps.
const SHARE_LANES: usize = 7;
/// A share has at least this part of the work of the smallest shared wave, so that taking a share costs little.
const SHARE_PART: usize = 2;

/// Options of the execution of waves.
#[derive(Clone)]
pub(super) struct WaveOptions {
    /// The waves that are executed.
    pub(super) waves: Range<usize>,
    /// Floating-point operations from which a wave is shared; at least one.
    pub(super) shared_work: usize,
    /// True if results are checked for numbers that are not finite.
    pub(super) watched: bool,
}

impl WaveOptions {
    /// Floating-point operations for which threads are started or woken.
    fn wakes(&self) -> usize {
        self.shared_work.saturating_mul(WAKING)
    }
}

/// Executes all waves, watched if requested. With a clock, each thread keeps the times of its parts of steps. It stops between
/// two waves if `interruptible` says so; one thread stops between two steps.
pub(super) fn execute(
    context: &ExecutionContext<'_>,
    crew: &mut Crew<'_>,
    threads: &mut [Mutex<TileMemory>],
    options: WaveOptions,
    clock: Option<Clock>,
    mut interruptible: Interruptible<'_>,
) -> Result<(), RunError> {
    // A run that stopped early may have left parts.
    for memory in &mut *threads {
        let memory = exclusive(memory);
        memory.timed.clear();
        memory.start_stopwatch(clock);
        memory.fault = None;
    }
    let is_shared = crew.threads() > 1 && is_shared(context, &options);
    if is_shared || options.watched {
        each_wave(context, &options, |wave| {
            let work = if is_shared { work_of(context, wave.clone()) } else { 0 };
            interruptible.ask_before(|| work_of(context, wave.clone()))?;
            match share_count(context, wave.clone(), work, &options, crew.threads()) {
                1 => execute_steps(context, wave, exclusive(&mut threads[0]), clock),
                parts => {
                    let share = |thread: usize, part| {
                        let mut memory = threads[thread].lock().unwrap_or_else(PoisonError::into_inner);
                        let share = share_start(work, part, parts)..share_start(work, part + 1, parts);
                        execute_share(context, wave.clone(), share, &mut memory, clock);
                    };
                    crew.each(parts, work >= options.wakes(), &share);
                }
            }
            Ok(())
        })?;
    } else {
        // One thread executes all steps in order, so the bounds of waves do not matter.
        let ends = &context.plan.waves;
        let end_of = |wave: usize| wave.checked_sub(1).map_or(0, |before| ends[before] as usize);
        let (mut begin, end) = (end_of(options.waves.start), end_of(options.waves.end));
        while begin < end {
            interruptible.ask()?;
            let next = begin + interruptible.steps_until_question(&context.prepared.work[begin..end]);
            execute_steps(context, begin..next, exclusive(&mut threads[0]), clock);
            begin = next;
        }
    }
    // Later steps may have read what a faulty one computed, so the first fault is the cause.
    let faults = threads.iter_mut().filter_map(|memory| exclusive(memory).fault.take());
    match faults.min_by_key(|(step, fault)| (*step, fault.lane)) {
        None => Ok(()),
        Some((step, LaneFault { lane, found, limit })) => {
            let fault = ComputedIndex::new(context.plan, step as usize, lane, found, limit);
            Err(RunError::Index(Box::new(fault)))
        }
    }
}

/// Calls `execute` with the steps of each wave. If the run is watched, with one step at a time, so that the check finds the
/// first fault first.
fn each_wave(
    context: &ExecutionContext<'_>,
    options: &WaveOptions,
    mut execute: impl FnMut(Range<usize>) -> Result<(), RunError>,
) -> Result<(), RunError> {
    for wave in context.plan.waves_from(options.waves.start).take(options.waves.len()) {
        if !options.watched {
            execute(wave)?;
            continue;
        }
        for step in wave {
            execute(step..step + 1)?;
            watch::check(context, step)?;
        }
    }
    Ok(())
}

/// Whether the waves that threads can share have enough work to start the threads.
fn is_shared(context: &ExecutionContext<'_>, options: &WaveOptions) -> bool {
    let waves = context.plan.waves_from(options.waves.start).take(options.waves.len());
    let large = waves.map(|wave| work_of(context, wave)).filter(|&work| work >= options.shared_work);
    large.sum::<usize>() >= options.wakes()
}

/// Executes whole steps in order.
///
/// After a large step nothing of the plan is in cache, nor its page in the TLB, and each page costs half a microsecond.
/// Between two steps this loop reads two pages. The arguments of the next step are prefetched before the last stage of
/// a step. Nothing waits for the write to `timed`. Everything else is on the stack, whose page kernels use too.
fn execute_steps(
    context: &ExecutionContext<'_>,
    steps: Range<usize>,
    memory: &mut TileMemory,
    clock: Option<Clock>,
) {
    let mut timed = std::mem::take(&mut memory.timed);
    if clock.is_some() {
        timed.reserve(steps.len());
    }
    for (step, args) in (steps.start as u32..).zip(&context.prepared.steps[steps]) {
        if let Some(part) = execute_lanes(context, step, args, 0..args.rows as usize, memory, clock) {
            timed.push(part);
        }
    }
    memory.timed = timed;
}

/// The number of shares of a wave, given its work.
fn share_count(
    context: &ExecutionContext<'_>,
    wave: Range<usize>,
    work: usize,
    options: &WaveOptions,
    threads: usize,
) -> usize {
    if work < options.shared_work {
        return 1;
    }
    let by_work = (work / (options.shared_work / SHARE_PART).max(1)).clamp(2, SHARES * threads);
    // Tests share waves of any size.
    if options.shared_work == 1 {
        return by_work;
    }
    let lanes: usize = context.prepared.steps[wave].iter().map(|args| args.rows as usize).sum();
    let parts = by_work.min(lanes / SHARE_LANES).max(1);
    // A multiple of the threads keeps all of them busy to the end.
    if parts > threads { parts / threads * threads } else { parts }
}

/// Executes a share of the work of a wave.
fn execute_share(
    context: &ExecutionContext<'_>,
    wave: Range<usize>,
    share: Range<usize>,
    memory: &mut TileMemory,
    clock: Option<Clock>,
) {
    let mut begin = 0;
    for step in wave {
        let work = context.prepared.work[step];
        let args = &context.prepared.steps[step];
        let lane = |at: usize| lane_at(args.rows as usize, work, at.saturating_sub(begin));
        let lanes = lane(share.start)..lane(share.end);
        let part = execute_lanes(context, step as u32, args, lanes, memory, clock);
        memory.timed.extend(part);
        begin += work;
    }
}

/// The memory of a thread while no other thread runs.
pub(super) fn exclusive(memory: &mut Mutex<TileMemory>) -> &mut TileMemory {
    memory.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn work_of(context: &ExecutionContext<'_>, steps: Range<usize>) -> usize {
    context.prepared.work[steps].iter().sum()
}

/// The work before share `number` of `parts`.
pub(super) fn share_start(whole: usize, number: usize, parts: usize) -> usize {
    (whole as u128 * number as u128 / parts as u128) as usize
}

/// The lane of a step after `done` of its work, rounded up to whole register tiles if there are many lanes.
pub(super) fn lane_at(rows: usize, work: usize, done: usize) -> usize {
    if done >= work {
        return rows;
    }
    let lane = (rows as u128 * done as u128 / work as u128) as usize;
    let grain = if rows >= 4 * TILE_STEP { TILE_STEP } else { 1 };
    lane.next_multiple_of(grain).min(rows)
}

/// Executes lanes of a step, if there are any, and returns their time if the run is counted.
#[inline(always)]
fn execute_lanes(
    context: &ExecutionContext<'_>,
    step: u32,
    args: &StepArgs,
    lanes: Range<usize>,
    memory: &mut TileMemory,
    clock: Option<Clock>,
) -> Option<TimedPart> {
    if lanes.is_empty() {
        return None;
    }
    let start = clock.map(|clock| clock.now());
    // SAFETY: the plan was verified, its bindings and stores were checked, and its memory was allocated. Threads execute
    // disjoint lanes of the steps of one wave, which are independent, and all of them end before the next wave begins.
    unsafe { context.step(args).execute(lanes, memory) };
    memory.keep_fault(step);
    let end = clock.map(|clock| clock.now());
    start.zip(end).map(|(start, end)| TimedPart { step, start, end })
}
