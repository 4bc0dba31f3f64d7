//! Derivative kernels beside the reference.
//!
//! A *class* is a derivative kernel together with the signature whose nodes it is executed for and the forward kernel
//! that saves registers for it. The proof executes a class once, on the probes of the signature. Its kernel declares
//! what its results are, and each contribution must equal the one of the reference.

use super::equal_results::{Comparison, RowHash};
use super::probe::{NOISE, Probe, fold};
use super::reference_derivative::{Contribution, ReferenceDerivative};
use crate::naive::lane::{Lane, Operands};
use crate::reference::{Argument, CallCost, Datum, Partial, Share, ShareKind};
use autobatch_ir::graph::Op;
use autobatch_ir::numeric::label_loss::{self, FACTORS};
use autobatch_ir::plan::row_ops::{Noise, Scratch};
use autobatch_ir::plan::{Kernel, PortRole, ReductionSum, RegKind, ResultRole, Roles, Stage, StoreId, View};
use std::borrow::Cow;

/// The values of an operand to which a contribution belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The value, or every value of a list.
    Whole,
    /// Edge `i` is for value `i` of a list.
    Edges,
}

/// The origin of the rows of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Taken {
    Nothing,
    Operand(u32),
    Result(u32),
    Saved(u32),
    Made(u32),
}

/// The rows and columns of a use of a parameter that a reduction covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Block {
    /// The use, among those of the signature.
    pub(super) uses: u32,
    pub(super) rows: (u32, u32),
    pub(super) columns: (u32, u32),
}

/// The input of a reduction from a class.
#[derive(Clone, Copy)]
pub(super) struct Taking {
    pub(super) param: usize,
    pub(super) sum: ReductionSum,
    /// Rows of the sum per lane.
    pub(super) each: u32,
    /// Rows of the gradient store.
    pub(super) table_rows: u32,
    pub(super) x: Taken,
    pub(super) dy: Taken,
}

/// A class and what its kernels made on every probe.
pub(super) struct Class {
    /// The contribution of each result.
    contributions: Vec<Option<(u32, Target)>>,
    saved: Vec<Vec<Vec<u32>>>,
    /// For each probe the results; of edges, those of all values side by side.
    made: Vec<Vec<Vec<u32>>>,
}

/// The kernels of a class and the values they are executed on.
pub(super) struct Execution<'a> {
    pub(super) reference: &'a ReferenceDerivative,
    pub(super) params: &'a [Vec<Vec<f32>>; 2],
    pub(super) training: bool,
    pub(super) forward: &'a Kernel,
    /// The stores of the forward kernel's parameter ports.
    pub(super) forward_stores: &'a [StoreId],
    pub(super) kernel: &'a Kernel,
    pub(super) roles: &'a Roles,
    pub(super) stores: &'a [StoreId],
}

/// How many elements of registers, and how many multiplications, a kernel may have for each that its node has in the
/// reference. Kernels of the reverse compute values of the node again, and their gradients.
const PER_OF_NODE: u64 = 64;
/// The elements and multiplications of a node with few.
const SMALL_NODE: u64 = 64;

