//! Classes of results: the results that [`storage`](super) puts into one field.

use super::fields::NO_FIELD;
use crate::ids::{ClassId, Id, ResultId};
use crate::index_vec::IndexVec;
use autobatch_ir::Type;
use autobatch_ir::hash::split_mix;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::FieldId;

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
    sorted: Vec<(u64, ClassId)>,
    /// Per class the next one of its chain, if there is one.
    next: IndexVec<ClassId, Option<ClassId>>,
}

impl MakerChains {
    /// Builds the chains of all classes.
    pub(super) fn build(&mut self, classes: &Classes) {
        let Self { sorted, next } = self;
        sorted.clear();
        sorted.extend(classes.ids().map(|class| (classes.get(class).makers_hash(), class)));
        sorted.sort_unstable();
        next.refill(sorted.len(), None);
        for pair in sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            next[pair[0].1] = Some(pair[1].1);
        }
    }

    /// The later classes of a chain, ascending.
    pub(super) fn after(&self, class: ClassId) -> impl Iterator<Item = ClassId> {
        std::iter::successors(self.next[class], |&class| self.next[class])
    }
}

/// The classes of a graph. Their memory serves the next graph.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// The classes of this graph, then spare ones.
    items: IndexVec<ClassId, Class>,
    count: usize,
    /// Per result the class that it represents.
    of_root: IndexVec<ResultId, Option<ClassId>>,
}

impl Classes {
    /// Starts again without classes, for a number of results.
    pub(super) fn clear(&mut self, results: usize) {
        self.count = 0;
        self.of_root.refill(results, None);
    }

    /// All classes, in the order of their creation.
    pub(super) fn ids(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.count).map(ClassId::from_index)
    }

    pub(super) fn get(&self, class: ClassId) -> &Class {
        &self.items[class]
    }

    pub(super) fn get_mut(&mut self, class: ClassId) -> &mut Class {
        &mut self.items[class]
    }

    /// The class that a result represents.
    pub(super) fn of_root(&self, root: ResultId) -> Option<&Class> {
        self.of_root[root].map(|class| &self.items[class])
    }

    /// The class that a result represents; a new one without makers if there is none.
    pub(super) fn of_root_or_new(&mut self, root: ResultId, ty: Type) -> &mut Class {
        let Self { items, count, of_root } = self;
        let class = *of_root[root].get_or_insert_with(|| {
            let class = ClassId::from_index(*count);
            *count += 1;
            if class == items.next_id() {
                items.push(Class { ty, field: NO_FIELD, makers: Vec::new() });
            }
            let new = &mut items[class];
            new.makers.clear();
            (new.ty, new.field) = (ty, NO_FIELD);
            class
        });
        &mut items[class]
    }
}
