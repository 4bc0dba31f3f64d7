//! The naive executor of plans: one step after the other, one lane at a time, by [`numeric`](autobatch_ir::numeric).
//!
//! It is the oracle of the runtimes, so its code is plain. Rows stay, so tests find the first row in which a runtime
//! differs.
//!
//! # Indices and truth values
//! A bound index of a table or of scores must be in range, whether a step reads it directly or from a row that a source
//! brought in. Otherwise the executor returns an error that names the word. A computed index out of range ends the
//! execution at its lane. A bound truth value must be 0 or 1, because no op defines the meaning of another word.

mod error;
pub(crate) mod lane;
mod reductions;
mod updates;

pub use error::RunError;
pub use updates::update;

use autobatch_ir::plan::row_ops::{Noise, Scratch};
use autobatch_ir::plan::{
    BindError, ComputedIndex, FieldId, OutputKey, Place, Plan, Step, StepOperand, StoreId, Verified,
    WordLimits,
};
use autobatch_ir::types::Type;
use lane::{Lane, Operands};

/// The rows, outputs and gradients of a run.
#[derive(Clone, Debug)]
pub struct Executed {
    fields: Vec<Rows>,
    outputs: Vec<(OutputKey, FieldId, u32)>,
    gradients: Vec<Vec<f32>>,
    sparse: Vec<Option<Vec<u32>>>,
}

/// The rows of a field.
#[derive(Clone, Debug)]
struct Rows {
    width: usize,
    words: Vec<u32>,
}

impl Rows {
    fn row(&self, row: u32) -> &[u32] {
        &self.words[row as usize * self.width..][..self.width]
    }
}

impl Executed {
    /// The words of a row; floats are their bits. `None` if there is no such row.
    #[must_use]
    pub fn row(&self, field: FieldId, row: u32) -> Option<&[u32]> {
        let rows = self.fields.get(field.index())?;
        rows.words.get((row as usize).checked_mul(rows.width)?..)?.get(..rows.width)
    }

    /// The number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The words of an output, by its place in the plan's list.
    #[must_use]
    pub fn output(&self, number: usize) -> Option<&[u32]> {
        let (_, field, row) = self.outputs.get(number)?;
        self.row(*field, *row)
    }

    /// The elements of a gradient store; `None` for other stores.
    #[must_use]
    pub fn gradient(&self, store: StoreId) -> Option<&[f32]> {
        self.gradients.get(store.index()).map(Vec::as_slice).filter(|gradient| !gradient.is_empty())
    }

    /// The rows of a table's gradient that `tgrad` reductions added to, ascending. `None` for other stores, and for a
    /// gradient with other reductions, all of whose rows are sparse.
    #[must_use]
    pub fn sparse_rows(&self, store: StoreId) -> Option<&[u32]> {
        self.sparse.get(store.index())?.as_deref()
    }

    /// The words of the output that the graph gives this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&[u32]> {
        self.output(self.outputs.iter().position(|output| output.0.name() == Some(name))?)
    }
}

/// Executes a plan without a pause: `floats` include the gradients that arrive at one. `stores` are the values of its stores without gradients, widened to `f32`.
///
/// # Errors
/// If a store or binding is missing or out of range, or there is not enough memory.
pub fn execute<S: AsRef<[f32]>>(
    plan: &Verified<Plan>,
    stores: &[S],
    words: &[u32],
    floats: &[f32],
    noise: Noise,
) -> Result<Executed, RunError> {
    let fields = allocate(plan)?;
    execute_from(Run { plan, stores, words, floats, noise, fields }, 0)
}

/// Executes the steps of a plan from `first` on, over the rows that a run of the earlier steps left. This is how a plan
/// in mode `grow` continues. All else is as for [`execute`].
///
/// # Errors
/// As for [`execute`].
pub fn resume<S: AsRef<[f32]>>(
    plan: &Verified<Plan>,
    before: &Executed,
    first: usize,
    stores: &[S],
    words: &[u32],
    floats: &[f32],
    noise: Noise,
) -> Result<Executed, RunError> {
    let mut fields = allocate(plan)?;
    for (field, old) in fields.iter_mut().zip(&before.fields) {
        let kept = field.words.len().min(old.words.len());
        field.words[..kept].copy_from_slice(&old.words[..kept]);
    }
    execute_from(Run { plan, stores, words, floats, noise, fields }, first)
}

