//! Executes update plans: streams the arrays of each parameter through the line of its kernel.
//!
//! Threads take ranges of elements of one parameter, so the bits depend on the plan only. Lines are
//! made once for a kernel and the way in which its ports meet its targets; executing a plan seen
//! before on one thread allocates nothing.

use super::RunError;
use super::gradients::Gradients;
use super::packed::{Met, Packed};
use crate::kernels::Isa;
use crate::kernels::elementwise::{Elements, ElementsMut};
use crate::kernels::line::{Line, LineScratch, Port};
use crate::kernels::rowwise::run as run_row;
use autobatch_ir::graph::Op;
use autobatch_ir::numeric::{row, store};
use autobatch_ir::plan::{BindError, Kernel, KernelId, StoreId, StoreKind, Update, UpdatePlan, UpdateSource};
use autobatch_ir::types::{DType, Shape, Type};
use autobatch_ir::{ParamId, States, Weights};
use std::ops::Range;
use std::sync::Arc;

/// Elements below which an array is not split among threads: about 30 µs of one core.
const SPLIT_ELEMENTS: usize = 1 << 15;
/// So many elements are packed while they are in cache, and more where rows are long: rows are packed in
/// whole panels, however they lie.
const PACKED_ELEMENTS: usize = 1 << 12;
const PACKED_ROWS: usize = 32;
/// So many lines are kept; an executor that has met more begins anew with its next update.
const MOST_LINES: usize = 1024;

/// Where an update finds gradients: the executor's own of the plan executed last, or those that a caller
/// brings, summed over machines, say.
pub trait GradientSource {
    /// The gradient of a parameter.
    fn gradient(&self, param: ParamId) -> Option<&[f32]>;

    /// The rows of a table's gradient that were touched, ascending; `None` if all count as touched.
    fn touched(&self, param: ParamId) -> Option<&[u32]>;
}

/// What is kept from update to update.
#[derive(Default)]
pub(super) struct Updates {
    lines: Vec<KnownLine>,
    scratch: Vec<LineScratch>,
    scalars: Vec<f32>,
    /// Sums of blocks.
    sums: Vec<f32>,
    ports: Vec<Port>,
    targets: Vec<*mut f32>,
    aliases: Vec<Option<u32>>,
}

// SAFETY: pointers are kept for their memory's sake only; every run clears them first.
unsafe impl Send for Updates {}
// SAFETY: as above; nothing reads them through a shared reference.
unsafe impl Sync for Updates {}

/// A line, for whom it was made, and where its ports read what its targets write.
struct KnownLine {
    kernel: Arc<Kernel>,
    aliases: Box<[Option<u32>]>,
    line: Arc<Line>,
}

/// What one update plan is executed on.
pub(super) struct Arrays<'a> {
    pub(super) plan: &'a UpdatePlan,
    pub(super) gradients: &'a (dyn GradientSource + Sync),
    pub(super) weights: &'a mut Weights,
    pub(super) states: &'a mut States,
    pub(super) floats: &'a [f32],
    /// What is packed of the weights.
    pub(super) packed: &'a mut Packed,
}

impl GradientSource for Gradients {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.of_param(param)
    }

    fn touched(&self, param: ParamId) -> Option<&[u32]> {
        self.sparse_rows(param)
    }
}

impl Arrays<'_> {
    /// Whether everything that the plan names is there, in its size.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let plan = self.plan;
        if self.floats.len() < plan.floats as usize {
            let (expected, found) = (plan.floats as usize, self.floats.len());
            return Err(BindError::Missing { what: "floats", expected, found }.into());
        }
        let first = self.params();
        let states = plan.given_stores() - first;
        if self.weights.len() != first || self.states.len() != states {
            let (expected, found) = (plan.given_stores(), self.weights.len() + self.states.len());
            return Err(RunError::States { expected, found });
        }
        for (number, store) in (0..).map(StoreId).zip(&plan.stores) {
            self.elements(number)?;
            if let StoreKind::Grad(of) = store.kind {
                touched(self.plan, self.gradients, (number, ParamId::new(of.index())))?;
            }
        }
        Ok(())
    }

    /// How many stores are parameters; states follow.
    fn params(&self) -> usize {
        let param = |kind: StoreKind| matches!(kind, StoreKind::Param(_));
        self.plan.stores.iter().take_while(|store| param(store.kind)).count()
    }

    /// The elements of a store, as many as the plan says: where they come from may say something else each time.
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
}

