//! Optimisers before compilation: cells, the states that they update, and the inputs of each update.
//!
//! An optimiser traces its cells once, for scalars. The planner compiles them to kernels and makes
//! an update plan of them ([`plan::updates`](crate::plan::updates)). The recipe also determines the
//! stores of that plan, so a plan always agrees with its [`States`].

use crate::id::{ParamId, SigId};
use crate::module::Module;
use crate::plan::{Store, StoreId, StoreKind};
use crate::states::{State, States};
use crate::types::{DType, Type};
use crate::weights::Weights;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The role of the state that holds a `f16` or `bf16` parameter in `f32`. The planner adds it; cells
/// receive the master copy instead of the parameter.
pub const MASTER: &str = "master";

/// The role of the state that holds a moving average of a parameter.
pub const AVERAGE: &str = "average";

/// The initial value of a state.
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
    /// Its role for the parameter, such as `m`; the store is then named `w.m`.
    pub role: String,
    /// Its initial value.
    pub init: StateInit,
}

/// A scalar operand of a cell that all parameters share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedNumber {
    /// An input of the update, by index.
    Float(u32),
    /// A result of the shared cell, by index.
    Shared(u32),
}

/// How one parameter is updated.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamRecipe {
    /// The parameter.
    pub param: ParamId,
    /// The cell `(value, gradient, states.., numbers..) -> (value, states..)`, all of them `f32`.
    pub cell: SigId,
    /// The states that persist between updates.
    pub states: Vec<StateRecipe>,
    /// The scalars that the cell takes as its last operands.
    pub numbers: Vec<SharedNumber>,
    /// Whether an update changes only sparse rows; for tables.
    pub sparse_rows: bool,
}

/// How parameters are updated; see the [module](self).
#[derive(Clone, Debug)]
pub struct UpdateRecipe {
    /// The module of the cells. It has no parameters.
    pub cells: Arc<Module>,
    /// The number of float inputs of each update.
    pub floats: u32,
    /// Whether the first operand of the shared cell is the sum of the squares of all gradients.
    pub norm: bool,
    /// The cell that computes scalars for all parameters from the float inputs.
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

    /// The states before the first update.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn states(&self, weights: &Weights, module: &Module) -> Result<States, crate::states::StatesError> {
        let stores = self.stores(module);
        let is_state = |store: &&Store| matches!(store.kind, StoreKind::State(_));
        let elements: usize = stores.iter().filter(is_state).map(|store| store.ty.shape.elements()).sum();
        // One allocation, because systems overcommit many small ones.
        if Vec::<f32>::new().try_reserve_exact(elements).is_err() {
            let (name, bytes) = ("the state of the optimiser".to_owned(), 4 * elements as u64);
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
    #[must_use]
    pub fn all_states(&self, module: &Module) -> Vec<(&ParamRecipe, StateRecipe)> {
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

/// Whether the parameter's storage type is too narrow for updates.
#[must_use]
pub fn needs_master(module: &Module, param: ParamId) -> bool {
    module.params[param.index()].ty.dtype != DType::F32
}

/// Appends a store of `f32`, with a name that no other store has.
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
