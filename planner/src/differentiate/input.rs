//! The inputs of differentiation.

use crate::error::PlanError;
use crate::lower::Places;
use crate::request::Gradients;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::types::{DType, Type};

/// A lowered graph, and the gradients that its request asks for.
pub(super) struct Input<'a> {
    pub(super) graph: &'a GraphData,
    pub(super) places: &'a Places<'a>,
    pub(super) gradients: Gradients<'a>,
    /// Values whose gradients arrive at a pause.
    pub(super) arriving: &'a [ValueId],
    /// The first node of each shard behind the first one.
    pub(super) shards: &'a [NodeId],
    /// Whether dropout draws noise.
    pub(super) training: bool,
}

impl<'a> Input<'a> {
    /// The inputs; none without gradients.
    pub(super) fn new(places: &'a Places<'a>) -> Option<Self> {
        let request = places.context.request;
        Some(Self {
            graph: places.context.graph,
            places,
            gradients: request.gradients?,
            arriving: request.arriving,
            shards: request.shards,
            training: request.training,
        })
    }

    /// The values from which gradients flow: losses, and values whose gradients arrive.
    pub(super) fn origins(&self) -> impl Iterator<Item = ValueId> {
        self.gradients.losses.iter().map(|loss| loss.0).chain(self.arriving.iter().copied())
    }

    /// Finds per parameter whether it gets a gradient.
    pub(super) fn find_params(&self, wanted: &mut Vec<bool>) -> Result<(), PlanError> {
        let Self { graph, gradients, .. } = self;
        let is_float = |value: ValueId| {
            let float = |ty: Type| ty.dtype == DType::F32 && !ty.is_list;
            value.index() < graph.arena.values() && float(graph.type_of(value))
        };
        if let Some(value) =
            self.origins().chain(gradients.values.iter().copied()).find(|&value| !is_float(value))
        {
            return Err(PlanError::NoFloat(value));
        }
        wanted.clear();
        wanted.resize(graph.module.params.len(), gradients.params.is_none());
        for param in gradients.params.unwrap_or(&[]) {
            match wanted.get_mut(param.index()) {
                Some(wanted) => *wanted = true,
                None => return Err(PlanError::NoParam(*param)),
            }
        }
        Ok(())
    }
}
