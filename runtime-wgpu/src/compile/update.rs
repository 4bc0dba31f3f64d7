//! Update plans: what is executed and in which order, before it is known where anything is.
//!
//! Every update of a parameter is a line of code an element, generated like that of a map. Updates of
//! different parameters by one kernel are one deed, so that an optimiser is a dispatch a kernel, however
//! many parameters there are.

use super::map::Body;
use super::record::Record;
use crate::error::GpuError;
use autobatch_ir::DType;
use autobatch_ir::plan::{
    BindError, Kernel, RegKind, Source, Stage, StoreId, StoreKind, Update, UpdatePlan, UpdateSource,
    Verified, View,
};
use autobatch_shaders::{Library, SUMSQ, SUMSQ_JOIN, Template, UPDATE, UPDATE_ROWS, UPDATE_SCALARS};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Elements of a tile: those of each state of a parameter stand together.
pub const TILE_ELEMENTS: u64 = 64;

/// What a dispatch of an update runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpdateProgram {
    /// The template.
    pub template: Template,
    /// Its generated body.
    pub body: String,
}

/// What sums squares: blocks first, then all.
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

/// One part of what an update plan does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The sum of the squares of some stores becomes a scalar.
    Sumsq {
        /// The stores, in the order of the sum.
        stores: Vec<StoreId>,
        /// The scalar.
        scalar: u32,
    },
    /// Scalars are made.
    Scalars {
        /// What runs.
        program: UpdateProgram,
        /// Its record.
        record: Record,
    },
    /// Parameters and states change.
    Apply {
        /// What runs on whole arrays and, if sparse rows alone change, what runs on those.
        programs: Vec<UpdateProgram>,
        /// The head of its record.
        record: Record,
        /// Whether only sparse rows change.
        touched: bool,
        /// The parameters.
        params: Vec<StoreId>,
        /// How many states each of them has.
        states: u32,
        /// Whether gradients are read.
        gradients: bool,
    },
}

/// An update plan, ready for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updates {
    /// What is done, in order.
    pub deeds: Vec<Deed>,
    /// How many stores are parameters; states follow.
    pub params: usize,
    /// The states of each parameter.
    pub states: Vec<Vec<StoreId>>,
    /// How many floats are bound.
    pub floats: u32,
    /// How many scalars are made.
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
    let mut updates = Updates { deeds: Vec::new(), params, states, floats: plan.floats, scalars: 0 };
    let mut open = Open::default();
    for update in &plan.updates {
        match update {
            Update::Sumsq { stores } => {
                updates.deeds.push(Deed::Sumsq { stores: stores.clone(), scalar: updates.scalars });
                updates.scalars += 1;
                open.settle();
            }
            Update::Scalars { kernel, sources } => {
                let kernel = &plan.kernels[kernel.index()];
                let (program, record) = updates.scalars(kernel, sources);
                updates.deeds.push(Deed::Scalars { program, record });
                updates.scalars += kernel.results.len() as u32;
                open.settle();
            }
            Update::Apply { kernel, touched, sources, targets } => {
                let kernel = &plan.kernels[kernel.index()];
                let apply = Apply { plan, kernel, touched: *touched, sources, targets };
                updates.apply(&apply, &mut open);
            }
        }
    }
    Ok(updates)
}

/// Deeds that updates may still join: those before may read what a later one changes.
#[derive(Default)]
struct Open {
    /// By what runs, the head of its record, and how many states a parameter has.
    deeds: HashMap<(Vec<UpdateProgram>, Record, u32), usize>,
    /// The parameters that they change.
    params: HashSet<StoreId>,
}

impl Open {
    fn settle(&mut self) {
        self.deeds.clear();
        self.params.clear();
    }
}

/// One update of a parameter.
struct Apply<'a> {
    plan: &'a UpdatePlan,
    kernel: &'a Kernel,
    touched: bool,
    sources: &'a [UpdateSource],
    targets: &'a [StoreId],
}

