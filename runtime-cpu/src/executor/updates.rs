//! Executes update plans: streams the arrays of each parameter through the fused kernel of its update.
//!
//! Threads split the elements of one parameter, so the bits depend on the plan only. A fused kernel is built once per
//! kernel and aliasing of its ports with its targets. Executing a plan seen before on one thread allocates nothing.

use super::RunError;
use super::gradients::Gradients;
use super::stream::{Stream, parts};
use super::weight_cache::WeightCache;
use crate::crew::Crew;
use crate::kernels::Isa;
use crate::kernels::elementwise::{Elements, ElementsMut};
use crate::kernels::fused_update::{FusedKernel, FusedScratch, Port};
use crate::kernels::rowwise::{RowResult, run as run_row};
use autobatch_ir::graph::Op;
use autobatch_ir::numeric::{row, store};
use autobatch_ir::plan::{BindError, Kernel, KernelId, StoreId, StoreKind, Update, UpdatePlan, UpdateSource};
use autobatch_ir::types::{DType, Shape, Type};
use autobatch_ir::{ParamId, States, Weights};
use std::sync::Arc;

/// The maximum number of cached fused kernels. Beyond it, the next update starts with an empty cache.
const MAX_KERNELS: usize = 1024;

/// The source of gradients for an update: an executor, or the caller's own, such as sums over machines.
pub trait GradientSource {
    /// The gradient of a parameter.
    fn gradient(&self, param: ParamId) -> Option<&[f32]>;

    /// The rows of a table's gradient that are not zero, ascending; `None` if the gradient is dense.
    fn sparse_rows(&self, param: ParamId) -> Option<&[u32]>;
}

impl GradientSource for Gradients {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.of_param(param)
    }

    fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.sparse_rows(param)
    }
}

/// Fused kernels and memory, reused from update to update.
#[derive(Default)]
pub(super) struct Updates {
    kernels: Vec<CachedKernel>,
    scratch: Vec<FusedScratch>,
    scalars: Vec<f32>,
    /// Sums of blocks.
    sums: Vec<f32>,
    ports: Vec<Port>,
    targets: Vec<*mut f32>,
    /// For each port, the target whose array it reads.
    aliases: Vec<Option<u32>>,
}

// SAFETY: the vectors of pointers are kept only for their capacity; every run clears them first.
unsafe impl Send for Updates {}
// SAFETY: as above; nothing reads the pointers through a shared reference.
unsafe impl Sync for Updates {}

/// A fused kernel and what it was built from.
struct CachedKernel {
    kernel: Arc<Kernel>,
    aliases: Box<[Option<u32>]>,
    fused: Arc<FusedKernel>,
}

/// The arrays of one update plan.
pub(super) struct Arrays<'a> {
    pub(super) plan: &'a UpdatePlan,
    pub(super) gradients: &'a (dyn GradientSource + Sync),
    pub(super) weights: &'a mut Weights,
    pub(super) states: &'a mut States,
    pub(super) floats: &'a [f32],
    /// The packed forms of the weights.
    pub(super) packed: &'a mut WeightCache,
}

