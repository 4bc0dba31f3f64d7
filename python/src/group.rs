//! [`PyGroup`]: ranks that a communicator of Python connects, such as one of mpi4py.

use autobatch::distributed::{Bucket, BucketWork, Group, GroupError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The methods of a communicator that are called.
const METHODS: [&str; 4] = ["Get_rank", "Get_size", "allgather", "alltoall"];

/// A communicator: an object with the methods of mpi4py that pass objects.
#[derive(Debug)]
pub(crate) struct PyGroup {
    communicator: Py<PyAny>,
    rank: usize,
    size: usize,
}

impl PyGroup {
    /// Takes a communicator.
    pub(crate) fn of(communicator: &Bound<'_, PyAny>) -> PyResult<Self> {
        for name in METHODS {
            if !communicator.hasattr(name)? {
                return Err(PyTypeError::new_err(format!(
                    "group has no method {name}; pass a communicator such as mpi4py.MPI.COMM_WORLD, or an object with {}",
                    METHODS.join(", ")
                )));
            }
        }
        let number = |name: &str| -> PyResult<usize> { communicator.call_method0(name)?.extract() };
        let (rank, size) = (number("Get_rank")?, number("Get_size")?);
        if rank >= size {
            return Err(PyValueError::new_err(format!("the communicator says rank {rank} of {size}")));
        }
        Ok(Self { communicator: communicator.clone().unbind(), rank, size })
    }

    /// Calls a method with an argument. It returns bytes of each rank.
    fn call(
        &self,
        method: &str,
        argument: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Result<Vec<Vec<u8>>, GroupError> {
        let received: PyResult<Vec<Vec<u8>>> = Python::attach(|py| {
            let received = self.communicator.bind(py).call_method1(method, (argument(py)?,))?;
            let bytes = |part: Bound<'_, PyAny>| Ok(part.cast::<PyBytes>()?.as_bytes().to_vec());
            received.try_iter()?.map(|part| bytes(part?)).collect()
        });
        let received = received.map_err(|error| GroupError::Failed {
            rank: self.rank,
            message: format!("the communicator's {method} failed: {error}"),
        })?;
        match received.len() == self.size {
            true => Ok(received),
            false => Err(GroupError::Malformed { rank: self.rank }),
        }
    }

    fn gathered(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.call("allgather", |py| Ok(PyBytes::new(py, bytes).into_any()))
    }
}

/// Copies the messages of all ranks one after the other. Each has as many floats as its rank should send.
fn fill(floats: &mut [f32], counts: &[usize], messages: &[Vec<u8>]) -> Result<(), GroupError> {
    let mut left = floats;
    for (rank, (message, &count)) in messages.iter().zip(counts).enumerate() {
        let malformed = GroupError::Malformed { rank };
        let own = left.split_off_mut(..count).filter(|_| message.len() == 4 * count).ok_or(malformed)?;
        for (float, bytes) in own.iter_mut().zip(message.as_chunks().0) {
            *float = f32::from_ne_bytes(*bytes);
        }
    }
    Ok(())
}

/// The bytes of floats.
fn bytes_of(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_ne_bytes()).collect()
}

impl Group for PyGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, GroupError> {
        self.gathered(bytes)
    }

    fn exchange(&mut self, buckets: &mut [Bucket], work: &mut dyn BucketWork) -> Result<(), GroupError> {
        for (number, bucket) in buckets.iter_mut().enumerate() {
            work.fill(number, bucket);
            let received = self.call("alltoall", |py| {
                let slices = PyList::empty(py);
                let mut left = &bucket.send[..];
                for &count in &bucket.send_counts {
                    let slice = left.split_off(..count).unwrap_or_default();
                    slices.append(PyBytes::new(py, &bytes_of(slice)))?;
                }
                Ok(slices.into_any())
            })?;
            fill(&mut bucket.receive, &bucket.receive_counts, &received)?;
            work.add(&bucket.receive, &mut bucket.own);
            let sums = self.gathered(&bytes_of(&bucket.own))?;
            fill(&mut bucket.whole, &bucket.whole_counts, &sums)?;
        }
        Ok(())
    }
}
