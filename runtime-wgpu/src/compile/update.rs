//! Update plans: the operations of an update and their order, before the locations of arrays are known.
//!
//! The update of a parameter is generated code per element, like a map. Updates of different parameters by one kernel
//! are one operation, so an optimiser is one dispatch per kernel, however many parameters there are.

use super::map::Body;
use super::record::Record;
use crate::error::GpuError;
use autobatch_ir::DType;
use autobatch_ir::plan::{
    BindError, Kernel, RegId, RegKind, Source, Stage, StoreId, StoreKind, Update, UpdatePlan, UpdateSource,
    Verified, View,
};
use autobatch_shaders::{Library, SUMSQ, SUMSQ_JOIN, Template, UPDATE, UPDATE_ROWS, UPDATE_SCALARS};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Elements of a tile, in which the states of a parameter are interleaved.
pub const TILE_ELEMENTS: u64 = 64;

/// The program of a dispatch of an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpdateProgram {
    /// The template.
    pub template: Template,
    /// Its generated body.
    pub body: String,
}

/// The programs of a sum of squares: of blocks, then of all blocks.
pub static SUM_OF_SQUARES: [UpdateProgram; 2] = [
    UpdateProgram { template: SUMSQ, body: String::new() },
    UpdateProgram { template: SUMSQ_JOIN, body: String::new() },
];

impl UpdateProgram {
    /// The text of the module.
    #[must_use]
    pub fn text(&self, library: &Library) -> String {
        library.module(self.template, "", &[("body", &self.body)])
    }
}

/// An operation of an update plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOp {
    /// Sums the squares of stores into a scalar.
    Sumsq {
        /// The stores, in the order of the sum.
        stores: Vec<StoreId>,
        /// The scalar.
        scalar: u32,
    },
    /// Computes scalars.
    Scalars {
        /// The program.
        program: UpdateProgram,
        /// Its record.
        record: Record,
    },
    /// Changes parameters and states.
    Apply {
        /// The program for whole arrays and, if the operation is sparse, the program for sparse rows.
        programs: Vec<UpdateProgram>,
        /// The head of its record.
        record: Record,
        /// True if only sparse rows change.
        sparse: bool,
        /// The parameters.
        params: Vec<StoreId>,
        /// The number of states of each parameter.
        states: u32,
        /// True if it reads gradients.
        gradients: bool,
    },
}

/// A compiled update plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updates {
    /// The operations, in order.
    pub ops: Vec<UpdateOp>,
    /// The number of stores that are parameters. States follow them.
    pub params: usize,
    /// The states of each parameter.
    pub states: Vec<Vec<StoreId>>,
    /// The number of bound floats.
    pub floats: u32,
    /// The number of computed scalars.
    pub scalars: u32,
}

/// Compiles an update plan.
///
/// # Errors
/// If a state has another shape than its parameter.
pub fn compile_update(plan: &Verified<UpdatePlan>) -> Result<Updates, GpuError> {
    let is_param = |kind: StoreKind| matches!(kind, StoreKind::Param(_));
    let params = plan.stores.iter().take_while(|store| is_param(store.kind)).count();
    let mut states = vec![Vec::new(); params];
    for (number, store) in plan.stores.iter().enumerate() {
        let (StoreKind::State(of) | StoreKind::Grad(of)) = store.kind else { continue };
        let (expected, found) = (plan.stores[of.index()].ty.shape.elements(), store.ty.shape.elements());
        if expected != found {
            return Err(BindError::Store { name: store.name.clone(), expected, found }.into());
        }
        if matches!(store.kind, StoreKind::State(_)) {
            states[of.index()].push(StoreId(number as u32));
        }
    }
    let mut updates = Updates { ops: Vec::new(), params, states, floats: plan.floats, scalars: 0 };
    let mut open = OpenOps::default();
    for update in &plan.updates {
        match update {
            Update::Sumsq { stores } => {
                updates.ops.push(UpdateOp::Sumsq { stores: stores.clone(), scalar: updates.scalars });
                updates.scalars += 1;
                open.close();
            }
            Update::Scalars { kernel, sources } => {
                let kernel = &plan.kernels[kernel.index()];
                let (program, record) = updates.scalars(kernel, sources);
                updates.ops.push(UpdateOp::Scalars { program, record });
                updates.scalars += kernel.results.len() as u32;
                open.close();
            }
            Update::Apply { kernel, sparse, sources, targets } => {
                let kernel = &plan.kernels[kernel.index()];
                let apply = Apply { plan, kernel, sparse: *sparse, sources, targets };
                updates.apply(&apply, &mut open);
            }
        }
    }
    Ok(updates)
}

