//! Graphs like small molecules: rings and chains of atoms.
//!
//! A molecule begins with one to three rings of five or six atoms, each joined to the ones before by a bond. Then side chains
//! grow from random atoms until the molecule has its size. Node labels are those of MUTAG: carbon 0, nitrogen 1, oxygen 2,
//! fluorine 3, iodine 4, chlorine 5, bromine 6. Half of the molecules have a nitro group, a nitrogen with two oxygens at its
//! end; they have class 1, as most such molecules do in MUTAG. The others have nitrogen and oxygen elsewhere, and class -1.

use super::instances;
use crate::data::graphs::LabelledGraph;
use crate::data::random::{Random, Sizes};

/// Atoms per molecule, as in MUTAG.
pub const ATOMS: Sizes = Sizes::new([10, 17, 23, 26, 28]);

const CARBON: u32 = 0;
const NITROGEN: u32 = 1;
const OXYGEN: u32 = 2;
/// The frequency of each label at the end of a side chain.
const ENDS: [u32; 7] = [10, 4, 6, 1, 1, 2, 1];
/// The largest number of bonds of an atom.
const VALENCE: usize = 4;

struct Molecule {
    graph: LabelledGraph,
    bonds: Vec<usize>,
}

impl Molecule {
    fn atom(&mut self, label: u32) -> u32 {
        self.graph.labels.push(label);
        self.bonds.push(0);
        self.graph.labels.len() as u32 - 1
    }

    fn bond(&mut self, one: u32, other: u32) {
        self.graph.edges.extend([[one, other], [other, one]]);
        [one, other].iter().for_each(|&atom| self.bonds[atom as usize] += 1);
    }

    fn ring(&mut self, size: u32) -> u32 {
        let first = self.atom(CARBON);
        let mut last = first;
        for _ in 1..size {
            let next = self.atom(CARBON);
            self.bond(last, next);
            last = next;
        }
        self.bond(last, first);
        first
    }

    /// The carbons with room for a bond.
    fn free(&self) -> Vec<u32> {
        let is_free =
            |&atom: &u32| self.graph.labels[atom as usize] == CARBON && self.bonds[atom as usize] < VALENCE;
        (0..self.bonds.len() as u32).filter(is_free).collect()
    }

    fn grow(&mut self, label: u32, random: &mut Random) -> u32 {
        let free = self.free();
        let (from, to) = (free[random.index(free.len())], self.atom(label));
        self.bond(from, to);
        to
    }
}

fn molecule(atoms: u32, random: &mut Random) -> LabelledGraph {
    let mut made = Molecule { graph: LabelledGraph::default(), bonds: Vec::new() };
    let has_group = random.chance(500);
    let room = atoms - 3;
    made.ring(random.between(5, 6));
    for _ in 0..2 {
        let size = random.between(5, 6);
        if made.bonds.len() as u32 + size <= room && random.chance(600) {
            let free = made.free();
            let first = made.ring(size);
            made.bond(free[random.index(free.len())], first);
        }
    }
    if has_group {
        let nitrogen = made.grow(NITROGEN, random);
        for _ in 0..2 {
            let oxygen = made.atom(OXYGEN);
            made.bond(nitrogen, oxygen);
        }
    }
    while (made.bonds.len() as u32) < atoms {
        // A carbon gives room for more bonds, and others take it.
        let label = if made.free().len() > 1 { random.weighted(&ENDS) as u32 } else { CARBON };
        made.grow(label, random);
    }
    made.graph.class = if has_group { 1 } else { -1 };
    made.graph
}

/// Draws molecules with numbers of atoms from `atoms`, usually [`ATOMS`], and at least 9 each.
pub fn molecules(seed: u64, count: usize, atoms: Sizes) -> Vec<LabelledGraph> {
    instances(seed, count, |_, random| {
        let atoms = atoms.draw(random).max(9);
        molecule(atoms, random)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Summary, graphs};

    #[test]
    fn sizes_are_like_the_corpus() {
        let molecules = molecules(1, 2000, ATOMS);
        let atoms = Summary::of(molecules.iter().map(|molecule| molecule.labels.len()));
        let bonds = Summary::of(molecules.iter().map(|molecule| molecule.edges.len() / 2));
        assert!((16.5..19.0).contains(&atoms.mean()), "{atoms}");
        assert!((18.0..22.0).contains(&bonds.mean()), "{bonds}");
        let most = molecules.iter().flat_map(|molecule| molecule.neighbours()).map(|near| near.len()).max();
        assert_eq!(most, Some(VALENCE));
    }

    #[test]
    fn the_class_follows_from_the_atoms() {
        let molecules = molecules(2, 400, ATOMS);
        for molecule in &molecules {
            let near = molecule.neighbours();
            let oxygens =
                |atom: usize| near[atom].iter().filter(|&&at| molecule.labels[at as usize] == OXYGEN).count();
            let has_group =
                (0..near.len()).any(|atom| molecule.labels[atom] == NITROGEN && oxygens(atom) >= 2);
            assert_eq!(molecule.class, if has_group { 1 } else { -1 });
        }
        let ones = molecules.iter().filter(|molecule| molecule.class == 1).count();
        assert!((150..250).contains(&ones), "{ones} of 400");
    }

    #[test]
    fn generated_instances_are_in_the_format() {
        let molecules = molecules(3, 50, ATOMS);
        assert_eq!(graphs::parse(&graphs::write(&molecules), "generated").unwrap(), molecules);
    }
}