impl<'a> Arrays<'a> {
    /// Checks that every array of the plan exists in its size.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let plan = self.plan;
        BindError::check_count("floats", plan.floats.into(), self.floats.len())?;
        let params = self.params();
        let states = plan.given_stores() - params;
        if self.weights.len() != params || self.states.len() != states {
            let (expected, found) = (plan.given_stores(), self.weights.len() + self.states.len());
            return Err(RunError::States { expected, found });
        }
        for (number, store) in (0..).map(StoreId).zip(&plan.stores) {
            self.elements(number)?;
            if let StoreKind::Grad(_) = store.kind {
                self.sparse_rows(number)?;
            }
        }
        Ok(())
    }

    /// The number of stores that are parameters. States follow them.
    fn params(&self) -> usize {
        let is_param = |kind: StoreKind| matches!(kind, StoreKind::Param(_));
        self.plan.stores.iter().take_while(|store| is_param(store.kind)).count()
    }

    /// The elements of a store. Checks their number each time, because a caller's source may change.
    fn elements(&self, store: StoreId) -> Result<&[f32], BindError> {
        let elements: &[f32] = match self.plan.stores[store.index()].kind {
            StoreKind::Param(_) => self.weights.get(ParamId::new(store.index())),
            StoreKind::State(_) => {
                self.states.iter().nth(store.index() - self.params()).map_or(&[], |state| state.values())
            }
            StoreKind::Grad(of) => self.gradients.gradient(ParamId::new(of.index())).unwrap_or(&[]),
        };
        self.plan.sized(store, elements)
    }

    /// The sparse rows of a store, if its gradient is sparse. Checks them each time, as [`elements`](Self::elements).
    fn sparse_rows(&self, store: StoreId) -> Result<Option<&'a [u32]>, RunError> {
        let gradient = &self.plan.stores[store.index()];
        let StoreKind::Grad(of) = gradient.kind else { return Ok(None) };
        let count = gradient.ty.shape.dims().first().copied().unwrap_or(1);
        let rows = self.gradients.sparse_rows(ParamId::new(of.index()));
        match rows.unwrap_or(&[]).iter().find(|&&row| row >= count) {
            Some(&row) => Err(RunError::SparseRows { name: gradient.name.clone(), row, rows: count }),
            None => Ok(rows),
        }
    }
}

/// The arguments of an update of stores.
#[derive(Clone, Copy)]
struct Apply<'a> {
    kernel: KernelId,
    /// True if only the sparse rows of the gradient are updated.
    sparse: bool,
    sources: &'a [UpdateSource],
    targets: &'a [StoreId],
}

impl Apply<'_> {
    /// The rows to update; `None` means all rows.
    fn rows<'a>(&self, arrays: &Arrays<'a>) -> Result<Option<&'a [u32]>, RunError> {
        let gradient = self.sources.iter().find_map(|source| match source {
            UpdateSource::Store(store) => {
                matches!(arrays.plan.stores[store.index()].kind, StoreKind::Grad(_)).then_some(*store)
            }
            UpdateSource::Scalar(_) | UpdateSource::Float(_) => None,
        });
        gradient.filter(|_| self.sparse).map_or(Ok(None), |gradient| arrays.sparse_rows(gradient))
    }
}

impl Updates {
    /// Executes all updates in order. The arrays were checked.
    pub(super) fn execute(
        &mut self,
        isa: Isa,
        crew: &mut Crew<'_>,
        mut arrays: Arrays<'_>,
    ) -> Result<(), RunError> {
        if self.kernels.len() > MAX_KERNELS {
            self.kernels.clear();
        }
        self.scratch.resize_with(crew.threads().max(self.scratch.len()), FusedScratch::default);
        self.scalars.clear();
        let plan = arrays.plan;
        for update in &plan.updates {
            match update {
                Update::Sumsq { stores } => self.sum_squares(isa, &arrays, stores)?,
                Update::Scalars { kernel, sources } => {
                    self.compute_scalars(isa, &arrays, *kernel, sources)?
                }
                Update::Apply { kernel, sparse, sources, targets } => {
                    let apply = Apply { kernel: *kernel, sparse: *sparse, sources, targets };
                    self.apply(isa, crew, &mut arrays, apply)?;
                }
            }
        }
        Ok(())
    }

    /// Appends the sum of the squares of all elements of some stores to the scalars.
    fn sum_squares(&mut self, isa: Isa, arrays: &Arrays<'_>, stores: &[StoreId]) -> Result<(), RunError> {
        let mut missing = Ok(());
        let sums = stores.iter().map_while(|&of| {
            let elements = arrays.elements(of).map_err(|error| missing = Err(error)).ok()?;
            Some(sum_of_squares(isa, &mut self.sums, elements))
        });
        self.scalars.push(store::sum_over_stores(sums));
        Ok(missing?)
    }

