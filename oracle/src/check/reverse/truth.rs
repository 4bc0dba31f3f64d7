//! What a signature and its reverse are: the reference, executed on random numbers.
//!
//! A derivative kernel has no second specification to be compared with term by term; it is executed
//! beside `reference::reverse` of the one node instead, on [`PROBES`] lanes of random
//! numbers: large and small ones, positive ones for logarithms and roots, and few different ones so that
//! ties and zeros occur. Small parameters are positive where operands are. Lists have 3, 1, 2, 0, 4 and 2 values. Where indices are read there are more lanes, so that
//! each element that an index may name is named: kernels that look at them one by one would else be seen in
//! part. The numbers come from a fixed seed, so that equal plans get equal verdicts. **The bound is zero**: each element must be equal to the
//! reference's in `f32` (of a NaN, only that it is one; zeros of both signs are equal), and finite on
//! at least one lane.

use super::alike::Found;
use crate::reference::{Argument, Datum, Noise, Partial, Returned, Share, Single, Words, costs};
use autobatch_ir::graph::{GraphData, ParamArg, Signature};
use autobatch_ir::hash::{StructureHash, split_mix};
use autobatch_ir::id::{ParamId, SigId};
use autobatch_ir::module::ParamKind;
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many lanes of random numbers each derivative is executed on, at least.
pub const PROBES: usize = 6;
/// The values of the lists of each lane.
const LENGTHS: [usize; PROBES] = [3, 1, 2, 0, 4, 2];
/// So many elements are read and made for lanes that name one after the other at most: cells that look rows of
/// tables up are large, and look at no index one by one.
const MAX_NAMED: u64 = 1 << 18;
/// The most elements that one node may make.
const MAX_ELEMENTS: u64 = 1 << 24;
/// The most elements that all parameters may have.
const MAX_PARAMS: usize = 1 << 28;
/// Parameters of more elements are the same on all lanes: those are multiplied, and no roots are taken of them.
const MOST_TWICE: usize = 1 << 22;
/// The lanes of positive numbers.
const POSITIVE: [usize; 2] = [2, 5];
/// What noise is drawn from.
pub(super) const NOISE: (u64, u64) = (11, 3);

/// A lane of random numbers with what the reference makes of it.
pub(super) struct Probe {
    /// Which numbers parameters have; see [`Truths::params`].
    pub(super) set: usize,
    pub(super) operands: Vec<Argument<f32>>,
    pub(super) results: Vec<Datum<f32>>,
    /// Per result the contributions to its gradient.
    pub(super) grads: Vec<Vec<Arc<[f32]>>>,
    pub(super) returned: Returned<f32>,
}

/// One of the contributions that a node makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contribution {
    /// To the gradient of the value, or of each value of the list, in this operand.
    pub(super) operand: u32,
    /// The number of the use of a list.
    pub(super) number: u32,
    pub(super) is_list: bool,
}

/// Uses of parameters that contribute the same.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    pub(super) param: ParamId,
    /// The first of them, as the reference counts.
    pub(super) first: usize,
    pub(super) count: u32,
}

/// What is known of a signature.
pub(super) struct Truth {
    pub(super) probes: Vec<Probe>,
    /// In the order in which the reference adds them.
    pub(super) contributions: Vec<Contribution>,
    pub(super) uses: Vec<Uses>,
    pub(super) found: Found,
}

impl Truth {
    /// How many elements of its parameter a use adds to, as reductions count: sums of rows are one.
    pub(super) fn area(&self, uses: &Uses) -> u64 {
        match &self.probes[0].returned.params[uses.first].share {
            Share::Product { x, width, dy, .. } => {
                (*width as u64) * (dy.len() * width / x.len().max(1)) as u64
            }
            Share::Rows(_) | Share::Row { .. } => 1,
        }
    }
}

