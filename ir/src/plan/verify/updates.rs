//! Rules P31 to P35: what an optimiser does.

use super::{Rule, VerifyErrors, brief};
use crate::module::ParamKind;
use crate::plan::{
    Kernel, KernelId, RegId, Stage, Store, StoreId, StoreKind, Update, UpdatePlan, UpdateSource,
};
use crate::types::{DType, Type};

pub(super) fn verify(plan: &UpdatePlan, findings: &mut VerifyErrors) {
    if plan.updates.is_empty() {
        findings.report(Rule::Updates, &"the plan", "it must have an update");
    }
    let mut walk = Walk { plan, scalars: 0, number: 0, findings };
    for (number, update) in plan.updates.iter().enumerate() {
        if walk.findings.is_full() {
            return;
        }
        walk.number = number;
        walk.update(update);
    }
}

struct Walk<'a> {
    plan: &'a UpdatePlan,
    /// How many scalars the updates before made.
    scalars: u64,
    number: usize,
    findings: &'a mut VerifyErrors,
}

impl Walk<'_> {
    #[cold]
    fn report(&mut self, rule: Rule, message: impl Into<String>) {
        let number = self.number;
        self.findings.report(rule, &format_args!("update {number}"), message);
    }

    fn update(&mut self, update: &Update) {
        let mut known = true;
        for source in update.sources() {
            known &= self.source(source);
        }
        for &target in update.targets() {
            known &= self.store(target);
        }
        let results = match update.kernel() {
            Some(kernel) => self.kernel(kernel, update),
            None => Some(1),
        };
        let (true, Some(results)) = (known, results) else { return };
        match update {
            Update::Sumsq { stores } => {
                if stores.is_empty() {
                    self.report(Rule::UpdateStores, "it sums the squares of no store");
                }
                self.scalars += results;
            }
            Update::Scalars { sources, .. } => {
                if sources.iter().any(|source| matches!(source, UpdateSource::Store(_))) {
                    self.report(Rule::UpdateStores, "scalars are made of scalars and bound floats only");
                }
                self.scalars += results;
            }
            Update::Apply { sparse, sources, targets, .. } => self.apply(*sparse, sources, targets),
        }
    }

    fn store(&mut self, store: StoreId) -> bool {
        let count = self.plan.stores.len();
        if store.index() >= count {
            self.report(Rule::Ids, format!("there is no {store}, only {count} of them"));
        }
        store.index() < count
    }

    /// P34, and whether stores exist.
    fn source(&mut self, source: UpdateSource) -> bool {
        let (scalars, floats) = (self.scalars, self.plan.floats);
        match source {
            UpdateSource::Store(store) => return self.store(store),
            UpdateSource::Scalar(scalar) if u64::from(scalar) >= scalars => {
                let message = format!("it reads the scalar c{scalar}, updates before it make {scalars}");
                self.report(Rule::UpdateScalars, message);
            }
            UpdateSource::Float(float) if float >= floats => {
                self.report(
                    Rule::UpdateScalars,
                    format!("it reads float {float} of {floats} that are bound"),
                );
            }
            UpdateSource::Scalar(_) | UpdateSource::Float(_) => {}
        }
        true
    }

    /// P32; how many results there are.
    fn kernel(&mut self, id: KernelId, update: &Update) -> Option<u64> {
        let plan = self.plan;
        let Some(kernel) = plan.kernels.get(id.index()) else {
            let count = plan.kernels.len();
            self.report(Rule::Ids, format!("there is no kernel {id}, only {count} of them"));
            return None;
        };
        let at = format!("kernel {id} ({})", brief(&kernel.name));
        if let Some(message) = not_elementwise(kernel) {
            self.report(Rule::UpdateKernels, format!("{at} {message}"));
            return None;
        }
        let sources = update.sources().count();
        let scalars = matches!(update, Update::Scalars { .. });
        let targets = if scalars { kernel.results.len() } else { update.targets().len() };
        let (ports, results) = (kernel.ports as usize, kernel.results.len());
        if (sources, targets) != (ports, results) || results == 0 {
            let message =
                format!("{at} takes {ports} and gives {results}, found {sources} sources, {targets} targets");
            self.report(Rule::UpdateKernels, message);
            return None;
        }
        Some(results as u64)
    }

    /// P33 and P35
    fn apply(&mut self, sparse: bool, sources: &[UpdateSource], targets: &[StoreId]) {
        let plan = self.plan;
        let of = |store: StoreId| match plan.stores[store.index()].kind {
            StoreKind::Param(_) => store,
            StoreKind::Grad(of) | StoreKind::State(of) => of,
        };
        let param = of(targets[0]);
        let read = sources.iter().filter_map(|source| match source {
            UpdateSource::Store(store) => Some(*store),
            UpdateSource::Scalar(_) | UpdateSource::Float(_) => None,
        });
        for store in read.clone().chain(targets.iter().copied()).filter(|&store| of(store) != param) {
            let Store { name, .. } = &plan.stores[store.index()];
            let message = format!("it changes what belongs to {param}, @{} belongs to another", brief(name));
            self.report(Rule::UpdateStores, message);
        }
        let is_gradient = |store: &StoreId| matches!(plan.stores[store.index()].kind, StoreKind::Grad(_));
        if targets.iter().any(is_gradient) {
            self.report(Rule::UpdateStores, "a gradient is read, and only reductions write it");
        }
        let mut distinct = targets.to_vec();
        distinct.sort_unstable();
        if let Some(pair) = distinct.windows(2).find(|pair| pair[0] == pair[1]) {
            self.report(Rule::UpdateStores, format!("two results go to {}", pair[0]));
        }
        let table = matches!(plan.stores[param.index()].kind, StoreKind::Param(ParamKind::Table));
        if sparse && !(table && read.clone().any(|store| is_gradient(&store))) {
            let message = format!("sparse rows are those of a table's gradient, {param} has none here");
            self.report(Rule::UpdateRows, message);
        }
    }
}

/// Why a kernel does not compute on one element.
fn not_elementwise(kernel: &Kernel) -> Option<String> {
    let element = Type::scalar(DType::F32);
    let ports = kernel.regs.iter().take(kernel.ports as usize);
    if let Some((number, reg)) = ports.enumerate().find(|(_, reg)| reg.ty != element) {
        return Some(format!("must take single floats, port {number} takes {}", reg.ty));
    }
    if !kernel.params.is_empty() {
        return Some("must have no parameter ports: stores are elements to it".to_owned());
    }
    let line = |stage: &Stage| matches!(stage, Stage::Map { width: 1, .. });
    if let Some(number) = kernel.stages.iter().position(|stage| !line(stage)) {
        return Some(format!("must be lines of one element, stage {number} is not"));
    }
    let dtype = |reg: RegId| kernel.regs[reg.index()].ty.dtype;
    let wrong = kernel.results.iter().position(|view| view.width != 1 || dtype(view.reg) != DType::F32);
    wrong.map(|number| format!("must give single floats, result {number} is none"))
}
