//! [`Part`]: the elements that one rank updates when the optimiser's states are divided among ranks.
//!
//! An update changes each element by itself, so the elements may be divided anywhere. A rank keeps copies of its own elements
//! as the parameters of a module, whose update plan makes states for these elements only. The norm of all gradients reaches
//! that plan as a bound float.

use autobatch_ir::id::ParamId;
use autobatch_ir::module::{ParamDecl, ParamKind};
use autobatch_ir::plan::{Update, UpdatePlan, UpdateSource};
use autobatch_ir::recipe::UpdateRecipe;
use autobatch_ir::types::Type;
use autobatch_ir::{Module, Shape, Weights};
use autobatch_runtime_cpu::GradientSource;
use std::ops::Range;
use std::sync::Arc;

/// The division of the elements of the trained parameters among ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    /// The number of this rank.
    pub(super) rank: usize,
    /// For each rank, by the number of a parameter, the elements that the rank updates: whole rows of a table.
    pub(super) ranges: Vec<Vec<Range<usize>>>,
    /// By the number of a parameter, how many elements stay together: a row of a table, one of another parameter.
    rows: Vec<usize>,
}

impl Owned {
    /// Cuts the elements of all trained parameters, one after the other, into equal parts.
    pub(super) fn new(module: &Module, trained: &[ParamId], rank: usize, ranks: usize) -> Self {
        let row = |decl: &ParamDecl| match (decl.kind, decl.ty.shape.dims()) {
            (ParamKind::Table, [_, row @ ..]) => row.iter().map(|&extent| extent as usize).product(),
            _ => 1,
        };
        let rows: Vec<usize> = module.params.iter().map(row).collect();
        let elements = |param: ParamId| module.params[param.index()].ty.shape.elements();
        let total: usize = trained.iter().map(|&param| elements(param)).sum();
        let mut ranges = vec![vec![0..0; module.params.len()]; ranks];
        let mut before = 0;
        for &param in trained {
            let (own, row) = (elements(param), rows[param.index()]);
            let cut = |rank: usize| {
                let at = (total * rank / ranks).clamp(before, before + own) - before;
                at.next_multiple_of(row).min(own)
            };
            for (rank, ranges) in ranges.iter_mut().enumerate() {
                ranges[param.index()] = cut(rank)..cut(rank + 1);
            }
            before += own;
        }
        Self { rank, ranges, rows }
    }

    /// The elements of a parameter that this rank updates.
    pub(super) fn own(&self, param: ParamId) -> Range<usize> {
        self.ranges[self.rank][param.index()].clone()
    }

    /// The gradients of the elements of this rank.
    pub(super) fn gradients<'a>(&'a self, whole: &'a (dyn GradientSource + Sync)) -> OwnGradients<'a> {
        let rows = self.rows.iter().enumerate().map(|(number, row)| {
            let listed = whole.sparse_rows(ParamId::new(number))?;
            let own = self.own(ParamId::new(number));
            let (first, end) = ((own.start / row) as u32, (own.end / row) as u32);
            let within = listed.partition_point(|&at| at < first)..listed.partition_point(|&at| at < end);
            Some(listed[within].iter().map(|&at| at - first).collect())
        });
        OwnGradients { owned: self, whole, rows: rows.collect() }
    }
}

/// The elements of one rank.
pub(super) struct Part {
    pub(super) owned: Owned,
    /// The parameters of this rank's elements. A parameter without such elements is a scalar, which no update changes.
    pub(super) weights: Arc<Weights>,
    /// The versions of the whole parameters that the elements were copied from.
    versions: Vec<Option<u64>>,
    /// Whether the last bound float of the plan is the sum of the squares of all gradients.
    pub(super) takes_norm: bool,
}

impl Part {
    /// Copies the elements of this rank from the weights. Returns their module as well.
    pub(super) fn new(owned: Owned, module: &Module, weights: &Weights) -> (Self, Module) {
        let mut own = module.clone();
        (own.cells, own.exports) = (Vec::new(), Vec::new());
        for (number, decl) in own.params.iter_mut().enumerate() {
            let param = ParamId::new(number);
            let (count, row) = (owned.own(param).len(), owned.rows[number]);
            let dims = match (count, decl.kind) {
                (0, _) => {
                    decl.kind = ParamKind::Param;
                    vec![]
                }
                (count, ParamKind::Table) => vec![(count / row) as u32, row as u32],
                (count, _) => vec![count as u32],
            };
            let shape = Shape::new(&dims).expect("a part of a parameter has fewer elements");
            decl.ty = Type::new(decl.ty.dtype, shape);
        }
        let elements = weights.iter().enumerate().map(|(number, whole)| {
            let range = owned.own(ParamId::new(number));
            if range.is_empty() { vec![0.0] } else { whole.values()[range].to_vec() }
        });
        let elements = Weights::of(&own, elements.collect()).expect("the shapes are those of the elements");
        let versions = vec![None; module.params.len()];
        (Self { owned, weights: Arc::new(elements), versions, takes_norm: false }, own)
    }

