//! Derivative kernels beside the reference.
//!
//! A *class* is a derivative kernel with what its ports take: operands, results and saved registers
//! of a forward step of one signature, and the contributions to the gradients of its results. Its
//! results mean something only by what they equal: the contribution to the gradient of an operand,
//! or what a sum over a parameter takes.

use super::truth::{Contribution, NOISE, Probe, Truth};
use crate::graph::{ListFold, Op};
use crate::plan::interp::lane::{Lane, Operands};
use crate::plan::row_ops::{Noise, Scratch};
use crate::plan::{FinalSum, Kernel, ListSource, RegKind, Stage, StoreId};
use crate::reference::{Argument, Datum, Partial, Share};
use std::borrow::Cow;

/// What a port of a derivative kernel takes from an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Operand(u32),
    Result(u32),
    Save(u32),
    /// The contributions to the gradient of a result, or their sum.
    Gradient(u32),
}

/// How a result in reverse is a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    No,
    /// The row is it; of a list, for each of its values.
    Row,
    /// Edge `i` is what value `i` of the list gets.
    Edges,
}

/// Where a final finds what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Taken {
    Nothing,
    Operand(u32),
    Result(u32),
    Save(u32),
    Made(u32),
}

/// The rows and columns of what a use of a parameter contributes that a final covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Block {
    /// The use, among those of the signature.
    pub(super) uses: u32,
    pub(super) rows: (u32, u32),
    pub(super) columns: (u32, u32),
}

/// What was played of a class.
pub(super) struct Class {
    /// Per result and contribution.
    pub(super) matches: Vec<Vec<Match>>,
    /// Per probe the saved registers.
    saves: Vec<Vec<Vec<u32>>>,
    /// Per probe the results; of edges, those of all values side by side.
    made: Vec<Vec<Vec<u32>>>,
}

/// What plays a class.
pub(super) struct Playing<'a> {
    pub(super) truth: &'a Truth,
    pub(super) params: &'a [Vec<Vec<f32>>; 2],
    pub(super) training: bool,
    pub(super) forward: &'a Kernel,
    /// The stores of the forward kernel's parameter ports.
    pub(super) forward_stores: &'a [StoreId],
    pub(super) kernel: &'a Kernel,
    pub(super) stores: &'a [StoreId],
}

impl Playing<'_> {
    /// Plays forward and derivative kernel on every probe.
    pub(super) fn play(&self, roles: &[Role]) -> Option<Class> {
        let (mut saves, mut made) = (Vec::new(), Vec::new());
        for probe in &self.truth.probes {
            let saved = self.saved(probe)?;
            made.push(self.made(probe, &saved, roles)?);
            saves.push(saved);
        }
        let mut class = Class { matches: Vec::new(), saves, made };
        for (result, view) in self.kernel.results.iter().enumerate() {
            let edges = self.kernel.regs[view.reg as usize].kind == RegKind::Edges;
            let matches = self.truth.contributions.iter();
            let matches = matches.map(|&to| class.compare(self.truth, result, edges, to)).collect();
            class.matches.push(matches);
        }
        Some(class)
    }

    fn lane<'k>(&self, kernel: &'k Kernel, lane: &mut Lane) -> Option<(&'k Kernel, Noise)> {
        lane.fit(kernel).ok()?;
        let (seed, step) = NOISE;
        Some((kernel, if self.training { Noise::On { seed, step } } else { Noise::Off }))
    }

    fn saved(&self, probe: &Probe) -> Option<Vec<Vec<u32>>> {
        let kernel = self.forward;
        if kernel.results.len() == probe.results.len() {
            return Some(Vec::new());
        }
        let mut lane = Lane::default();
        let (_, noise) = self.lane(kernel, &mut lane)?;
        for (port, operand) in probe.operands.iter().enumerate() {
            set(&mut lane, port, operand);
        }
        let params = self.params(self.forward_stores, probe)?;
        lane.play(Operands { kernel, params: &params, noise }, &mut Scratch::default());
        Some(kernel.results[probe.results.len()..].iter().map(|&view| lane.view(view).to_vec()).collect())
    }

    fn params(&self, stores: &[StoreId], probe: &Probe) -> Option<Vec<&[f32]>> {
        let numbers = &self.params[probe.set];
        stores.iter().map(|store| numbers.get(store.index()).map(Vec::as_slice)).collect()
    }

    fn made(&self, probe: &Probe, saved: &[Vec<u32>], roles: &[Role]) -> Option<Vec<Vec<u32>>> {
        let kernel = self.kernel;
        let mut lane = Lane::default();
        let (_, noise) = self.lane(kernel, &mut lane)?;
        for (port, &role) in roles.iter().enumerate() {
            match role {
                Role::Operand(operand) => set(&mut lane, port, &probe.operands[operand as usize]),
                Role::Result(result) => lane.set_port(port, &words(&probe.results[result as usize])),
                Role::Save(save) => lane.set_port(port, saved.get(save as usize)?),
                Role::Gradient(result) => {
                    let grads = &probe.grads[result as usize];
                    if kernel.regs[port].ty.is_list {
                        lane.set_list(port, grads.iter().map(|grad| bytemuck::cast_slice(&grad[..])));
                    } else {
                        let sum = super::truth::fold(grads)?;
                        lane.set_port(port, bytemuck::cast_slice(&sum[..]));
                    }
                }
            }
        }
        let params = self.params(self.stores, probe)?;
        if params.iter().zip(&kernel.params).any(|(param, ty)| param.len() != ty.shape.elements()) {
            return None;
        }
        lane.play(Operands { kernel, params: &params, noise }, &mut Scratch::default());
        let result = |view: &crate::plan::View| match kernel.regs[view.reg as usize].kind {
            RegKind::Edges => lane.edges(view.reg).to_vec(),
            _ => lane.view(*view).to_vec(),
        };
        Some(kernel.results.iter().map(result).collect())
    }
}

