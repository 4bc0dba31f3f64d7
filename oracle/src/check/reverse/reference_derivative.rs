//! The derivative of a signature by the reference, on probes.
//!
//! **The bound is zero.** Each element of a derivative kernel must equal the element of the reference in `f32`, and
//! must be finite on at least one probe. All NaNs are equal, and so are zeros of both signs.

use super::equal_results::UseIndex;
use super::probe::{NOISE, POSITIVE, PROBES, Probe, Random, fold};
use crate::reference::{
    Addend, Argument, CallCost, Constants, Noise, Partial, Returned, Share, ShareKind, Single, With, costs,
    is_wild,
};
use autobatch_ir::graph::{Callee, GraphData, Op, ParamArg, Signature};
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::{ParamId, SigId};
use autobatch_ir::module::ParamKind;
use autobatch_ir::types::{DType, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most elements that the additional probes of a signature with indices read and make. Cells that look up rows of
/// tables are large, and read no index element by element.
const MAX_NAMED: u64 = 1 << 18;
/// The most elements that one node may make.
const MAX_ELEMENTS: u64 = 1 << 24;
/// The most elements that parameters and probes may hold together: one gigabyte.
const MAX_HELD: u64 = 1 << 28;
/// The most multiplications that the probes of all signatures may take together: about a minute.
const MAX_WORK: u64 = 1 << 36;
/// The executions of a node per probe: the reference forward and in reverse, and the derivative kernel.
const PASSES: u64 = 4;
/// Larger parameters have the same values on all probes. They are factors of products, and no root is taken of them.
const MAX_POSITIVE: usize = 1 << 22;

/// One contribution that a node makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contribution {
    /// The operand whose gradient gets it; of a list, the gradients of all its values.
    pub(super) operand: u32,
    /// The number of the use of a list.
    pub(super) number: u32,
    pub(super) is_list: bool,
    /// Of a link of a chain, the operand that holds the partners of the items.
    pub(super) partner: Option<u32>,
}

/// Uses of a parameter that contribute the same.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    pub(super) param: ParamId,
    /// Their numbers by the reference, ascending: the order in which they are added.
    pub(super) numbers: Vec<usize>,
}

impl Uses {
    /// The number of the first of them.
    pub(super) fn first(&self) -> usize {
        self.numbers[0]
    }

    pub(super) fn count(&self) -> u32 {
        self.numbers.len() as u32
    }
}

/// The reference's derivative of a signature.
pub(super) struct ReferenceDerivative {
    pub(super) probes: Vec<Probe>,
    /// In the order in which the reference adds them: ascending by operand and number.
    pub(super) contributions: Vec<Contribution>,
    pub(super) uses: Vec<Uses>,
    pub(super) use_index: UseIndex,
    /// The cost of one call.
    pub(super) cost: CallCost,
}

impl ReferenceDerivative {
    /// Lists what the probes show; `None` if they differ in more than numbers.
    fn new(probes: Vec<Probe>, cost: CallCost) -> Option<Self> {
        let contributions = contributions(&probes)?;
        let uses = uses(&probes)?;
        let use_index = UseIndex::new(&probes, &uses);
        Some(Self { probes, contributions, uses, use_index, cost })
    }

    /// The contribution of a use on the first probe.
    pub(super) fn share(&self, number: u32) -> &Share<f32> {
        &self.probes[0].returned.params[self.uses[number as usize].first()].share
    }

    /// The place of a contribution.
    pub(super) fn contribution(&self, operand: u32, number: u32) -> Option<u32> {
        let key = |own: &Contribution| (own.operand, own.number);
        self.contributions.binary_search_by_key(&(operand, number), key).ok().map(|at| at as u32)
    }

    /// The number of elements of its parameter that a use adds to. A sum of rows counts as one, as in reductions.
    pub(super) fn area(&self, uses: &Uses) -> u64 {
        let Share { dy, kind } = &self.probes[0].returned.params[uses.first()].share;
        match kind {
            ShareKind::Product { x, width, .. } => {
                (*width as u64) * (dy.len() * width / x.len().max(1)) as u64
            }
            ShareKind::Rows | ShareKind::Row(_) | ShareKind::Labels { .. } => 1,
        }
    }

    /// The target of a contribution with an element that is finite on no probe.
    pub(super) fn nowhere_finite(&self) -> Option<String> {
        let operand = self.contributions.iter().find(|to| {
            let mut finite = Finite::default();
            for probe in &self.probes {
                match &probe.returned.operands[to.operand as usize] {
                    Partial::None => {}
                    Partial::One(elements) => finite.add(elements),
                    Partial::Many(items) => {
                        items.iter().for_each(|item| finite.add(&item[to.number as usize].elements()))
                    }
                }
            }
            finite.is_incomplete()
        });
        let of_param = || {
            self.uses.iter().find(|uses| {
                let [mut of_x, mut of_dy] = [Finite::default(), Finite::default()];
                for probe in &self.probes {
                    let [x, dy] = probe.returned.params[uses.first()].share.taken();
                    of_x.add(x);
                    of_dy.add(dy);
                }
                of_x.is_incomplete() || of_dy.is_incomplete()
            })
        };
        match operand {
            Some(to) => Some(format!("operand {}", to.operand)),
            None => of_param().map(|uses| uses.param.to_string()),
        }
    }
}

