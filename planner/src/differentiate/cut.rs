//! Cuts the stages of a body and of its derivative into two kernels.
//!
//! *Needs* the forward stages, then the stages in reverse, which read any forward register. *Ensures* two kernels that
//! compute the same bits, and the place in the forward step of every register that the second kernel reads. These places are,
//! in this order:
//! 1. An operand is read where the forward step reads it.
//! 2. A result is read where the forward step writes it.
//! 3. A register that a reduction takes as it stands is saved: the forward step returns it and writes it to a node slab.
//! 4. The result of a product, a row stage, a fold or a lookup is saved.
//! 5. A transcendental function of a register that is none of these is saved, so its argument need not be. A gate is saved as
//!    `sigmoid(z)` and not as `z`: it takes the same memory and saves the function. The `tanh` of a result is computed again,
//!    because a row costs as much time as the function, and memory besides.
//! 6. Any other elementwise stage is computed again.

use super::deriver::{Deriver, PendingPull};
use super::kernel::{
    Contributed, Derivative, Forward, GradientOf, GradientRows, LaneReduction, Pull, RowSource,
};
use super::rematerialize::Rematerialize;
use crate::ids::{ContributionId, PartId};
use crate::index_vec::IndexVec;
use crate::kernels::cost::is_function;
use crate::kernels::fuse::{fuse, renumber, stage_reads, stage_writes};
use autobatch_ir::plan::{Kernel, ListSource, PortRole, Reg, RegId, RegKind, ResultRole, Roles, Stage, View};
use autobatch_ir::types::{DType, Shape, Type};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

