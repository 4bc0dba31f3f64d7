//! Classes of results: the results that [`storage`](super) puts into one field.

use super::fields::NO_FIELD;
use autobatch_ir::Type;
use autobatch_ir::hash::split_mix;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::FieldId;

/// No class.
const NONE: u32 = u32::MAX;

/// A class of results that share one field.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) ty: Type,
    /// Its field, once it has one.
    pub(super) field: FieldId,
    /// Signatures and the positions of their results, ascending.
    pub(super) makers: Vec<(SigId, u32)>,
}

impl Class {
    /// Whether it has a field.
    pub(super) fn is_placed(&self) -> bool {
        self.field != NO_FIELD
    }

    /// Whether each signature makes it at most once.
    pub(super) fn once_each(&self) -> bool {
        self.makers.windows(2).all(|pair| pair[0].0 != pair[1].0)
    }

    /// Whether the same signatures make both.
    pub(super) fn same_makers(&self, other: &Self) -> bool {
        self.makers.iter().map(|maker| maker.0).eq(other.makers.iter().map(|maker| maker.0))
    }

    /// Equal for classes with the same makers.
    fn makers_hash(&self) -> u64 {
        let mut state = 0;
        self.makers.iter().fold(0, |hash, maker| {
            state = hash ^ maker.0.index() as u64;
            split_mix(&mut state)
        })
    }
}

/// Chains of classes with equal hashes of makers. They replace a comparison of each class with each.
#[derive(Debug, Default)]
pub(super) struct MakerChains {
    sorted: Vec<(u64, u32)>,
    /// Per class the next one of its chain, or [`NONE`].
    next: Vec<u32>,
}

impl MakerChains {
    /// Builds the chains of all classes.
    pub(super) fn build(&mut self, classes: &[Class]) {
        let Self { sorted, next } = self;
        sorted.clear();
        sorted.extend(classes.iter().zip(0..).map(|(class, number)| (class.makers_hash(), number)));
        sorted.sort_unstable();
        next.clear();
        next.resize(sorted.len(), NONE);
        for pair in sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            next[pair[0].1 as usize] = pair[1].1;
        }
    }

    /// The later classes of a chain, ascending.
    pub(super) fn after(&self, number: usize) -> impl Iterator<Item = usize> {
        let next =
            |&number: &usize| Some(self.next[number]).filter(|&next| next != NONE).map(|next| next as usize);
        std::iter::successors(next(&number), next)
    }
}

/// The classes of a graph. Their memory serves the next graph.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// The classes of this graph, then spare ones.
    items: Vec<Class>,
    count: usize,
    /// Per result the class that it represents, or [`NONE`].
    of_root: Vec<u32>,
}

impl Classes {
    /// Starts again without classes, for a number of results.
    pub(super) fn clear(&mut self, results: usize) {
        self.count = 0;
        self.of_root.clear();
        self.of_root.resize(results, NONE);
    }

    /// All classes, in the order of their creation.
    pub(super) fn all(&self) -> &[Class] {
        &self.items[..self.count]
    }

    /// A class by its number.
    pub(super) fn nth(&mut self, number: usize) -> &mut Class {
        &mut self.items[number]
    }

    /// The class that a result represents.
    pub(super) fn of_root(&self, root: u32) -> Option<&Class> {
        self.items.get(self.of_root[root as usize] as usize)
    }

    /// The class that a result represents; a new one without makers if there is none.
    pub(super) fn of_root_or_new(&mut self, root: u32, ty: Type) -> &mut Class {
        let number = &mut self.of_root[root as usize];
        if *number == NONE {
            *number = self.count as u32;
            self.count += 1;
            let field = NO_FIELD;
            match self.items.get_mut(*number as usize) {
                Some(spare) => {
                    spare.makers.clear();
                    (spare.ty, spare.field) = (ty, field);
                }
                None => self.items.push(Class { ty, field, makers: Vec::new() }),
            }
        }
        &mut self.items[*number as usize]
    }
}
