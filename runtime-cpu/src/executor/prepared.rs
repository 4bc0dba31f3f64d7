//! Prepares plans for execution: looks up the program, stores and packed weights of each step once.
//!
//! Each kernel of a plan has one program. Each distinct list of stores of a program has one binding, which holds store
//! values and packed weights. All arguments of a step are then one [`StepArgs`]. Executing the same plan again looks up
//! store values only, and weights if a version changed. A grown plan also prepares its new steps. All vectors keep
//! their memory, so preparing a plan of a size seen before allocates nothing.

use super::error::RunError;
use super::program::Program;
use super::weight_cache::{StoreValues, WeightCache};
use crate::kernels::{Isa, PackedWeights};
use autobatch_ir::hash::StructureHash;
use autobatch_ir::plan::{Kernel, Place, Plan, RegId, Step, StepOperand, StoreId, Stores, Verified};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// No program, no binding.
const NONE: u32 = u32::MAX;
/// The maximum number of cached programs. Beyond it, the next plan starts with an empty cache.
const MAX_PROGRAMS: usize = 4096;

/// The prepared steps of the current plan, and the caches of programs and packed weights for all plans.
#[derive(Default)]
pub(super) struct PreparedSteps {
    /// Program numbers by the address of a kernel that `programs` keeps alive, and whether results are written directly.
    known: HashMap<(usize, bool), u32>,
    programs: Vec<(Arc<Kernel>, Program)>,
    weight_cache: WeightCache,
    /// For each kernel of the plan, its program with results through a table and its program with direct results.
    of_kernel: Vec<[u32; 2]>,
    /// For each program, the binding found last.
    of_program: Vec<u32>,
    bindings: Vec<Binding>,
    /// The newest binding by a hash of program and stores.
    of_stores: HashMap<u64, u32>,
    weights: Vec<Arc<PackedWeights>>,
    /// The store versions of `weights`, binding by binding; empty if the weights are invalid.
    versions: Vec<u64>,
    /// The arguments of all steps of the plan.
    pub(super) steps: Vec<StepArgs>,
    /// Per step an estimate of its floating-point operations, for splitting work.
    pub(super) work: Vec<usize>,
    /// The smallest limit of any bound word.
    pub(super) least_limit: u32,
    /// Floats of the largest tile of any step, saturating.
    pub(super) tile_floats: usize,
    /// The identity of the prepared plan.
    plan: Option<u64>,
}

/// The arguments of a step, stored in step order: a large step evicts everything, and the next costs one cache line
/// here.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct StepArgs {
    program: u32,
    pub(super) rows: u32,
    /// The first value of its parameter ports.
    params: u32,
    /// The first of its packed weights.
    weights: u32,
    operands: [u32; 2],
    places: [u32; 2],
}

impl StepArgs {
    pub(super) fn operands<'a>(&self, plan: &'a Plan) -> &'a [StepOperand] {
        &plan.operands[self.operands[0] as usize..self.operands[1] as usize]
    }

    pub(super) fn places<'a>(&self, plan: &'a Plan) -> &'a [Place] {
        &plan.places[self.places[0] as usize..self.places[1] as usize]
    }
}

/// A program with a list of stores.
struct Binding {
    program: u32,
    stores: Range<u32>,
    /// The first of their values.
    params: u32,
    /// The first packed weight.
    weights: u32,
    /// Another binding with the same hash.
    next: u32,
}

impl Binding {
    fn stores<'a>(&self, plan: &'a Plan) -> &'a [StoreId] {
        &plan.store_args[self.stores.start as usize..self.stores.end as usize]
    }
}

/// The stores of a run, and the list that receives their values.
pub(super) struct StoreReader<'a, 'b> {
    pub(super) isa: Isa,
    pub(super) stores: &'a dyn Stores,
    pub(super) params: &'b mut Vec<&'a [f32]>,
}

/// Empties a vector and changes the lifetime in its type. It keeps the allocation.
pub(super) fn recycled<A, B>(mut old: Vec<A>) -> Vec<B> {
    old.clear();
    old.into_iter().map(|_| unreachable!("the vector was cleared")).collect()
}

/// Returns whether stages may write the results of a step directly: their rows have a stride.
pub(super) fn writes_directly(plan: &Plan, step: &Step) -> bool {
    plan.places(step).iter().all(|place| !matches!(place, Place::Table { .. }))
}