/// Whether a list port is folded to its sum and nothing else, so that no contributions are zeros.
pub(super) fn is_only_summed(kernel: &Kernel, port: u32) -> bool {
    kernel.stages.iter().all(|stage| match stage {
        Stage::Seg { op: Op::ListFold(ListFold::Sum), .. } => true,
        Stage::Seg { lists, .. } => !lists.contains(&ListSource::Port(port)),
        Stage::SegGrad { lists, .. } => !lists.contains(&port),
        _ => true,
    })
}

impl Class {
    fn compare(&self, truth: &Truth, result: usize, edges: bool, to: Contribution) -> Match {
        let mut same = Same::default();
        for (probe, made) in truth.probes.iter().zip(&self.made) {
            let made = &made[result][..];
            match &probe.returned.operands[to.operand as usize] {
                Partial::None => return Match::No,
                Partial::One(wanted) => same.compare(made, wanted),
                Partial::Many(items) => {
                    let width = made.len() / items.len().max(1);
                    for (number, item) in items.iter().enumerate() {
                        let wanted = &item[to.number as usize];
                        match edges {
                            true => same.compare(&made[number * width..][..width], wanted),
                            false => same.compare(made, wanted),
                        }
                    }
                }
            }
        }
        match (same.holds(), edges) {
            (false, _) => Match::No,
            (true, false) => Match::Row,
            (true, true) => Match::Edges,
        }
    }

    /// Whether a result is a contribution, or what sums over parameters take.
    pub(super) fn means_something(&self, truth: &Truth, result: usize) -> bool {
        let is_kept = |wanted: &dyn Fn(&Probe) -> Option<Vec<f32>>| {
            let mut same = Same::default();
            for (probe, made) in truth.probes.iter().zip(&self.made) {
                let Some(wanted) = wanted(probe) else { return false };
                same.compare(&made[result], &wanted);
            }
            same.holds()
        };
        self.matches[result].iter().any(|found| *found != Match::No)
            || truth.uses.iter().any(|uses| {
                let share = |probe: &Probe, of_x: bool| match &probe.returned.params[uses.first].share {
                    Share::Product { x, .. } if of_x => Some(x.to_vec()),
                    Share::Product { dy, .. } | Share::Rows(dy) | Share::Row { dy, .. } if !of_x => {
                        Some(dy.to_vec())
                    }
                    _ => None,
                };
                is_kept(&|probe| share(probe, false)) || is_kept(&|probe| share(probe, true))
            })
    }

    fn taken<'a>(&'a self, probe: &'a Probe, number: usize, from: Taken) -> Option<Cow<'a, [u32]>> {
        Some(match from {
            Taken::Nothing => Cow::Borrowed(&[]),
            Taken::Operand(place) => match probe.operands.get(place as usize)? {
                Argument::One(datum) => words(datum),
                Argument::Many(_) => return None,
            },
            Taken::Result(place) => words(probe.results.get(place as usize)?),
            Taken::Save(place) => Cow::Borrowed(self.saves[number].get(place as usize)?),
            Taken::Made(place) => Cow::Borrowed(self.made[number].get(place as usize)?),
        })
    }