impl Updates {
    /// Executes all updates in order. The arrays were checked.
    pub(super) fn execute(
        &mut self,
        isa: Isa,
        threads: usize,
        mut arrays: Arrays<'_>,
    ) -> Result<(), RunError> {
        if self.lines.len() > MOST_LINES {
            self.lines.clear();
        }
        self.scratch.resize_with(threads.max(self.scratch.len()), LineScratch::default);
        self.scalars.clear();
        let plan = arrays.plan;
        for update in &plan.updates {
            match update {
                Update::Sumsq { stores } => {
                    let mut missing = Ok(());
                    let sums = stores.iter().map_while(|&of| {
                        let elements = arrays.elements(of).map_err(|error| missing = Err(error)).ok()?;
                        Some(sum_of_squares(isa, &mut self.sums, elements))
                    });
                    self.scalars.push(store::sum_over_stores(sums));
                    missing?;
                }
                Update::Scalars { kernel, sources } => self.make_scalars(isa, &arrays, *kernel, sources)?,
                Update::Apply { kernel, touched, sources, targets } => {
                    self.apply(isa, threads, &mut arrays, (*kernel, *touched), sources, targets)?;
                }
            }
        }
        Ok(())
    }

    /// The line of a kernel whose ports meet its targets as `aliases` says, made now or before.
    fn line(&mut self, isa: Isa, kernel: &Arc<Kernel>) -> Arc<Line> {
        let known = |line: &&KnownLine| Arc::ptr_eq(&line.kernel, kernel) && *line.aliases == *self.aliases;
        if let Some(known) = self.lines.iter().find(known) {
            return Arc::clone(&known.line);
        }
        let line = Arc::new(Line::new(isa, kernel, &self.aliases));
        let aliases = self.aliases.clone().into_boxed_slice();
        self.lines.push(KnownLine { kernel: Arc::clone(kernel), aliases, line: Arc::clone(&line) });
        line
    }

    fn make_scalars(
        &mut self,
        isa: Isa,
        arrays: &Arrays<'_>,
        kernel: KernelId,
        sources: &[UpdateSource],
    ) -> Result<(), RunError> {
        let kernel = &arrays.plan.kernels[kernel.index()];
        self.aliases.clear();
        self.aliases.resize(sources.len(), None);
        let line = self.line(isa, kernel);
        let made = self.scalars.len();
        self.scalars.resize(made + kernel.results.len(), 0.0);
        let (old, new) = self.scalars.split_at_mut(made);
        self.ports.clear();
        self.ports.extend(sources.iter().map(|source| single(source, old, arrays.floats)));
        self.targets.clear();
        self.targets.extend(new.iter_mut().map(std::ptr::from_mut));
        let scratch = &mut self.scratch[0];
        fit(scratch, &line)?;
        // SAFETY: each port and target is one float; the scratch has room.
        unsafe { line.execute(0..1, &self.ports, &self.targets, scratch) };
        Ok(())
    }

