//! Plays the waves of a plan, alone or shared among threads.
//!
//! Inside a wave nothing waits, so its steps laid end to end are one long row of lanes. Where that is
//! work enough, it is cut into shares of equal work: a wave of one large step is split, a wave of
//! several steps overlaps, and there is one fork and one join a wave. There are a few shares for each
//! thread, which takes the next when it has done one, so that a thread that started late or lost its
//! core keeps the others waiting for one share and not for half of the wave. Shares are cut at whole
//! register tiles of rows where a step has many. Who plays a lane changes no bit of it.

use super::RunError;
use super::clock::{Clock, Ticks};
use super::counters::{Counters, Span};
use super::program::TILE_STEP;
use super::tile::{PlayContext, TileMemory};
use super::watch;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Floating-point operations below which a wave is played by one thread: about 30 µs of one core. The example
/// `sharing` measures from which work on sharing wins.
pub(super) const SHARED_WORK: usize = 3_000_000;

/// Shares of a large wave for each thread.
const SHARES: usize = 4;
/// A share is at least one of so many parts of the work from which waves are shared, so that taking it costs little.
const SHARE_PART: usize = 2;

/// When a thread played a part of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    step: u32,
    start: Ticks,
    end: Ticks,
}

/// How waves are played.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// The first wave that is played.
    pub(super) first: usize,
    /// Floating-point operations from which a wave is shared, one at least.
    pub(super) shared_work: usize,
    /// Whether what steps write is looked at.
    pub(super) watched: bool,
}

/// Plays all waves, counting and watching where that is asked for.
pub(super) fn play(
    context: &PlayContext<'_>,
    threads: &mut [Mutex<TileMemory>],
    how: How,
    counters: Option<&mut Counters>,
) -> Result<(), RunError> {
    let clock = counters.is_some().then(Clock::start);
    // A play that was stopped may have left some.
    threads.iter_mut().for_each(|memory| alone(memory).stretches.clear());
    for wave in context.plan.waves().skip(how.first) {
        if how.watched {
            // One step after the other, so that the first fault is found first.
            for step in wave {
                play_wave(context, step..step + 1, how.shared_work, threads, clock);
                watch::check(context, step)?;
            }
        } else {
            play_wave(context, wave, how.shared_work, threads, clock);
        }
    }
    if let (Some(counters), Some(clock)) = (counters, clock) {
        let (playing, time) = clock.stop();
        counters.playing = playing;
        let span = |thread: usize, Stretch { step, start, end }| {
            let (start, end) = (time(start), time(end));
            Span { step, thread: thread as u32, start, time: end.saturating_sub(start) }
        };
        let spans = threads.iter_mut().enumerate().flat_map(|(thread, memory)| {
            alone(memory).stretches.drain(..).map(move |stretch| span(thread, stretch))
        });
        counters.fill(context.plan, spans);
    }
    Ok(())
}

fn play_wave(
    context: &PlayContext<'_>,
    wave: Range<usize>,
    shared_work: usize,
    threads: &mut [Mutex<TileMemory>],
    clock: Option<Clock>,
) {
    let whole = || wave.clone().map(|step| work(context, step)).sum::<usize>();
    let whole = if threads.len() == 1 { 0 } else { whole() };
    if whole < shared_work {
        let memory = alone(&mut threads[0]);
        for step in wave {
            let rows = context.plan.steps[step].rows as usize;
            play_lanes(context, step, 0..rows, memory, clock);
        }
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
            let rows = context.plan.steps[step].rows as usize;
            let lane = |at: usize| lane_at(rows, work, at.saturating_sub(begin));
            play_lanes(context, step, lane(share.start)..lane(share.end), &mut memory, clock);
            begin += work;
        }
    });
}

/// The memory of a thread, while no other thread plays.
fn alone(memory: &mut Mutex<TileMemory>) -> &mut TileMemory {
    memory.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of this thread, which nobody else locks: a share calls nothing that could begin another on its thread.
fn own(threads: &[Mutex<TileMemory>]) -> MutexGuard<'_, TileMemory> {
    let number = rayon::current_thread_index().unwrap_or(0) % threads.len();
    threads[number].lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(context: &PlayContext<'_>, step: usize) -> usize {
    (context.plan.steps[step].rows as usize).saturating_mul(context.ready.program(step).row_work)
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

fn play_lanes(
    context: &PlayContext<'_>,
    step: usize,
    lanes: Range<usize>,
    memory: &mut TileMemory,
    clock: Option<Clock>,
) {
    if lanes.is_empty() {
        return;
    }
    let start = clock.map(|clock| clock.now());
    // SAFETY: the plan was verified, its bindings and stores were checked, its memory was made. Threads
    // play lanes of their own of the steps of one wave, which are independent, and all of them end
    // before the next wave begins.
    unsafe { context.step(step).play(lanes, memory) };
    if let (Some(clock), Some(start)) = (clock, start) {
        memory.stretches.push(Stretch { step: step as u32, start, end: clock.now() });
    }
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