impl Truth {
    /// A contribution with an element that is finite on no lane, by what it goes to.
    pub(super) fn nowhere_finite(&self) -> Option<String> {
        let operand = self.contributions.iter().find(|to| {
            let mut finite = Finite::default();
            for probe in &self.probes {
                match &probe.returned.operands[to.operand as usize] {
                    Partial::None => {}
                    Partial::One(elements) => finite.see(elements),
                    Partial::Many(items) => {
                        items.iter().for_each(|item| finite.see(&item[to.number as usize]))
                    }
                }
            }
            finite.is_missing()
        });
        let of_param = || {
            self.uses.iter().find(|uses| {
                let mut finite = Finite::default();
                for probe in &self.probes {
                    let (Share::Product { dy, .. } | Share::Rows(dy) | Share::Row { dy, .. }) =
                        &probe.returned.params[uses.first].share;
                    finite.see(dy);
                }
                finite.is_missing()
            })
        };
        match operand {
            Some(to) => Some(format!("operand {}", to.operand)),
            None => of_param().map(|uses| uses.param.to_string()),
        }
    }
}

/// Which elements were finite once.
#[derive(Default)]
struct Finite(Vec<bool>);

impl Finite {
    fn see(&mut self, elements: &[f32]) {
        self.0.resize(elements.len().max(self.0.len()), false);
        self.0.iter_mut().zip(elements).for_each(|(finite, element)| *finite |= element.is_finite());
    }

    fn is_missing(&self) -> bool {
        self.0.iter().any(|&finite| !finite)
    }
}

/// What is known of the signatures of a graph.
pub(super) struct Truths<'a> {
    graph: &'a GraphData,
    noise: Noise,
    /// Numbers for the module's parameters, made when a signature takes them: of both signs, and, unless they are many,
    /// positive ones.
    pub(super) params: [Vec<Vec<f32>>; 2],
    /// How many of the first kind there are.
    held: usize,
    costs: Option<Vec<u64>>,
    known: Vec<Option<Option<Truth>>>,
    /// How many signatures were examined.
    pub(super) examined: usize,
}

impl<'a> Truths<'a> {
    pub(super) fn new(graph: &'a GraphData, training: bool) -> Self {
        let (seed, step) = NOISE;
        Self {
            graph,
            noise: if training { Noise::On { seed, step } } else { Noise::Off },
            params: [0, 1].map(|_| vec![Vec::new(); graph.module.params.len()]),
            held: 0,
            costs: costs(graph).ok(),
            known: (0..graph.sigs.items().len()).map(|_| None).collect(),
            examined: 0,
        }
    }

    /// What is known of a signature; `None` if it is too large, or has no derivative.
    pub(super) fn of(&mut self, sig: SigId) -> Option<&Truth> {
        if self.known[sig.index()].is_none() {
            let truth = self.examine(sig);
            self.examined += 1;
            self.known[sig.index()] = Some(truth);
        }
        self.get(sig)
    }

    /// What was found before.
    pub(super) fn get(&self, sig: SigId) -> Option<&Truth> {
        self.known[sig.index()].as_ref()?.as_ref()
    }

    fn examine(&mut self, sig: SigId) -> Option<Truth> {
        let signature = self.graph.sigs.get(sig);
        let cost = self.costs.as_ref()?.get(sig.index()).copied().filter(|&cost| cost <= MAX_ELEMENTS)?;
        for arg in &signature.params {
            let ParamArg::Module(param) = *arg else { return None };
            self.fill(param)?;
        }
        let mut random = Random(sig.index() as u64 + 1);
        let probes: Option<Vec<Probe>> = (0..PROBES + self.named(signature, cost))
            .map(|n| self.probe(sig, signature, n, &mut random))
            .collect();
        let probes = probes?;
        let contributions = contributions(&probes)?;
        let uses = uses(&probes)?;
        let found = Found::new(&probes, &contributions, &uses);
        Some(Truth { probes, contributions, uses, found })
    }

    /// How many lanes name one element after the other.
    fn named(&self, signature: &Signature, cost: u64) -> usize {
        let types = || signature.operands.iter().map(|&ty| self.graph.ty(ty));
        if !types().any(|ty| is_index(ty.dtype)) {
            return 0;
        }
        let results = signature.results.iter().map(|&ty| self.graph.ty(ty));
        let elements = |ty: Type| ty.shape.elements() as u64;
        let widest = types().chain(results).map(elements).max().unwrap_or(0);
        let lane = types().map(elements).fold(cost.max(1), u64::saturating_add);
        widest.min(MAX_NAMED / lane) as usize
    }