    fn apply(
        &mut self,
        isa: Isa,
        threads: usize,
        arrays: &mut Arrays<'_>,
        (kernel, touched): (KernelId, bool),
        sources: &[UpdateSource],
        targets: &[StoreId],
    ) -> Result<(), RunError> {
        let (plan, gradients) = (arrays.plan, arrays.gradients);
        self.aliases.clear();
        self.aliases.extend(sources.iter().map(|source| match source {
            UpdateSource::Store(store) => {
                targets.iter().position(|target| target == store).map(|at| at as u32)
            }
            UpdateSource::Scalar(_) | UpdateSource::Float(_) => None,
        }));
        let line = self.line(isa, &plan.kernels[kernel.index()]);
        for scratch in &mut self.scratch {
            fit(scratch, &line)?;
        }
        let first = arrays.params();
        let param = targets.iter().position(|target| target.index() < first);
        let shape = plan.stores[targets[0].index()].ty.shape;
        let rows = if touched { sparse_rows(plan, gradients, sources)? } else { None };
        // Values that the guard rounds are packed when a run meets them.
        let packs = |at: &usize| {
            let exact = plan.stores[targets[*at].index()].ty.dtype == DType::F32;
            exact && rows.is_none() && parts(shape.elements(), threads) == 1
        };
        let packs = param.filter(packs);
        let version = packs.map(|at| arrays.weights.version(ParamId::new(targets[at].index())));
        // Targets first: the guard of the parameter changes its version and rounds it when it goes.
        let mut guard = None;
        self.targets.clear();
        for &target in targets {
            let base = match plan.stores[target.index()].kind {
                StoreKind::Param(_) => None,
                StoreKind::State(_) | StoreKind::Grad(_) => {
                    let state = &mut arrays.states.as_mut_slice()[target.index() - first];
                    Some(state.values_mut().as_mut_ptr())
                }
            };
            self.targets.push(base.unwrap_or(std::ptr::null_mut()));
        }
        self.ports.clear();
        for (source, alias) in sources.iter().zip(&self.aliases) {
            self.ports.push(match (source, alias) {
                (_, Some(target)) => Port { base: self.targets[*target as usize], single: false },
                (UpdateSource::Store(store), None) => {
                    Port { base: arrays.elements(*store)?.as_ptr(), single: false }
                }
                (other, None) => single(other, &self.scalars, arrays.floats),
            });
        }
        if let Some(at) = param {
            let guard = guard.insert(arrays.weights.get_mut(ParamId::new(targets[at].index())));
            self.targets[at] = guard.as_mut_ptr();
            for (port, alias) in self.ports.iter_mut().zip(&self.aliases) {
                if *alias == Some(at as u32) {
                    port.base = self.targets[at];
                }
            }
        }
        let met = packs.zip(version).map(|(at, version)| (at, arrays.packed.met(targets[at], version)));
        let mut met = met.filter(|(_, met)| !met.is_empty());
        let work = Stream { line: &line, ports: &self.ports, targets: &self.targets };
        match (rows, &mut met) {
            // SAFETY: all arrays have as many elements as the shape, which was checked; targets are distinct
            // and borrowed mutably by this call, and rows lie inside their table.
            (None, None) => unsafe { work.execute(0..shape.elements(), &mut self.scratch[..threads]) },
            // SAFETY: as above.
            (None, Some((at, met))) => unsafe { work.execute_packing(shape, *at, met, &mut self.scratch[0]) },
            (Some(rows), _) => {
                let width = shape.elements() / shape.dims()[0] as usize;
                for run in rows.chunk_by(|a, b| a + 1 == *b) {
                    let start = run[0] as usize * width;
                    // SAFETY: as above.
                    unsafe { work.execute(start..start + run.len() * width, &mut self.scratch[..threads]) };
                }
            }
        }
        drop(guard);
        if let Some((at, met)) = met {
            met.finish(arrays.weights.version(ParamId::new(targets[at].index())));
        }
        Ok(())
    }
}

/// A scalar or a bound float as a port.
fn single(source: &UpdateSource, scalars: &[f32], floats: &[f32]) -> Port {
    let base = match *source {
        UpdateSource::Scalar(scalar) => &scalars[scalar as usize],
        UpdateSource::Float(float) => &floats[float as usize],
        UpdateSource::Store(_) => unreachable!("scalars are not made of stores (rule P33)"),
    };
    Port { base, single: true }
}

fn fit(scratch: &mut LineScratch, line: &Line) -> Result<(), RunError> {
    scratch.fit(line).map_err(|bytes| RunError::Memory { bytes })
}

/// The rows of the gradient of a parameter that were touched, each of them one that there is; none, if all count as
/// touched. Looked at where it is used, as [`Arrays::elements`] are.
fn touched<'a>(
    plan: &UpdatePlan,
    gradients: &'a dyn GradientSource,
    (gradient, of): (StoreId, ParamId),
) -> Result<Option<&'a [u32]>, RunError> {
    let store = &plan.stores[gradient.index()];
    let rows = store.ty.shape.dims().first().copied().unwrap_or(1);
    let touched = gradients.touched(of);
    match touched.unwrap_or(&[]).iter().find(|&&row| row >= rows) {
        Some(&row) => Err(RunError::SparseRows { name: store.name.clone(), row, rows }),
        None => Ok(touched),
    }
}

