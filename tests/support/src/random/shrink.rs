//! Shrinks a recipe that fails.
//!
//! The search is greedy and deterministic. It removes halves of each list, then quarters, down to single items.
//! Then it replaces every choice by the simplest one. It repeats the sweep until nothing changes. Any list of
//! decisions is a legal recipe, so every candidate is well formed.

use super::act::Act;
use super::recipe::{Instance, Reach, Recipe, Step};

/// The maximum number of candidates, which bounds the time.
const CANDIDATES: usize = 4000;

/// Returns a smaller recipe that still fails, or the recipe itself if the search finds none.
///
/// The result may be below the profile's size limits. `fails` must hold for `recipe`.
pub fn shrink(recipe: &Recipe, fails: impl FnMut(&Recipe) -> bool) -> Recipe {
    let mut search = Search { best: recipe.clone(), fails, left: CANDIDATES };
    loop {
        let before = search.best.clone();
        search.sweep();
        if search.best == before || search.left == 0 {
            return search.best;
        }
    }
}

struct Search<F> {
    best: Recipe,
    fails: F,
    left: usize,
}

impl<F: FnMut(&Recipe) -> bool> Search<F> {
    fn sweep(&mut self) {
        self.thin(&|recipe: &mut Recipe| &mut recipe.instances);
        self.thin(&|recipe: &mut Recipe| &mut recipe.prefix);
        self.thin(&|recipe: &mut Recipe| &mut recipe.cells);
        for number in 0..self.best.instances.len() {
            self.thin(&move |recipe: &mut Recipe| &mut recipe.instances[number].steps);
            self.thin(&move |recipe: &mut Recipe| &mut recipe.instances[number].outputs);
            self.plain_instance(number);
        }
        for number in 0..self.best.cells.len() {
            self.thin(&move |recipe: &mut Recipe| &mut recipe.cells[number].steps);
            self.plain_numbers(&move |recipe: &mut Recipe| &mut recipe.cells[number].ports);
            self.plain_numbers(&move |recipe: &mut Recipe| &mut recipe.cells[number].results);
        }
        self.try_to(|recipe| recipe.total = false);
        self.try_to(|recipe| recipe.options.wild = false);
        for width in 1..self.best.width {
            if self.try_to(|recipe| recipe.width = width) {
                break;
            }
        }
        for place in 0..self.best.steps().count() {
            self.plain_step(place);
        }
    }

    /// Changes the recipe and returns whether it still fails. Reverts the change if it does not.
    fn try_to(&mut self, change: impl FnOnce(&mut Recipe)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        if self.left == 0 || candidate == self.best {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&candidate);
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Removes runs of a list, long runs first.
    fn thin<T>(&mut self, list: &dyn Fn(&mut Recipe) -> &mut Vec<T>) {
        let mut run = list(&mut self.best).len();
        while run > 0 {
            let mut start = 0;
            while start < list(&mut self.best).len() {
                let removed = self.try_to(|recipe| {
                    let items = list(recipe);
                    items.drain(start..(start + run).min(items.len()));
                });
                if !removed {
                    start += run;
                }
            }
            run /= 2;
        }
    }

    /// Removes numbers of a list and sets the remaining ones to 0.
    fn plain_numbers(&mut self, list: &dyn Fn(&mut Recipe) -> &mut Vec<u32>) {
        self.thin(list);
        for place in 0..list(&mut self.best).len() {
            self.try_to(|recipe| list(recipe)[place] = 0);
        }
    }

    fn plain_instance(&mut self, number: usize) {
        type Change = fn(&mut Instance);
        let changes: [Change; 3] = [
            |instance| instance.loss = None,
            |instance| instance.key = 0,
            |instance| {
                instance.loss = instance.loss.map(|_| 0);
            },
        ];
        for change in changes {
            self.try_to(|recipe| change(&mut recipe.instances[number]));
        }
    }

    fn plain_step(&mut self, place: usize) {
        type Change = fn(&mut Step);
        let changes: [Change; 9] = [
            |step| step.act = Act::Input,
            |step| step.act = Act::Unary(autobatch_ir::graph::Unary::Tanh),
            |step| step.alone = false,
            |step| step.twin = false,
            |step| step.reach = Reach::Any,
            |step| step.pick = 0,
            |step| step.size = 0,
            |step| step.size = step.size.min(1),
            |step| step.size = step.size.min(3),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            // Without this check the two replacements of the action would undo each other forever.
            let is_plain = |step: &Step| step.act == Act::Input;
            let replaces = number < 2;
            if replaces && step_at(&mut self.best, place).is_some_and(|step| is_plain(step)) {
                continue;
            }
            self.try_to(|recipe| {
                if let Some(step) = step_at(recipe, place) {
                    change(step);
                }
            });
        }
    }
}

fn step_at(recipe: &mut Recipe, place: usize) -> Option<&mut Step> {
    let instances = recipe.instances.iter_mut().flat_map(|instance| &mut instance.steps);
    recipe
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.steps)
        .chain(&mut recipe.prefix)
        .chain(instances)
        .nth(place)
}
