//! Rules P7 to P9 and P15: registers, views, single assignment.
//!
//! One walk over the stages of each kernel. Per temporary a set of runs holds the written elements, so the cost depends on
//! views and not on the size of registers.

use super::spans::Spans;
use super::{AtKernel, Rule, VerifyErrors};
use crate::plan::{Kernel, KernelId, Reg, RegId, RegKind, Stage, View, is_word_type};
use crate::types::{DType, Type};
use std::sync::Arc;

/// P7 to P15 of the kernels from `since` on.
pub(super) fn verify_all(kernels: &[Arc<Kernel>], since: usize, findings: &mut VerifyErrors) {
    for (number, kernel) in kernels.iter().enumerate().skip(since) {
        verify(KernelId(number as u32), kernel, findings);
    }
}

fn verify(id: KernelId, kernel: &Kernel, findings: &mut VerifyErrors) {
    let mut walk = Walk { id, kernel, stage: None, written: Vec::new(), pending: Vec::new(), findings };
    if !walk.registers() {
        return;
    }
    walk.written = vec![Spans::default(); kernel.regs.len()];
    for (number, stage) in kernel.stages.iter().enumerate() {
        if walk.findings.is_full() {
            return;
        }
        walk.stage = Some(number);
        walk.verify_stage(stage);
        walk.commit();
    }
    walk.stage = None;
    let mut edges = Vec::new();
    for &view in &kernel.results {
        match walk.edge_result(view) {
            Some(()) => edges.push(view.reg),
            None => drop(walk.read(view)),
        }
    }
    edges.sort_unstable();
    if let Some(pair) = edges.windows(2).find(|pair| pair[0] == pair[1]) {
        walk.report(Rule::Edges, format!("the edges of register {} are two results", pair[0].0));
    }
    if let Some(message) = super::roles::misfit(kernel) {
        walk.report(Rule::Roles, message);
    }
    if kernel.source && !kernel.stages.is_empty() {
        let found = kernel.stages.len();
        walk.report(Rule::Sources, format!("a source has no stages, found {found}"));
    }
}

/// The verification of a kernel.
pub(super) struct Walk<'a> {
    id: KernelId,
    pub(super) kernel: &'a Kernel,
    stage: Option<usize>,
    /// Per register the elements that earlier stages wrote.
    written: Vec<Spans>,
    /// The registers that the current stage writes; later stages may read them.
    pending: Vec<View>,
    findings: &'a mut VerifyErrors,
}

