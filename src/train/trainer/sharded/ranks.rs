//! Ranks: their agreement, their reports, and the division of the optimiser's states.

use super::Sharding;
use crate::error::Result;
use crate::mirror::Trained;
use crate::train::error::TrainError;
use crate::train::part::Owned;
use crate::train::trainer::Trainer;
use crate::train::update::Updater;
use autobatch_distributed::{Alone, Group, Statement, agree};
use autobatch_ir::hash::{StructureHash, hash_bytes};
use autobatch_ir::{States, Weights};
use std::sync::Arc;

impl Trainer {
    /// The number of shards of a trainer that joins a group without [`shards`](Self::shards).
    pub const SHARDS: usize = 8;

    /// Trains together with the other ranks of a group. Each rank runs the same program: it makes an equal trainer and passes
    /// the same minibatches to the same steps. The trainer cuts every minibatch into [shards](Self::shards), 8 by default,
    /// and each rank executes some of them. All ranks get equal reports and weights, with the bits of a trainer that
    /// executes all shards alone.
    ///
    /// [`save`](Self::save) and [`load`](Self::load) are called on all ranks too; rank 0 writes. A run may resume on another
    /// number of ranks.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// use autobatch::distributed::Threads;
    ///
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// # let module = m.build()?;
    /// let train = |mut trainer: Trainer| -> autobatch::Result<Vec<f32>> {
    ///     for _ in 0..10 {
    ///         trainer.step([0.5, -1.0, 2.0], |g, x| line.on(g.input(&[x])).mse(g.input(&[1.0])))?;
    ///     }
    ///     Ok(trainer.weights().by_name("line.w")?.to_vec())
    /// };
    /// let trainer = || Trainer::new(&module, Adam::new(0.05));
    /// let alone = train(trainer()?.shards(8))?;
    /// std::thread::scope(|scope| {
    ///     for rank in Threads::group(2) {
    ///         scope.spawn(|| assert_eq!(trainer().and_then(|t| train(t.group(rank)?)).expect("both work"), alone));
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The ranks have other modules, weights, optimisers, seeds, numbers of shards or versions of this library. All ranks
    /// then get the same error. Or a rank ended.
    pub fn group(mut self, group: impl Group + 'static) -> Result<Self> {
        let shards = self.sharding.as_ref().map_or(Self::SHARDS, |sharding| sharding.shards);
        let statements = self.statements(shards);
        let sharding = Sharding::new(shards, Box::new(group));
        sharding.with_group(|group| agree(group, &statements))?;
        self.sharding = Some(sharding);
        Ok(self)
    }

    /// The facts that must be equal on all ranks.
    fn statements(&self, shards: usize) -> Vec<Statement> {
        let module = hash_bytes(&self.module().to_bytes());
        let mut weights = StructureHash::default();
        for param in self.weights().iter() {
            param.values().iter().for_each(|x| weights.push(x.to_bits().into()));
        }
        vec![
            Statement::new("the version of autobatch", env!("CARGO_PKG_VERSION")),
            Statement::new("the module", format!("{} with hash {module:016x}", self.module().name)),
            Statement::new("the weights", format!("the hash {:032x}", weights.value())),
            Statement::new("the optimiser", format!("{:?}", self.updater.optimizer())),
            Statement::new("the frozen parameters", self.frozen().join(" ")),
            Statement::new("the seed", self.seed),
            Statement::new("the number of steps", self.steps()),
            Statement::new("the number of shards", shards),
        ]
    }

    /// Compares a fact of the program between all ranks, for example a hash of the corpus.
    ///
    /// # Errors
    /// A rank has another fact than rank 0. All ranks get the same error.
    pub fn agree(&mut self, subject: &str, fact: impl ToString) -> Result<()> {
        let statement = Statement::new(subject, fact);
        match &self.sharding {
            Some(sharding) => Ok(sharding.with_group(|group| agree(group, &[statement]))?),
            None => Ok(()),
        }
    }

    /// Sets the signal of this rank, for example that its program was asked to stop. Steps carry it without a message of their
    /// own: [`Step::signal`](crate::train::Step::signal) is the largest signal of all ranks, and equal on all of them, so
    /// they can end together after one step. 0 until it is set.
    pub fn set_signal(&mut self, signal: u8) {
        self.signal = signal;
    }

