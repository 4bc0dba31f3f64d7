//! What the steps of a plan need besides memory, looked up once: programs and packed weights.
//!
//! Programs are found once for each kernel of a plan, values and packed weights once for each
//! distinct list of stores that a kernel is executed with; all that a step needs is then one [`Turn`].
//! Of a plan that is executed again only values are looked up, because they may be others, and
//! weights where a version is another; of one that grew only what is new. Everything lies in vectors that stay from plan to plan, so that a
//! plan of a size seen before allocates nothing.

use super::packed::Packed;
use super::program::{Program, constant_floats};
use super::{RunError, Stores};
use crate::kernels::{Isa, PackedWeights};
use autobatch_ir::hash::StructureHash;
use autobatch_ir::plan::{Kernel, Operand, Place, Plan, Step, StoreId, Verified};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// No program, no binding.
const NONE: u32 = u32::MAX;
/// So many programs are kept; an executor that has met more kernels begins anew with its next plan.
const MOST_PROGRAMS: usize = 4096;

/// Programs and packed weights of all plans, and what the plan being executed takes of them.
#[derive(Default)]
pub(super) struct Ready {
    /// By the address of a kernel that `programs` keeps alive, and whether results may be homes.
    known: HashMap<(usize, bool), u32>,
    programs: Vec<(Arc<Kernel>, Program)>,
    packed: Packed,
    /// Per kernel of the plan, the program for results through a table and that for results in place.
    of_kernel: Vec<[u32; 2]>,
    /// Per program the binding that was found last.
    of_program: Vec<u32>,
    bindings: Vec<Binding>,
    /// By a hash of program and stores, the binding that was made last.
    of_stores: HashMap<u64, u32>,
    weights: Vec<Arc<PackedWeights>>,
    /// Per value of a store, binding by binding, the version that `weights` were found for; empty if they are to be
    /// found again.
    versions: Vec<u64>,
    turns: Vec<Turn>,
    /// The least that a bound word at a port of the plan's kernels must be below.
    least_limit: u32,
    /// Floats of the largest tile of any step, or more than there are.
    tile_floats: usize,
    /// The plan that programs and bindings are those of.
    plan: Option<u64>,
}

/// What executing a step needs, by numbers. Turns lie in the order of steps, so behind a large step, when nothing of the
/// plan is in cache, the next one costs one line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Turn {
    program: u32,
    pub(super) rows: u32,
    /// Where the values of its parameter ports begin.
    params: u32,
    /// Where its packed weights begin.
    weights: u32,
    operands: [u32; 2],
    places: [u32; 2],
}

impl Turn {
    /// What its ports read.
    pub(super) fn operands<'a>(&self, plan: &'a Plan) -> &'a [Operand] {
        &plan.operands[self.operands[0] as usize..self.operands[1] as usize]
    }

    /// Where its results go.
    pub(super) fn places<'a>(&self, plan: &'a Plan) -> &'a [Place] {
        &plan.places[self.places[0] as usize..self.places[1] as usize]
    }
}

/// What a program is executed with.
struct Binding {
    program: u32,
    /// The store arguments.
    stores: Range<u32>,
    /// Where their values begin.
    params: u32,
    /// Where its packed weights begin.
    weights: u32,
    /// Another binding of the same hash.
    next: u32,
}

/// An empty vector of another type (in use: the same with another lifetime) in the memory of an old
/// one, where both types have one layout.
pub(super) fn recycled<A, B>(mut old: Vec<A>) -> Vec<B> {
    old.clear();
    old.into_iter().map(|_| unreachable!("the vector was cleared")).collect()
}

/// A hash of a program and the stores that a step gives it.
fn hash_of(plan: &Plan, step: &Step, program: u32) -> u64 {
    let mut hash = StructureHash::default();
    hash.push(program.into());
    plan.stores(step).iter().for_each(|store| hash.push(store.0.into()));
    hash.value() as u64
}