impl Walk<'_> {
    #[cold]
    pub(super) fn report(&mut self, rule: Rule, message: impl Into<String>) {
        let at = AtKernel { id: self.id, kernel: self.kernel, stage: self.stage };
        self.findings.report(rule, &at, message);
    }

    /// P7. Gives whether views can be verified.
    fn registers(&mut self) -> bool {
        let before = self.findings.findings().len();
        let Kernel { ports, params, regs, .. } = self.kernel;
        if *ports as usize > regs.len() {
            let found = regs.len();
            self.report(Rule::Registers, format!("{ports} ports must be registers, found {found} registers"));
        }
        for (number, ty) in params.iter().enumerate() {
            if ty.is_list || !matches!(ty.dtype, DType::F32 | DType::F16 | DType::BF16) {
                let message = format!("parameter port {number} must be an array of floats, found {ty}");
                self.report(Rule::Registers, message);
            }
        }
        for (number, reg) in regs.iter().enumerate() {
            if let Some(problem) = self.register(number, reg) {
                self.report(Rule::Registers, format!("register {number} {problem}"));
            }
        }
        self.findings.findings().len() == before
    }

    fn register(&self, number: usize, reg: &Reg) -> Option<String> {
        let Reg { kind, ty } = reg;
        let port = number < self.kernel.ports as usize;
        if port != matches!(kind, RegKind::Port) {
            let ports = self.kernel.ports;
            return Some(format!("must be a port exactly if its number is below {ports}, found {kind:?}"));
        }
        if !is_word_type(ty.dtype) || (ty.is_list && !port && *kind != RegKind::Edges) {
            return Some(format!("must hold f32, i32, u32 or bool, and no list but in a port, found {ty}"));
        }
        match *kind {
            RegKind::Port | RegKind::Temp => None,
            RegKind::Edges => (!ty.is_list || ty.dtype != DType::F32)
                .then(|| format!("must be a list of floats as edges, found {ty}")),
            RegKind::Const(bits) => (ty.dtype == DType::Bool && bits > 1)
                .then(|| format!("must be 0 or 1 as a truth value, found {bits}")),
            RegKind::Param(param) => match self.kernel.params.get(param.index()) {
                None => Some(format!("must name a parameter port, found {}", param.0)),
                Some(stored) => (*ty != Type::new(DType::F32, stored.shape))
                    .then(|| format!("must be the whole of {stored} as f32, found {ty}")),
            },
        }
    }

    /// P8: the element type of a view, if it lies inside a register.
    fn view(&mut self, view: View) -> Option<DType> {
        let found = self.kernel.regs.get(view.reg.index()).copied();
        let end = u64::from(view.start) + u64::from(view.width);
        match found {
            Some(reg) if reg.ty.is_list => {
                self.report(
                    Rule::Views,
                    format!("register {} is a list, which only folds may take", view.reg.0),
                );
                None
            }
            Some(reg) if view.width > 0 && end <= reg.ty.shape.elements() as u64 => Some(reg.ty.dtype),
            Some(reg) => {
                let message = format!(
                    "the view {}..{end} must be a part of register {}: {}",
                    view.start, view.reg.0, reg.ty
                );
                self.report(Rule::Views, message);
                None
            }
            None => {
                let count = self.kernel.regs.len();
                self.report(Rule::Views, format!("there is no register {}, only {count}", view.reg.0));
                None
            }
        }
    }

    /// A view that is read: P8 and P9. Gives its element type.
    pub(super) fn read(&mut self, view: View) -> Option<DType> {
        let dtype = self.view(view)?;
        let reg = view.reg.index();
        if matches!(self.kernel.regs[reg].kind, RegKind::Temp) {
            let (start, end) = bounds(view);
            if let Some(element) = self.written[reg].first_missing(start, end) {
                let message = format!("element {element} of register {reg} is read before a stage wrote it");
                self.report(Rule::Once, message);
            }
        }
        Some(dtype)
    }

    /// Whether a result is a register of edges, whole and written: P30.
    fn edge_result(&mut self, view: View) -> Option<()> {
        let reg = self.kernel.regs.get(view.reg.index()).filter(|reg| reg.kind == RegKind::Edges)?;
        let width = reg.ty.shape.elements() as u64;
        if (view.start, u64::from(view.width)) != (0, width) {
            let message =
                format!("a result is edges whole: 0..{width}, found {}..{}", view.start, view.width);
            self.report(Rule::Edges, message);
        } else if self.written[view.reg.index()].first_missing(0, width).is_some() {
            self.report(Rule::Edges, format!("no stage writes the edges of register {}", view.reg.0));
        }
        Some(())
    }

    /// Edges that a stage writes: P30.
    pub(super) fn write_edges(&mut self, reg: RegId, element: Type) {
        let found = self.kernel.regs.get(reg.index()).copied();
        let wanted = Reg { kind: RegKind::Edges, ty: Type { is_list: true, ..element } };
        if found != Some(wanted) {
            self.report(
                Rule::Edges,
                format!("register {} must take edges of {element}, found {found:?}", reg.0),
            );
        } else {
            let width = element.shape.elements() as u32;
            self.pending.push(View { reg, start: 0, width });
        }
    }

    /// A view that is written: P8 and P9. Gives its element type.
    pub(super) fn write(&mut self, view: View) -> Option<DType> {
        let dtype = self.view(view)?;
        if !matches!(self.kernel.regs[view.reg.index()].kind, RegKind::Temp) {
            self.report(
                Rule::Once,
                format!("register {} is no temporary and must not be written", view.reg.0),
            );
            return None;
        }
        self.pending.push(view);
        Some(dtype)
    }

    /// Makes the writes of a stage visible to later stages.
    fn commit(&mut self) {
        for view in std::mem::take(&mut self.pending) {
            let (start, end) = bounds(view);
            if let Some(element) = self.written[view.reg.index()].first_present(start, end) {
                let message = format!("element {element} of register {} is written twice", view.reg.0);
                self.report(Rule::Once, message);
            }
            self.written[view.reg.index()].insert(start, end);
        }
    }

    fn verify_stage(&mut self, stage: &Stage) {
        match stage {
            Stage::Prod { dst, rows, init, parts } => self.product(*dst, *rows, *init, parts),
            Stage::Map { width, code } => self.map(*width, code),
            Stage::Row { op, sources, dsts } => self.row(*op, sources, dsts),
            Stage::Seg { op, query, lists, elements, dst } => self.fold(*op, *query, lists, elements, *dst),
            Stage::SegGrad { op, query, lists, elements, dy, dsts } => {
                self.fold_gradient(*op, *query, lists, elements, *dy, dsts);
            }
            Stage::MeanGrad { list, dy, dst } => self.mean_gradient(*list, *dy, *dst),
            Stage::AttendGrad { op, query, keys, values, dy, dst, reader } => {
                self.attention_gradient(*op, *query, [*keys, *values], *dy, [*dst, *reader]);
            }
            Stage::AttendPull { op, key, value, readers, key_dst, value_dst } => {
                self.pull(*op, [*key, *value], *readers, [*key_dst, *value_dst]);
            }
            Stage::Lookup { param, index, dst } => self.lookup(*param, *index, *dst),
            Stage::LabelLoss { param, x, label, dst, log_sum, slope } => {
                self.label_loss(*param, [*x, *label], [Some(*dst), *log_sum, *slope]);
            }
        }
    }
}

fn bounds(view: View) -> (u64, u64) {
    (u64::from(view.start), u64::from(view.start) + u64::from(view.width))
}