impl Execution<'_> {
    /// Returns whether the values of the node justify the registers and the work of a kernel. A file may declare any registers, and
    /// each probe would fill them.
    pub(super) fn justifies(&self, kernel: &Kernel) -> bool {
        let CallCost { elements, work } = self.reference.cost;
        let justified = |count: u64| PER_OF_NODE.saturating_mul(count.saturating_add(SMALL_NODE));
        let registers = kernel.regs.iter().filter(|reg| !reg.ty.is_list);
        let registers = registers.map(|reg| reg.ty.shape.elements() as u64).fold(0, u64::saturating_add);
        let stages = kernel.stages.iter().map(lane_work).fold(0, u64::saturating_add);
        registers <= justified(elements) && stages <= justified(work)
    }

    /// Executes the kernels on every probe and compares the results with their roles.
    ///
    /// # Errors
    /// The number of the first result that does not fit its role.
    pub(super) fn execute(&self) -> Result<Class, usize> {
        let (mut all_saved, mut all_made) = (Vec::new(), Vec::new());
        for probe in &self.reference.probes {
            let saved = self.saved(probe).ok_or(0usize)?;
            all_made.push(self.made(probe, &saved).ok_or(0usize)?);
            all_saved.push(saved);
        }
        let mut class = Class { contributions: Vec::new(), saved: all_saved, made: all_made };
        for (result, (view, role)) in self.kernel.results.iter().zip(&self.roles.results).enumerate() {
            let contribution = match *role {
                ResultRole::Part => None,
                ResultRole::Gradient | ResultRole::Seed => return Err(result),
                ResultRole::Contribution { operand, number } => {
                    let edges = self.kernel.regs[view.reg.index()].kind == RegKind::Edges;
                    let to = self.reference.contribution(operand, number).ok_or(result)?;
                    // A chain goes over all readers of an item, and a step over the readers makes no such chain.
                    if self.reference.contributions[to as usize].partner.is_some() {
                        return Err(result);
                    }
                    if !class.is_contribution(self.reference, result, edges, to) {
                        return Err(result);
                    }
                    Some((to, if edges { Target::Edges } else { Target::Whole }))
                }
            };
            class.contributions.push(contribution);
        }
        Ok(class)
    }

    fn noise(&self) -> Noise {
        let (seed, step) = NOISE;
        if self.training { Noise::On { seed, step } } else { Noise::Off }
    }

    /// The registers that the forward kernel saves after the results of the node.
    fn saved(&self, probe: &Probe) -> Option<Vec<Vec<u32>>> {
        let kernel = &*probe.constants.of_kernel(self.forward);
        if kernel.results.len() == probe.results.len() {
            return Some(Vec::new());
        }
        let mut lane = Lane::default();
        lane.fit(kernel).ok()?;
        for (port, operand) in probe.operands.iter().enumerate() {
            set(&mut lane, port, operand);
        }
        let params = self.params(self.forward_stores, probe)?;
        let operands = Operands { kernel, params: &params, noise: self.noise() };
        lane.execute(operands, &mut Scratch::default());
        Some(kernel.results[probe.results.len()..].iter().map(|&view| lane.view(view).to_vec()).collect())
    }

    fn params(&self, stores: &[StoreId], probe: &Probe) -> Option<Vec<&[f32]>> {
        let values = &self.params[probe.set];
        stores.iter().map(|store| values.get(store.index()).map(Vec::as_slice)).collect()
    }

    /// The results of the derivative kernel.
    fn made(&self, probe: &Probe, saved: &[Vec<u32>]) -> Option<Vec<Vec<u32>>> {
        let kernel = &*probe.constants.of_kernel(self.kernel);
        let mut lane = Lane::default();
        lane.fit(kernel).ok()?;
        for (port, &role) in self.roles.ports.iter().enumerate() {
            match role {
                PortRole::Operand(operand) => set(&mut lane, port, &probe.operands[operand as usize]),
                PortRole::Result(result) => lane.set_port(port, &words(&probe.results[result as usize])),
                PortRole::Saved(number) => lane.set_port(port, saved.get(number as usize)?),
                PortRole::Gradient(result) => {
                    let grads = &probe.grads[result as usize];
                    if kernel.regs[port].ty.is_list {
                        lane.set_list(port, grads.iter().map(|grad| bytemuck::cast_slice(&grad[..])));
                    } else {
                        lane.set_port(port, bytemuck::cast_slice(&fold(grads)?[..]));
                    }
                }
                PortRole::Contributions | PortRole::Arriving | PortRole::Item(_) | PortRole::Readers(_) => {
                    return None;
                }
            }
        }
        let params = self.params(self.stores, probe)?;
        if params.iter().zip(&kernel.params).any(|(param, ty)| param.len() != ty.shape.elements()) {
            return None;
        }
        let operands = Operands { kernel, params: &params, noise: self.noise() };
        lane.execute(operands, &mut Scratch::default());
        let result = |view: &View| match kernel.regs[view.reg.index()].kind {
            RegKind::Edges => lane.edges(view.reg).to_vec(),
            _ => lane.view(*view).to_vec(),
        };
        Some(kernel.results.iter().map(result).collect())
    }
}

