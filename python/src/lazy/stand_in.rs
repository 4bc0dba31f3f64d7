//! The fields that torch's native code reads where it takes a recorded tensor for one of its own.
//!
//! `isinstance(x, torch.Tensor)` holds for recorded tensors, and torch's parser of arguments asks the same. It then reads fields of
//! the object, for example to see whether it is a scalar, before it passes the call to a recorder. So a recorded tensor begins with
//! the fields of a stand-in: a tensor on the device `meta`, which has two axes, gradients and no elements. Code that would compute
//! with it gets an error of torch.

use pyo3::ffi;
use pyo3::prelude::*;

/// The words of a tensor behind its header, at most.
const WORDS: usize = 6;

/// The fields of a stand-in.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct StandIn([usize; WORDS]);

impl StandIn {
    /// The fields of a tensor, which must stay alive; `None` if torch's layout is not the known one.
    pub(super) fn of(tensor: &Bound<'_, PyAny>, base: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let (size, header) = (base.getattr("__basicsize__")?.extract::<usize>()?, size_of::<ffi::PyObject>());
        let count = size.saturating_sub(header) / size_of::<usize>();
        if count == 0 || count > WORDS || !tensor.is_instance(base)? {
            return Ok(None);
        }
        let mut words = [0; WORDS];
        for (place, word) in words.iter_mut().enumerate().take(count) {
            // SAFETY: an instance of the base type has `size` bytes, of which the header comes first. The word lies in them.
            *word = unsafe {
                tensor.as_ptr().cast::<u8>().add(header).cast::<usize>().add(place).read_unaligned()
            };
        }
        Ok(Some(Self(words)))
    }

    /// Whether these fields lie where an object has them.
    pub(super) fn is_first_in(&self, object: &Bound<'_, PyAny>) -> bool {
        std::ptr::from_ref(self) as usize == object.as_ptr() as usize + size_of::<ffi::PyObject>()
    }
}