    /// The sum of the squares of all elements.
    pub(super) fn sum_of_squares(&mut self, isa: Isa, elements: &[f32]) -> f32 {
        sum_of_squares(isa, &mut self.sums, elements)
    }

    /// The fused kernel for the current aliases, cached or new. The scratch of all threads fits it.
    fn fused(&mut self, isa: Isa, kernel: &Arc<Kernel>) -> Result<Arc<FusedKernel>, RunError> {
        let matches =
            |known: &&CachedKernel| Arc::ptr_eq(&known.kernel, kernel) && *known.aliases == *self.aliases;
        let fused = match self.kernels.iter().find(matches) {
            Some(known) => Arc::clone(&known.fused),
            None => {
                let fused = Arc::new(FusedKernel::new(isa, kernel, &self.aliases));
                let aliases = self.aliases.clone().into_boxed_slice();
                self.kernels.push(CachedKernel {
                    kernel: Arc::clone(kernel),
                    aliases,
                    fused: Arc::clone(&fused),
                });
                fused
            }
        };
        for scratch in &mut self.scratch {
            scratch.fit(&fused).map_err(|bytes| RunError::Memory { bytes })?;
        }
        Ok(fused)
    }

    /// Appends the results of a kernel of scalars to the scalars.
    fn compute_scalars(
        &mut self,
        isa: Isa,
        arrays: &Arrays<'_>,
        kernel: KernelId,
        sources: &[UpdateSource],
    ) -> Result<(), RunError> {
        let kernel = &arrays.plan.kernels[kernel.index()];
        self.aliases.clear();
        self.aliases.resize(sources.len(), None);
        let fused = self.fused(isa, kernel)?;
        let count = self.scalars.len();
        self.scalars.resize(count + kernel.results.len(), 0.0);
        let (old, new) = self.scalars.split_at_mut(count);
        self.ports.clear();
        self.ports.extend(sources.iter().map(|source| single(source, old, arrays.floats)));
        self.targets.clear();
        self.targets.extend(new.iter_mut().map(std::ptr::from_mut));
        // SAFETY: each port and target is one float; the scratch fits.
        unsafe { fused.execute(0..1, &self.ports, &self.targets, &mut self.scratch[0]) };
        Ok(())
    }

    /// Updates the target stores of one kernel.
    fn apply(
        &mut self,
        isa: Isa,
        crew: &mut Crew<'_>,
        arrays: &mut Arrays<'_>,
        apply: Apply<'_>,
    ) -> Result<(), RunError> {
        let (plan, targets) = (arrays.plan, apply.targets);
        self.find_aliases(apply);
        let fused = self.fused(isa, &plan.kernels[apply.kernel.index()])?;
        let ty = |store: StoreId| plan.stores[store.index()].ty;
        let shape = ty(targets[0]).shape;
        let rows = apply.rows(arrays)?;
        self.collect_arrays(arrays, apply)?;

        let params = arrays.params();
        let param = targets.iter().position(|target| target.index() < params);
        let id = |at: usize| ParamId::new(targets[at].index());
        // Weights of lower precision are rounded when the guard drops, so their next run packs them.
        let unsplit = rows.is_none() && parts(shape.elements(), crew.threads()) == 1;
        let repacked = param.filter(|&at| unsplit && ty(targets[at]).dtype == DType::F32);
        let version = repacked.map(|at| arrays.weights.version(id(at)));
        // Pointers to the other arrays exist. The guard gives the parameter a new version, and rounds it when it drops.
        let mut guard = None;
        if let Some(at) = param {
            let guard = guard.insert(arrays.weights.get_mut(id(at)));
            self.set_target(at, guard.as_mut_ptr());
        }
        let repacking =
            repacked.zip(version).map(|(at, version)| (at, arrays.packed.repack(targets[at], version)));
        let mut repacking = repacking.filter(|(_, parts)| !parts.is_empty());

        let stream = Stream { fused: &fused, ports: &self.ports, targets: &self.targets };
        // SAFETY: every array was checked to have the elements of the shape. Targets are distinct and borrowed mutably
        // by this call, and sparse rows lie inside their table.
        unsafe {
            match (rows, &mut repacking) {
                (Some(rows), _) => stream.execute_rows(shape, rows, crew, &mut self.scratch),
                (None, Some((at, parts))) => {
                    stream.execute_packing(shape, *at, parts, &mut self.scratch[0]);
                }
                (None, None) => stream.execute(0..shape.elements(), crew, &mut self.scratch),
            }
        }
        drop(guard);
        if let Some((at, parts)) = repacking {
            parts.finish(arrays.weights.version(id(at)));
        }
        Ok(())
    }