/// For each element, whether it is finite on some probe.
#[derive(Default)]
struct Finite(Vec<bool>);

impl Finite {
    fn add(&mut self, elements: &[f32]) {
        self.0.resize(elements.len().max(self.0.len()), false);
        self.0.iter_mut().zip(elements).for_each(|(finite, element)| *finite |= element.is_finite());
    }

    fn is_incomplete(&self) -> bool {
        self.0.iter().any(|&finite| !finite)
    }
}

/// The reference derivatives of the signatures of a graph, made on request.
pub(super) struct ReferenceDerivatives<'a> {
    graph: &'a GraphData,
    noise: Noise,
    /// Values of the parameters that signatures take: of both signs, and positive ones unless the parameter is large.
    pub(super) params: [Vec<Vec<f32>>; 2],
    /// The number of elements that parameters and probes hold.
    held: u64,
    /// The number of multiplications that the probes took.
    worked: u64,
    costs: Option<Vec<CallCost>>,
    /// Whether a constant of the graph or of a cell may keep gradients from being finite.
    has_wild_constants: bool,
    known: Vec<Option<Option<ReferenceDerivative>>>,
    /// The number of examined signatures.
    pub(super) examined: usize,
}

impl<'a> ReferenceDerivatives<'a> {
    pub(super) fn new(graph: &'a GraphData, training: bool) -> Self {
        let (seed, step) = NOISE;
        Self {
            graph,
            noise: if training { Noise::On { seed, step } } else { Noise::Off },
            params: [0, 1].map(|_| vec![Vec::new(); graph.module.params.len()]),
            held: 0,
            worked: 0,
            costs: costs(graph).ok(),
            has_wild_constants: graph.sigs.items().iter().any(is_wild_constant),
            known: (0..graph.sigs.items().len()).map(|_| None).collect(),
            examined: 0,
        }
    }

    /// The derivative of a signature; `None` if the signature is too large or has no derivative.
    pub(super) fn of(&mut self, sig: SigId) -> Option<&ReferenceDerivative> {
        if self.known[sig.index()].is_none() {
            let found = self.examine(sig);
            self.examined += 1;
            self.known[sig.index()] = Some(found);
        }
        self.get(sig)
    }

    /// The derivative of a signature that was requested before.
    pub(super) fn get(&self, sig: SigId) -> Option<&ReferenceDerivative> {
        self.known[sig.index()].as_ref()?.as_ref()
    }

    fn examine(&mut self, sig: SigId) -> Option<ReferenceDerivative> {
        let signature = self.graph.sigs.get(sig);
        let cost = *self.costs.as_ref()?.get(sig.index())?;
        let count = PROBES + self.named(signature, cost.elements);
        if cost.elements > MAX_ELEMENTS || !self.affords(cost, count as u64) {
            return None;
        }
        for arg in &signature.params {
            let ParamArg::Module(param) = *arg else { return None };
            self.fill(param)?;
        }
        let mut random = Random(sig.index() as u64 + 1);
        let mut probes = |this: &Self, count: usize, constants: Constants| -> Option<Vec<Probe>> {
            (0..count).map(|number| this.probe(sig, number, constants, &mut random)).collect()
        };
        let reference = ReferenceDerivative::new(probes(self, count, Constants::Given)?, cost)?;
        let is_tame = !self.has_wild_constants || reference.nowhere_finite().is_none();
        if is_tame || !self.affords(cost, PROBES as u64) {
            return Some(reference);
        }
        let tame = probes(self, PROBES, Constants::Tame)?;
        ReferenceDerivative::new(reference.probes.into_iter().chain(tame).collect(), cost)
    }

    /// Returns whether the limits allow this number of probes of a signature. If so, counts what they hold and take.
    fn affords(&mut self, cost: CallCost, probes: u64) -> bool {
        // A probe keeps values and their gradients.
        let held = self.held.saturating_add(2 * probes * cost.elements);
        let worked = self.worked.saturating_add(cost.work.saturating_mul(PASSES * probes));
        let affords = held <= MAX_HELD && worked <= MAX_WORK;
        if affords {
            (self.held, self.worked) = (held, worked);
        }
        affords
    }

    /// The number of additional probes, which name one element after the other.
    fn named(&self, signature: &Signature, cost: u64) -> usize {
        let types = || signature.operands.iter().map(|&ty| self.graph.ty(ty));
        if !types().any(|ty| matches!(ty.dtype, DType::I32 | DType::U32)) {
            return 0;
        }
        let results = signature.results.iter().map(|&ty| self.graph.ty(ty));
        let elements = |ty: Type| ty.shape.elements() as u64;
        let widest = types().chain(results).map(elements).max().unwrap_or(0);
        let lane = types().map(elements).fold(cost.max(1), u64::saturating_add);
        widest.min(MAX_NAMED / lane) as usize
    }