impl Deriver<'_> {
    /// Cuts the stages into a forward and a reverse kernel.
    pub(super) fn finish(
        mut self,
        name: String,
        forward: &Forward,
        Contributed { gradients, made, pulled }: Contributed,
    ) -> Derivative {
        let readers: Vec<Option<usize>> = (0..pulled.len())
            .map(|number| (pulled[number] != [None; 2]).then(|| self.keep(self.pulls[number].reader)))
            .collect();
        let mut left = Left::new(forward);
        let pending = std::mem::take(&mut self.reductions);
        let mut xs: Vec<Option<RowSource>> = Vec::new();
        for view in pending.iter().map(|pending| pending.x) {
            xs.push(view.map(|view| RowSource::Port(self.port_role(view, &mut left))));
        }
        let dys = self.sources_of_kept(&gradients, &made);
        let made: Vec<View> = made.into_iter().flatten().collect();
        let results: Vec<View> = made.iter().chain(&self.kept).copied().collect();
        let pulls = self.pulls_of(&name, made.len() as u32, &gradients, &pulled, |number| {
            match dys[readers[number]?] {
                RowSource::Part(part) => Some(part),
                _ => None,
            }
        });
        let mut ports: BTreeMap<RegId, PortRole> = BTreeMap::new();
        let kept_stages = self.live(&results, forward, &mut left, &mut ports);
        let saves = left.saves;
        let forward_kernel = self.forward_kernel(&name, forward, &saves);
        let parts: Vec<Type> = self.kept.iter().map(|view| self.view_type(*view)).collect();
        // The walk in reverse met the places of the body in descending order.
        let reductions = pending
            .iter()
            .zip(xs)
            .rev()
            .map(|(pending, x)| {
                let dy = dys[pending.dy];
                let (x, dy) = match (x, pending.swapped) {
                    (Some(x), true) => (Some(dy), x),
                    (x, _) => (x, dy),
                };
                LaneReduction { param: pending.param, sum: pending.sum, each: pending.each, x, dy }
            })
            .collect();
        let saves = saves.iter().map(|view| self.view_type(*view)).collect();
        let results = Results { views: results, roles: result_roles(&gradients, parts.len()) };
        let kernel = self.kernel(name + "'", forward, kept_stages, results, ports);
        Derivative {
            forward: Arc::new(forward_kernel),
            saves,
            kernel: Arc::new(kernel),
            gradients,
            pulls,
            parts,
            reductions,
        }
    }

    /// The pulls whose gradients are required. `part_of` names the part that holds the rows of the readers of each.
    fn pulls_of(
        &self,
        name: &str,
        results: u32,
        gradients: &IndexVec<ContributionId, GradientOf>,
        pulled: &[[Option<ContributionId>; 2]],
        part_of: impl Fn(usize) -> Option<PartId>,
    ) -> Vec<Pull> {
        let made = |(number, (pending, &sides)): (usize, (&PendingPull, &[Option<ContributionId>; 2]))| {
            let part = part_of(number)?;
            let of = |gradient: ContributionId| {
                let operand = gradients[gradient].operand;
                let first = gradients.iter().position(|own| own.operand == operand)?;
                Some(ResultRole::Contribution { operand, number: gradient.0 - first as u32 })
            };
            let contributions = sides.map(|side| side.and_then(of));
            let kernel = Arc::new(pull_kernel(name, pending, results + part.0, contributions));
            Some(Pull { lists: pending.lists.map(|list| list.0.0), gradients: sides, part, kernel })
        };
        self.pulls.iter().zip(pulled).enumerate().filter_map(made).collect()
    }

    /// Where reductions find each of their views. A view that is a contribution as it stands is read there and written only once.
    fn sources_of_kept(
        &mut self,
        gradients: &IndexVec<ContributionId, GradientOf>,
        made: &[Option<View>],
    ) -> Vec<RowSource> {
        let mut sources = Vec::with_capacity(self.kept.len());
        let mut kept = Vec::new();
        let mut contributions: HashMap<View, ContributionId> = HashMap::new();
        for ((id, of), made) in gradients.entries().zip(made) {
            if let (GradientRows::Lane, Some(made)) = (of.rows, *made) {
                contributions.entry(made).or_insert(id);
            }
        }
        for view in std::mem::take(&mut self.kept) {
            sources.push(match contributions.get(&view) {
                Some(&contribution) => RowSource::Contribution(contribution),
                None => {
                    kept.push(view);
                    RowSource::Part(PartId(kept.len() as u32 - 1))
                }
            });
        }
        self.kept = kept;
        sources
    }

    /// The type of a register, or of some of its elements.
    fn view_type(&self, view: View) -> Type {
        let ty = self.b.regs[view.reg.index()].ty;
        if ty.shape.elements() as u32 == view.width {
            return ty;
        }
        let shape =
            autobatch_ir::types::Shape::new(&[view.width]).expect("a view is no wider than its register");
        ty.with_shape(shape)
    }

    fn whole(&self, reg: RegId) -> View {
        View { reg, start: 0, width: self.b.regs[reg.index()].ty.shape.elements() as u32 }
    }

    /// Where a forward view is after the forward step; saves it if it has no place.
    fn port_role(&self, view: View, left: &mut Left) -> PortRole {
        let reg = self.b.regs[view.reg.index()];
        if reg.kind == RegKind::Port && view == self.whole(view.reg) {
            return PortRole::Operand(view.reg.0);
        }
        left.find(view)
    }

    /// The stages that the results need. Registers that are read instead of computed become ports.
    fn live(
        &self,
        results: &[View],
        forward: &Forward,
        left: &mut Left,
        ports: &mut BTreeMap<RegId, PortRole>,
    ) -> Vec<Stage> {
        let is_cheap = |stage: &Stage| matches!(stage, Stage::Map { .. }) && !is_transcendental(stage);
        let is_left = |reg: RegId| left.has(self.whole(reg));
        let stages = &self.b.stages[..forward.stages];
        let mut available = Rematerialize::new(stages, &self.b.regs, is_cheap, is_left);
        let mut needed = vec![false; self.b.regs.len()];
        results.iter().for_each(|view| needed[view.reg.index()] = true);
        let mut kept = Vec::new();
        for (number, stage) in self.b.stages.iter().enumerate().rev() {
            let writes: Vec<RegId> = stage_writes(stage).iter().map(|view| view.reg).collect();
            if !writes.iter().any(|&reg| needed[reg.index()]) {
                continue;
            }
            let mut found = number < forward.stages;
            for &reg in writes.iter().filter(|&&reg| number < forward.stages && needed[reg.index()]) {
                let whole = self.whole(reg);
                let is_costly = || {
                    is_transcendental(stage) && !stage_reads(stage).iter().all(|view| available.has(view.reg))
                };
                if left.has(whole) || !matches!(stage, Stage::Map { .. }) || is_costly() {
                    ports.insert(reg, self.port_role(whole, left));
                    available.add(reg);
                } else {
                    found = false;
                }
            }
            if !found {
                stage_reads(stage).iter().for_each(|view| needed[view.reg.index()] = true);
                kept.push(stage.clone());
            }
        }
        kept.reverse();
        for (id, reg) in (0..).map(RegId).zip(&self.b.regs[..forward.regs]) {
            if reg.kind == RegKind::Port && needed[id.index()] {
                ports.insert(id, PortRole::Operand(id.0));
            }
        }
        kept
    }

    fn forward_kernel(&self, name: &str, forward: &Forward, saves: &[View]) -> Kernel {
        let mut kernel = Kernel {
            name: name.to_owned(),
            ports: self.b.ports,
            params: self.b.params.clone(),
            regs: self.b.regs[..forward.regs].to_vec(),
            stages: self.b.stages[..forward.stages].to_vec(),
            results: forward.results.iter().chain(saves).copied().collect(),
            source: false,
            roles: None,
        };
        fuse(&mut kernel);
        kernel
    }

    /// The kernel in reverse, with registers renumbered so that ports come first.
    fn kernel(
        &self,
        name: String,
        forward: &Forward,
        stages: Vec<Stage>,
        results: Results,
        mut ports: BTreeMap<RegId, PortRole>,
    ) -> Kernel {
        let reads: HashSet<RegId> = stages.iter().flat_map(stage_reads).map(|view| view.reg).collect();
        for &(reg, result) in self.incoming.iter().filter(|(reg, _)| reads.contains(reg)) {
            ports.insert(reg, PortRole::Gradient(result));
        }
        let others = (0..self.b.regs.len() as u32)
            .map(RegId)
            .filter(|reg| !ports.contains_key(reg) && self.b.regs[reg.index()].kind != RegKind::Port);
        let order: Vec<RegId> = ports.keys().copied().chain(others).collect();
        let mut renumbered = vec![RegId(0); self.b.regs.len()];
        let mut regs = Vec::with_capacity(order.len());
        for (new, &old) in (0..).map(RegId).zip(&order) {
            renumbered[old.index()] = new;
            let mut reg = self.b.regs[old.index()];
            if let Some(&from) = ports.get(&old) {
                reg.kind = RegKind::Port;
                // One register may be several results of different shapes.
                if let PortRole::Result(result) = from {
                    reg.ty = forward.types[result as usize];
                }
            }
            regs.push(reg);
        }
        let Results { views: mut results, roles } = results;
        let mut stages = stages;
        // Gradients are summed first, so that one line of instructions can follow.
        let incoming: HashSet<RegId> = self.incoming.iter().map(|port| port.0).collect();
        let of_gradients = |stage: &Stage| match stage {
            Stage::Seg { lists, .. } => {
                matches!(lists[..], [ListSource::Port(reg)] if incoming.contains(&reg))
            }
            _ => false,
        };
        stages.sort_by_key(|stage| !of_gradients(stage));
        stages.iter_mut().for_each(|stage| renumber(stage, &renumbered));
        results.iter_mut().for_each(|view| view.reg = renumbered[view.reg.index()]);
        let params = self.b.params.clone();
        let ports: Vec<PortRole> = ports.into_values().collect();
        let mut kernel = Kernel {
            name,
            ports: ports.len() as u32,
            params,
            regs,
            stages,
            results,
            source: false,
            roles: Some(Roles { ports, results: roles }),
        };
        fuse(&mut kernel);
        kernel
    }
}