/// Checks the inputs, executes the steps from `first` on, then the reductions.
fn execute_from<S: AsRef<[f32]>>(mut run: Run<'_, S>, first: usize) -> Result<Executed, RunError> {
    let plan = run.plan;
    BindError::check_count("words", plan.words.into(), run.words.len())?;
    BindError::check_count("floats", plan.all_floats(), run.floats.len())?;
    error::check_stores(&plan.stores[..plan.given_stores()], run.stores)?;
    WordLimits::new(plan).check(plan, run.words)?;
    let mut lane = Lane::default();
    let mut scratch = Scratch::default();
    for (number, step) in plan.steps.iter().enumerate().skip(first) {
        lane.fit(plan.kernel(step))?;
        for at in 0..step.rows {
            if let Some((found, limit)) = run.lane(step, at, &mut lane, &mut scratch) {
                return Err(ComputedIndex::new(plan, number, at as usize, found, limit).into());
            }
        }
    }
    let outputs = plan.outputs.iter().map(|output| (output.key.clone(), output.field, output.row));
    let (outputs, gradients, sparse) =
        (outputs.collect(), reductions::execute(&run)?, reductions::sparse_rows(&run));
    Ok(Executed { fields: run.fields, outputs, gradients, sparse })
}

fn allocate(plan: &Plan) -> Result<Vec<Rows>, RunError> {
    let mut fields = Vec::with_capacity(plan.fields.len());
    for field in &plan.fields {
        let rows = plan.slabs[field.slab.index()].rows as usize;
        let width = field.width() as usize;
        let words = error::zeros(rows.checked_mul(width))?;
        fields.push(Rows { width, words });
    }
    Ok(fields)
}

struct Run<'a, S> {
    plan: &'a Plan,
    stores: &'a [S],
    words: &'a [u32],
    floats: &'a [f32],
    noise: Noise,
    fields: Vec<Rows>,
}

impl<S: AsRef<[f32]>> Run<'_, S> {
    /// Executes a lane. Returns its first index out of range, with the limit.
    fn lane(&mut self, step: &Step, at: u32, lane: &mut Lane, scratch: &mut Scratch) -> Option<(u32, u32)> {
        let plan = self.plan;
        let kernel = plan.kernel(step);
        let params: Vec<&[f32]> =
            plan.stores(step).iter().map(|store| self.stores[store.index()].as_ref()).collect();
        for (port, &operand) in plan.operands(step).iter().enumerate() {
            self.bring(kernel.regs[port].ty, port, operand, at, lane);
        }
        let operands = Operands { kernel, params: &params, noise: self.noise };
        let fault = lane.execute(operands, scratch);
        for (&place, &result) in plan.places(step).iter().zip(&kernel.results) {
            let row = plan.result_rows(place, at).start;
            let rows = &mut self.fields[place.field().index()];
            let words = match place {
                Place::Edges { .. } => lane.edges(result.reg),
                Place::Rows { .. } | Place::Table { .. } => lane.view(result),
            };
            rows.words[row as usize * rows.width..][..words.len()].copy_from_slice(words);
        }
        fault
    }

    /// Copies the lane's operand into its port's register.
    fn bring(&self, ty: Type, port: usize, operand: StepOperand, at: u32, lane: &mut Lane) {
        let width = ty.shape.elements();
        if let Some((field, row)) = self.plan.operand_row(operand, at) {
            lane.set_port(port, self.fields[field.index()].row(row));
        } else if let Some((field, rows)) = self.plan.list_rows(operand, at) {
            let fields = &self.fields[field.index()];
            lane.set_list(port, rows.iter().map(|row| fields.row(row)));
        } else if let Some(word) = self.plan.bound_word(operand, at) {
            lane.set_port(port, &self.words[word as usize..][..width]);
        } else if let Some(float) = self.plan.bound_float(operand, at) {
            lane.set_port(port, bytemuck::cast_slice(&self.floats[float as usize..][..width]));
        }
    }
}
