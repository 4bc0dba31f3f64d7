//! Named arrays as the bytes of a safetensors file, and back.
//!
//! Equal arrays give equal bytes: the file's own map of remarks has one entry at most, which the
//! caller writes as JSON, because the order of several would be chance.

use autobatch_ir::numeric::half;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

/// The name of the one remark.
const REMARK: &str = "autobatch";

/// A named array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: &'a [f32],
}

/// The arrays as a file, with a remark.
///
/// # Errors
/// If names, shapes and the remark are more than the head of a file takes.
pub(crate) fn to_bytes(arrays: &[Array<'_>], remark: Option<String>) -> Result<Vec<u8>, SafeTensorError> {
    let bytes: Vec<Vec<u8>> = arrays.iter().map(|array| little_endian(array.values)).collect();
    let views = arrays.iter().zip(&bytes).map(|(array, bytes)| {
        let view = TensorView::new(Dtype::F32, array.shape.clone(), bytes);
        (&*array.name, view.expect("an array has as many values as its shape"))
    });
    let remarks = remark.map(|remark| std::iter::once((REMARK.to_owned(), remark)).collect());
    safetensors::serialize(views, remarks)
}

pub(crate) fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The shape and values of an array.
pub(crate) type Loaded = (Vec<usize>, Vec<f32>);

/// A file of arrays.
pub(crate) struct Arrays<'a> {
    file: SafeTensors<'a>,
    remark: Option<String>,
}

impl<'a> Arrays<'a> {
    /// The file with these bytes.
    ///
    /// # Errors
    /// If they are no safetensors file, or cut off.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, SafeTensorError> {
        let file = SafeTensors::deserialize(bytes)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        let remark = metadata.metadata().as_ref().and_then(|remarks| remarks.get(REMARK).cloned());
        Ok(Self { file, remark })
    }

    /// The remark.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// The names of all arrays, ascending.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.file.names().into_iter().map(ToOwned::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// The shape and values of an array, F64 rounded; what it holds instead if that are no floats.
    pub(crate) fn get(&self, name: &str) -> Option<Result<Loaded, Dtype>> {
        let view = self.file.tensor(name).ok()?;
        let shape = view.shape().to_vec();
        let values = match view.dtype() {
            Dtype::F32 => {
                view.data().as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
            }
            Dtype::F16 => halves(view.data(), half::f16_to_f32),
            Dtype::BF16 => halves(view.data(), half::bf16_to_f32),
            Dtype::F64 => {
                view.data().as_chunks::<8>().0.iter().map(|word| f64::from_le_bytes(*word) as f32).collect()
            }
            other => return Some(Err(other)),
        };
        Some(Ok((shape, values)))
    }
}

fn halves(bytes: &[u8], widened: fn(u16) -> f32) -> Vec<f32> {
    bytes.as_chunks::<2>().0.iter().map(|word| widened(u16::from_le_bytes(*word))).collect()
}
