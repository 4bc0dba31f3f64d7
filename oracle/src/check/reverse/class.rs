//! Derivative kernels beside the reference.
//!
//! A *class* is a derivative kernel with what its ports take: operands, results and saved registers
//! of a forward step of one signature, and the contributions to the gradients of its results. Its
//! results mean something only by what they equal: the contribution to the gradient of an operand,
//! or what a sum over a parameter takes.

use super::alike::{Alike, Same, differ};
use super::truth::{Contribution, NOISE, Probe, Truth};
use crate::naive::lane::{Lane, Operands};
use crate::reference::{Argument, Datum, Partial, Share};
use autobatch_ir::plan::row_ops::{Noise, Scratch};
use autobatch_ir::plan::{Kernel, ReductionSum, RegKind, StoreId};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a port of a derivative kernel takes from a node.
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

/// What was executed of a class.
pub(super) struct Class {
    /// Contributions by number, as results are them: results that are alike share an entry.
    matches: Vec<Vec<(u32, Match)>>,
    /// Per result the place of its contributions.
    of_result: Vec<u32>,
    /// Per probe the saved registers.
    saves: Vec<Vec<Vec<u32>>>,
    /// Per probe the results; of edges, those of all values side by side.
    made: Vec<Vec<Vec<u32>>>,
}

/// What executes a class.
pub(super) struct Executing<'a> {
    pub(super) truth: &'a Truth,
    pub(super) params: &'a [Vec<Vec<f32>>; 2],
    pub(super) training: bool,
    pub(super) forward: &'a Kernel,
    /// The stores of the forward kernel's parameter ports.
    pub(super) forward_stores: &'a [StoreId],
    pub(super) kernel: &'a Kernel,
    pub(super) stores: &'a [StoreId],
}

impl Executing<'_> {
    /// Executes forward and derivative kernel on every probe.
    pub(super) fn execute(&self, roles: &[Role]) -> Option<Class> {
        let (mut saves, mut made) = (Vec::new(), Vec::new());
        for probe in &self.truth.probes {
            let saved = self.saved(probe)?;
            made.push(self.made(probe, &saved, roles)?);
            saves.push(saved);
        }
        let mut class = Class { matches: Vec::new(), of_result: Vec::new(), saves, made };
        // Results that are alike, by hash: the first of each kind, and the place of its contributions.
        let mut known: BTreeMap<(u64, bool), Vec<(usize, u32)>> = BTreeMap::new();
        for (result, view) in self.kernel.results.iter().enumerate() {
            let edges = self.kernel.regs[view.reg as usize].kind == RegKind::Edges;
            let hash = class.hash(self.truth, Taken::Made(result as u32)).unwrap_or_default();
            let alike = known.entry((hash, edges)).or_default();
            let place = match alike.iter().find(|(first, _)| class.are_alike(*first, result)) {
                Some(&(_, place)) => place,
                None => {
                    let place = class.matches.len() as u32;
                    let matches = class.find_matches(self.truth, result, hash, edges);
                    class.matches.push(matches);
                    alike.push((result, place));
                    place
                }
            };
            class.of_result.push(place);
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
        lane.execute(Operands { kernel, params: &params, noise }, &mut Scratch::default());
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
        lane.execute(Operands { kernel, params: &params, noise }, &mut Scratch::default());
        let result = |view: &autobatch_ir::plan::View| match kernel.regs[view.reg as usize].kind {
            RegKind::Edges => lane.edges(view.reg).to_vec(),
            _ => lane.view(*view).to_vec(),
        };
        Some(kernel.results.iter().map(result).collect())
    }
}

impl Class {
    /// How a result is a contribution, if it is.
    pub(super) fn matches(&self, result: usize, contribution: u32) -> Option<Match> {
        let matches = self.contributions(result);
        let at = matches.binary_search_by_key(&contribution, |found| found.0).ok()?;
        Some(matches[at].1)
    }

    /// The contributions that a result is.
    fn contributions(&self, result: usize) -> &[(u32, Match)] {
        &self.matches[self.of_result[result] as usize]
    }

