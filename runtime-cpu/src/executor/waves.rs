//! Executes the waves of a plan, alone or shared among threads.
//!
//! Inside a wave nothing waits, so its steps laid end to end are one long row of lanes. Where that is
//! work enough, it is cut into shares of equal work: a wave of one large step is split, a wave of
//! several steps overlaps, and there is one fork and one join a wave. There are a few shares for each
//! thread, which takes the next when it has done one, so that a thread that started late or lost its
//! core keeps the others waiting for one share and not for half of the wave. Shares are cut at whole
//! register tiles of rows where a step has many. Who executes a lane changes no bit of it.

use super::RunError;
use super::clock::{Clock, Ticks};
use super::counters::{Counters, Span};
use super::program::TILE_STEP;
use super::ready::Turn;
use super::tile::{ExecutionContext, TileMemory};
use super::watch;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Floating-point operations below which a wave is executed by one thread: about 30 µs of one core. The example
/// `sharing` measures from which work on sharing wins.
pub(super) const SHARED_WORK: usize = 3_000_000;

/// Shares of a large wave for each thread.
const SHARES: usize = 4;
/// A share is at least one of so many parts of the work from which waves are shared, so that taking it costs little.
const SHARE_PART: usize = 2;

/// When a thread executed a part of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    step: u32,
    start: Ticks,
    end: Ticks,
}

/// How waves are executed.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// The first wave that is executed.
    pub(super) first: usize,
    /// Floating-point operations from which a wave is shared, one at least.
    pub(super) shared_work: usize,
    /// Whether what steps write is looked at.
    pub(super) watched: bool,
}

/// A run that is counted: what it is timed by, and when what comes before its waves was done.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    pub(super) clock: Clock,
    /// When programs and weights were found.
    pub(super) packed: Ticks,
    /// When what is bound was checked, and there was memory.
    pub(super) checked: Ticks,
}

/// Executes all waves, counting and watching where that is asked for.
pub(super) fn execute(
    context: &ExecutionContext<'_>,
    threads: &mut [Mutex<TileMemory>],
    how: How,
    counted: Option<(&mut Counters, Timing)>,
) -> Result<(), RunError> {
    let clock = counted.as_ref().map(|(_, timing)| timing.clock);
    // A run that was stopped may have left some.
    threads.iter_mut().for_each(|memory| alone(memory).stretches.clear());
    if threads.len() == 1 && !how.watched {
        // One after the other, so that it does not matter where waves end.
        let waves = &context.plan.waves;
        let begin = how.first.checked_sub(1).map_or(0, |before| waves[before] as usize);
        let end = waves.last().map_or(0, |&end| end as usize);
        execute_alone(context, begin..end.max(begin), alone(&mut threads[0]), clock);
    } else {
        execute_waves(context, threads, how, clock)?;
    }
    if let Some((counters, Timing { clock, packed, checked })) = counted {
        let end = clock.now();
        let time = clock.stop();
        let begun = time(checked);
        counters.pack = time(packed);
        counters.check = begun.saturating_sub(counters.pack);
        counters.executing = time(end).saturating_sub(begun);
        let span = |thread: usize, Stretch { step, start, end }| {
            let (start, end) = (time(start), time(end));
            let time = end.saturating_sub(start);
            Span { step, thread: thread as u32, start: start.saturating_sub(begun), time }
        };
        let spans = threads.iter_mut().enumerate().flat_map(|(thread, memory)| {
            alone(memory).stretches.drain(..).map(move |stretch| span(thread, stretch))
        });
        counters.fill(context.plan, spans);
    }
    Ok(())
}

/// Executes wave by wave, shared where that pays.
fn execute_waves(
    context: &ExecutionContext<'_>,
    threads: &mut [Mutex<TileMemory>],
    how: How,
    clock: Option<Clock>,
) -> Result<(), RunError> {
    for wave in context.plan.waves_from(how.first) {
        if how.watched {
            // One step after the other, so that the first fault is found first.
            for step in wave {
                execute_wave(context, step..step + 1, how.shared_work, threads, clock);
                watch::check(context, step)?;
            }
        } else {
            execute_wave(context, wave, how.shared_work, threads, clock);
        }
    }
    Ok(())
}