    /// The recipe for the elements of this rank; `None` if it has none.
    pub(super) fn recipe(&self, whole: &UpdateRecipe) -> Option<UpdateRecipe> {
        let mut own = whole.clone();
        own.params.retain(|of| !self.owned.own(of.param).is_empty());
        (!own.params.is_empty()).then_some(own)
    }

    /// Lets a plan take the sum of the squares of all gradients as its last bound float, if it computes that of its own.
    pub(super) fn bind_norm(&mut self, plan: &mut UpdatePlan) {
        let is_norm = |update: &Update| matches!(update, Update::Sumsq { .. });
        let Some(norm) = plan.updates.iter().position(is_norm) else { return };
        plan.updates.remove(norm);
        let float = UpdateSource::Float(plan.floats);
        for update in &mut plan.updates {
            let (Update::Scalars { sources, .. } | Update::Apply { sources, .. }) = update else { continue };
            for source in sources {
                match source {
                    // The norm is the first scalar.
                    UpdateSource::Scalar(0) => *source = float,
                    UpdateSource::Scalar(scalar) => *scalar -= 1,
                    UpdateSource::Store(_) | UpdateSource::Float(_) => {}
                }
            }
        }
        plan.floats += 1;
        self.takes_norm = true;
    }

    /// Follows changes of the whole parameters since the last call.
    pub(super) fn follow(&mut self, whole: &Weights) {
        let own = Arc::make_mut(&mut self.weights);
        for (number, known) in self.versions.iter_mut().enumerate() {
            let param = ParamId::new(number);
            let (range, version) = (self.owned.own(param), Some(whole.version(param)));
            if *known != version && !range.is_empty() {
                own.get_mut(param).copy_from_slice(&whole.get(param)[range]);
            }
            *known = version;
        }
    }

    /// Takes note that the whole parameters have the elements of this rank.
    pub(super) fn is_followed_by(&mut self, whole: &Weights) {
        let versions = (0..self.versions.len()).map(|number| Some(whole.version(ParamId::new(number))));
        self.versions = versions.collect();
    }
}

/// The gradients of the elements of one rank.
pub(super) struct OwnGradients<'a> {
    owned: &'a Owned,
    whole: &'a (dyn GradientSource + Sync),
    /// By parameter, the sparse rows among the own ones.
    rows: Vec<Option<Vec<u32>>>,
}

impl GradientSource for OwnGradients<'_> {
    fn gradient(&self, param: ParamId) -> Option<&[f32]> {
        self.whole.gradient(param)?.get(self.owned.own(param))
    }

    fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.rows.get(param.index())?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::{Init, ModuleBuilder};

    #[test]
    fn each_element_has_one_rank_and_rows_stay_whole() {
        let mut m = ModuleBuilder::new("m");
        m.param("scale", [], Init::ZEROS);
        m.table("words", [7, 3], Init::ZEROS);
        m.param("frozen", [5], Init::ZEROS);
        m.param("w", [4, 5], Init::ZEROS);
        let module = m.build().unwrap();
        let trained = [0, 1, 3].map(ParamId::new);
        for ranks in [1, 2, 3, 5, 60] {
            let owned = Owned::new(&module, &trained, 0, ranks);
            for param in (0..4).map(ParamId::new) {
                let ranges = owned.ranges.iter().map(|ranges| ranges[param.index()].clone());
                let elements: Vec<usize> = ranges.clone().flatten().collect();
                let trains = trained.contains(&param);
                let expected = if trains { module.params[param.index()].ty.shape.elements() } else { 0 };
                assert!(elements.into_iter().eq(0..expected), "{param} on {ranks} ranks");
                let row = owned.rows[param.index()];
                assert!(ranges.into_iter().all(|range| range.start % row == 0 && range.len() % row == 0));
            }
            let sizes = owned.ranges.iter().map(|ranges| ranges.iter().map(Range::len).sum::<usize>());
            assert!(sizes.max().unwrap() <= 42_usize.div_ceil(ranks) + 3, "{ranks} ranks");
        }
    }
}
