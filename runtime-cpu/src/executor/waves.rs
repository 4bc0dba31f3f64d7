//! Executes the waves of a plan on one thread or several.
//!
//! The steps of a wave are independent, so their lanes form one sequence. If a wave has enough work, the sequence is
//! cut into shares of equal work: a wave of one large step is split, the steps of a wave overlap, and each wave has one
//! fork and one join. Each thread takes a few shares, one after the other. A thread that starts late or loses its core
//! then delays the others by one share, not by half of the wave. Steps with many lanes are cut at whole register tiles.
//! The assignment of lanes to threads does not change the bits.

use super::RunError;
use super::clock::{Clock, TimedPart};
use super::prepared::StepArgs;
use super::program::TILE_STEP;
use super::tile::{ExecutionContext, LaneFault, TileMemory};
use super::watch;
use autobatch_ir::plan::ComputedIndex;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Floating-point operations below which one thread executes a wave: about 30 µs of one core. The example `sharing`
/// measures the work from which sharing is faster.
pub(super) const SHARED_WORK: usize = 3_000_000;

/// Shares of a large wave per thread.
const SHARES: usize = 4;
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

/// Executes all waves, watched if requested. With a clock, each thread keeps the times of its parts of steps.
pub(super) fn execute(
    context: &ExecutionContext<'_>,
    threads: &mut [Mutex<TileMemory>],
    options: WaveOptions,
    clock: Option<Clock>,
) -> Result<(), RunError> {
    // A run that stopped early may have left parts.
    for memory in &mut *threads {
        let memory = exclusive(memory);
        memory.timed.clear();
        memory.start_stopwatch(clock);
        memory.fault = None;
    }
    if threads.len() == 1 && !options.watched {
        // One thread executes all steps in order, so the bounds of waves do not matter.
        let ends = &context.plan.waves;
        let end_of = |wave: usize| wave.checked_sub(1).map_or(0, |before| ends[before] as usize);
        let (begin, end) = (end_of(options.waves.start), end_of(options.waves.end));
        execute_wave(context, begin..end.max(begin), options.shared_work, threads, clock);
    } else {
        for wave in context.plan.waves_from(options.waves.start).take(options.waves.len()) {
            if !options.watched {
                execute_wave(context, wave, options.shared_work, threads, clock);
                continue;
            }
            // One step at a time, so that the check finds the first fault first.
            for step in wave {
                execute_wave(context, step..step + 1, options.shared_work, threads, clock);
                watch::check(context, step)?;
            }
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

/// Executes the steps of one wave, shared among the threads if it has enough work.
fn execute_wave(
    context: &ExecutionContext<'_>,
    wave: Range<usize>,
    shared_work: usize,
    threads: &mut [Mutex<TileMemory>],
    clock: Option<Clock>,
) {
    let whole = || wave.clone().map(|step| work(context, step)).sum::<usize>();
    let whole = if threads.len() == 1 { 0 } else { whole() };
    if whole < shared_work {
        execute_steps(context, wave, exclusive(&mut threads[0]), clock);
        return;
    }
    let threads = &*threads;
    let parts = (whole / (shared_work / SHARE_PART).max(1)).clamp(2, SHARES * threads.len());
    (0..parts).into_par_iter().with_max_len(1).for_each(|number| {
        let mut memory = lock_own(threads);
        let share = share_start(whole, number, parts)..share_start(whole, number + 1, parts);
        let mut begin = 0;
        for step in wave.clone() {
            let work = work(context, step);
            let args = &context.prepared.steps[step];
            let lane = |at: usize| lane_at(args.rows as usize, work, at.saturating_sub(begin));
            let lanes = lane(share.start)..lane(share.end);
            let part = execute_lanes(context, step as u32, args, lanes, &mut memory, clock);
            memory.timed.extend(part);
            begin += work;
        }
    });
}

/// The memory of a thread while no other thread runs.
pub(super) fn exclusive(memory: &mut Mutex<TileMemory>) -> &mut TileMemory {
    memory.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of the current thread. The lock is free, because a share starts no other share on its thread.
fn lock_own(threads: &[Mutex<TileMemory>]) -> MutexGuard<'_, TileMemory> {
    let number = rayon::current_thread_index().unwrap_or(0) % threads.len();
    threads[number].lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(context: &ExecutionContext<'_>, step: usize) -> usize {
    context.prepared.work[step]
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
