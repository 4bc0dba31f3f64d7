//! Complete models with their data.

pub mod data;
