//! The values that a recipe has emitted, and the choice of a step's operands among them.
//!
//! Each value has a bound on its magnitude. The stage scales a value that may exceed [`LIMIT`] down by
//! a power of two, so long graphs neither overflow nor saturate.

use super::kit::Kit;
use super::recipe::{Options, Reach, Step};
use super::rng::Rng;
use autobatch_ir::hash::avalanche;
use autobatch_ir::{Arg, DType, Graph, INDEX, Shape, Type, Value, f32};

/// The largest magnitude of stored floats.
pub(super) const LIMIT: f64 = 4.0;
/// The largest number of elements of a stored value.
pub(super) const ELEMENTS: usize = 256;
/// The maximum length of a list.
pub(super) const LONGEST: u32 = 9;

/// An emitted value.
#[derive(Clone, Copy)]
struct Entry<'g> {
    value: Value<'g>,
    ty: Type,
    name: u64,
    bound: f64,
    uses: u32,
}

/// A value with a bound on its magnitude.
pub(super) type Bounded<'g> = (Value<'g>, f64);

/// The state from which a step emits.
#[derive(Clone)]
pub(super) struct Stage<'g, 'k> {
    pub(super) g: &'g Graph,
    pub(super) kit: &'k Kit,
    pub(super) options: Options,
    pub(super) in_body: bool,
    pool: Vec<Entry<'g>>,
    lists: Vec<Bounded<'g>>,
}

impl<'g, 'k> Stage<'g, 'k> {
    pub(super) fn new(g: &'g Graph, kit: &'k Kit, options: Options, in_body: bool) -> Self {
        Self { g, kit, options, in_body, pool: Vec::new(), lists: Vec::new() }
    }

    /// The width of most vectors.
    pub(super) fn width(&self) -> usize {
        self.kit.width
    }

    pub(super) fn vector_type(&self) -> Type {
        f32([self.width()])
    }

    /// Stores a result of a step for later steps. Scales it down if it may be large.
    pub(super) fn keep(&mut self, step: &Step, value: Value<'g>, bound: f64) {
        let ty = value.ty();
        if ty.is_list || ty.shape.elements() > ELEMENTS {
            return;
        }
        let (value, bound) = self.tame(value, bound);
        let ordinal = self.pool.iter().filter(|entry| entry.name >> 8 == u64::from(step.name)).count();
        let name = (u64::from(step.name) << 8) | ordinal as u64;
        self.pool.push(Entry { value, ty, name, bound, uses: 0 });
    }

    /// Stores a list. `bound` limits the magnitude of all its values.
    pub(super) fn keep_list(&mut self, list: Value<'g>, bound: f64) {
        self.lists.push((list, bound));
    }