    /// Numbers for a parameter: a few thousand, over and over.
    fn fill(&mut self, param: ParamId) -> Option<()> {
        const PERIOD: usize = 4093;
        let decl = &self.graph.module.params[param.index()];
        let elements = decl.ty.shape.elements();
        let [params, positive] = &mut self.params;
        let fits = self.held + elements <= MAX_PARAMS;
        if !params[param.index()].is_empty() || !fits {
            return fits.then_some(());
        }
        self.held += elements;
        let rows = if decl.kind == ParamKind::Table { 1 } else { decl.ty.shape.rows() };
        let scale = 1.0 / (rows as f32).sqrt();
        let mut random = Random(param.index() as u64 + (1 << 32));
        let block: Vec<f32> = (0..PERIOD.min(elements)).map(|_| scale * random.unit()).collect();
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(elements).ok()?;
        while numbers.len() < elements {
            let more = block.len().min(elements - numbers.len());
            numbers.extend_from_slice(&block[..more]);
        }
        if elements <= block.len() {
            positive[param.index()] = numbers.iter().map(|x| 0.05 * scale + x.abs()).collect();
        } else if elements <= MOST_TWICE {
            positive[param.index()].clone_from(&numbers);
        }
        params[param.index()] = numbers;
        Some(())
    }

    fn probe(&self, sig: SigId, signature: &Signature, number: usize, random: &mut Random) -> Option<Probe> {
        let operands: Vec<Argument<f32>> = signature
            .operands
            .iter()
            .map(|&ty| {
                let ty = self.graph.ty(ty);
                match ty.is_list {
                    false => Argument::One(random.datum(ty, number)),
                    true => {
                        let length = LENGTHS[number % PROBES];
                        Argument::Many((0..length).map(|_| random.datum(ty, number)).collect())
                    }
                }
            })
            .collect();
        let twice = signature.params.iter().all(|arg| match *arg {
            ParamArg::Module(param) => !self.params[1][param.index()].is_empty(),
            ParamArg::Port(_) => false,
        });
        let set = usize::from(twice && POSITIVE.contains(&number));
        let single = Single::new(self.graph, &self.params[set], self.noise, sig, operands.clone()).ok()?;
        let grads: Vec<Vec<Arc<[f32]>>> = signature
            .results
            .iter()
            .map(|&ty| {
                let ty = self.graph.ty(ty);
                let count = if ty.dtype == DType::F32 { 1 + number % 3 } else { 0 };
                (0..count).map(|_| (0..ty.shape.elements()).map(|_| random.unit()).collect()).collect()
            })
            .collect();
        let sums: Vec<Option<Arc<[f32]>>> = grads.iter().map(|grads| fold(grads)).collect();
        if sums.iter().all(Option::is_none) {
            let none = signature.operands.iter().map(|_| Partial::None).collect();
            let returned = Returned { operands: none, params: Vec::new() };
            return Some(Probe { set, operands, results: single.results, grads, returned });
        }
        let returned = single.reverse(&sums).ok()?;
        Some(Probe { set, operands, results: single.results, grads, returned })
    }
}

/// The sum of contributions, in order.
pub(super) fn fold(grads: &[Arc<[f32]>]) -> Option<Arc<[f32]>> {
    let mut sum = grads.first()?.to_vec();
    for more in &grads[1..] {
        sum.iter_mut().zip(more.iter()).for_each(|(sum, more)| *sum += more);
    }
    Some(sum.into())
}

fn contributions(probes: &[Probe]) -> Option<Vec<Contribution>> {
    let mut found = Vec::new();
    for (operand, partial) in probes[0].returned.operands.iter().enumerate() {
        let (count, is_list) = match partial {
            Partial::None => (0, false),
            Partial::One(_) => (1, false),
            Partial::Many(items) => (items.first().map_or(0, Vec::len), true),
        };
        let operand = operand as u32;
        found.extend((0..count as u32).map(|number| Contribution { operand, number, is_list }));
    }
    let mut counts = vec![0; probes[0].returned.operands.len()];
    found.iter().for_each(|own| counts[own.operand as usize] += 1);
    // Whatever the numbers are, the same operands get contributions.
    let same = probes.iter().all(|probe| {
        probe.returned.operands.iter().enumerate().all(|(operand, partial)| {
            let count = counts[operand];
            match partial {
                Partial::None => count == 0,
                Partial::One(_) => count == 1,
                Partial::Many(items) => items.iter().all(|item| item.len() == count),
            }
        })
    });
    same.then_some(found)
}