    /// Returns the number of this rank, from 0. A trainer without a group has rank 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.sharding.as_ref().map_or(0, |sharding| sharding.rank_of_ranks().0)
    }

    /// Returns the number of ranks of the [group](Self::group), 1 without one.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.sharding.as_ref().map_or(1, |sharding| sharding.rank_of_ranks().1)
    }

    /// Divides the optimiser's states among the ranks: each rank keeps the states of an equal share of all elements, updates
    /// these elements, and sends them to the other ranks. The bits stay the same. Call it on all ranks before the first step,
    /// and before [`load`](Self::load).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn divide_states(mut self) -> Result<Self> {
        let sharding = self.sharding.get_or_insert_with(|| Sharding::new(Self::SHARDS, Box::new(Alone)));
        sharding.divided = true;
        let weights = Arc::clone(self.weights());
        let states = self.renew_updater(self.updater.optimizer().clone(), &weights)?;
        self.session.replace(Trained { weights, states });
        Ok(self)
    }

    /// Makes the updater of the trained parameters anew. Returns fresh states.
    #[track_caller]
    pub(in crate::train::trainer) fn renew_updater(
        &mut self,
        optimizer: autobatch_nn::optim::Optimizer,
        weights: &Weights,
    ) -> Result<States> {
        let module = Arc::clone(self.module());
        let trained = super::super::frozen::trained(&self.frozen);
        let owned = self.sharding.as_ref().filter(|sharding| sharding.divided).map(|sharding| {
            let (rank, ranks) = sharding.rank_of_ranks();
            Owned::new(&module, &trained, rank, ranks)
        });
        let (updater, states) = Updater::new(optimizer, &module, &trained, owned, weights)?;
        self.updater = updater;
        Ok(states)
    }

    /// Collects the states that are divided among ranks, one after the other in the order of their names, on rank 0; the other
    /// ranks get no values. All ranks take all of them. There are none if the states are not divided.
    pub(in crate::train) fn collected_states<'a>(
        &'a self,
        own: &'a States,
    ) -> impl Iterator<Item = Result<Vec<f32>>> + 'a {
        let states = self.sharding.as_ref().zip(Some(self.updater.divided_states()));
        states.into_iter().flat_map(move |(sharding, states)| {
            let collect =
                |state| sharding.with_group(|group| self.updater.gather(group, state, own, Some(0)));
            states.iter().map(collect)
        })
    }

    /// Returns the parameters with their moving averages as values, if the optimiser keeps averages. They are often better to
    /// ship and to evaluate, with a session of their own. If the states are [divided](Self::divide_states), all ranks call it.
    ///
    /// # Errors
    /// A rank ended.
    pub fn averages(&self) -> Result<Option<Weights>> {
        let Trained { weights, states } = self.session.trained().unwrap_or(self.session.host_copy());
        let (Some(sharding), [_, ..]) = (&self.sharding, self.updater.divided_states()) else {
            return Ok(states.averages(weights));
        };
        let mut averaged = None;
        for state in self.updater.divided_states().iter().filter(|state| state.is_average) {
            let values = sharding.with_group(|group| self.updater.gather(group, state, states, None))?;
            let averaged = averaged.get_or_insert_with(|| Weights::clone(weights));
            averaged.get_mut(state.param).copy_from_slice(&values);
        }
        Ok(averaged)
    }

    /// The texts of all ranks; this rank's alone without a group.
    pub(in crate::train) fn texts_of_ranks(&self, own: &str) -> Result<Vec<String>> {
        let Some(sharding) = &self.sharding else { return Ok(vec![own.to_owned()]) };
        let all = sharding.with_group(|group| group.all_gather(own.as_bytes()))?;
        Ok(all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
    }

    /// Ends an operation that rank 0 made for all ranks. All ranks return its error.
    pub(in crate::train) fn of_rank_0(&self, error: Option<String>) -> Result<()> {
        let Some(sharding) = &self.sharding else { return Ok(()) };
        let own = error.unwrap_or_default();
        let message = sharding.with_group(|group| group.broadcast(0, own.as_bytes()))?;
        match message.is_empty() {
            true => Ok(()),
            false => {
                let message = String::from_utf8_lossy(&message).into_owned();
                Err(TrainError::OtherRank { rank: 0, message }.into())
            }
        }
    }
}