    /// Finds the target of each source that is updated.
    fn find_aliases(&mut self, apply: Apply<'_>) {
        self.aliases.clear();
        self.aliases.extend(apply.sources.iter().map(|source| match source {
            UpdateSource::Store(store) => {
                apply.targets.iter().position(|target| target == store).map(|at| at as u32)
            }
            UpdateSource::Scalar(_) | UpdateSource::Float(_) => None,
        }));
    }

    /// Collects the pointers of all ports and targets, except those of the parameter.
    fn collect_arrays(&mut self, arrays: &mut Arrays<'_>, apply: Apply<'_>) -> Result<(), RunError> {
        let params = arrays.params();
        self.targets.clear();
        for &target in apply.targets {
            self.targets.push(match target.index().checked_sub(params) {
                Some(state) => arrays.states.as_mut_slice()[state].values_mut().as_mut_ptr(),
                None => std::ptr::null_mut(),
            });
        }
        self.ports.clear();
        for (source, alias) in apply.sources.iter().zip(&self.aliases) {
            self.ports.push(match (source, alias) {
                (_, Some(target)) => Port { base: self.targets[*target as usize], single: false },
                (UpdateSource::Store(store), None) => {
                    Port { base: arrays.elements(*store)?.as_ptr(), single: false }
                }
                (other, None) => single(other, &self.scalars, arrays.floats),
            });
        }
        Ok(())
    }

    /// Sets the pointer of a target and of the ports that alias it.
    fn set_target(&mut self, at: usize, base: *mut f32) {
        self.targets[at] = base;
        for (port, alias) in self.ports.iter_mut().zip(&self.aliases) {
            if *alias == Some(at as u32) {
                port.base = base;
            }
        }
    }
}

/// A scalar or a bound float as a port.
fn single(source: &UpdateSource, scalars: &[f32], floats: &[f32]) -> Port {
    let base = match *source {
        UpdateSource::Scalar(scalar) => &scalars[scalar as usize],
        UpdateSource::Float(float) => &floats[float as usize],
        UpdateSource::Store(_) => unreachable!("scalars are not computed from stores (rule P33)"),
    };
    Port { base, single: true }
}

/// The sum of the squares of a store, block by block.
fn sum_of_squares(isa: Isa, sums: &mut Vec<f32>, elements: &[f32]) -> f32 {
    sums.clear();
    sums.extend(elements.chunks(store::BLOCK).map(|block| {
        let Ok(shape) = Shape::new(&[block.len() as u32]) else {
            return store::block_sum_of_squares(block);
        };
        let rows = Elements { base: block.as_ptr(), stride: block.len(), single: false };
        let operand = (rows, Type::new(DType::F32, shape));
        let mut sum = 0.0;
        let out = RowResult { rows: ElementsMut { base: &raw mut sum, stride: 1 }, width: 1 };
        // The dot product of a row with itself folds its squares. SAFETY: the block is readable, and the result is a
        // local float.
        let known = unsafe { run_row(isa, Op::Dot, 1, &[operand, operand], out) };
        if known { sum } else { store::block_sum_of_squares(block) }
    }));
    row::sum(sums)
}