impl Class {
    /// A result on a probe.
    pub(super) fn made(&self, probe: usize, result: u32) -> Option<&[u32]> {
        self.made[probe].get(result as usize).map(Vec::as_slice)
    }

    /// The contribution that a result is.
    pub(super) fn contribution(&self, result: usize) -> Option<(u32, Target)> {
        self.contributions[result]
    }

    /// Returns whether a result equals a contribution on every probe.
    fn is_contribution(&self, reference: &ReferenceDerivative, result: usize, edges: bool, to: u32) -> bool {
        let Contribution { operand, number, .. } = reference.contributions[to as usize];
        let mut comparison = Comparison::default();
        for (probe, made) in reference.probes.iter().zip(&self.made) {
            let made = &made[result][..];
            match &probe.returned.operands[operand as usize] {
                Partial::None => return false,
                Partial::One(expected) => comparison.compare(made, expected),
                Partial::Many(items) => {
                    let width = made.len() / items.len().max(1);
                    for (at, item) in items.iter().enumerate() {
                        let made = if edges { &made[at * width..][..width] } else { made };
                        comparison.compare(made, &item[number as usize].elements());
                    }
                }
            }
            if comparison.differs {
                return false;
            }
        }
        comparison.holds()
    }

    /// A hash of rows on all probes; `None` if there are no such rows.
    fn hash(&self, reference: &ReferenceDerivative, from: Taken) -> Option<u64> {
        let mut hash = RowHash::default();
        for (number, probe) in reference.probes.iter().enumerate() {
            if from != Taken::Nothing {
                hash.floats(bytemuck::cast_slice(&self.taken(probe, number, from)?));
            }
        }
        Some(hash.value())
    }

    /// The same of indices. An index beyond the table names its last row.
    fn hash_of_index(&self, reference: &ReferenceDerivative, from: Taken, table_rows: u32) -> Option<u64> {
        let mut hash = RowHash::default();
        for (number, probe) in reference.probes.iter().enumerate() {
            let index = self.taken(probe, number, from)?.first().copied()?;
            hash.index(index.min(table_rows.saturating_sub(1)));
        }
        Some(hash.value())
    }

