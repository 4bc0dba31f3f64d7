//! The sums of gradients in pieces, so that a caller can use some gradients before the others are computed.
//!
//! The reductions of a piece are executed together. Pieces of different stores are independent; those of one store keep their order.

use super::gradients::Gradients;
use super::interrupt::Interruptible;
use super::labels::label_rows;
use super::reductions::{MAX_GROUP_ELEMENTS, ReductionInputs, group_size};
use super::shards::{self, Unit};
use super::{Executor, RunError};
use crate::crew::Crew;
use autobatch_ir::ParamId;
use autobatch_ir::plan::{Inputs, Mode, Plan, StoreId, Stores, Verified};
use std::ops::Range;
use std::time::Instant;

/// Reductions that are executed together.
pub(super) enum Piece {
    /// Neighbouring reductions of a plan without shards.
    Group(Range<usize>),
    /// Reductions over all shards.
    Unit(Unit),
    /// The sparse rows of a table, over all shards.
    Rows(StoreId),
}

impl Piece {
    /// Whether the piece adds to one of these stores.
    fn adds_to(&self, plan: &Plan, stores: &[bool]) -> bool {
        self.stores(plan).any(|store| stores[store.index()])
    }

    fn stores<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = StoreId> + 'a {
        let (group, unit, rows) = match self {
            Self::Group(numbers) => (numbers.clone(), &[][..], None),
            Self::Unit(unit) => (0..0, unit.numbers(), None),
            Self::Rows(store) => (0..0, &[][..], Some(*store)),
        };
        group.chain(unit.iter().copied()).map(|number| plan.reductions[number].store).chain(rows)
    }
}

/// The pieces that were not reduced yet.
#[derive(Default)]
pub(super) struct Waiting {
    pieces: Vec<Piece>,
    /// The identity of their plan.
    plan: Option<u64>,
}

impl Waiting {
    fn of(plan: &Verified<Plan>, listed: &[bool]) -> Self {
        let pieces = match plan.shard_count() > 1 {
            true => shards::pieces(plan, listed),
            false => groups(plan),
        };
        Self { pieces, plan: Some(plan.identity()) }
    }

    /// Takes what completes some stores: the pieces that add to them, and all pieces before one of these that add to the same
    /// stores as it.
    fn take(&mut self, plan: &Plan, stores: &mut [bool]) -> Vec<Piece> {
        let mut left = Vec::new();
        let mut taken = Vec::new();
        for piece in self.pieces.drain(..).rev() {
            if piece.adds_to(plan, stores) {
                piece.stores(plan).for_each(|store| stores[store.index()] = true);
                taken.push(piece);
            } else {
                left.push(piece);
            }
        }
        left.reverse();
        taken.reverse();
        self.pieces = left;
        taken
    }
}

/// The pieces of a plan without shards.
fn groups(plan: &Plan) -> Vec<Piece> {
    let (mut pieces, mut begin) = (Vec::new(), 0);
    while begin < plan.reductions.len() {
        let end = begin + group_size(plan, &plan.reductions[begin..], MAX_GROUP_ELEMENTS);
        pieces.push(Piece::Group(begin..end));
        begin = end;
    }
    pieces
}

impl Gradients {
    fn execute(
        &mut self,
        pieces: &[Piece],
        inputs: ReductionInputs<'_>,
        crew: &mut Crew<'_>,
        interruptible: Interruptible<'_>,
    ) -> Result<(), RunError> {
        pieces.iter().try_for_each(|piece| {
            interruptible.ask()?;
            match piece {
                Piece::Group(numbers) => self.group(numbers.clone(), inputs, crew),
                Piece::Unit(unit) => self.unit(unit, inputs, crew),
                Piece::Rows(store) => self.table_rows(inputs, *store, crew),
            }
        })
    }
}

impl Executor {
    /// Executes the steps of a plan as [`execute`](Self::execute), and leaves the sums of gradients to
    /// [`complete`](Self::complete), so that a caller can use some of them before others are computed. All outputs can be read
    /// at once; a gradient must be completed before.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_steps(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), RunError> {
        inputs.check(plan, stores)?;
        self.check_limits(plan, true)?;
        let before = self.execute_waves(plan, stores, inputs, 0..plan.waves.len())?;
        self.begin_sums(plan, inputs.words)?;
        self.executed = super::ExecutedPrefix::of(plan, before);
        Ok(())
    }

    /// Completes the gradients of some parameters, or all that are left for `None`, of the plan whose
    /// [steps](Self::execute_steps) were executed last. Stores and words must be the same ones. The bits do not depend on the order
    /// of the calls.
    ///
    /// # Errors
    /// If another plan was executed since, an allocation fails, or the run was interrupted.
    pub fn complete(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        words: &[u32],
        params: Option<&[ParamId]>,
    ) -> Result<(), RunError> {
        if self.waiting.plan != Some(plan.identity()) {
            return Err(RunError::NotComplete);
        }
        let pieces = match params {
            None => std::mem::take(&mut self.waiting.pieces),
            Some(params) => {
                let mut needed = vec![false; plan.stores.len()];
                let gradients = params.iter().filter_map(|&param| plan.gradient_of(param));
                gradients.for_each(|store| needed[store.index()] = true);
                self.waiting.take(plan, &mut needed)
            }
        };
        if pieces.is_empty() {
            return Ok(());
        }
        let (threads, accumulate) = (self.threads.len(), self.accumulate_gradients);
        let labels = label_rows(plan, stores)?;
        let inputs = ReductionInputs { isa: self.isa, plan, labels: &labels, memory: &self.memory, words };
        // A sum that was begun on existing gradients would make them useless.
        let interruptible = Interruptible::new(self.interrupt.as_ref().filter(|_| !accumulate));
        let gradients = &mut self.gradients;
        let begin = self.counters.is_some().then(Instant::now);
        Crew::with(self.pool.as_deref(), threads, |crew| {
            gradients.execute(&pieces, inputs, crew, interruptible)
        })?;
        if let (Some(counters), Some(begin)) = (&mut self.counters, begin) {
            counters.reductions += begin.elapsed();
        }
        Ok(())
    }

    /// Prepares the memory of all gradients of a plan whose steps were executed.
    fn begin_sums(&mut self, plan: &Verified<Plan>, words: &[u32]) -> Result<(), RunError> {
        self.waiting = Waiting::default();
        if self.accumulate_gradients && plan.mode != Mode::Train {
            self.waiting.plan = Some(plan.identity());
            return Ok(());
        }
        let (threads, accumulate) = (self.threads.len(), self.accumulate_gradients);
        self.gradients.fit(plan, threads, accumulate)?;
        let inputs = ReductionInputs { isa: self.isa, plan, labels: &[], memory: &self.memory, words };
        self.gradients.mark_rows(inputs, accumulate);
        self.waiting = Waiting::of(plan, self.gradients.listed());
        Ok(())
    }

    /// Makes all gradients of a plan whose steps were executed.
    pub(super) fn reduce(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        words: &[u32],
    ) -> Result<(), RunError> {
        self.begin_sums(plan, words)?;
        self.complete(plan, stores, words, None)
    }
}
