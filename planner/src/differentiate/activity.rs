//! Activity: which values get gradients.
//!
//! A value *needs* a gradient if it depends, through ops that have derivatives, on a parameter or a
//! value whose gradient is asked for. An application is *live* if something that it reads needs a
//! gradient, and a result of it leads to a loss. Both are decided for the whole graph, once. A kernel in reverse serves
//! all live lanes of its signature, so it makes the gradient of an operand if any lane needs it;
//! what lanes that do not need it contribute is listed nowhere.

use super::Gradients;
use super::kernel::Wanted;
use crate::cluster::{Clusters, NONE, is_source};
use autobatch_ir::graph::{Callee, GraphData, Op, ParamArg, Signature};
use autobatch_ir::id::{AppId, SigId};
use autobatch_ir::types::DType;

/// What wants gradients, forward from parameters.
pub(super) struct Needs {
    /// Per value.
    pub(super) values: Vec<bool>,
    /// Per application whether it hands gradients on: an operand or parameter needs one.
    apps: Vec<bool>,
    /// Per signature that some planned application has.
    pub(super) sigs: Vec<Option<Wanted>>,
}

/// What the walks ask of a signature.
struct SigFacts {
    /// Whether a parameter of it needs a gradient.
    params: bool,
    /// Whether its results hand no gradient on.
    blocked: bool,
    is_list: bool,
    is_source: bool,
    /// Per operand whether it is a list.
    lists: Vec<bool>,
    /// Per result whether it is a float.
    floats: Vec<bool>,
}

fn facts(graph: &GraphData, signature: &Signature, params: &[bool]) -> SigFacts {
    let blocked = matches!(
        signature.callee,
        Callee::Op(
            Op::StopGradient
                | Op::Compare(_)
                | Op::ArgMax
                | Op::OneHot { .. }
                | Op::ForkNoise { .. }
                | Op::Unary(autobatch_ir::graph::Unary::Sign)
        )
    );
    SigFacts {
        params: signature.params.iter().any(|arg| wants(*arg, params)),
        blocked,
        is_list: signature.is_list(),
        is_source: is_source(signature.callee),
        lists: signature.operands.iter().map(|&ty| graph.ty(ty).is_list).collect(),
        floats: signature.results.iter().map(|&ty| graph.ty(ty).dtype == DType::F32).collect(),
    }
}

fn wants(arg: ParamArg, params: &[bool]) -> bool {
    matches!(arg, ParamArg::Module(param) if params[param.index()])
}

/// Walks from parameters to results.
pub(super) fn needs(
    graph: &GraphData,
    clusters: &Clusters,
    params: &[bool],
    request: &Gradients<'_>,
) -> Needs {
    let mut values = vec![false; graph.arena.values()];
    let signatures = graph.sigs.items();
    let mut sigs: Vec<Option<Wanted>> = vec![None; signatures.len()];
    let facts: Vec<SigFacts> = signatures.iter().map(|own| facts(graph, own, params)).collect();
    for value in request.values {
        values[value.index()] = true;
    }
    let mut apps = Vec::with_capacity(graph.arena.len());
    for app in graph.arena.ids() {
        let sig = graph.arena.app(app).sig;
        let facts = &facts[sig.index()];
        let planned = (clusters.node_of[app.index()] != NONE || facts.is_source) && !facts.is_list;
        let mut wanted = planned.then(|| {
            sigs[sig.index()].get_or_insert_with(|| Wanted {
                operands: vec![false; facts.lists.len()],
                params: signatures[sig.index()].params.iter().map(|&arg| wants(arg, params)).collect(),
            })
        });
        let mut any = facts.params;
        for (place, operand) in graph.arena.operands(app).iter().enumerate() {
            let Some(value) = operand.as_value() else { continue };
            // The applications that make lists have one operand type, for any number of operands.
            let read = if !facts.is_list && facts.lists[place] {
                let items = graph.arena.operands(graph.arena.producer(value));
                items.iter().filter_map(|item| item.as_value()).any(|item| values[item.index()])
            } else {
                values[value.index()]
            };
            any |= read;
            if let Some(wanted) = &mut wanted {
                wanted.operands[place] |= read;
            }
        }
        apps.push(any);
        if any && !facts.blocked {
            for (slot, &float) in graph.arena.results(app).zip(&facts.floats) {
                values[slot] |= float;
            }
        }
    }
    Needs { values, apps, sigs }
}

/// Walks from losses to operands: which applications are live. `gradients` names the operands of a
/// signature that get something.
pub(super) fn live<E>(
    graph: &GraphData,
    needs: &Needs,
    request: &Gradients<'_>,
    mut gradients: impl FnMut(SigId, AppId) -> Result<Vec<u32>, E>,
) -> Result<Vec<bool>, E> {
    let mut live = vec![false; graph.arena.len()];
    // Per signature the operands that get something, and whether each is a list.
    let mut known: Vec<Option<Vec<(u32, bool)>>> = vec![None; graph.sigs.items().len()];
    let mut values = vec![false; graph.arena.values()];
    for &(value, _) in request.losses {
        values[value.index()] = needs.values[value.index()];
    }
    for app in graph.arena.ids().rev() {
        if !needs.apps[app.index()] || !graph.arena.results(app).any(|slot| values[slot]) {
            continue;
        }
        let sig = graph.arena.app(app).sig;
        let signature = graph.sigs.get(sig);
        if signature.is_list() {
            continue;
        }
        live[app.index()] = true;
        let places = match &mut known[sig.index()] {
            Some(places) => places,
            unknown => {
                let is_list = |place: u32| graph.ty(signature.operands[place as usize]).is_list;
                let places = gradients(sig, app)?;
                unknown.insert(places.into_iter().map(|place| (place, is_list(place))).collect())
            }
        };
        let operands = graph.arena.operands(app);
        for &(place, is_list) in &*places {
            let Some(value) = operands[place as usize].as_value() else { continue };
            if is_list {
                let items = graph.arena.operands(graph.arena.producer(value));
                for item in items.iter().filter_map(|item| item.as_value()) {
                    values[item.index()] |= needs.values[item.index()];
                }
            } else {
                values[value.index()] |= needs.values[value.index()];
            }
        }
    }
    Ok(live)
}
