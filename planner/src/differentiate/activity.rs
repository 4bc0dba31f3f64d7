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
use crate::order::for_each_read;
use autobatch_ir::graph::{Callee, GraphData, Op, ParamArg};
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

/// Whether an application is part of the plan.
pub(super) fn is_planned(graph: &GraphData, clusters: &Clusters, app: AppId) -> bool {
    clusters.node_of[app.index()] != NONE || is_source(graph.signature(app).callee)
}

/// Walks from parameters to results.
pub(super) fn needs(
    graph: &GraphData,
    clusters: &Clusters,
    params: &[bool],
    request: &Gradients<'_>,
) -> Needs {
    let mut values = vec![false; graph.arena.values()];
    let mut sigs: Vec<Option<Wanted>> = vec![None; graph.sigs.items().len()];
    for value in request.values {
        values[value.index()] = true;
    }
    let mut apps = Vec::with_capacity(graph.arena.len());
    for app in graph.arena.ids() {
        let signature = graph.signature(app);
        let sig = graph.arena.app(app).sig;
        let wants = |arg: &ParamArg| matches!(arg, ParamArg::Module(param) if params[param.index()]);
        let mut any = signature.params.iter().any(wants);
        for_each_read(graph, app, |value| any |= values[value.index()]);
        apps.push(any);
        if is_planned(graph, clusters, app) && !signature.is_list() {
            let wanted = sigs[sig.index()].get_or_insert_with(|| Wanted {
                operands: vec![false; signature.operands.len()],
                params: signature.params.iter().map(wants).collect(),
            });
            mark_operands(graph, app, &values, &mut wanted.operands);
        }
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
        if any && !blocked {
            for (slot, &ty) in graph.arena.results(app).zip(&signature.results) {
                values[slot] |= graph.ty(ty).dtype == DType::F32;
            }
        }
    }
    Needs { values, apps, sigs }
}

fn mark_operands(graph: &GraphData, app: AppId, values: &[bool], operands: &mut [bool]) {
    for (place, operand) in graph.arena.operands(app).iter().enumerate() {
        let Some(value) = operand.as_value() else { continue };
        operands[place] |= if graph.arena.is_list(value, &graph.sigs) {
            let items = graph.arena.operands(graph.arena.producer(value));
            items.iter().filter_map(|item| item.as_value()).any(|item| values[item.index()])
        } else {
            values[value.index()]
        };
    }
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
    let mut known: Vec<Option<Vec<u32>>> = vec![None; graph.sigs.items().len()];
    let mut values = vec![false; graph.arena.values()];
    for &(value, _) in request.losses {
        values[value.index()] = needs.values[value.index()];
    }
    for app in graph.arena.ids().rev() {
        let reached = graph.arena.results(app).any(|slot| values[slot]);
        if graph.signature(app).is_list() || !needs.apps[app.index()] || !reached {
            continue;
        }
        live[app.index()] = true;
        let sig = graph.arena.app(app).sig;
        let places = match &mut known[sig.index()] {
            Some(places) => places,
            unknown => unknown.insert(gradients(sig, app)?),
        };
        for &place in &*places {
            let Some(value) = graph.arena.operands(app)[place as usize].as_value() else { continue };
            if graph.arena.is_list(value, &graph.sigs) {
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