fn uses(probes: &[Probe]) -> Option<Vec<Uses>> {
    let all = &probes[0].returned.params;
    let alike = |a: &Probe, b: &Probe| {
        let (a, b) = (&a.returned.params, &b.returned.params);
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| a.param == b.param && same_kind(&a.share, &b.share))
    };
    if !probes.iter().all(|probe| alike(&probes[0], probe)) {
        return None;
    }
    let mut found: Vec<Uses> = Vec::new();
    // Places in what was found, by a hash of the numbers: a hundred thousand uses are too many to be compared with each other.
    let mut alike: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, own) in all.iter().enumerate() {
        let same = |known: &Uses| {
            known.param == own.param
                && probes.iter().all(|probe| {
                    let uses = &probe.returned.params;
                    same_share(&uses[known.first].share, &uses[number].share)
                })
        };
        let places = alike.entry(hash_of_use(probes, number)).or_default();
        match places.iter().find(|&&place| same(&found[place])) {
            Some(&place) => found[place].count += 1,
            None => {
                places.push(found.len());
                found.push(Uses { param: own.param, first: number, count: 1 });
            }
        }
    }
    Some(found)
}

/// A hash of what a use of a parameter adds on all lanes.
fn hash_of_use(probes: &[Probe], number: usize) -> u64 {
    let mut hash = StructureHash::default();
    for probe in probes {
        let (x, dy): (&[f32], &[f32]) = match &probe.returned.params[number].share {
            Share::Product { x, dy, .. } => (x, dy),
            Share::Rows(dy) | Share::Row { dy, .. } => (&[], dy),
        };
        x.iter().chain(dy).for_each(|number| hash.push(number.to_bits().into()));
    }
    hash.value() as u64
}

/// Whether two shares differ in numbers only.
fn same_kind(a: &Share<f32>, b: &Share<f32>) -> bool {
    match (a, b) {
        (
            Share::Product { x, width, dy, first, transposed },
            Share::Product { x: x2, width: width2, dy: dy2, first: first2, transposed: transposed2 },
        ) => {
            (x.len(), dy.len(), width, first, transposed)
                == (x2.len(), dy2.len(), width2, first2, transposed2)
        }
        (Share::Rows(a), Share::Rows(b)) => a.len() == b.len(),
        (Share::Row { dy: a, .. }, Share::Row { dy: b, .. }) => a.len() == b.len(),
        _ => false,
    }
}

fn same_share(a: &Share<f32>, b: &Share<f32>) -> bool {
    let same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
    same_kind(a, b)
        && match (a, b) {
            (Share::Product { x, dy, .. }, Share::Product { x: x2, dy: dy2, .. }) => {
                same(x, x2) && same(dy, dy2)
            }
            (Share::Rows(a), Share::Rows(b)) => same(a, b),
            (Share::Row { index, dy }, Share::Row { index: index2, dy: dy2 }) => {
                index == index2 && same(dy, dy2)
            }
            _ => false,
        }
}

/// Whether words of this type name elements.
fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// Between -1 and 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn number(&mut self, probe: usize) -> f32 {
        match probe {
            1 => self.unit() * 3.0,
            2 => 1.05 + self.unit() * 0.95,
            3 => [-1.0, -0.5, 0.0, 0.5, 1.0, 2.0][(self.next() % 6) as usize],
            5 => 0.5 + self.unit() * 0.45,
            _ => self.unit(),
        }
    }

    fn datum(&mut self, ty: Type, probe: usize) -> Datum<f32> {
        let elements = ty.shape.elements();
        let words = |this: &mut Self, below: u64| {
            let words = (0..elements).map(|_| (this.next() % below) as u32).collect();
            Datum::Words(Words { words, bound: Arc::default() })
        };
        match ty.dtype {
            DType::F32 => Datum::floats((0..elements).map(|_| self.number(probe)).collect::<Vec<f32>>()),
            DType::Bool => words(self, 2),
            _ if probe >= PROBES => {
                // Several indices name different elements.
                let first = (probe - PROBES) as u32;
                let words = (first..).take(elements).collect();
                Datum::Words(Words { words, bound: Arc::default() })
            }
            _ if probe == 4 => words(self, 1 << 16),
            _ => words(self, 7),
        }
    }
}