impl Ready {
    /// Finds what every step of the plan needs; `params` receives the values of stores.
    pub(super) fn prepare<'a>(
        &mut self,
        isa: Isa,
        plan: &Verified<Plan>,
        stores: &'a dyn Stores,
        params: &mut Vec<&'a [f32]>,
    ) -> Result<(), RunError> {
        if self.plan == Some(plan.identity()) {
            return self.renew(isa, plan, stores, params);
        }
        let grew = self.plan.take().is_some_and(|before| plan.grew_from(before));
        if grew && self.programs.len() <= MOST_PROGRAMS {
            // Its beginning has programs, bindings and turns.
            self.renew(isa, plan, stores, params)?;
        } else {
            self.forget();
            self.packed.turn_to(plan.given_stores(), |store| stores.version(StoreId(store as u32)));
        }
        self.of_kernel.resize(plan.kernels.len(), [NONE; 2]);
        for step in &plan.steps[self.turns.len()..] {
            let program = self.find_program(plan, step)?;
            let floats = self.programs[program as usize].1.tile_floats(step.rows as usize);
            self.tile_floats = self.tile_floats.max(floats.unwrap_or(usize::MAX));
            let binding = match self.find_binding(plan, step, program) {
                Some(binding) => binding,
                None => self.bind(isa, plan, step, program, stores, params)?,
            };
            let Binding { params, weights, .. } = self.bindings[binding as usize];
            let (operands, places) = (&step.operands, &step.places);
            self.turns.push(Turn {
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

    /// Forgets all of a plan but programs, unless they are too many.
    fn forget(&mut self) {
        self.weights.clear();
        self.versions.clear();
        self.least_limit = u32::MAX;
        self.tile_floats = 0;
        if self.programs.len() > MOST_PROGRAMS {
            self.known.clear();
            self.programs.clear();
        }
        self.of_kernel.clear();
        self.of_program.clear();
        self.of_program.resize(self.programs.len(), NONE);
        self.bindings.clear();
        self.of_stores.clear();
        self.turns.clear();
    }

    /// Finds values and weights of the plan that was prepared last; weights are the same while versions are.
    fn renew<'a>(
        &mut self,
        isa: Isa,
        plan: &Plan,
        stores: &'a dyn Stores,
        params: &mut Vec<&'a [f32]>,
    ) -> Result<(), RunError> {
        let mut versions = self.versions.iter();
        let mut same = true;
        for binding in &self.bindings {
            for &store in &plan.store_args[binding.stores.start as usize..binding.stores.end as usize] {
                params.push(stores.sized(plan, store)?);
                same &= versions.next() == Some(&stores.version(store));
            }
        }
        if same {
            return Ok(());
        }
        params.clear();
        self.weights.clear();
        self.versions.clear();
        self.packed.turn_to(plan.given_stores(), |store| stores.version(StoreId(store as u32)));
        let found =
            (0..self.bindings.len()).try_for_each(|binding| self.look_up(isa, plan, binding, stores, params));
        if found.is_err() {
            self.versions.clear();
        }
        found
    }

    /// Packed weights, which no plan holds any more.
    pub(super) fn packed(&mut self) -> &mut Packed {
        self.weights.clear();
        self.versions.clear();
        &mut self.packed
    }

    /// The turns of all steps of the plan that was prepared.
    pub(super) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The least that a bound word at a port of any of its steps must be below.
    pub(super) fn least_limit(&self) -> u32 {
        self.least_limit
    }

    /// Floats of the largest tile that a thread executes of any of its steps.
    pub(super) fn tile_floats(&self) -> usize {
        self.tile_floats
    }

    /// The program of a step of that plan.
    pub(super) fn program(&self, step: usize) -> &Program {
        &self.programs[self.turns[step].program as usize].1
    }

    /// The kernel of a turn and its program.
    pub(super) fn executed(&self, turn: &Turn) -> (&Kernel, &Program) {
        let (kernel, program) = &self.programs[turn.program as usize];
        (kernel, program)
    }

    /// The packed weights that products of a turn meet, and what follows.
    pub(super) fn weights(&self, turn: &Turn) -> &[Arc<PackedWeights>] {
        &self.weights[turn.weights as usize..]
    }

    /// The values of a turn's parameter ports, and what follows.
    pub(super) fn params<'a, 'b>(&self, turn: &Turn, all: &'a [&'b [f32]]) -> &'a [&'b [f32]] {
        &all[turn.params as usize..]
    }

    fn find_program(&mut self, plan: &Plan, step: &Step) -> Result<u32, RunError> {
        let in_place = plan.places(step).iter().all(|place| !matches!(place, Place::Table { .. }));
        let slot = self.of_kernel[step.kernel.index()][usize::from(in_place)];
        if slot != NONE {
            return Ok(slot);
        }
        let kernel = &plan.kernels[step.kernel.index()];
        let number = match self.known.entry((Arc::as_ptr(kernel) as usize, in_place)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let program = Program::new(kernel, in_place);
                let bytes = 4 * constant_floats(kernel) as u64;
                let program = program.ok_or(RunError::Tiles { bytes })?;
                self.programs.push((Arc::clone(kernel), program));
                self.of_program.push(NONE);
                *unknown.insert(self.programs.len() as u32 - 1)
            }
        };
        self.of_kernel[step.kernel.index()][usize::from(in_place)] = number;
        let limits = &self.programs[number as usize].1.word_limits;
        self.least_limit = limits.iter().fold(self.least_limit, |least, limit| least.min(limit.below));
        Ok(number)
    }

    fn find_binding(&mut self, plan: &Plan, step: &Step, program: u32) -> Option<u32> {
        let is = |binding: &Binding| {
            let own = &plan.store_args[binding.stores.start as usize..binding.stores.end as usize];
            binding.program == program && own == plan.stores(step)
        };
        let last = self.of_program[program as usize];
        if last != NONE && is(&self.bindings[last as usize]) {
            return Some(last);
        }
        let mut at = self.of_stores.get(&hash_of(plan, step, program)).copied().unwrap_or(NONE);
        while at != NONE {
            let binding = &self.bindings[at as usize];
            if is(binding) {
                self.of_program[program as usize] = at;
                return Some(at);
            }
            at = binding.next;
        }
        None
    }

    fn bind<'a>(
        &mut self,
        isa: Isa,
        plan: &Plan,
        step: &Step,
        program: u32,
        stores: &'a dyn Stores,
        params: &mut Vec<&'a [f32]>,
    ) -> Result<u32, RunError> {
        let number = self.bindings.len();
        self.bindings.push(Binding {
            program,
            stores: step.stores.clone(),
            params: params.len() as u32,
            weights: self.weights.len() as u32,
            next: self.of_stores.insert(hash_of(plan, step, program), number as u32).unwrap_or(NONE),
        });
        self.of_program[program as usize] = number as u32;
        self.look_up(isa, plan, number, stores, params)?;
        Ok(number as u32)
    }

    /// Appends the values and packed weights of a binding.
    fn look_up<'a>(
        &mut self,
        isa: Isa,
        plan: &Plan,
        binding: usize,
        stores: &'a dyn Stores,
        params: &mut Vec<&'a [f32]>,
    ) -> Result<(), RunError> {
        let Binding { program, stores: own, .. } = &self.bindings[binding];
        let own = &plan.store_args[own.start as usize..own.end as usize];
        let (first, first_version) = (params.len(), self.versions.len());
        for &store in own {
            params.push(stores.sized(plan, store)?);
            self.versions.push(stores.version(store));
        }
        for weight in &self.programs[*program as usize].1.weights {
            let param = weight.param as usize;
            let values = (self.versions[first_version + param], params[first + param]);
            self.weights.push(self.packed.get(isa, plan, own[param], *weight, values)?);
        }
        Ok(())
    }
}