    /// The same of the factors of a loss of labels.
    fn hash_of_factors(&self, reference: &ReferenceDerivative, from: Taken, table_rows: u32) -> Option<u64> {
        let mut hash = RowHash::default();
        for (number, probe) in reference.probes.iter().enumerate() {
            hash.floats(&factors_of(&self.taken(probe, number, from)?, table_rows)?);
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
            Taken::Saved(place) => Cow::Borrowed(self.saved[number].get(place as usize)?),
            Taken::Made(place) => Cow::Borrowed(self.made[number].get(place as usize)?),
        })
    }

    /// The part of a use of a parameter that a reduction takes from this class, if it is one.
    pub(super) fn block(&self, reference: &ReferenceDerivative, taking: Taking) -> Option<Block> {
        let Taking { param, sum, each, table_rows, x, dy } = taking;
        let takes = |&number: &u32| {
            let block = block_of(reference, number, sum, each)?;
            self.is_block(reference, block, taking).then_some(block)
        };
        let (of_x, row, col) = match sum {
            ReductionSum::Wgrad { row, col, .. } => (self.hash(reference, x), row, col),
            ReductionSum::Colsum => (self.hash(reference, Taken::Nothing), 0, 0),
            ReductionSum::Lgrad => (self.hash(reference, x), 0, 0),
            ReductionSum::Tgrad => (self.hash_of_index(reference, x, table_rows), 0, 0),
        };
        let of_dy = match sum {
            ReductionSum::Lgrad => self.hash_of_factors(reference, dy, table_rows),
            _ => self.hash(reference, dy),
        };
        let hashes = [of_x?, of_dy?];
        let [by_row, by_col] = [row, col].map(|at| reference.use_index.whole(param, at, hashes));
        // A block that covers a use in part takes other rows than the whole use, so the hashes do not find it.
        let cut = || match sum {
            ReductionSum::Wgrad { k, n, .. } => {
                let is_cut = |number: &&u32| is_cut(reference, **number, k, n);
                reference.use_index.of_param(param).iter().filter(is_cut).find_map(takes)
            }
            ReductionSum::Colsum | ReductionSum::Tgrad | ReductionSum::Lgrad => None,
        };
        by_row.iter().chain(by_col).find_map(takes).or_else(cut)
    }

    /// All blocks that a reduction may take: one of each use whose rows equal the reduction's on every probe.
    pub(super) fn blocks(&self, reference: &ReferenceDerivative, taking: Taking) -> Vec<Block> {
        let uses = reference.use_index.of_param(taking.param).iter();
        let blocks = uses.filter_map(|&number| block_of(reference, number, taking.sum, taking.each));
        blocks.filter(|&block| self.is_block(reference, block, taking)).collect()
    }

    /// Returns whether the rows of a reduction equal those of a block of a use on every probe.
    fn is_block(&self, reference: &ReferenceDerivative, block: Block, taking: Taking) -> bool {
        let uses = reference.uses[block.uses as usize].first();
        let (mut of_x, mut of_dy) = (Comparison::default(), Comparison::default());
        for (place, probe) in reference.probes.iter().enumerate() {
            let taken = |from| self.taken(probe, place, from);
            let (Some(x), Some(dy)) = (taken(taking.x), taken(taking.dy)) else { return false };
            let Share { dy: own_dy, kind } = &probe.returned.params[uses].share;
            match kind {
                ShareKind::Product { x: own_x, width, transposed, .. } => {
                    let each = own_x.len() / width;
                    let (of_rows, of_columns) = if *transposed { (own_dy, own_x) } else { (own_x, own_dy) };
                    of_x.compare(&x, &cut(of_rows, each, block.rows));
                    of_dy.compare(&dy, &cut(of_columns, each, block.columns));
                }
                ShareKind::Labels { x: own_x, factors } => {
                    let Some(own) = factors_of(&dy, taking.table_rows) else { return false };
                    of_x.compare(&x, own_x);
                    of_dy.compare(bytemuck::cast_slice(&own), factors);
                }
                ShareKind::Rows => of_dy.compare(&dy, own_dy),
                ShareKind::Row(index) => {
                    // An index beyond the table names its last row.
                    let row = |index: u32| index.min(taking.table_rows.saturating_sub(1)) as usize;
                    if x.len() != 1 || row(x[0]) != *index {
                        return false;
                    }
                    of_dy.compare(&dy, own_dy);
                }
            }
            if of_x.differs || of_dy.differs {
                return false;
            }
        }
        of_dy.holds() && (of_x.holds() || !of_x.started)
    }
}

/// The factors that a reduction of labels takes. A label beyond the rows names the last one.
fn factors_of(taken: &[u32], table_rows: u32) -> Option<[f32; FACTORS]> {
    let factors = <[f32; FACTORS]>::try_from(bytemuck::cast_slice::<u32, f32>(taken)).ok()?;
    Some([factors[0], factors[1], label_loss::label_of(factors, table_rows as usize) as f32])
}