    /// The part of a use of a parameter that a final takes from this class, if it is one.
    pub(super) fn block(
        &self,
        truth: &Truth,
        param: usize,
        sum: FinalSum,
        (each, table_rows): (u32, u32),
        (x, dy): (Taken, Taken),
    ) -> Option<Block> {
        let of_param = truth.uses.iter().enumerate().filter(|(_, uses)| uses.param.index() == param);
        for (number, uses) in of_param {
            let block = Block { uses: number as u32, rows: (0, 1), columns: (0, 1) };
            let block = match (&truth.probes[0].returned.params[uses.first].share, sum) {
                (Share::Product { x, width, dy, first, transposed }, FinalSum::Wgrad { row, col, k, n }) => {
                    let inner = *width as u32;
                    let outer = (dy.len() * *width / x.len().max(1)) as u32;
                    let (first, each_use) = (*first as u32, (x.len() / width) as u32);
                    let ((row, rows), (col, columns)) = match transposed {
                        false => ((row.checked_sub(first), inner), (Some(col), outer)),
                        true => ((Some(row), outer), (col.checked_sub(first), inner)),
                    };
                    let (Some(row), Some(col)) = (row, col) else { continue };
                    let inside = |first: u32, count: u32, all: u32| {
                        first.checked_add(count).is_some_and(|end| count > 0 && end <= all)
                    };
                    if !inside(row, k, rows) || !inside(col, n, columns) || each != each_use {
                        continue;
                    }
                    Block { rows: (row, row + k), columns: (col, col + n), ..block }
                }
                (Share::Rows(_), FinalSum::Colsum) | (Share::Row { .. }, FinalSum::Tgrad) => block,
                _ => continue,
            };
            if self.is_block(truth, uses.first, block, table_rows, (x, dy)) {
                return Some(block);
            }
        }
        None
    }

    fn is_block(
        &self,
        truth: &Truth,
        number: usize,
        block: Block,
        table_rows: u32,
        (x, dy): (Taken, Taken),
    ) -> bool {
        let (mut same_x, mut same_dy) = (Same::default(), Same::default());
        for (place, probe) in truth.probes.iter().enumerate() {
            let (Some(x), Some(dy)) = (self.taken(probe, place, x), self.taken(probe, place, dy)) else {
                return false;
            };
            match &probe.returned.params[number].share {
                Share::Product { x: own_x, width, dy: own_dy, transposed, .. } => {
                    let each = own_x.len() / width;
                    let (of_rows, of_columns) = if *transposed { (own_dy, own_x) } else { (own_x, own_dy) };
                    same_x.compare(&x, &cut(of_rows, each, block.rows));
                    same_dy.compare(&dy, &cut(of_columns, each, block.columns));
                }
                Share::Rows(own) => same_dy.compare(&dy, own),
                Share::Row { index, dy: own } => {
                    // An index past the end is cut to the last row.
                    let row = |index: u32| index.min(table_rows.saturating_sub(1)) as usize;
                    if x.len() != 1 || row(x[0]) != *index {
                        return false;
                    }
                    same_dy.compare(&dy, own);
                }
            }
            if same_x.differs || same_dy.differs {
                return false;
            }
        }
        same_dy.holds() && (same_x.holds() || !same_x.started)
    }
}

/// Some elements of each row of a matrix.
fn cut(whole: &[f32], each: usize, (from, to): (u32, u32)) -> Vec<f32> {
    let width = whole.len() / each.max(1);
    whole.chunks_exact(width.max(1)).flat_map(|row| row[from as usize..to as usize].iter().copied()).collect()
}

/// Whether numbers are the same, lane by lane.
#[derive(Default)]
struct Same {
    started: bool,
    differs: bool,
    /// Per element whether it was finite once.
    finite: Vec<bool>,
}

impl Same {
    fn compare(&mut self, found: &[u32], wanted: &[f32]) {
        self.started = true;
        if self.finite.is_empty() {
            self.finite = vec![false; wanted.len()];
        }
        if found.len() != wanted.len() || self.finite.len() != wanted.len() {
            self.differs = true;
            return;
        }
        for ((&found, &wanted), finite) in found.iter().zip(wanted).zip(&mut self.finite) {
            let found = f32::from_bits(found);
            if found != wanted && !(found.is_nan() && wanted.is_nan()) {
                self.differs = true;
                return;
            }
            *finite |= wanted.is_finite();
        }
    }

    fn holds(&self) -> bool {
        self.started && !self.differs && self.finite.iter().all(|&finite| finite)
    }
}

fn words(datum: &Datum<f32>) -> Cow<'_, [u32]> {
    match datum {
        Datum::Floats(elements) => Cow::Borrowed(bytemuck::cast_slice(&elements[..])),
        Datum::Words(words) => Cow::Borrowed(&words.words),
        Datum::List(_) => Cow::Borrowed(&[]),
    }
}

fn set(lane: &mut Lane, port: usize, operand: &Argument<f32>) {
    match operand {
        Argument::One(datum) => lane.set_port(port, &words(datum)),
        Argument::Many(items) => {
            let items: Vec<Cow<'_, [u32]>> = items.iter().map(words).collect();
            lane.set_list(port, items.iter().map(|item| &item[..]));
        }
    }
}
