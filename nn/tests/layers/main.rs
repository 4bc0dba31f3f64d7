//! Tests of layers: their results against formulas in f64, the structure they emit, and their errors.

#![allow(clippy::unwrap_used, reason = "a failure should stop the test")]

mod crf;
mod decoder;
mod dropout;
mod errors;
mod graphs;
mod lab;
mod lists;
mod plain;
mod pytorch;
mod pytorch_functions;
mod pytorch_layouts;
mod recurrent;
mod schedules;
mod sequences;
mod structure;
mod tidy;
mod transformer;
mod trees;
mod vocabulary;
