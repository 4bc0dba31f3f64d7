//! The native half of the Python package `autobatch`.
//!
//! Python objects hold graphs, values and sessions of the engine. Emitting holds the interpreter's lock; planning
//! and executing release it. Each emitted node carries the user's *Python* line.

mod device;
mod dynet;
mod error;
mod graph;
mod group;
mod interrupt;
mod lazy;
mod module;
mod nn;
mod optim;
mod paused;
mod phases;
mod plan;
mod session;
mod site;
mod step;
mod steps;
mod tasks;
mod train;
mod types;
mod value;
mod weights;

use pyo3::prelude::*;

/// The native half of the package `autobatch`. Import `autobatch` instead.
#[pymodule]
fn _autobatch(m: &Bound<'_, PyModule>) -> PyResult<()> {
    error::register(m)?;
    device::register(m)?;
    types::register(m)?;
    graph::register(m)?;
    value::register(m)?;
    dynet::register(m)?;
    module::register(m)?;
    session::register(m)?;
    paused::register(m)?;
    optim::register(m)?;
    train::register(m)?;
    phases::register(m)?;
    steps::register(m)?;
    plan::register(m)?;
    nn::register(m)?;
    lazy::register(m)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))
}