/// The operations that a later update may join. Earlier operations are closed, because they may read what it changes.
#[derive(Default)]
struct OpenOps {
    /// By the programs, the head of the record, and the number of states of a parameter.
    ops: HashMap<(Vec<UpdateProgram>, Record, u32), usize>,
    params: HashSet<StoreId>,
}

impl OpenOps {
    fn close(&mut self) {
        self.ops.clear();
        self.params.clear();
    }
}

/// The update of one parameter.
struct Apply<'a> {
    plan: &'a UpdatePlan,
    kernel: &'a Kernel,
    sparse: bool,
    sources: &'a [UpdateSource],
    targets: &'a [StoreId],
}

impl Apply<'_> {
    fn kind(&self, store: StoreId) -> StoreKind {
        self.plan.stores[store.index()].kind
    }

    fn param(&self) -> StoreId {
        match self.kind(self.targets[0]) {
            StoreKind::Param(_) => self.targets[0],
            StoreKind::State(of) | StoreKind::Grad(of) => of,
        }
    }

    /// The WGSL expression of a store's element, among the states of the parameter.
    fn element(&self, store: StoreId, states: &[StoreId]) -> String {
        match self.kind(store) {
            StoreKind::Param(_) => "params[own.value]".to_owned(),
            StoreKind::Grad(_) => "gradients[own.gradient]".to_owned(),
            StoreKind::State(_) => {
                let number = states.iter().position(|&state| state == store).unwrap_or(0);
                format!("states[own.state + {}u]", number as u64 * TILE_ELEMENTS)
            }
        }
    }

    fn reads_gradients(&self) -> bool {
        let is_gradient = |store: StoreId| matches!(self.kind(store), StoreKind::Grad(_));
        self.sources.iter().any(|source| matches!(*source, UpdateSource::Store(store) if is_gradient(store)))
    }

    /// The code of an element, and the head of the record.
    fn body(&self, updates: &Updates, states: &[StoreId]) -> (String, Record) {
        let head = [0, 0, (states.len() as u64 * TILE_ELEMENTS) as u32];
        let mut body = Body::new(head.len() as u32, Vec::new(), &[]);
        let mut ports = Vec::with_capacity(self.sources.len());
        // The code reads everything before it writes anything.
        for (number, &source) in self.sources.iter().enumerate() {
            let value = match source {
                UpdateSource::Store(store) => self.element(store, states),
                UpdateSource::Scalar(_) | UpdateSource::Float(_) => {
                    let word = body.word(updates.number(source));
                    format!("numbers[{word}]")
                }
            };
            let _ = writeln!(body.text, "    let x{number} = {value};");
            ports.push(format!("x{number}"));
        }
        let results = write_lines(&mut body, self.kernel, &ports);
        for (&target, result) in self.targets.iter().zip(&results) {
            let place = match self.kind(target) {
                StoreKind::State(_) => self.element(target, states),
                StoreKind::Param(_) | StoreKind::Grad(_) => "params[own.value]".to_owned(),
            };
            let round = |function| format!("bitcast<u32>({function}(bitcast<f32>({result})))");
            let rounded = match self.plan.stores[target.index()].ty.dtype {
                DType::F16 => round("f16_rounded"),
                DType::BF16 => round("bf16_rounded"),
                DType::F32 | DType::I32 | DType::U32 | DType::Bool => result.clone(),
            };
            let _ = writeln!(body.text, "    {place} = {rounded};");
        }
        body.with_record(&head)
    }
}