/// Executes whole steps, one after the other.
///
/// Behind a large step nothing is in cache, not even where pages lie, and each page asked for costs half a microsecond: between
/// two steps it is that of the next turn, asked for before the last stage of a step, and that of the stretches, which nobody waits
/// for. All else is on the stack, whose page kernels use too.
fn execute_alone(
    context: &ExecutionContext<'_>,
    steps: Range<usize>,
    memory: &mut TileMemory,
    clock: Option<Clock>,
) {
    let mut stretches = std::mem::take(&mut memory.stretches);
    if clock.is_some() {
        stretches.reserve(steps.len());
    }
    for (step, turn) in (steps.start as u32..).zip(&context.ready.turns()[steps]) {
        if let Some(stretch) = execute_lanes(context, step, turn, 0..turn.rows as usize, memory, clock) {
            stretches.push(stretch);
        }
    }
    memory.stretches = stretches;
}

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
        execute_alone(context, wave, alone(&mut threads[0]), clock);
        return;
    }
    let threads = &*threads;
    let parts = (whole / (shared_work / SHARE_PART).max(1)).clamp(2, SHARES * threads.len());
    (0..parts).into_par_iter().with_max_len(1).for_each(|number| {
        let mut memory = own(threads);
        let share = share(whole, number, parts)..share(whole, number + 1, parts);
        let mut begin = 0;
        for step in wave.clone() {
            let work = work(context, step);
            let turn = &context.ready.turns()[step];
            let lane = |at: usize| lane_at(turn.rows as usize, work, at.saturating_sub(begin));
            let lanes = lane(share.start)..lane(share.end);
            let stretch = execute_lanes(context, step as u32, turn, lanes, &mut memory, clock);
            memory.stretches.extend(stretch);
            begin += work;
        }
    });
}

/// The memory of a thread, while no other thread executes.
fn alone(memory: &mut Mutex<TileMemory>) -> &mut TileMemory {
    memory.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of this thread, which nobody else locks: a share calls nothing that could begin another on its thread.
fn own(threads: &[Mutex<TileMemory>]) -> MutexGuard<'_, TileMemory> {
    let number = rayon::current_thread_index().unwrap_or(0) % threads.len();
    threads[number].lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(context: &ExecutionContext<'_>, step: usize) -> usize {
    (context.ready.turns()[step].rows as usize).saturating_mul(context.ready.program(step).row_work)
}

/// Where the share of a thread begins.
fn share(whole: usize, number: usize, parts: usize) -> usize {
    (whole as u128 * number as u128 / parts as u128) as usize
}

/// The lane of a step at which some of its work is done: whole register tiles, where lanes are many.
fn lane_at(rows: usize, work: usize, done: usize) -> usize {
    if done >= work {
        return rows;
    }
    let lane = (rows as u128 * done as u128 / work as u128) as usize;
    let grain = if rows >= 4 * TILE_STEP { TILE_STEP } else { 1 };
    lane.next_multiple_of(grain).min(rows)
}

/// Executes lanes of a step, if there are any, and says when if that is counted.
#[inline(always)]
fn execute_lanes(
    context: &ExecutionContext<'_>,
    step: u32,
    turn: &Turn,
    lanes: Range<usize>,
    memory: &mut TileMemory,
    clock: Option<Clock>,
) -> Option<Stretch> {
    if lanes.is_empty() {
        return None;
    }
    let start = clock.map(|clock| clock.now());
    // SAFETY: the plan was verified, its bindings and stores were checked, its memory was made. Threads
    // execute lanes of their own of the steps of one wave, which are independent, and all of them end
    // before the next wave begins.
    unsafe { context.step(turn).execute(lanes, memory) };
    let end = clock.map(|clock| clock.now());
    start.zip(end).map(|(start, end)| Stretch { step, start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_wave_cover_every_lane_once() {
        for (steps, parts) in [
            (vec![(1, 7)], 2),
            (vec![(100, 3), (5, 1000), (57, 1)], 3),
            (vec![(56, 9), (56, 9)], 2),
            (vec![(14, 1), (1, 1 << 40), (900, 2)], 5),
        ] {
            let whole = steps.iter().map(|(rows, row_work)| rows * row_work).sum();
            let mut begin = 0;
            for &(rows, row_work) in &steps {
                let cuts: Vec<usize> = (0..=parts)
                    .map(|part| {
                        lane_at(rows, rows * row_work, share(whole, part, parts).saturating_sub(begin))
                    })
                    .collect();
                assert_eq!((cuts[0], cuts[parts]), (0, rows), "{steps:?}");
                assert!(cuts.is_sorted(), "{steps:?} {cuts:?}");
                begin += rows * row_work;
            }
        }
    }
}