impl Updates {
    /// The word of a scalar or a bound float among the numbers.
    fn number(&self, source: UpdateSource) -> u32 {
        match source {
            UpdateSource::Float(float) => float,
            UpdateSource::Scalar(scalar) => self.floats + scalar,
            // Scalars are not made of stores (rule P33), and an update reads its stores by element.
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
        let results = lines(&mut body, kernel, &ports);
        for (made, result) in results.iter().enumerate() {
            let word = body.word(self.floats + self.scalars + made as u32);
            let _ = writeln!(body.text, "    numbers[{word}] = {result};");
        }
        let (body, record) = body.with_record(&[]);
        (UpdateProgram { template: UPDATE_SCALARS, body }, record)
    }

    /// Adds an update: to a deed with the same code that has not met the parameter, or as a new one.
    fn apply(&mut self, apply: &Apply<'_>, open: &mut Open) {
        let Apply { plan, kernel, touched, sources, targets } = *apply;
        let kind = |store: StoreId| plan.stores[store.index()].kind;
        let param = match kind(targets[0]) {
            StoreKind::Param(_) => targets[0],
            StoreKind::State(of) | StoreKind::Grad(of) => of,
        };
        let own = &self.states[param.index()];
        let state = |store: StoreId| {
            let number = own.iter().position(|&state| state == store).unwrap_or(0);
            format!("states[own.state + {}u]", number as u64 * TILE_ELEMENTS)
        };
        let head = [0, 0, (own.len() as u64 * TILE_ELEMENTS) as u32];
        let mut body = Body::new(head.len() as u32, Vec::new(), &[]);
        let mut gradients = false;
        let mut ports = Vec::with_capacity(sources.len());
        for (number, &source) in sources.iter().enumerate() {
            let place = match source {
                UpdateSource::Store(store) => match kind(store) {
                    StoreKind::Param(_) => "params[own.value]".to_owned(),
                    StoreKind::State(_) => state(store),
                    StoreKind::Grad(_) => {
                        gradients = true;
                        "gradients[own.gradient]".to_owned()
                    }
                },
                UpdateSource::Scalar(_) | UpdateSource::Float(_) => {
                    let word = body.word(self.number(source));
                    format!("numbers[{word}]")
                }
            };
            // Everything is read before anything is written.
            let _ = writeln!(body.text, "    let x{number} = {place};");
            ports.push(format!("x{number}"));
        }
        let results = lines(&mut body, kernel, &ports);
        for (&target, result) in targets.iter().zip(&results) {
            let place = match kind(target) {
                StoreKind::State(_) => state(target),
                StoreKind::Param(_) | StoreKind::Grad(_) => "params[own.value]".to_owned(),
            };
            let round = |function| format!("bitcast<u32>({function}(bitcast<f32>({result})))");
            let rounded = match plan.stores[target.index()].ty.dtype {
                DType::F16 => round("half_rounded"),
                DType::BF16 => round("upper_rounded"),
                DType::F32 | DType::I32 | DType::U32 | DType::Bool => result.clone(),
            };
            let _ = writeln!(body.text, "    {place} = {rounded};");
        }
        let (text, record) = body.with_record(&head);
        let of = |template| UpdateProgram { template, body: text.clone() };
        let mut programs = vec![of(UPDATE)];
        if touched {
            programs.push(of(UPDATE_ROWS));
        }
        let states = own.len() as u32;
        if !open.params.insert(param) {
            open.settle();
            open.params.insert(param);
        }
        let key = (programs.clone(), record.clone(), states);
        let next = self.deeds.len();
        let number = *open.deeds.entry(key).or_insert(next);
        match self.deeds.get_mut(number) {
            Some(Deed::Apply { params, .. }) => params.push(param),
            _ => self.deeds.push(Deed::Apply {
                programs,
                record,
                touched,
                params: vec![param],
                states,
                gradients,
            }),
        }
    }
}

impl Deed {
    /// What runs.
    #[must_use]
    pub fn programs(&self) -> &[UpdateProgram] {
        match self {
            Self::Sumsq { .. } => &SUM_OF_SQUARES,
            Self::Scalars { program, .. } => std::slice::from_ref(program),
            Self::Apply { programs, .. } => programs,
        }
    }
}

/// Writes the lines of a kernel one element wide; gives its results.
fn lines(body: &mut Body<'_>, kernel: &Kernel, ports: &[String]) -> Vec<String> {
    // Registers are names: those of ports are given, others are written before they are read.
    let mut names: HashMap<(u32, u32), String> = HashMap::new();
    for (number, port) in ports.iter().enumerate() {
        names.insert((number as u32, 0), port.clone());
    }
    for (number, reg) in kernel.regs.iter().enumerate() {
        if let RegKind::Const(bits) = reg.kind {
            let word = body.word(bits);
            names.extend((0..reg.ty.shape.elements() as u32).map(|at| ((number as u32, at), word.clone())));
        }
    }
    let name = |names: &HashMap<(u32, u32), String>, view: View| {
        names.get(&(view.reg, view.start)).cloned().unwrap_or_else(|| "0u".to_owned())
    };
    let mut line = 0;
    for stage in &kernel.stages {
        let Stage::Map { code, .. } = stage else { continue };
        let first = line;
        for instr in code {
            let mut sources = Vec::with_capacity(instr.sources.len());
            for source in &instr.sources {
                sources.push(match source {
                    Source::Local(local) => format!("t{}", first + local),
                    Source::View(view) | Source::Scalar(view) => name(&names, *view),
                    Source::Const(bits) => body.word(*bits),
                });
            }
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
