//! The values of a module's parameters, apart from the module: two trainers, a moving average and a
//! frozen copy stand on one module.
//!
//! Values are `f32` whatever their storage type; those of a parameter stored as `f16` or `bf16` are
//! always numbers that this type holds exactly. Every parameter has a version that changes with
//! each mutable access, so that packed copies know when they are stale.

mod init;

use crate::id::ParamId;
use crate::module::{Module, ParamDecl};
use crate::numeric::half;
use crate::types::{DType, Type};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// The values of every parameter of a module, by [`ParamId`] or by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    params: Vec<ParamValues>,
}

/// The values of one parameter.
#[derive(Clone, Debug)]
pub struct ParamValues {
    name: String,
    ty: Type,
    values: Vec<f32>,
    version: u64,
}

/// Equal weights have equal names, types and bits; versions tell nothing about content.
impl PartialEq for ParamValues {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, ty, values, version: _ } = self;
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        *name == other.name && *ty == other.ty && bits(values) == bits(&other.values)
    }
}

impl ParamValues {
    /// The parameter's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its storage type and shape.
    #[must_use]
    pub const fn ty(&self) -> Type {
        self.ty
    }

    /// Its values, row by row.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Its version; see [`Weights::version`].
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }
}

/// Drawing an orthogonal matrix is cubic in its size. So many multiplications take a minute or two.
const MOST_PRODUCTS: u64 = 1 << 37;

/// Why values were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeightsError {
    /// There is no parameter with this name.
    Unknown(
        /// The name.
        String,
    ),
    /// The number of values is not that of the declaration.
    Length {
        /// The parameter.
        name: String,
        /// How many it has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// To draw orthogonal matrices of these sizes takes too long.
    Orthogonal {
        /// The parameter with which it became too much.
        name: String,
        /// Multiplications for it and those before it.
        products: u64,
    },
    /// The values of all parameters do not fit in memory.
    Memory {
        /// How many bytes they take.
        bytes: u64,
    },
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(f, "expected a parameter of the module, found @{name}; give a declared name")
            }
            Self::Length { name, expected, found } => {
                write!(f, "@{name}: expected {expected} values, found {found}; give one for each element")
            }
            Self::Orthogonal { name, products } => write!(
                f,
                "@{name}: the orthogonal matrices up to it take {products} multiplications, drawn are those of at most \
                 {MOST_PRODUCTS}; draw it otherwise, as glorot does, or give its values"
            ),
            Self::Memory { bytes } => {
                write!(f, "the parameters take {bytes} bytes, which cannot be had; declare smaller ones")
            }
        }
    }
}

impl std::error::Error for WeightsError {}

/// A version that no array of this process had before.
pub(crate) fn fresh_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Rounds values to those that a storage type holds.
pub fn round(dtype: DType, values: &mut [f32]) {
    let round: fn(f32) -> f32 = match dtype {
        DType::F16 => |x| half::f16_to_f32(half::f32_to_f16(x)),
        DType::BF16 => |x| half::bf16_to_f32(half::f32_to_bf16(x)),
        DType::F32 | DType::I32 | DType::U32 | DType::Bool => return,
    };
    values.iter_mut().for_each(|x| *x = round(*x));
}

impl Weights {
    /// The first values of every parameter, drawn as its declaration says.
    ///
    /// They depend on the seed, the parameter's name, shape and initialiser: not on the order of
    /// declarations, and not on the machine.
    #[must_use]
    pub fn init(module: &Module, seed: u64) -> Self {
        let param = |decl: &ParamDecl| {
            let mut values = init::draw(decl, seed);
            round(decl.ty.dtype, &mut values);
            ParamValues { name: decl.name.clone(), ty: decl.ty, values, version: fresh_version() }
        };
        Self { params: module.params.iter().map(param).collect() }
    }

    /// As [`init`](Self::init), for modules that may come from anywhere.
    ///
    /// # Errors
    /// If memory for the values cannot be had, or orthogonal matrices are so large that drawing them takes minutes.
    pub fn try_init(module: &Module, seed: u64) -> Result<Self, WeightsError> {
        let elements: usize = module.params.iter().map(|decl| decl.ty.shape.elements()).sum();
        // At once, because systems promise more in many small pieces than they have.
        let had = Vec::<f32>::new().try_reserve_exact(elements);
        had.map_err(|_| WeightsError::Memory { bytes: elements as u64 * 4 })?;
        let mut products = 0u64;
        for decl in &module.params {
            products = products.saturating_add(init::products(decl));
            if products > MOST_PRODUCTS {
                return Err(WeightsError::Orthogonal { name: decl.name.clone(), products });
            }
        }
        Ok(Self::init(module, seed))
    }

    /// The values of every parameter in the order of declaration, rounded to the storage types.
    ///
    /// # Errors
    /// If a parameter's values are more or fewer than it has; parameters without values have none.
    pub fn of(module: &Module, values: Vec<Vec<f32>>) -> Result<Self, WeightsError> {
        let mut given = values.into_iter();
        let params = module.params.iter().map(|decl| {
            let mut values = given.next().unwrap_or_default();
            let (expected, found) = (decl.ty.shape.elements(), values.len());
            if expected != found {
                return Err(WeightsError::Length { name: decl.name.clone(), expected, found });
            }
            round(decl.ty.dtype, &mut values);
            Ok(ParamValues { name: decl.name.clone(), ty: decl.ty, values, version: fresh_version() })
        });
        Ok(Self { params: params.collect::<Result<_, _>>()? })
    }