/// The elements that a stage makes and the multiplications of its products, without lists.
fn lane_work(stage: &Stage) -> u64 {
    match stage {
        Stage::Prod { dst, rows, parts, .. } => {
            let columns = u64::from(dst.width / rows);
            let part = |width: u32| u64::from(width).saturating_mul(columns);
            parts.iter().map(|own| part(own.source.width)).fold(u64::from(dst.width), u64::saturating_add)
        }
        Stage::Map { width, code } => u64::from(*width).saturating_mul(code.len() as u64),
        Stage::Row { op: Op::Matmul, sources, dsts } => {
            let width = sources.first().map_or(0, |(_, ty)| ty.shape.width() as u64);
            dsts.iter().map(|dst| width.saturating_mul(u64::from(dst.width))).sum()
        }
        Stage::Row { sources, dsts, .. } => {
            let views = sources.iter().map(|(view, _)| view).chain(dsts);
            views.map(|view| u64::from(view.width)).sum()
        }
        Stage::Seg { dst, .. } | Stage::Lookup { dst, .. } => u64::from(dst.width),
        Stage::LabelLoss { x, .. } => 2 * u64::from(x.width),
        Stage::SegGrad { dy, .. } | Stage::MeanGrad { dy, .. } => u64::from(dy.width),
        Stage::AttendGrad { query: one, dy: other, .. }
        | Stage::AttendPull { key: one, value: other, .. } => {
            2 * (u64::from(one.width) + u64::from(other.width))
        }
    }
}

/// The rows and columns that a use of a weight adds to.
fn extent(x: &[f32], width: usize, dy: &[f32]) -> (u32, u32) {
    (width as u32, (dy.len() * width / x.len().max(1)) as u32)
}

/// Returns whether a reduction over `k` rows and `n` columns covers a use of a weight in part.
fn is_cut(reference: &ReferenceDerivative, number: u32, k: u32, n: u32) -> bool {
    let Share { dy, kind } = reference.share(number);
    match kind {
        ShareKind::Product { x, width, transposed, .. } => {
            let (inner, outer) = extent(x, *width, dy);
            (if *transposed { (outer, inner) } else { (inner, outer) }) != (k, n)
        }
        ShareKind::Rows | ShareKind::Row(_) | ShareKind::Labels { .. } => false,
    }
}

/// The block of a use that a reduction covers by its position, if it lies inside the use.
fn block_of(reference: &ReferenceDerivative, number: u32, sum: ReductionSum, each: u32) -> Option<Block> {
    let block = Block { uses: number, rows: (0, 1), columns: (0, 1) };
    let Share { dy, kind } = reference.share(number);
    match (kind, sum) {
        (ShareKind::Product { x, width, first, transposed }, ReductionSum::Wgrad { row, col, k, n }) => {
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
        (ShareKind::Rows, ReductionSum::Colsum)
        | (ShareKind::Row(_), ReductionSum::Tgrad)
        | (ShareKind::Labels { .. }, ReductionSum::Lgrad) => Some(block),
        _ => None,
    }
}

/// Some elements of each row of a matrix.
fn cut(whole: &[f32], each: usize, of_row: (u32, u32)) -> Vec<f32> {
    let elements = of_row.0 as usize..of_row.1 as usize;
    let width = whole.len() / each.max(1);
    whole.chunks_exact(width.max(1)).flat_map(|row| row[elements.clone()].iter().copied()).collect()
}

fn words(datum: &Datum<f32>) -> Cow<'_, [u32]> {
    match datum {
        Datum::Floats(elements) => Cow::Borrowed(bytemuck::cast_slice(&elements[..])),
        Datum::Words(words) => Cow::Borrowed(words),
        Datum::List(_) => Cow::Borrowed(&[]),
    }
}

pub(super) fn set(lane: &mut Lane, port: usize, operand: &Argument<f32>) {
    match operand {
        Argument::One(datum) => lane.set_port(port, &words(datum)),
        Argument::Many(items) => {
            let items: Vec<Cow<'_, [u32]>> = items.iter().map(words).collect();
            lane.set_list(port, items.iter().map(|item| &item[..]));
        }
    }
}