/// The kernel that pulls the gradients of a key and its value from the rows that readers leave in a result of their step.
fn pull_kernel(
    name: &str,
    pending: &PendingPull,
    result: u32,
    contributions: [Option<ResultRole>; 2],
) -> Kernel {
    let &PendingPull { op, lists, reader } = pending;
    let width = Shape::new(&[reader.width]).expect("a register has a shape");
    let readers = Type { is_list: true, ..Type::new(DType::F32, width) };
    let types = lists.map(|list| list.1);
    let ports = types.into_iter().chain([readers]);
    let mut regs: Vec<Reg> = ports.map(|ty| Reg { kind: RegKind::Port, ty }).collect();
    let whole =
        |reg: usize, ty: Type| View { reg: RegId(reg as u32), start: 0, width: ty.shape.elements() as u32 };
    let [key_dst, value_dst] = [0, 1].map(|side| {
        contributions[side]?;
        regs.push(Reg { kind: RegKind::Temp, ty: types[side] });
        Some(whole(regs.len() - 1, types[side]))
    });
    let results = key_dst.into_iter().chain(value_dst).collect();
    let [key, value] = [whole(0, types[0]), whole(1, types[1])];
    let [keys, values] = lists.map(|list| PortRole::Item(list.0.0));
    Kernel {
        name: format!("{name}''"),
        ports: 3,
        params: Vec::new(),
        regs,
        stages: vec![Stage::AttendPull { op, key, value, readers: RegId(2), key_dst, value_dst }],
        results,
        source: false,
        roles: Some(Roles {
            ports: vec![keys, values, PortRole::Readers(result)],
            results: contributions.into_iter().flatten().collect(),
        }),
    }
}

