//! The devices of this machine, and the options of sessions that name one.

use autobatch::Device;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The commands that install the native half with GPUs.
#[cfg(not(feature = "gpu"))]
const WITH_GPUS: &str = "pip install 'autobatch-engine[gpu]', or in a checkout pip install ./python/gpu";

/// Reads the name of a device.
pub(crate) fn device(name: &str) -> PyResult<Device> {
    #[cfg(not(feature = "gpu"))]
    if name == "gpu" || name.starts_with("gpu:") {
        return Err(PyValueError::new_err(format!(
            "this package was built without GPUs, so there is no device {name:?}; install the half that has them: {WITH_GPUS}"
        )));
    }
    name.parse::<Device>().map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The devices of this machine: dictionaries whose entry `device` is a name for `Session(module, device=...)`. Without
/// support of GPUs in this build, only the CPU.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = PyList::empty(py);
    let cpu = PyDict::new(py);
    cpu.set_item("device", "cpu")?;
    cpu.set_item("name", std::env::consts::ARCH)?;
    cpu.set_item("kind", "cpu")?;
    all.append(cpu)?;
    #[cfg(feature = "gpu")]
    for adapter in py.detach(autobatch::runtime_wgpu::adapters) {
        let gpu = PyDict::new(py);
        gpu.set_item("device", format!("gpu:{}", adapter.number))?;
        gpu.set_item("name", adapter.name)?;
        gpu.set_item("kind", adapter.kind)?;
        gpu.set_item("backend", adapter.backend)?;
        gpu.set_item("driver", adapter.driver)?;
        all.append(gpu)?;
    }
    Ok(all)
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(devices, m)?)
}