/// The floating-point operations of a step: those of its rows and of the items of its lists.
fn work_of(plan: &Plan, step: &Step, program: &Program) -> usize {
    let listed = |&(port, each): &(RegId, usize)| {
        let address = plan.operands(step)[port.index()].address;
        (address.listed(&plan.tables, &plan.groups, step.rows) as usize).saturating_mul(each)
    };
    let of_items = program.cost.items.iter().map(listed).fold(0, usize::saturating_add);
    (step.rows as usize).saturating_mul(program.cost.row).saturating_add(of_items)
}

/// A hash of a program and the stores of a step.
fn hash_of(plan: &Plan, step: &Step, program: u32) -> u64 {
    let mut hash = StructureHash::default();
    hash.push(program.into());
    plan.stores(step).iter().for_each(|store| hash.push(store.0.into()));
    hash.value() as u64
}

impl PreparedSteps {
    /// Prepares every step of the plan, and reads the values of its stores.
    pub(super) fn prepare(
        &mut self,
        plan: &Verified<Plan>,
        reader: &mut StoreReader<'_, '_>,
    ) -> Result<(), RunError> {
        if self.plan == Some(plan.identity()) {
            return self.refresh_values(plan, reader);
        }
        let grew = self.plan.take().is_some_and(|before| plan.grew_from(before));
        if grew && self.programs.len() <= MAX_PROGRAMS {
            // The old steps are prepared; the new ones follow.
            self.refresh_values(plan, reader)?;
        } else {
            self.clear();
            self.select_weights(plan, reader.stores);
        }
        self.of_kernel.resize(plan.kernels.len(), [NONE; 2]);
        for step in &plan.steps[self.steps.len()..] {
            let program = self.find_program(plan, step)?;
            let floats = self.programs[program as usize].1.tile_floats(step.rows as usize);
            self.tile_floats = self.tile_floats.max(floats.unwrap_or(usize::MAX));
            let binding = match self.find_binding(plan, step, program) {
                Some(binding) => binding,
                None => self.bind(plan, step, program, reader)?,
            };
            let Binding { params, weights, .. } = self.bindings[binding as usize];
            let (operands, places) = (&step.operands, &step.places);
            self.work.push(work_of(plan, step, &self.programs[program as usize].1));
            self.steps.push(StepArgs {
                program,
                rows: step.rows,
                params,
                weights,
                operands: [operands.start, operands.end],
                places: [places.start, places.end],
            });
        }
        self.plan = Some(plan.identity());
        Ok(())
    }

    /// Drops everything of the current plan, and the programs if there are too many.
    fn clear(&mut self) {
        self.weights.clear();
        self.versions.clear();
        self.least_limit = u32::MAX;
        self.tile_floats = 0;
        if self.programs.len() > MAX_PROGRAMS {
            self.known.clear();
            self.programs.clear();
        }
        self.of_kernel.clear();
        self.of_program.clear();
        self.of_program.resize(self.programs.len(), NONE);
        self.bindings.clear();
        self.of_stores.clear();
        self.steps.clear();
        self.work.clear();
    }

    fn select_weights(&mut self, plan: &Plan, stores: &dyn Stores) {
        self.weight_cache.select(plan.given_stores(), |store| stores.version(StoreId(store as u32)));
    }

    /// Reads the store values of the prepared plan again, and the weights if a version changed.
    fn refresh_values(&mut self, plan: &Plan, reader: &mut StoreReader<'_, '_>) -> Result<(), RunError> {
        let mut versions = self.versions.iter();
        let mut same = true;
        for binding in &self.bindings {
            for &store in binding.stores(plan) {
                reader.params.push(reader.stores.sized(plan, store)?);
                same &= versions.next() == Some(&reader.stores.version(store));
            }
        }
        if same {
            return Ok(());
        }
        reader.params.clear();
        self.weights.clear();
        self.versions.clear();
        self.select_weights(plan, reader.stores);
        let found = (0..self.bindings.len()).try_for_each(|binding| self.read_binding(plan, binding, reader));
        if found.is_err() {
            self.versions.clear();
        }
        found
    }

    /// The cache of packed weights. It drops the plan's references to them.
    pub(super) fn release_weights(&mut self) -> &mut WeightCache {
        self.weights.clear();
        self.versions.clear();
        &mut self.weight_cache
    }

