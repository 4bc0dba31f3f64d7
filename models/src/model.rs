//! [`Model`] emits one instance. [`Workload`] is a model with its instances, independent of their type.

use crate::scores::Scores;
use autobatch::prelude::{Graph, Row, Value};

/// A model for one type of instance. It holds handles of parameters and cells, but no parameter values.
pub trait Model: Send + Sync {
    /// The type of one instance.
    type Instance: Send + Sync;

    /// Emits one instance and adds its outputs to `outputs`. Their order and number depend on the
    /// instance alone.
    fn emit<'g>(&self, g: &'g Graph, instance: &Self::Instance, outputs: &mut Vec<Value<'g>>);

    /// Emits one instance with its loss, a scalar.
    fn loss<'g>(&self, g: &'g Graph, instance: &Self::Instance) -> Value<'g>;

    /// Adds the quality of an instance's outputs to the scores. The outputs are in the order of [`emit`](Self::emit).
    fn score(&self, instance: &Self::Instance, outputs: &[&Row], scores: &mut Scores);
}

/// A model with instances, numbered from 0. For a number without an instance it emits nothing, and the loss
/// is 0.
pub trait Workload: Send + Sync {
    /// The number of instances.
    fn instances(&self) -> usize;

    /// Emits the outputs of an instance; see [`Model::emit`].
    fn emit<'g>(&self, g: &'g Graph, instance: usize, outputs: &mut Vec<Value<'g>>);

    /// Emits the loss of an instance; see [`Model::loss`].
    fn loss<'g>(&self, g: &'g Graph, instance: usize) -> Value<'g>;

    /// Scores the outputs of an instance; see [`Model::score`].
    fn score(&self, instance: usize, outputs: &[&Row], scores: &mut Scores);
}

/// The one implementation of [`Workload`].
pub(crate) struct Instances<M: Model> {
    pub(crate) model: M,
    pub(crate) instances: Vec<M::Instance>,
}

impl<M: Model> Workload for Instances<M> {
    fn instances(&self) -> usize {
        self.instances.len()
    }

    fn emit<'g>(&self, g: &'g Graph, instance: usize, outputs: &mut Vec<Value<'g>>) {
        if let Some(instance) = self.instances.get(instance) {
            self.model.emit(g, instance, outputs);
        }
    }

    fn loss<'g>(&self, g: &'g Graph, instance: usize) -> Value<'g> {
        match self.instances.get(instance) {
            Some(instance) => self.model.loss(g, instance),
            None => g.constant(0.0),
        }
    }

    fn score(&self, instance: usize, outputs: &[&Row], scores: &mut Scores) {
        if let Some(instance) = self.instances.get(instance) {
            self.model.score(instance, outputs, scores);
        }
    }
}

/// The first instances of a workload.
pub(crate) struct First {
    pub(crate) count: usize,
    pub(crate) workload: Box<dyn Workload>,
}

impl Workload for First {
    fn instances(&self) -> usize {
        self.count.min(self.workload.instances())
    }

    fn emit<'g>(&self, g: &'g Graph, instance: usize, outputs: &mut Vec<Value<'g>>) {
        if instance < self.instances() {
            self.workload.emit(g, instance, outputs);
        }
    }

    fn loss<'g>(&self, g: &'g Graph, instance: usize) -> Value<'g> {
        match instance < self.instances() {
            true => self.workload.loss(g, instance),
            false => g.constant(0.0),
        }
    }

    fn score(&self, instance: usize, outputs: &[&Row], scores: &mut Scores) {
        if instance < self.instances() {
            self.workload.score(instance, outputs, scores);
        }
    }
}