    /// Makes the values of a parameter: a block of a few thousand numbers, repeated.
    fn fill(&mut self, param: ParamId) -> Option<()> {
        const PERIOD: usize = 4093;
        let decl = &self.graph.module.params[param.index()];
        let elements = decl.ty.shape.elements();
        let [params, positive] = &mut self.params;
        if !params[param.index()].is_empty() {
            return Some(());
        }
        let held = if elements <= MAX_POSITIVE { 2 * elements } else { elements } as u64;
        if self.held + held > MAX_HELD {
            return None;
        }
        self.held += held;
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
        } else if elements <= MAX_POSITIVE {
            positive[param.index()].clone_from(&numbers);
        }
        params[param.index()] = numbers;
        Some(())
    }

    fn probe(&self, sig: SigId, number: usize, constants: Constants, random: &mut Random) -> Option<Probe> {
        let signature = self.graph.sigs.get(sig);
        let operands: Vec<Argument<f32>> =
            signature.operands.iter().map(|&ty| random.argument(self.graph.ty(ty), number)).collect();
        let twice = signature.params.iter().all(|arg| match *arg {
            ParamArg::Module(param) => !self.params[1][param.index()].is_empty(),
            ParamArg::Port(_) => false,
        });
        let set = usize::from(twice && POSITIVE.contains(&number));
        let with = With { noise: self.noise, constants };
        let single = Single::new(self.graph, &self.params[set], with, sig, operands.clone()).ok()?;
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
            return Some(Probe { set, constants, operands, results: single.results, grads, returned });
        }
        let returned = single.reverse(&sums).ok()?;
        Some(Probe { set, constants, operands, results: single.results, grads, returned })
    }
}

fn is_wild_constant(signature: &Signature) -> bool {
    matches!(signature.callee, Callee::Op(Op::Fill { bits, .. }) if is_wild(bits))
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
        let partner = |number: usize| match partial {
            Partial::Many(items) => match &items.first()?[number] {
                Addend::Link(link) => Some(link.partner as u32),
                Addend::Row(_) => None,
            },
            _ => None,
        };
        found.extend((0..count).map(|number| Contribution {
            operand,
            number: number as u32,
            is_list,
            partner: partner(number),
        }));
    }
    let mut counts = vec![0; probes[0].returned.operands.len()];
    found.iter().for_each(|own| counts[own.operand as usize] += 1);
    // The same operands must get contributions on all probes.
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
    let same_kinds = |a: &Probe, b: &Probe| {
        let (a, b) = (&a.returned.params, &b.returned.params);
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| a.param == b.param && same_kind(&a.share, &b.share))
    };
    if !probes.iter().all(|probe| same_kinds(&probes[0], probe)) {
        return None;
    }
    let mut found: Vec<Uses> = Vec::new();
    // Places in `found` by a hash of the numbers, because a hundred thousand uses are too many to compare pairwise.
    let mut by_hash: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, own) in all.iter().enumerate() {
        let same = |known: &Uses| {
            known.param == own.param
                && probes.iter().all(|probe| {
                    let uses = &probe.returned.params;
                    same_share(&uses[known.first()].share, &uses[number].share)
                })
        };
        let places = by_hash.entry(hash_of_use(probes, number)).or_default();
        match places.iter().find(|&&place| same(&found[place])) {
            Some(&place) => found[place].numbers.push(number),
            None => {
                places.push(found.len());
                found.push(Uses { param: own.param, numbers: vec![number] });
            }
        }
    }
    Some(found)
}

/// A hash of what a use of a parameter adds on all probes.
fn hash_of_use(probes: &[Probe], number: usize) -> u64 {
    let mut hash = StructureHash::default();
    for probe in probes {
        let [x, dy] = probe.returned.params[number].share.taken();
        x.iter().chain(dy).for_each(|number| hash.push(number.to_bits().into()));
    }
    hash.value() as u64
}

/// Returns whether two shares differ in numbers at most.
fn same_kind(a: &Share<f32>, b: &Share<f32>) -> bool {
    a.dy.len() == b.dy.len()
        && match (&a.kind, &b.kind) {
            (
                ShareKind::Product { x, width, first, transposed },
                ShareKind::Product { x: x2, width: width2, first: first2, transposed: transposed2 },
            ) => (x.len(), width, first, transposed) == (x2.len(), width2, first2, transposed2),
            (ShareKind::Rows, ShareKind::Rows)
            | (ShareKind::Row(_), ShareKind::Row(_))
            | (ShareKind::Labels { .. }, ShareKind::Labels { .. }) => true,
            _ => false,
        }
}

fn same_share(a: &Share<f32>, b: &Share<f32>) -> bool {
    let same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
    same_kind(a, b)
        && same(&a.dy, &b.dy)
        && match (&a.kind, &b.kind) {
            (ShareKind::Product { x, .. }, ShareKind::Product { x: x2, .. }) => same(x, x2),
            (ShareKind::Labels { x, factors }, ShareKind::Labels { x: x2, factors: factors2 }) => {
                same(x, x2) && same(factors, factors2)
            }
            (ShareKind::Row(index), ShareKind::Row(index2)) => index == index2,
            _ => true,
        }
}