/// The rows that an update of sparse rows changes; all, if there is no list of them.
fn sparse_rows<'a>(
    plan: &UpdatePlan,
    gradients: &'a dyn GradientSource,
    sources: &[UpdateSource],
) -> Result<Option<&'a [u32]>, RunError> {
    let gradient = sources.iter().find_map(|source| match source {
        UpdateSource::Store(store) => match plan.stores[store.index()].kind {
            StoreKind::Grad(of) => Some((*store, ParamId::new(of.index()))),
            StoreKind::Param(_) | StoreKind::State(_) => None,
        },
        UpdateSource::Scalar(_) | UpdateSource::Float(_) => None,
    });
    gradient.map_or(Ok(None), |gradient| touched(plan, gradients, gradient))
}

/// A line with its arrays.
#[derive(Clone, Copy)]
struct Stream<'a> {
    line: &'a Line,
    ports: &'a [Port],
    targets: &'a [*mut f32],
}

// SAFETY: threads execute distinct elements.
unsafe impl Send for Stream<'_> {}
// SAFETY: as above.
unsafe impl Sync for Stream<'_> {}

impl Stream<'_> {
    /// Executes a range of elements, split among the threads whose scratch is given.
    ///
    /// # Safety
    /// As for [`Line::execute`].
    unsafe fn execute(self, elements: Range<usize>, scratch: &mut [LineScratch]) {
        let count = elements.len();
        let parts = parts(count, scratch.len());
        if let [first, ..] = scratch
            && parts == 1
        {
            // SAFETY: as for this function.
            return unsafe { self.part(elements, first) };
        }
        rayon::scope(|scope| {
            for (number, scratch) in scratch[..parts].iter_mut().enumerate() {
                let at = |number: usize| elements.start + count * number / parts;
                let own = at(number)..at(number + 1);
                // SAFETY: as for this function; each thread executes elements of its own.
                scope.spawn(move |_| unsafe { self.part(own, scratch) });
            }
        });
    }

    /// Executes all elements of a matrix and packs its new values, some rows at a time.
    ///
    /// # Safety
    /// As for [`Line::execute`], for as many elements as the shape has.
    unsafe fn execute_packing(
        self,
        shape: Shape,
        target: usize,
        met: &mut Met<'_>,
        scratch: &mut LineScratch,
    ) {
        let (all, columns) = (shape.elements(), shape.width());
        let each = (PACKED_ELEMENTS / columns).max(1).next_multiple_of(PACKED_ROWS);
        let mut executed = 0;
        for first in (0..shape.rows()).step_by(each) {
            let rows = first..shape.rows().min(first + each);
            let end = (rows.end * columns).next_multiple_of(Line::BLOCK).min(all);
            // SAFETY: as for this function; nobody writes values while they are packed.
            let values = unsafe {
                self.part(executed..end, scratch);
                std::slice::from_raw_parts(self.targets[target].cast_const(), all)
            };
            executed = end;
            met.pack(rows, values);
        }
    }

    /// # Safety
    /// As for [`Stream::execute`].
    unsafe fn part(self, elements: Range<usize>, scratch: &mut LineScratch) {
        // SAFETY: as for this function.
        unsafe { self.line.execute(elements, self.ports, self.targets, scratch) };
    }
}

/// Among how many threads so many elements are split.
fn parts(elements: usize, threads: usize) -> usize {
    (elements / SPLIT_ELEMENTS + 1).min(threads)
}

/// The sum of the squares of a store, block by block.
fn sum_of_squares(isa: Isa, sums: &mut Vec<f32>, elements: &[f32]) -> f32 {
    sums.clear();
    sums.extend(elements.chunks(store::BLOCK).map(|block| {
        let Ok(shape) = Shape::new(&[block.len() as u32]) else {
            return store::block_sum_of_squares(block);
        };
        let operand = Elements { base: block.as_ptr(), stride: block.len(), single: false };
        let mut sum = 0.0;
        let out = ElementsMut { base: &raw mut sum, stride: 1 };
        let operand = (operand, Type::new(DType::F32, shape));
        // A dot product of a row with itself is the fold of its squares.
        // SAFETY: the block is readable, and the result is one float of our own.
        let known = unsafe { run_row(isa, Op::Dot, 1, &[operand, operand], (out, 1)) };
        if known { sum } else { store::block_sum_of_squares(block) }
    }));
    row::sum(sums)
}
