//! Update plans: the recipe of an optimiser becomes a plan.
//!
//! *Needs* a recipe for parameters of the module. *Ensures* a plan of mode train that holds updates
//! only: the sum of squares of all gradients, if anything asks for it; the shared cell; then an
//! update for each parameter in the order of the recipe. Parameters with the same cell share a
//! kernel.
//!
//! *How.* Cells are compiled as any cell is. A parameter of `f16` or `bf16` gets its kernel's first
//! result twice: for the parameter, which rounds it, and for its master.
//!
//! *Cost.* Linear in the parameters; a plan is made once for an optimiser and a module.

use crate::error::PlanError;
use crate::kernels::compile::{CompileOptions, Tables, compile};
use autobatch_ir::id::SigId;
use autobatch_ir::module::Module;
use autobatch_ir::plan::{Kernel, KernelId, StoreId, StoreKind, Update, UpdatePlan, UpdateSource};
use autobatch_ir::recipe::{ParamRecipe, SharedNumber, UpdateRecipe, needs_master};
use std::sync::Arc;

/// The plan that updates a module's parameters as a recipe says. Verify it before it is executed, as
/// any plan; only a recipe whose cells are not elementwise makes one that breaks a rule.
///
/// # Errors
/// If the recipe updates nothing, or a parameter that the module does not have.
pub fn update_plan(module: &Module, recipe: &UpdateRecipe) -> Result<UpdatePlan, PlanError> {
    if recipe.params.is_empty() {
        return Err(PlanError::NothingWanted);
    }
    if let Some(missing) = recipe.params.iter().find(|of| of.param.index() >= module.params.len()) {
        return Err(PlanError::NoParam(missing.param));
    }
    let stores = recipe.stores(module);
    let mut work = Work { recipe, kernels: Vec::new(), known: Vec::new() };
    let mut updates = Vec::with_capacity(recipe.params.len() + 2);
    let mut shared = Vec::new();
    let stores_of = |is_wanted: &dyn Fn(StoreKind) -> bool| -> Vec<StoreId> {
        let ids = stores.iter().zip((0..).map(StoreId)).filter(|(store, _)| is_wanted(store.kind));
        ids.map(|(_, id)| id).collect()
    };
    if recipe.norm {
        updates.push(Update::Sumsq { stores: stores_of(&|kind| matches!(kind, StoreKind::Grad(_))) });
        shared.push(UpdateSource::Scalar(0));
    }
    if let Some(sig) = recipe.shared {
        shared.extend((0..recipe.floats).map(UpdateSource::Float));
        updates.push(Update::Scalars { kernel: work.kernel(sig, false), sources: shared });
    }
    for of in &recipe.params {
        let param = StoreId(of.param.index() as u32);
        let states = stores_of(&|kind| kind == StoreKind::State(param));
        let gradient = stores_of(&|kind| kind == StoreKind::Grad(param));
        updates.push(work.apply(of, needs_master(module, of.param), param, &states, gradient[0]));
    }
    Ok(UpdatePlan {
        module: module.name.clone(),
        stores,
        floats: recipe.floats,
        kernels: work.kernels,
        updates,
    })
}

struct Work<'a> {
    recipe: &'a UpdateRecipe,
    kernels: Vec<Arc<Kernel>>,
    /// The cell of each kernel, and whether its first result stands twice.
    known: Vec<(SigId, bool)>,
}

impl Work<'_> {
    fn kernel(&mut self, sig: SigId, twice: bool) -> KernelId {
        if let Some(known) = self.known.iter().position(|known| *known == (sig, twice)) {
            return KernelId(known as u32);
        }
        let cells = &self.recipe.cells;
        let tables = Tables { module: cells, types: &cells.types, sigs: &cells.sigs };
        let mut kernel = compile(tables, sig, CompileOptions { training: false });
        if twice && let Some(&first) = kernel.results.first() {
            kernel.results.insert(0, first);
        }
        self.kernels.push(Arc::new(kernel));
        self.known.push((sig, twice));
        KernelId(self.known.len() as u32 - 1)
    }

    fn apply(
        &mut self,
        of: &ParamRecipe,
        master: bool,
        param: StoreId,
        states: &[StoreId],
        gradient: StoreId,
    ) -> Update {
        // A master comes first among the states and stands in the place of the parameter.
        let (value, states) = match states {
            [value, states @ ..] if master => (*value, states),
            _ => (param, states),
        };
        let first_shared = u32::from(self.recipe.norm);
        let number = |number: &SharedNumber| match *number {
            SharedNumber::Float(place) => UpdateSource::Float(place),
            SharedNumber::Shared(place) => UpdateSource::Scalar(first_shared + place),
        };
        let read = [value, gradient].into_iter().chain(states.iter().copied());
        let sources = read.map(UpdateSource::Store).chain(of.numbers.iter().map(number)).collect();
        let twice = master.then_some(param);
        let targets = twice.into_iter().chain([value]).chain(states.iter().copied()).collect();
        Update::Apply { kernel: self.kernel(of.cell, master), sparse: of.sparse_rows, sources, targets }
    }
}
