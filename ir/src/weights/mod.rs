//! The values of a module's parameters, separate from the module. Several sets of weights (trainers,
//! a moving average, a frozen copy) can share one module.
//!
//! Values are `f32` in memory. Values of a parameter stored as `f16` or `bf16` are always exactly
//! representable in that type. Each parameter has a version that changes with every mutable access;
//! packed copies compare versions to detect that they are stale.

mod init;

use crate::getters::getters;
use crate::id::ParamId;
use crate::module::{Module, ParamDecl};
use crate::numeric::half;
use crate::types::{DType, Type};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// The values of every parameter of a module, indexed by [`ParamId`] or by name.
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

/// Compares names, types and bits. Versions are ignored.
impl PartialEq for ParamValues {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, ty, values, version: _ } = self;
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        *name == other.name && *ty == other.ty && bits(values) == bits(&other.values)
    }
}

impl ParamValues {
    getters! {
        /// The parameter's name.
        name(self) -> &str = &self.name;
        /// Its storage type and shape.
        ty(self) -> Type = self.ty;
        /// Its values, row by row.
        values(self) -> &[f32] = &self.values;
        /// Its version; see [`Weights::version`].
        version(self) -> u64 = self.version;
    }
}

/// The most multiplications that drawing orthogonal matrices may take, about a minute or two.
/// Drawing an orthogonal matrix is cubic in its size.
const MAX_PRODUCTS: u64 = 1 << 37;

/// Why values were rejected or not created.
#[expect(missing_docs, reason = "the message of each error names its fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// The module has no parameter with this name.
    #[error("expected a parameter of the module, found @{0}; give a declared name")]
    Unknown(String),
    /// The number of values differs from the declaration.
    #[error("@{name}: expected {expected} values, found {found}; give one for each element")]
    Length { name: String, expected: usize, found: usize },
    /// Drawing orthogonal matrices of these sizes takes too long.
    #[error(
        "@{name}: drawing the orthogonal matrices up to this one takes {products} multiplications, more than \
         the limit of {MAX_PRODUCTS}; choose another initialiser such as glorot, or give its values"
    )]
    Orthogonal { name: String, products: u64 },
    /// There is not enough memory for the values of all parameters.
    #[error("the parameters need {bytes} bytes, which the system cannot allocate; declare smaller ones")]
    Memory { bytes: u64 },
}

crate::debug_as_display!(WeightsError);

/// Returns a version that no array of this process has had before.
pub(crate) fn fresh_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Rounds values to the nearest values of a storage type.
pub fn round(dtype: DType, values: &mut [f32]) {
    let round: fn(f32) -> f32 = match dtype {
        DType::F16 => |x| half::f16_to_f32(half::f32_to_f16(x)),
        DType::BF16 => |x| half::bf16_to_f32(half::f32_to_bf16(x)),
        DType::F32 | DType::I32 | DType::U32 | DType::Bool => return,
    };
    values.iter_mut().for_each(|x| *x = round(*x));
}

impl Weights {
    /// Draws the initial values of every parameter as its declaration specifies.
    ///
    /// The values depend on the seed and on the parameter's name, shape and initialiser. They do not
    /// depend on the order of declarations or on the machine.
    #[must_use]
    pub fn init(module: &Module, seed: u64) -> Self {
        let param = |decl: &ParamDecl| {
            let mut values = init::draw(decl, seed);
            round(decl.ty.dtype, &mut values);
            ParamValues { name: decl.name.clone(), ty: decl.ty, values, version: fresh_version() }
        };
        Self { params: module.params.iter().map(param).collect() }
    }

    /// As [`init`](Self::init), for modules from untrusted sources.
    ///
    /// # Errors
    /// If memory for the values cannot be allocated, or drawing orthogonal matrices takes minutes.
    pub fn try_init(module: &Module, seed: u64) -> Result<Self, WeightsError> {
        let elements: usize = module.params.iter().map(|decl| decl.ty.shape.elements()).sum();
        // One allocation, because systems overcommit many small ones.
        let reserved = Vec::<f32>::new().try_reserve_exact(elements);
        reserved.map_err(|_| WeightsError::Memory { bytes: elements as u64 * 4 })?;
        let mut products = 0u64;
        for decl in &module.params {
            products = products.saturating_add(init::products(decl));
            if products > MAX_PRODUCTS {
                return Err(WeightsError::Orthogonal { name: decl.name.clone(), products });
            }
        }
        Ok(Self::init(module, seed))
    }