impl Updates {
    /// The word of a scalar or a bound float among the numbers.
    fn number(&self, source: UpdateSource) -> u32 {
        match source {
            UpdateSource::Float(float) => float,
            UpdateSource::Scalar(scalar) => self.floats + scalar,
            // Scalars are not computed from stores (rule P33), and an update reads its stores by element.
            UpdateSource::Store(_) => 0,
        }
    }

    fn scalars(&self, kernel: &Kernel, sources: &[UpdateSource]) -> (UpdateProgram, Record) {
        let mut body = Body::new(0, Vec::new(), &[]);
        let ports = sources.iter().map(|&source| {
            let word = body.word(self.number(source));
            format!("numbers[{word}]")
        });
        let ports: Vec<String> = ports.collect();
        let results = write_lines(&mut body, kernel, &ports);
        for (number, result) in (0..).zip(&results) {
            let word = body.word(self.floats + self.scalars + number);
            let _ = writeln!(body.text, "    numbers[{word}] = {result};");
        }
        let (body, record) = body.with_record(&[]);
        (UpdateProgram { template: UPDATE_SCALARS, body }, record)
    }

    /// Adds an update to an open operation with the same code that does not change its parameter yet, or as a new one.
    fn apply(&mut self, apply: &Apply<'_>, open: &mut OpenOps) {
        let param = apply.param();
        let states = &self.states[param.index()];
        let (text, record) = apply.body(self, states);
        let states = states.len() as u32;
        let of = |template| UpdateProgram { template, body: text.clone() };
        let mut programs = vec![of(UPDATE)];
        if apply.sparse {
            programs.push(of(UPDATE_ROWS));
        }
        if !open.params.insert(param) {
            open.close();
            open.params.insert(param);
        }
        let next = self.ops.len();
        let number = *open.ops.entry((programs.clone(), record.clone(), states)).or_insert(next);
        let (sparse, gradients) = (apply.sparse, apply.reads_gradients());
        match self.ops.get_mut(number) {
            Some(UpdateOp::Apply { params, .. }) => params.push(param),
            _ => self.ops.push(UpdateOp::Apply {
                programs,
                record,
                sparse,
                params: vec![param],
                states,
                gradients,
            }),
        }
    }
}

impl UpdateOp {
    /// The programs that it runs.
    #[must_use]
    pub fn programs(&self) -> &[UpdateProgram] {
        match self {
            Self::Sumsq { .. } => &SUM_OF_SQUARES,
            Self::Scalars { program, .. } => std::slice::from_ref(program),
            Self::Apply { programs, .. } => programs,
        }
    }
}

/// Writes the lines of a kernel that is one element wide. Returns its results.
fn write_lines(body: &mut Body<'_>, kernel: &Kernel, ports: &[String]) -> Vec<String> {
    // Registers are names. Those of ports are given, others are written before they are read.
    let mut names: HashMap<(RegId, u32), String> = HashMap::new();
    for (reg, port) in (0..).map(RegId).zip(ports) {
        names.insert((reg, 0), port.clone());
    }
    for (id, reg) in (0..).map(RegId).zip(&kernel.regs) {
        if let RegKind::Const(bits) = reg.kind {
            let word = body.word(bits);
            names.extend((0..reg.ty.shape.elements() as u32).map(|at| ((id, at), word.clone())));
        }
    }
    let name = |names: &HashMap<(RegId, u32), String>, view: View| {
        names.get(&(view.reg, view.start)).cloned().unwrap_or_else(|| "0u".to_owned())
    };
    let mut line = 0;
    for stage in &kernel.stages {
        let Stage::Map { code, .. } = stage else { continue };
        let first = line;
        for instr in code {
            let mut source = |source: &Source| match source {
                Source::Local(local) => format!("t{}", first + local),
                Source::View(view) | Source::Scalar(view) => name(&names, *view),
                Source::Const(bits) => body.word(*bits),
            };
            let sources: Vec<String> = instr.sources.iter().map(&mut source).collect();
            let result = body.code(instr.code, instr.dtype, &sources);
            let _ = writeln!(body.text, "    let t{line} = {result};");
            if let Some(view) = instr.store {
                names.insert((view.reg, view.start), format!("t{line}"));
            }
            line += 1;
        }
    }
    kernel.results.iter().map(|&view| name(&names, view)).collect()
}
