//! Clipping.