    /// The values of a parameter.
    ///
    /// # Panics
    /// If the module has no such parameter.
    #[must_use]
    pub fn get(&self, id: ParamId) -> &[f32] {
        &self.params[id.index()].values
    }

    /// The values of a parameter, to be changed. The version changes at once; when the guard goes,
    /// the values are rounded to the storage type.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn get_mut(&mut self, id: ParamId) -> ParamMut<'_> {
        let param = &mut self.params[id.index()];
        param.version = fresh_version();
        ParamMut { param }
    }

    /// Replaces the values of a parameter by others, rounded to its storage type.
    ///
    /// # Errors
    /// If there are more or fewer than the parameter has.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn set(&mut self, id: ParamId, values: &[f32]) -> Result<(), WeightsError> {
        let ParamValues { name, values: own, .. } = &self.params[id.index()];
        if own.len() != values.len() {
            let (name, expected, found) = (name.clone(), own.len(), values.len());
            return Err(WeightsError::Length { name, expected, found });
        }
        self.get_mut(id).copy_from_slice(values);
        Ok(())
    }

    /// Says that the values of a parameter changed where they are not seen from here: on a device. Its
    /// version is another one from now on; [`receive`](Self::receive) brings the values that belong to it.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn renew(&mut self, id: ParamId) {
        self.params[id.index()].version = fresh_version();
    }

    /// Takes the values that belong to the version of a parameter, from wherever they are.
    ///
    /// # Errors
    /// If there are more or fewer than the parameter has.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn receive(&mut self, id: ParamId, values: &[f32]) -> Result<(), WeightsError> {
        let version = self.version(id);
        self.set(id, values)?;
        self.params[id.index()].version = version;
        Ok(())
    }

    /// The parameter with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn id(&self, name: &str) -> Result<ParamId, WeightsError> {
        match self.params.iter().position(|param| param.name == name) {
            Some(number) => Ok(ParamId::new(number)),
            None => Err(WeightsError::Unknown(name.to_owned())),
        }
    }

    /// The values of the parameter with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn by_name(&self, name: &str) -> Result<&[f32], WeightsError> {
        Ok(self.get(self.id(name)?))
    }

    /// The values of the parameter with this name, to be changed as by [`get_mut`](Self::get_mut).
    ///
    /// # Errors
    /// If there is none.
    pub fn by_name_mut(&mut self, name: &str) -> Result<ParamMut<'_>, WeightsError> {
        Ok(self.get_mut(self.id(name)?))
    }

    /// A number that changes with each mutable access to a parameter. Numbers are never used twice
    /// in a process, so equal versions mean equal values, also between clones.
    ///
    /// # Panics
    /// If the module has no such parameter.
    #[must_use]
    pub fn version(&self, id: ParamId) -> u64 {
        self.params[id.index()].version
    }

    /// Every parameter in the order of declaration.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ParamValues> {
        self.params.iter()
    }

    /// How many parameters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.params.len()
    }

    /// Whether the module has no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }
}

/// Access to the values of a parameter, which are rounded to its storage type at the end.
#[derive(Debug)]
pub struct ParamMut<'a> {
    param: &'a mut ParamValues,
}

impl Deref for ParamMut<'_> {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.param.values
    }
}

impl DerefMut for ParamMut<'_> {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.param.values
    }
}

impl Drop for ParamMut<'_> {
    fn drop(&mut self) {
        round(self.param.ty.dtype, &mut self.param.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Init, ModuleBuilder};

    #[test]
    fn parameters_that_no_memory_holds_are_an_error() {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [1 << 29], Init::ZEROS);
        let mut module = (*m.build().unwrap()).clone();
        // 2^48 bytes: no process has so many addresses.
        module.params = vec![module.params[0].clone(); 1 << 17];
        let error = Weights::try_init(&module, 0).unwrap_err();
        assert_eq!(error, WeightsError::Memory { bytes: 1 << 48 });
        assert!(error.to_string().contains("281474976710656 bytes, which cannot be had"), "{error}");
    }

    #[test]
    fn orthogonal_matrices_that_take_minutes_are_an_error() {
        let mut m = ModuleBuilder::new("m");
        m.param("small", [4, 3], Init::Saxe(1.0));
        m.param("large", [1 << 13, 1 << 14], Init::Saxe(1.0));
        let module = m.build().unwrap();
        let start = std::time::Instant::now();
        let error = Weights::try_init(&module, 0).unwrap_err();
        assert_eq!(error, WeightsError::Orthogonal { name: "large".to_owned(), products: (1 << 41) + 72 });
        assert!(start.elapsed().as_secs() < 5 && error.to_string().contains("draw it otherwise"), "{error}");
    }

    #[test]
    fn given_values_are_rounded_and_counted() {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [2], Init::ZEROS);
        let module = m.build().unwrap();
        let weights = Weights::of(&module, vec![vec![1.0, 2.0]]).unwrap();
        assert_eq!(weights.by_name("w").unwrap(), [1.0, 2.0]);
        for (values, found) in [(vec![], 0), (vec![vec![1.0; 3]], 3)] {
            let error = Weights::of(&module, values).unwrap_err();
            assert_eq!(error, WeightsError::Length { name: "w".to_owned(), expected: 2, found });
        }
    }
}
