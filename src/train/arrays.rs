//! Named arrays as the bytes of a safetensors file, and back.
//!
//! Equal arrays give equal bytes. The file's metadata map has at most one entry, which the caller writes
//! as JSON: the order of several entries would be random.

use autobatch_ir::numeric::half;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

/// The key of the metadata entry.
const REMARK: &str = "autobatch";

/// A named array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: &'a [f32],
}

/// Writes the arrays as a file with a metadata entry.
///
/// # Errors
/// Names, shapes and metadata exceed the header of a file.
pub(crate) fn to_bytes(arrays: &[Array<'_>], remark: Option<String>) -> Result<Vec<u8>, SafeTensorError> {
    let bytes: Vec<Vec<u8>> = arrays.iter().map(|array| little_endian(array.values)).collect();
    let views = arrays.iter().zip(&bytes).map(|(array, bytes)| {
        let view = TensorView::new(Dtype::F32, array.shape.clone(), bytes);
        (&*array.name, view.expect("an array has as many values as its shape says"))
    });
    let remarks = remark.map(|remark| std::iter::once((REMARK.to_owned(), remark)).collect());
    safetensors::serialize(views, remarks)
}

pub(crate) fn little_endian(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The shape and the values of an array.
pub(crate) type Loaded = (Vec<usize>, Vec<f32>);

/// A file of arrays.
pub(crate) struct Arrays<'a> {
    file: SafeTensors<'a>,
    remark: Option<String>,
}

impl<'a> Arrays<'a> {
    /// Opens the file with these bytes.
    ///
    /// # Errors
    /// The bytes are no safetensors file, or are cut off.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, SafeTensorError> {
        let file = SafeTensors::deserialize(bytes)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        let remark = metadata.metadata().as_ref().and_then(|remarks| remarks.get(REMARK).cloned());
        Ok(Self { file, remark })
    }

    /// Returns the metadata entry.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// Returns the names of all arrays, ascending.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.file.names().into_iter().map(ToOwned::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// Returns the shape and the values of an array; F64 is rounded. The error is the type of an array that holds no floats.
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