    /// The compiled program of a kernel, if an earlier plan had it.
    pub(super) fn known_program(&self, kernel: &Arc<Kernel>, direct: bool) -> Option<&Program> {
        let number = self.known.get(&(Arc::as_ptr(kernel) as usize, direct))?;
        Some(&self.programs[*number as usize].1)
    }

    pub(super) fn program(&self, step: usize) -> &Program {
        &self.programs[self.steps[step].program as usize].1
    }

    /// The kernel of a step and its program.
    pub(super) fn kernel_and_program(&self, step: &StepArgs) -> (&Kernel, &Program) {
        let (kernel, program) = &self.programs[step.program as usize];
        (kernel, program)
    }

    /// The packed weights of a step's products, followed by others.
    pub(super) fn weights(&self, step: &StepArgs) -> &[Arc<PackedWeights>] {
        &self.weights[step.weights as usize..]
    }

    /// The values of a step's parameter ports, followed by others.
    pub(super) fn params<'a, 'b>(&self, step: &StepArgs, all: &'a [&'b [f32]]) -> &'a [&'b [f32]] {
        &all[step.params as usize..]
    }

    fn find_program(&mut self, plan: &Plan, step: &Step) -> Result<u32, RunError> {
        let direct = writes_directly(plan, step);
        let slot = self.of_kernel[step.kernel.index()][usize::from(direct)];
        if slot != NONE {
            return Ok(slot);
        }
        let kernel = &plan.kernels[step.kernel.index()];
        let number = match self.known.entry((Arc::as_ptr(kernel) as usize, direct)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let mut program = Program::new(kernel, direct);
                let bytes = 4 * program.constant_floats() as u64;
                program.fill_constants().ok_or(RunError::Tiles { bytes })?;
                self.programs.push((Arc::clone(kernel), program));
                self.of_program.push(NONE);
                *unknown.insert(self.programs.len() as u32 - 1)
            }
        };
        self.of_kernel[step.kernel.index()][usize::from(direct)] = number;
        let limits = &self.programs[number as usize].1.word_limits;
        self.least_limit = limits.iter().fold(self.least_limit, |least, limit| least.min(limit.below));
        Ok(number)
    }

    fn find_binding(&mut self, plan: &Plan, step: &Step, program: u32) -> Option<u32> {
        let matches =
            |binding: &Binding| binding.program == program && binding.stores(plan) == plan.stores(step);
        let last = self.of_program[program as usize];
        if last != NONE && matches(&self.bindings[last as usize]) {
            return Some(last);
        }
        let mut at = self.of_stores.get(&hash_of(plan, step, program)).copied().unwrap_or(NONE);
        while at != NONE {
            let binding = &self.bindings[at as usize];
            if matches(binding) {
                self.of_program[program as usize] = at;
                return Some(at);
            }
            at = binding.next;
        }
        None
    }

    fn bind(
        &mut self,
        plan: &Plan,
        step: &Step,
        program: u32,
        reader: &mut StoreReader<'_, '_>,
    ) -> Result<u32, RunError> {
        let number = self.bindings.len();
        self.bindings.push(Binding {
            program,
            stores: step.stores.clone(),
            params: reader.params.len() as u32,
            weights: self.weights.len() as u32,
            next: self.of_stores.insert(hash_of(plan, step, program), number as u32).unwrap_or(NONE),
        });
        self.of_program[program as usize] = number as u32;
        self.read_binding(plan, number, reader)?;
        Ok(number as u32)
    }

    /// Appends the values and packed weights of a binding.
    fn read_binding(
        &mut self,
        plan: &Plan,
        binding: usize,
        reader: &mut StoreReader<'_, '_>,
    ) -> Result<(), RunError> {
        let binding = &self.bindings[binding];
        let own = binding.stores(plan);
        let (first, first_version) = (reader.params.len(), self.versions.len());
        for &store in own {
            reader.params.push(reader.stores.sized(plan, store)?);
            self.versions.push(reader.stores.version(store));
        }
        for weight in &self.programs[binding.program as usize].1.weights {
            let param = weight.param.index();
            let elements = StoreValues {
                version: self.versions[first_version + param],
                values: reader.params[first + param],
            };
            self.weights.push(self.weight_cache.get(reader.isa, plan, own[param], *weight, elements)?);
        }
        Ok(())
    }
}