    /// Whether two results are the same numbers on every probe, so that whatever one is, the other is.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        let mut rows = self.made.iter().map(|made| (&made[one], &made[other]));
        rows.all(|(one, other)| {
            let same = |(&one, &other): (&u32, &u32)| !differ(one, f32::from_bits(other));
            one.len() == other.len() && one.iter().zip(other).all(same)
        })
    }

    fn find_matches(&self, truth: &Truth, result: usize, hash: u64, edges: bool) -> Vec<(u32, Match)> {
        let same = |&number: &u32| {
            let found = self.compare(truth, result, edges, truth.contributions[number as usize]);
            found.map(|found| (number, found))
        };
        let alike = truth.found.contributions(hash);
        let mut matches: Vec<_> = alike.iter().chain(&truth.found.of_lists).filter_map(same).collect();
        matches.sort_unstable_by_key(|found| found.0);
        matches
    }

    fn compare(&self, truth: &Truth, result: usize, edges: bool, to: Contribution) -> Option<Match> {
        let mut same = Same::default();
        for (probe, made) in truth.probes.iter().zip(&self.made) {
            let made = &made[result][..];
            match &probe.returned.operands[to.operand as usize] {
                Partial::None => return None,
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
            if same.differs {
                return None;
            }
        }
        same.holds().then_some(if edges { Match::Edges } else { Match::Row })
    }

    /// Whether a result is a contribution, or what sums over parameters take.
    pub(super) fn means_something(&self, truth: &Truth, result: usize) -> bool {
        let hash = || self.hash(truth, Taken::Made(result as u32));
        !self.contributions(result).is_empty()
            || hash().and_then(|hash| truth.found.rows(hash)).is_some_and(|(uses, entered)| {
                let mut same = Same::default();
                for (probe, made) in truth.probes.iter().zip(&self.made) {
                    match &probe.returned.params[truth.uses[uses as usize].first].share {
                        Share::Product { x, .. } if entered => same.compare(&made[result], x),
                        Share::Product { dy, .. } | Share::Rows(dy) | Share::Row { dy, .. } => {
                            same.compare(&made[result], dy);
                        }
                    }
                }
                same.holds()
            })
    }

    /// A hash of what is taken on all lanes; `None` of what is not there.
    fn hash(&self, truth: &Truth, from: Taken) -> Option<u64> {
        let mut hash = Alike::default();
        for (number, probe) in truth.probes.iter().enumerate() {
            if from != Taken::Nothing {
                hash.floats(bytemuck::cast_slice(&self.taken(probe, number, from)?));
            }
        }
        Some(hash.value())
    }

    /// The same of indices, which are cut to the last row.
    fn hash_of_index(&self, truth: &Truth, from: Taken, table_rows: u32) -> Option<u64> {
        let mut hash = Alike::default();
        for (number, probe) in truth.probes.iter().enumerate() {
            let index = self.taken(probe, number, from)?.first().copied()?;
            hash.index(index.min(table_rows.saturating_sub(1)));
        }
        Some(hash.value())
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
        sum: ReductionSum,
        (each, table_rows): (u32, u32),
        (x, dy): (Taken, Taken),
    ) -> Option<Block> {
        let takes = |&number: &u32| {
            let block = block_of(truth, number, sum, each)?;
            let uses = truth.uses[number as usize].first;
            self.is_block(truth, uses, block, table_rows, (x, dy)).then_some(block)
        };
        let of_x = match sum {
            ReductionSum::Wgrad { .. } => self.hash(truth, x),
            ReductionSum::Colsum => self.hash(truth, Taken::Nothing),
            ReductionSum::Tgrad => self.hash_of_index(truth, x, table_rows),
        };
        let hashes = [of_x?, self.hash(truth, dy)?];
        let (row, col) = match sum {
            ReductionSum::Wgrad { row, col, .. } => (row, col),
            ReductionSum::Colsum | ReductionSum::Tgrad => (0, 0),
        };
        let [by_row, by_col] = [row, col].map(|at| truth.found.whole(param, at, hashes));
        // What is covered in part has other rows than the use: the uses are looked at one by one.
        let cut = || match sum {
            ReductionSum::Wgrad { k, n, .. } => {
                let is_cut = |number: &&u32| is_cut(truth, **number, (k, n));
                truth.found.of_param(param).iter().filter(is_cut).find_map(takes)
            }
            ReductionSum::Colsum | ReductionSum::Tgrad => None,
        };
        by_row.iter().chain(by_col).find_map(takes).or_else(cut)
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

/// The rows and columns that a use of a weight adds to.
fn extent(x: &[f32], width: usize, dy: &[f32]) -> (u32, u32) {
    (width as u32, (dy.len() * width / x.len().max(1)) as u32)
}

/// Whether a final of so many rows and columns covers a use of a weight in part.
fn is_cut(truth: &Truth, number: u32, (k, n): (u32, u32)) -> bool {
    match &truth.probes[0].returned.params[truth.uses[number as usize].first].share {
        Share::Product { x, width, dy, transposed, .. } => {
            let (inner, outer) = extent(x, *width, dy);
            (if *transposed { (outer, inner) } else { (inner, outer) }) != (k, n)
        }
        Share::Rows(_) | Share::Row { .. } => false,
    }
}

/// The rows and columns of a use that a final is about, if it may be about it.
fn block_of(truth: &Truth, number: u32, sum: ReductionSum, each: u32) -> Option<Block> {
    let block = Block { uses: number, rows: (0, 1), columns: (0, 1) };
    match (&truth.probes[0].returned.params[truth.uses[number as usize].first].share, sum) {
        (Share::Product { x, width, dy, first, transposed }, ReductionSum::Wgrad { row, col, k, n }) => {
            let (inner, outer) = extent(x, *width, dy);
            let (first, each_use) = (*first as u32, (x.len() / width) as u32);
            let ((row, rows), (col, columns)) = match transposed {
                false => ((row.checked_sub(first), inner), (Some(col), outer)),
                true => ((Some(row), outer), (col.checked_sub(first), inner)),
            };
            let (row, col) = (row?, col?);
            let inside = |first: u32, count: u32, all: u32| {
                first.checked_add(count).is_some_and(|end| count > 0 && end <= all)
            };
            let fits = inside(row, k, rows) && inside(col, n, columns) && each == each_use;
            fits.then_some(Block { rows: (row, row + k), columns: (col, col + n), ..block })
        }
        (Share::Rows(_), ReductionSum::Colsum) | (Share::Row { .. }, ReductionSum::Tgrad) => Some(block),
        _ => None,
    }
}

/// Some elements of each row of a matrix.
fn cut(whole: &[f32], each: usize, (from, to): (u32, u32)) -> Vec<f32> {
    let width = whole.len() / each.max(1);
    whole.chunks_exact(width.max(1)).flat_map(|row| row[from as usize..to as usize].iter().copied()).collect()
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
