//! Complete models with their data.
