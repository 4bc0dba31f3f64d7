//! The inputs of an execution beside the plan: stores, bindings and noise, and errors for inputs that do not fit.

use super::row_ops::Noise;
use super::{Plan, Store, StoreId};
use crate::id::ParamId;
use crate::weights::Weights;

/// Parameter values by store, with a version that changes whenever they do.
pub trait Stores {
    /// The elements of a store.
    fn values(&self, store: StoreId) -> &[f32];
    /// A number that changes whenever the elements change. No other elements ever have it.
    fn version(&self, store: StoreId) -> u64;
}

impl dyn Stores + '_ {
    /// The elements of a store, if their number fits the plan. Unsafe code relies on this check, because an implementation may
    /// return another number each time.
    ///
    /// # Errors
    /// If they are more or fewer.
    pub fn sized(&self, plan: &Plan, store: StoreId) -> Result<&[f32], BindError> {
        plan.stores[store.index()].sized(self.values(store))
    }
}

impl Store {
    /// The elements of the store, if their number fits its type.
    ///
    /// # Errors
    /// If there are more or fewer.
    pub fn sized<'a>(&self, elements: &'a [f32]) -> Result<&'a [f32], BindError> {
        let (expected, found) = (self.ty.shape.elements(), elements.len());
        match found == expected {
            true => Ok(elements),
            false => Err(BindError::Store { name: self.name.clone(), expected, found }),
        }
    }
}

/// Stores beyond the parameters are empty, which fits no plan.
impl Stores for Weights {
    fn values(&self, store: StoreId) -> &[f32] {
        if store.index() < self.len() { self.get(ParamId::new(store.index())) } else { &[] }
    }
    fn version(&self, store: StoreId) -> u64 {
        self.version(ParamId::new(store.index()))
    }
}

/// The numbers that are bound for one run.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Indices, truth values (0 or 1) and other words.
    pub words: &'a [u32],
    /// Float inputs.
    pub floats: &'a [f32],
    /// Whether dropout draws noise.
    pub noise: Noise,
}

impl Inputs<'_> {
    /// Checks that as many numbers are bound as the plan reads, and that stores have the sizes of the plan. The floats
    /// include those that arrive at a pause.
    ///
    /// # Errors
    /// The first input that does not fit.
    pub fn check(&self, plan: &Plan, stores: &dyn Stores) -> Result<(), BindError> {
        self.check_counts(plan, plan.all_floats(), stores)
    }

    /// The same for the waves before a pause: the floats are those of the graph.
    ///
    /// # Errors
    /// The first input that does not fit.
    pub fn check_before_pause(&self, plan: &Plan, stores: &dyn Stores) -> Result<(), BindError> {
        self.check_counts(plan, plan.floats.into(), stores)
    }

    fn check_counts(&self, plan: &Plan, floats: u64, stores: &dyn Stores) -> Result<(), BindError> {
        BindError::check_count("words", plan.words.into(), self.words.len())?;
        BindError::check_count("floats", floats, self.floats.len())?;
        (0..plan.given_stores()).try_for_each(|store| stores.sized(plan, StoreId(store as u32)).map(drop))
    }
}

/// An input does not fit the plan.
#[expect(missing_docs, reason = "the message of each error names its fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// More or fewer words or floats are bound than the plan reads.
    #[error("the plan reads {expected} bound {what}, found {found}; bind the graph that it was planned for")]
    Count { what: &'static str, expected: usize, found: usize },
    /// A bound index is out of range.
    #[error(
        "index {found} (bound word {word}) is out of range for {kernel} in step f{step}: it must be below {limit}"
    )]
    Index { word: usize, step: usize, kernel: String, found: u32, limit: u32 },
    /// A bound truth value is neither 0 nor 1.
    #[error(
        "word {word} is bound to {found}, {kernel} in step f{step} takes it as a truth value: it must be 0 or 1"
    )]
    Truth { word: usize, step: usize, kernel: String, found: u32 },
    /// A store holds another number of elements than the plan says.
    #[error(
        "store @{name} must hold {expected} elements, found {found}; give the arrays of the plan's module"
    )]
    Store { name: String, expected: usize, found: usize },
}

crate::debug_as_display!(BindError);

impl BindError {
    /// Checks the number of bound words or floats.
    ///
    /// # Errors
    /// If it is another one.
    pub fn check_count(what: &'static str, expected: u64, found: usize) -> Result<(), Self> {
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        if found == expected { Ok(()) } else { Err(Self::Count { what, expected, found }) }
    }
}