    /// The work of [`init`](Self::init), in operations as a plan counts them: drawing orthogonal matrices is cubic in their
    /// size, and a multiplication there takes as long as several of a product.
    #[must_use]
    pub fn init_work(module: &Module) -> u64 {
        const PER_PRODUCT: u64 = 8;
        let work = |decl: &ParamDecl| {
            init::products(decl).saturating_mul(PER_PRODUCT).saturating_add(decl.ty.shape.elements() as u64)
        };
        module.params.iter().map(work).fold(0, u64::saturating_add)
    }

    /// Weights with the given values, in the order of declaration, rounded to the storage types.
    ///
    /// # Errors
    /// If a parameter gets more or fewer values than it has elements. Missing vectors count as empty.
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

    getters! {
        /// The values of a parameter.
        ///
        /// # Panics
        /// If the module has no such parameter.
        get(self, id: ParamId) -> &[f32] = &self.params[id.index()].values;
        /// A number that changes with each mutable access to a parameter. A process never reuses a
        /// version, so equal versions imply equal values, also between clones.
        ///
        /// # Panics
        /// If the module has no such parameter.
        version(self, id: ParamId) -> u64 = self.params[id.index()].version;
        /// The number of parameters.
        len(self) -> usize = self.params.len();
        /// Whether the module has no parameters.
        is_empty(self) -> bool = self.params.is_empty();
    }

    /// Mutable access to the values of a parameter. The version changes immediately; dropping the
    /// guard rounds the values to the storage type.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn get_mut(&mut self, id: ParamId) -> ParamMut<'_> {
        let param = &mut self.params[id.index()];
        param.version = fresh_version();
        ParamMut { param }
    }

    /// Replaces the values of a parameter, rounded to its storage type.
    ///
    /// # Errors
    /// If the number of values differs from the parameter's.
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

    /// Takes over the values of a parameter that differ from its own, compared by their bits. The parameter gets a new
    /// version only if some do, so following an unchanged array costs one comparison. Returns whether some did.
    ///
    /// # Errors
    /// If the number of values differs from the parameter's.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn follow(&mut self, id: ParamId, values: &[f32]) -> Result<bool, WeightsError> {
        /// Elements that are compared, and copied if one differs.
        const BLOCK: usize = 1024;
        let ParamValues { name, values: own, ty, .. } = &mut self.params[id.index()];
        if own.len() != values.len() {
            let (name, expected, found) = (name.clone(), own.len(), values.len());
            return Err(WeightsError::Length { name, expected, found });
        }
        if ty.dtype != DType::F32 {
            // Narrow parameters round what they take over, so their bits differ from those of the array.
            return self.set(id, values).map(|()| true);
        }
        let mut differs = false;
        for (own, new) in own.chunks_mut(BLOCK).zip(values.chunks(BLOCK)) {
            if bytemuck::cast_slice::<f32, u8>(own) != bytemuck::cast_slice::<f32, u8>(new) {
                own.copy_from_slice(new);
                differs = true;
            }
        }
        if differs {
            self.renew(id);
        }
        Ok(differs)
    }

    /// Records that a device changed the values of a parameter. The parameter gets a new version;
    /// [`receive`](Self::receive) delivers the values of that version.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn renew(&mut self, id: ParamId) {
        self.params[id.index()].version = fresh_version();
    }

    /// Stores the values that belong to the current version of a parameter.
    ///
    /// # Errors
    /// If the number of values differs from the parameter's.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn receive(&mut self, id: ParamId, values: &[f32]) -> Result<(), WeightsError> {
        let version = self.version(id);
        self.set(id, values)?;
        self.params[id.index()].version = version;
        Ok(())
    }

    /// The id of the parameter with this name.
    ///
    /// # Errors
    /// If there is no such parameter.
    pub fn id(&self, name: &str) -> Result<ParamId, WeightsError> {
        match self.params.iter().position(|param| param.name == name) {
            Some(number) => Ok(ParamId::new(number)),
            None => Err(WeightsError::Unknown(name.to_owned())),
        }
    }

    /// The values of the parameter with this name.
    ///
    /// # Errors
    /// If there is no such parameter.
    pub fn by_name(&self, name: &str) -> Result<&[f32], WeightsError> {
        Ok(self.get(self.id(name)?))
    }

    /// Replaces the values of the parameter with this name, rounded to its storage type.
    ///
    /// # Errors
    /// If there is no such parameter, or the number of values differs from the parameter's.
    pub fn set_by_name(&mut self, name: &str, values: &[f32]) -> Result<(), WeightsError> {
        self.set(self.id(name)?, values)
    }

    /// Every parameter in the order of declaration.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ParamValues> {
        self.params.iter()
    }
}

/// Mutable access to the values of a parameter. Dropping it rounds them to the storage type.
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
