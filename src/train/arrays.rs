//! Named arrays as the bytes of a safetensors file, and back.
//!
//! Equal arrays give equal bytes. The file's metadata map has at most one entry, which the caller writes
//! as JSON: the order of several entries would be random.

use autobatch_ir::numeric::half;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use std::borrow::Cow;

/// The longest header that readers of safetensors accept.
const MAX_HEADER: usize = 100_000_000;
/// The key of the metadata entry.
const REMARK: &str = "autobatch";

/// The name and the shape of an array.
pub(crate) type Named = (String, Vec<usize>);

/// The beginning of a file with these arrays and a metadata entry. The elements follow, array by array in the order of their
/// names.
///
/// # Errors
/// Names, shapes and metadata exceed the header of a file.
pub(crate) fn header<'a>(
    arrays: impl Iterator<Item = &'a Named>,
    remark: Option<String>,
) -> Result<Vec<u8>, SafeTensorError> {
    let mut end = 0;
    let infos = arrays.map(|(name, shape)| {
        let start = end;
        end += size_of::<f32>() * shape.iter().product::<usize>();
        (name.clone(), TensorInfo { dtype: Dtype::F32, shape: shape.clone(), data_offsets: (start, end) })
    });
    let infos = infos.collect();
    let remarks = remark.map(|remark| std::iter::once((REMARK.to_owned(), remark)).collect());
    let mut text = serde_json::to_string(&Metadata::new(remarks, infos)?)?;
    // Arrays begin at multiples of eight bytes.
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    if text.len() > MAX_HEADER {
        return Err(SafeTensorError::HeaderTooLarge);
    }
    Ok([&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat())
}

/// The bytes of an array in a file. They are those of the memory where that has the same order.
pub(crate) fn little_endian(values: &[f32]) -> Cow<'_, [u8]> {
    match cfg!(target_endian = "little") {
        true => Cow::Borrowed(bytemuck::cast_slice(values)),
        false => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
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
