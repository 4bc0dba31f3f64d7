//! What an optimiser is, before it is compiled: cells, the states they keep, and the numbers that are
//! bound for each update.
//!
//! An optimiser traces its cells once, for scalars; the planner compiles them to kernels and makes an
//! update plan of them ([`plan::updates`](crate::plan::updates)). The recipe also says which stores
//! that plan has, so that a plan and the [`States`] it is executed on always agree.

use crate::id::{ParamId, SigId};
use crate::module::Module;
use crate::plan::{Store, StoreId, StoreKind};
use crate::states::{State, States};
use crate::types::{DType, Type};
use crate::weights::Weights;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The role of the state that holds a parameter of `f16` or `bf16` in `f32`. Plans add it by
/// themselves: cells see the master in the place of the parameter.
pub const MASTER: &str = "master";

/// The role of the state that holds a moving average of a parameter.
pub const AVERAGE: &str = "average";

/// How a state begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateInit {
    /// Every element is this number.
    Fill(f32),
    /// A copy of the parameter.
    Param,
}

/// A state of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRecipe {
    /// What it is to the parameter: `m`; its store is named `w.m`.
    pub role: String,
    /// How it begins.
    pub init: StateInit,
}

/// A number that a cell takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedNumber {
    /// A bound float, by its place.
    Float(u32),
    /// A result of the shared cell, by its place.
    Shared(u32),
}

/// How one parameter is updated.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamRecipe {
    /// The parameter.
    pub param: ParamId,
    /// The cell `(value, gradient, states.., numbers..) -> (value, states..)`, all of them `f32`.
    pub cell: SigId,
    /// What is kept between updates.
    pub states: Vec<StateRecipe>,
    /// The numbers that the cell takes last.
    pub numbers: Vec<SharedNumber>,
    /// Whether only sparse rows are updated; for tables.
    pub touched: bool,
}

/// How parameters are updated; see the [module](self).
#[derive(Clone, Debug)]
pub struct UpdateRecipe {
    /// The module of the cells. It has no parameters.
    pub cells: Arc<Module>,
    /// How many floats are bound for each update.
    pub floats: u32,
    /// Whether the shared cell takes the sum of the squares of all gradients before anything else.
    pub norm: bool,
    /// The cell that makes numbers for all parameters out of the bound floats.
    pub shared: Option<SigId>,
    /// The parameters that are updated.
    pub params: Vec<ParamRecipe>,
}

impl UpdateRecipe {
    /// The stores of the update plan: the module's parameters, then states in the order of the
    /// recipe (a master before the others), then the gradients of the recipe's parameters.
    #[must_use]
    pub fn stores(&self, module: &Module) -> Vec<Store> {
        let param = |decl: &crate::module::ParamDecl| Store {
            name: decl.name.clone(),
            ty: decl.ty,
            kind: StoreKind::Param(decl.kind),
        };
        let mut stores: Vec<Store> = module.params.iter().map(param).collect();
        let mut taken: BTreeSet<String> = stores.iter().map(|store| store.name.clone()).collect();
        for (of, state) in self.all_states(module) {
            let decl = &module.params[of.param.index()];
            let kind = StoreKind::State(StoreId(of.param.index() as u32));
            push_store(&mut stores, &mut taken, format!("{}.{}", decl.name, state.role), decl.ty, kind);
        }
        for of in self.params.iter().filter(|of| of.param.index() < module.params.len()) {
            let decl = &module.params[of.param.index()];
            let kind = StoreKind::Grad(StoreId(of.param.index() as u32));
            push_store(&mut stores, &mut taken, format!("{}.grad", decl.name), decl.ty, kind);
        }
        stores
    }

    /// The states as they are before the first update.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn states(&self, weights: &Weights, module: &Module) -> Result<States, crate::states::StatesError> {
        let stores = self.stores(module);
        let is_state = |store: &&Store| matches!(store.kind, StoreKind::State(_));
        let elements: usize = stores.iter().filter(is_state).map(|store| store.ty.shape.elements()).sum();
        // At once, because systems promise more in many small pieces than they have.
        if Vec::<f32>::new().try_reserve_exact(elements).is_err() {
            let (name, bytes) = ("what the optimiser keeps".to_owned(), 4 * elements as u64);
            return Err(crate::states::StatesError::Memory { name, bytes });
        }
        let states = stores.iter().filter(|store| matches!(store.kind, StoreKind::State(_)));
        let recipes = self.all_states(module);
        let made = states.zip(recipes).map(|(store, (of, recipe))| {
            State::new(store.name.clone(), &recipe.role, of.param, store.ty, recipe.init, weights)
        });
        Ok(States::new(made.collect::<Result<_, _>>()?))
    }

    /// Every state with its parameter, in the order of the stores.
    fn all_states(&self, module: &Module) -> Vec<(&ParamRecipe, StateRecipe)> {
        let mut all = Vec::new();
        for of in self.params.iter().filter(|of| of.param.index() < module.params.len()) {
            if needs_master(module, of.param) {
                all.push((of, StateRecipe { role: MASTER.to_owned(), init: StateInit::Param }));
            }
            all.extend(of.states.iter().map(|state| (of, state.clone())));
        }
        all
    }
}

/// Whether a parameter is stored in fewer bits than updates need.
#[must_use]
pub fn needs_master(module: &Module, param: ParamId) -> bool {
    module.params[param.index()].ty.dtype != DType::F32
}

/// A store of `f32` under a name that no other store has.
fn push_store(
    stores: &mut Vec<Store>,
    taken: &mut BTreeSet<String>,
    mut name: String,
    ty: Type,
    kind: StoreKind,
) {
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    stores.push(Store { name, ty: Type::new(DType::F32, ty.shape), kind });
}
