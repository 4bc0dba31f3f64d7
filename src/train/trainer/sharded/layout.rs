//! [`GradientLayout`]: the place of each parameter's gradient in the sum over shards.

use crate::executor::AnyExecutor;
use autobatch_distributed::{Gradient, GradientShape, Rows};
use autobatch_ir::Module;
use autobatch_ir::id::ParamId;
use autobatch_ir::module::ParamKind;
use autobatch_runtime_cpu::GradientSource;
use std::ops::Range;

/// The place of a parameter's gradient.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// These elements of the dense part.
    Dense(Range<usize>),
    /// This table.
    Table(usize),
}

/// A table of the size of its parameter. Outside of an update it is zero.
#[derive(Debug, Default)]
struct Table {
    width: usize,
    values: Vec<f32>,
}

/// The places of all gradients, and the memory of the sum for the update.
#[derive(Debug, Default)]
pub(super) struct GradientLayout {
    trained: Vec<ParamId>,
    /// By the number of the parameter; `None` for frozen ones.
    places: Vec<Option<Place>>,
    shape: GradientShape,
    sum: Gradient,
    tables: Vec<Table>,
}

impl GradientLayout {
    /// Follows a change of the trained parameters.
    pub(super) fn fit(&mut self, module: &Module, trained: &[ParamId]) {
        if self.trained == trained && !self.places.is_empty() {
            return;
        }
        *self =
            Self { trained: trained.to_vec(), places: vec![None; module.params.len()], ..Self::default() };
        for &param in trained {
            let decl = &module.params[param.index()];
            let (elements, width) = (decl.ty.shape.elements(), decl.ty.shape.width());
            self.places[param.index()] = Some(if decl.kind == ParamKind::Table {
                self.shape.widths.push(width);
                self.tables.push(Table { width, values: vec![0.0; elements] });
                Place::Table(self.tables.len() - 1)
            } else {
                let start = self.shape.dense;
                self.shape.dense += elements;
                Place::Dense(start..self.shape.dense)
            });
        }
    }

    pub(super) fn shape(&self) -> &GradientShape {
        &self.shape
    }

    /// Copies the gradients of the plan that was executed last.
    pub(super) fn collect(&self, executor: &AnyExecutor) -> Gradient {
        let mut dense = Vec::with_capacity(self.shape.dense);
        self.append_dense(executor, &(0..self.shape.dense), &mut dense);
        Gradient { dense, tables: self.tables_of(executor) }
    }

    /// The parameters, with their places, that lie in a range of the dense part.
    fn dense_in(&self, elements: &Range<usize>) -> impl Iterator<Item = (ParamId, &Range<usize>)> {
        let place = |&param: &ParamId| match &self.places[param.index()] {
            Some(Place::Dense(range)) => Some((param, range)),
            _ => None,
        };
        let (start, end) = (elements.start, elements.end);
        let dense = self.trained.iter().filter_map(place);
        dense.filter(move |(_, range)| range.start < end && start < range.end)
    }

    /// The parameters that lie in a range of the dense part.
    pub(super) fn params_in(&self, elements: &Range<usize>) -> Vec<ParamId> {
        self.dense_in(elements).map(|(param, _)| param).collect()
    }

    /// Appends a range of the dense part of the plan that was executed last. A parameter that its losses do not depend on has
    /// the gradient zero.
    pub(super) fn append_dense(&self, executor: &AnyExecutor, elements: &Range<usize>, to: &mut Vec<f32>) {
        for (param, range) in self.dense_in(elements) {
            let own = range.start.max(elements.start)..range.end.min(elements.end);
            match executor.host_gradient(param).0 {
                Some(values) => to.extend_from_slice(&values[own.start - range.start..own.end - range.start]),
                None => to.resize(to.len() + own.len(), 0.0),
            }
        }
    }

    /// Copies the rows of tables of the plan that was executed last.
    pub(super) fn tables_of(&self, executor: &AnyExecutor) -> Vec<Rows> {
        let rows = |&param: &ParamId| {
            let Some(Place::Table(number)) = &self.places[param.index()] else { return None };
            let (values, rows) = executor.host_gradient(param);
            Some(rows_of(values.unwrap_or_default(), rows, self.tables[*number].width))
        };
        self.trained.iter().filter_map(rows).collect()
    }

    /// Takes the memory for the next sum.
    pub(super) fn take_sum(&mut self) -> Gradient {
        std::mem::take(&mut self.sum)
    }

    /// Takes the sum for an update.
    pub(super) fn set(&mut self, sum: Gradient) {
        for (table, rows) in self.tables.iter_mut().zip(&sum.tables) {
            let width = table.width;
            for (&row, values) in rows.numbers.iter().zip(rows.values.chunks_exact(width)) {
                table.values[row as usize * width..][..width].copy_from_slice(values);
            }
        }
        self.sum = sum;
    }

    /// Zeroes the tables after an update. The memory of the sum stays.
    pub(super) fn clear(&mut self) {
        for (table, rows) in self.tables.iter_mut().zip(&self.sum.tables) {
            let width = table.width;
            for &row in &rows.numbers {
                table.values[row as usize * width..][..width].fill(0.0);
            }
        }
        self.sum.tables.clear();
    }
}

/// The rows of a table's gradient: the listed ones, or all of them.
fn rows_of(values: &[f32], listed: Option<&[u32]>, width: usize) -> Rows {
    match listed {
        Some(listed) => Rows {
            numbers: listed.to_vec(),
            values: listed
                .iter()
                .flat_map(|&row| &values[row as usize * width..][..width])
                .copied()
                .collect(),
        },
        None => Rows { numbers: (0..).take(values.len() / width.max(1)).collect(), values: values.to_vec() },
    }
}

impl GradientSource for GradientLayout {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        match self.places.get(param.index())?.as_ref()? {
            Place::Dense(range) => self.sum.dense.get(range.clone()),
            Place::Table(number) => Some(&self.tables[*number].values),
        }
    }

    fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        match self.places.get(param.index())?.as_ref()? {
            Place::Dense(_) => None,
            Place::Table(number) => Some(&self.sum.tables.get(*number)?.numbers),
        }
    }
}
