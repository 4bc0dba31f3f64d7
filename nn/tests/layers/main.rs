//! Layers against formulae written by hand in f64, the structure they emit, and their errors.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod decoder;
mod dropout;
mod errors;
mod lab;
mod lists;
mod plain;
mod pytorch;
mod pytorch_functions;
mod recurrent;
mod sequences;
mod structure;
mod tidy;
mod transformer;
mod trees;