    /// Returns the newest list of values of this type.
    pub(super) fn existing_list(&self, element: Type) -> Option<Bounded<'g>> {
        self.lists(element).next()
    }

    /// Returns the lists of values of this type, the newest first.
    pub(super) fn lists(&self, element: Type) -> impl Iterator<Item = Bounded<'g>> {
        self.lists.iter().rev().filter(move |(list, _)| list.ty().element() == element).copied()
    }

    pub(super) fn tame(&self, value: Value<'g>, bound: f64) -> Bounded<'g> {
        if value.ty().dtype != DType::F32 || self.options.wild || bound <= LIMIT {
            return (value, bound);
        }
        let scale = 2f64.powi(-(bound / LIMIT).log2().ceil() as i32);
        (value * scale as f32, bound * scale)
    }

    /// Returns an operand of this kind, if one exists. The slots of one step choose independently, unless
    /// the step requires equal operands.
    pub(super) fn find(
        &mut self,
        step: &Step,
        slot: u32,
        fits: impl Fn(Type) -> bool,
    ) -> Option<Bounded<'g>> {
        let slot = if step.twin { 0 } else { slot };
        let fitting: Vec<usize> = (0..self.pool.len()).filter(|&at| fits(self.pool[at].ty)).collect();
        let near = fitting.len().saturating_sub(6);
        let pick = avalanche(u64::from(step.pick) << 8 | u64::from(slot));
        let lot = |&at: &usize| avalanche(pick ^ self.pool[at].name);
        let unused = fitting.iter().copied().filter(|&at| self.pool[at].uses == 0);
        let by_lot = |from: &[usize]| from.iter().copied().min_by_key(lot);
        let at = match (step.reach, slot) {
            (Reach::Latest, 0) => fitting.last().copied(),
            (Reach::Unused, _) => unused.min().or_else(|| by_lot(&fitting)),
            (Reach::Near, _) => by_lot(&fitting[near..]),
            (Reach::Any | Reach::Latest, _) => by_lot(&fitting),
        }?;
        self.pool[at].uses += 1;
        Some((self.pool[at].value, self.pool[at].bound))
    }

    /// Returns the newest values of fitting types without readers.
    pub(super) fn sinks(&mut self, count: usize, fits: impl Fn(Type) -> bool) -> Vec<Bounded<'g>> {
        let fits = |entry: &&mut Entry<'g>| entry.uses == 0 && fits(entry.ty);
        let take = |entry: &mut Entry<'g>| {
            entry.uses += 1;
            (entry.value, entry.bound)
        };
        self.pool.iter_mut().rev().filter(fits).take(count).map(take).collect()
    }

    /// Returns `count` numbers that depend on the step alone.
    pub(super) fn numbers(&self, step: &Step, count: usize) -> Vec<f32> {
        const WILD: [f32; 12] = [
            0.0,
            -0.0,
            1e-40,
            -3e-39,
            1e-30,
            1e30,
            -2e38,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1.0,
            -87.5,
        ];
        let mut rng = Rng::new(u64::from(step.pick) << 32 | u64::from(step.size));
        (0..count)
            .map(|_| match self.options.wild && rng.chance(30) {
                true => rng.pick(&WILD),
                false => 2.0 * rng.small(),
            })
            .collect()
    }

    /// Emits a float input. A body has no inputs, so a constant replaces it there.
    pub(super) fn bound_floats(&self, step: &Step, shape: Shape) -> Value<'g> {
        let numbers = self.numbers(step, shape.elements());
        match self.in_body {
            true => self.g.fill(shape, numbers[0]),
            false => self.g.input_shaped(shape, &numbers),
        }
    }

    /// Returns a value of this type. Emits one if none exists.
    pub(super) fn of_type(&mut self, step: &Step, slot: u32, wanted: Type) -> Bounded<'g> {
        match self.find(step, slot, |ty| ty == wanted) {
            Some(found) => found,
            None => {
                let step = Step { size: step.size.wrapping_add(slot), ..*step };
                self.bound(&step, wanted)
            }
        }
    }

    /// Emits a new value of this type from bindings alone.
    pub(super) fn bound(&self, step: &Step, ty: Type) -> Bounded<'g> {
        let floats = self.bound_floats(step, ty.shape);
        match ty.dtype {
            DType::F32 => (floats, 2.0),
            words => (floats.cast(words), self.bound_of_words(words, 2.0)),
        }
    }

    /// Returns the bound of integers or booleans converted from floats with this bound. Wild floats have no bound.
    pub(super) fn bound_of_words(&self, dtype: DType, bound: f64) -> f64 {
        match dtype {
            DType::Bool => 1.0,
            _ if self.options.wild => f64::from(u32::MAX),
            _ => bound,
        }
    }

    /// Returns a vector of the usual width.
    pub(super) fn vector(&mut self, step: &Step, slot: u32) -> Bounded<'g> {
        self.of_type(step, slot, self.vector_type())
    }

    /// Returns a value of rank 1 or more and of any element type.
    pub(super) fn block(&mut self, step: &Step, slot: u32) -> Bounded<'g> {
        const MADE: [&[u32]; 6] = [&[3], &[2, 3], &[2, 3, 2], &[2, 1, 3], &[1, 2, 3, 2], &[2, 2, 1, 3]];
        let rank = [0, 0, 2, 3, 4][step.size as usize / 4096 % 5];
        let of_words = step.size / 65_536 % 3 == 1;
        let fits = |ty: Type| {
            let ranked = if rank == 0 { ty.shape.rank() > 0 } else { ty.shape.rank() == rank };
            ranked && (ty.dtype != DType::F32) == of_words
        };
        if let Some(found) = self.find(step, slot, fits) {
            return found;
        }
        let made: Vec<&[u32]> = MADE.into_iter().filter(|dims| rank == 0 || dims.len() == rank).collect();
        let dims = made[step.size as usize / 1_048_576 % made.len()];
        let dtype = match (of_words, step.size % 3) {
            (false, _) => DType::F32,
            (true, 0) => DType::Bool,
            (true, 1) => DType::I32,
            (true, _) => DType::U32,
        };
        let shape = Shape::new(dims).expect("small extents form a shape");
        self.bound(step, Type::new(dtype, shape))
    }

    /// Returns a float value of any shape.
    pub(super) fn float(&mut self, step: &Step, slot: u32) -> Bounded<'g> {
        let found = self.find(step, slot, |ty| ty.dtype == DType::F32);
        found.unwrap_or_else(|| self.vector(step, slot))
    }

    /// Returns a float value of the type of `other`. Returns `other` itself if there is no second one.
    pub(super) fn like(&mut self, step: &Step, other: Bounded<'g>) -> Bounded<'g> {
        let wanted = other.0.ty();
        self.find(step, 1, |ty| ty == wanted).unwrap_or(other)
    }

    /// As `like`, or a scalar of the same element type, which broadcasts to every element.
    pub(super) fn like_or_scalar(&mut self, step: &Step, other: Bounded<'g>) -> Bounded<'g> {
        let dtype = other.0.ty().dtype;
        match step.size / 256 % 3 {
            1 => self.of_type(step, 1, Type::scalar(dtype)),
            _ => self.like(step, other),
        }
    }

    /// Returns a float value of rank 1 or more.
    pub(super) fn rows(&mut self, step: &Step, slot: u32) -> Bounded<'g> {
        let found = self.find(step, slot, |ty| ty.dtype == DType::F32 && ty.shape.rank() > 0);
        found.unwrap_or_else(|| self.vector(step, slot))
    }

    /// Returns a float matrix with rows of the usual width. Stacks one if none exists.
    pub(super) fn matrix(&mut self, step: &Step, slot: u32) -> Bounded<'g> {
        let width = self.width();
        let fits = |ty: Type| ty.dtype == DType::F32 && ty.shape.rank() == 2 && ty.shape.width() == width;
        if let Some(found) = self.find(step, slot, fits) {
            return found;
        }
        let rows = 1 + step.size % 3;
        let rows: Vec<Bounded<'g>> = (0..rows).map(|row| self.vector(step, 10 + slot + row)).collect();
        let bound = rows.iter().map(|row| row.1).fold(0.0, f64::max);
        (self.g.stack(rows.iter().map(|row| row.0)), bound)
    }

    /// Returns the values of a list: none, one, or several.
    pub(super) fn items(&mut self, step: &Step, element: Type) -> Vec<Bounded<'g>> {
        let count = match step.size % 8 {
            0 => 0,
            1 => 1,
            2 => 6 + step.size / 8 % (LONGEST - 5),
            more => more - 1,
        };
        (0..count).map(|slot| self.of_type(step, 20 + slot, element)).collect()
    }

    /// Returns an index below `end`: a binding, an emitted value, or the index of a vector's largest element.
    pub(super) fn index(&mut self, step: &Step, end: usize) -> Arg<'g> {
        let existing = (step.size / 16) % 3;
        if existing == 0 || self.in_body {
            let kept = (0..self.pool.len())
                .rev()
                .find(|&at| self.pool[at].ty == INDEX && self.pool[at].bound < end as f64);
            if let Some(at) = kept {
                self.pool[at].uses += 1;
                return self.pool[at].value.into();
            }
        }
        if self.in_body && self.options.smooth {
            // A body has no bindings, and a computed index is not smooth, so the index is a constant.
            return self.g.constant((step.size / 64 % end as u32) as f32).cast(DType::U32).into();
        }
        if self.in_body || (existing == 1 && !self.options.smooth && self.width() <= end) {
            let (vector, _) = self.vector(step, 0);
            let fitting = vector.slice(0..self.width().min(end));
            return fitting.argmax().into();
        }
        Arg::Index(step.size / 64 % end as u32)
    }

    /// Returns an emitted value that may be an output; `pick` chooses it.
    pub(super) fn wanted(&mut self, pick: u32) -> Option<Value<'g>> {
        self.find(&Step::choice(pick, 0), 0, |_| true).map(|found| found.0)
    }
}
