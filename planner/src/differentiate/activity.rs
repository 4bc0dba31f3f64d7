//! Activity: which values get gradients.
//!
//! A value *needs* a gradient if it depends, through ops with derivatives, on a trained parameter or on a value whose gradient
//! is requested; a list needs one if an item of it does. A node is *live* if one of its operands needs a gradient and one of
//! its results leads to a loss. Both are decided once for the whole graph. A kernel in reverse serves all live lanes of its
//! signature, so it makes the gradient of an operand if any lane needs it. No reader lists the contributions of lanes that do
//! not need it.

use super::input::Input;
use super::signatures::{SigFacts, Signatures};
use crate::cluster::Clusters;
use autobatch_ir::graph::Operand;
use autobatch_ir::id::{NodeId, SigId};

/// The results of both walks. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Activity {
    /// Per value whether it needs a gradient.
    pub(super) needs: Vec<bool>,
    /// Per node whether it is live.
    pub(super) live: Vec<bool>,
    /// Per node whether an operand or parameter of it needs a gradient.
    passes_on: Vec<bool>,
    /// Per value whether it needs a gradient and leads to a loss.
    reached: Vec<bool>,
}

fn refill(list: &mut Vec<bool>, length: usize) {
    list.clear();
    list.resize(length, false);
}

impl Activity {
    /// Walks from parameters to results: which values need a gradient, and which gradients each signature must make.
    pub(super) fn find_needs(&mut self, input: &Input<'_>, clusters: &Clusters, sigs: &mut Signatures) {
        let Self { needs, passes_on, .. } = self;
        let graph = input.graph;
        refill(needs, graph.arena.values());
        passes_on.clear();
        for value in input.gradients.values {
            needs[value.index()] = true;
        }
        let mut nodes = clusters.jobs.iter().peekable();
        for node in graph.arena.ids() {
            let facts = &mut sigs[graph.arena.node(node).sig];
            let is_node = nodes.next_if_eq(&&node).is_some();
            let planned = (is_node || facts.is_source) && !facts.is_list;
            facts.planned |= planned;
            let mut any = facts.params;
            for (place, operand) in graph.arena.operands(node).iter().enumerate() {
                let Some(value) = operand.as_value() else { continue };
                let read = needs[value.index()];
                any |= read;
                if planned {
                    facts.wanted.operands[place] |= read;
                }
            }
            passes_on.push(any);
            if any && !facts.blocked {
                for (slot, &float) in graph.arena.results(node).zip(&facts.floats) {
                    needs[slot] |= float;
                }
            }
        }
    }

    /// Walks from losses to operands: which nodes are live. `request_derivative` is called with the first live node of each
    /// signature.
    pub(super) fn find_live<E>(
        &mut self,
        input: &Input<'_>,
        sigs: &mut Signatures,
        mut request_derivative: impl FnMut(SigId, NodeId, &mut SigFacts) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { needs, live, passes_on, reached } = self;
        let graph = input.graph;
        refill(live, graph.arena.len());
        refill(reached, graph.arena.values());
        for value in input.origins() {
            reached[value.index()] = needs[value.index()];
        }
        for node in graph.arena.ids().rev() {
            if !passes_on[node.index()] || !graph.arena.results(node).any(|slot| reached[slot]) {
                continue;
            }
            let sig = graph.arena.node(node).sig;
            let facts = &mut sigs[sig];
            let operands = graph.arena.operands(node);
            let mut reach = |operand: &Operand| {
                if let Some(value) = operand.as_value() {
                    reached[value.index()] |= needs[value.index()];
                }
            };
            if facts.is_list {
                operands.iter().for_each(reach);
                continue;
            }
            live[node.index()] = true;
            if facts.is_unrequested() {
                request_derivative(sig, node, facts)?;
            }
            facts.groups.iter().for_each(|group| reach(&operands[group.operand as usize]));
        }
        Ok(())
    }
}