/// The results of a kernel in reverse.
struct Results {
    views: Vec<View>,
    roles: Vec<ResultRole>,
}

/// The roles of results: contributions first, which ascend by operand and use, then parts of parameter gradients.
fn result_roles(gradients: &[GradientOf], parts: usize) -> Vec<ResultRole> {
    let of_operand = gradients.chunk_by(|a, b| a.operand == b.operand);
    let contributions = of_operand.flat_map(|uses| {
        let numbered = (0..).zip(uses).filter(|(_, of)| of.rows != GradientRows::Pulled);
        numbered.map(|(number, of)| ResultRole::Contribution { operand: of.operand, number })
    });
    contributions.chain(std::iter::repeat_n(ResultRole::Part, parts)).collect()
}

/// The views that the forward step writes.
struct Left {
    /// The results of the body, by their views; of equal ones the first.
    results: HashMap<View, u32>,
    /// The views that are saved besides.
    saves: Vec<View>,
    /// The place of each saved view.
    saved: HashMap<View, u32>,
}

impl Left {
    fn new(forward: &Forward) -> Self {
        let mut results = HashMap::new();
        for (number, &view) in (0..).zip(&forward.results) {
            results.entry(view).or_insert(number);
        }
        Self { results, saves: Vec::new(), saved: HashMap::new() }
    }

    fn has(&self, view: View) -> bool {
        self.results.contains_key(&view) || self.saved.contains_key(&view)
    }

    /// Where a view is; saves it if it has no place.
    fn find(&mut self, view: View) -> PortRole {
        if let Some(&result) = self.results.get(&view) {
            return PortRole::Result(result);
        }
        let next = self.saves.len() as u32;
        let place = *self.saved.entry(view).or_insert(next);
        if place == next {
            self.saves.push(view);
        }
        PortRole::Saved(place)
    }
}

/// Whether a stage costs more than writing and reading its result as a row.
fn is_transcendental(stage: &Stage) -> bool {
    matches!(stage, Stage::Map { code, .. } if code.iter().any(|instr| is_function(instr.code)))
}
