//! Random scheduling problems of many shapes: jobs with types and operands.

use autobatch_ir::hash::split_mix;

/// Seeded random numbers.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Jobs in topological order, in the form of the planner's `schedule::Problem`.
#[derive(Clone, Debug, Default)]
pub struct JobGraph {
    /// Number of types.
    pub types: u32,
    /// The type of each job.
    pub ty: Vec<u32>,
    /// The jobs that must be batches of one, ascending.
    pub alone: Vec<u32>,
    /// The position of each job's first operand, and the end of the last job's operands.
    pub start: Vec<u32>,
    /// The operands of all jobs.
    pub operands: Vec<u32>,
}

impl JobGraph {
    /// A graph without jobs.
    pub fn new(types: u32) -> Self {
        Self { types, start: vec![0], ..Self::default() }
    }

    /// Adds a job and returns its number.
    pub fn add(&mut self, ty: u32, operands: &[u32]) -> u32 {
        self.ty.push(ty);
        self.operands.extend_from_slice(operands);
        self.start.push(self.operands.len() as u32);
        self.ty.len() as u32 - 1
    }

    /// The operands of a job.
    pub fn operands_of(&self, job: usize) -> &[u32] {
        &self.operands[self.start[job] as usize..self.start[job + 1] as usize]
    }

    /// Returns the number of edges in the hard part of a lattice: all edges that do not start at an input.
    pub fn hard_edges(&self) -> u64 {
        self.operands.iter().filter(|&&operand| self.ty[operand as usize] != 0).count() as u64
    }

    /// Marks each job as alone with probability `1 / one_in`.
    pub fn mark_alone(&mut self, one_in: u64, random: &mut Random) {
        self.alone = (0..self.ty.len() as u32).filter(|_| random.below(one_in) == 0).collect();
    }

    /// Random jobs, with up to three earlier jobs as operands.
    pub fn random(jobs: u64, types: u32, random: &mut Random) -> Self {
        let mut graph = Self::new(types);
        for job in 0..jobs {
            let degree = if job == 0 { 0 } else { random.below(4) };
            let operands: Vec<u32> = (0..degree).map(|_| random.below(job) as u32).collect();
            let ty = random.below(u64::from(types)) as u32;
            graph.add(ty, &operands);
        }
        graph
    }

    /// Separate chains of random types.
    pub fn chains(chains: u64, longest: u64, types: u32, random: &mut Random) -> Self {
        let mut graph = Self::new(types);
        for _ in 0..chains {
            let mut last = None;
            for _ in 0..=random.below(longest) {
                let ty = random.below(u64::from(types)) as u32;
                last = Some(graph.add(ty, last.as_slice()));
            }
        }
        graph
    }

    /// Binary trees over leaves of type 0. An inner job has a random type of 1..=inner. Every job has an output of the
    /// last type, as in a sentiment treebank.
    pub fn trees(trees: u64, leaves: u64, inner: u32, random: &mut Random) -> Self {
        let mut graph = Self::new(inner + 2);
        for _ in 0..trees {
            let count = 1 + random.below(leaves);
            let mut open: Vec<u32> = (0..count).map(|_| graph.add(0, &[])).collect();
            let mut all = open.clone();
            while open.len() > 1 {
                let at = random.below(open.len() as u64 - 1) as usize;
                let ty = 1 + random.below(u64::from(inner)) as u32;
                let job = graph.add(ty, &[open[at], open[at + 1]]);
                open.splice(at..at + 2, [job]);
                all.push(job);
            }
            for job in all {
                graph.add(inner + 1, &[job]);
            }
        }
        graph
    }

    /// Chains of character cells. Word cells skip ahead, and sums merge them, as in a lattice tagger.
    /// Types: 0 input, 1 character cell, 2 word cell, 3 sum.
    pub fn lattices(sentences: u64, longest: u64, random: &mut Random) -> Self {
        let mut graph = Self::new(4);
        for _ in 0..sentences {
            let length = 1 + random.below(longest);
            let mut arriving: Vec<Vec<u32>> = vec![Vec::new(); length as usize + 1];
            let mut last = None;
            for at in 0..length as usize {
                let input = graph.add(0, &[]);
                let mut operands = vec![input];
                operands.extend(last);
                if !arriving[at].is_empty() {
                    let sum = graph.add(3, &arriving[at]);
                    operands.push(sum);
                }
                let cell = graph.add(1, &operands);
                if random.below(3) == 0 {
                    let end = (at + 2 + random.below(3) as usize).min(length as usize);
                    let word = graph.add(2, &[cell]);
                    arriving[end].push(word);
                }
                last = Some(cell);
            }
        }
        graph
    }

    /// Layers with one type per layer. A job has up to three operands in the previous layer.
    pub fn layered(layers: u64, width: u64, types: u32, random: &mut Random) -> Self {
        let mut graph = Self::new(types);
        let mut before: Vec<u32> = Vec::new();
        for _ in 0..layers {
            let ty = random.below(u64::from(types)) as u32;
            let layer: Vec<u32> = (0..=random.below(width))
                .map(|_| {
                    let degree = if before.is_empty() { 0 } else { 1 + random.below(3) };
                    let operands: Vec<u32> =
                        (0..degree).map(|_| before[random.below(before.len() as u64) as usize]).collect();
                    graph.add(ty, &operands)
                })
                .collect();
            before = layer;
        }
        graph
    }

    /// Returns one of the shapes above with a few hundred jobs, sometimes with alone jobs.
    pub fn any(seed: u64) -> Self {
        let mut random = Random(seed);
        let types = 1 + random.below(7) as u32;
        let mut graph = match seed % 7 {
            0 => Self::random(200, types, &mut random),
            1 => Self::chains(20, 30, types, &mut random),
            2 => Self::trees(10, 20, 1 + types % 3, &mut random),
            3 => Self::lattices(8, 30, &mut random),
            4 => Self::layered(30, 10, types, &mut random),
            5 => Self::random(150, 70 + types * 10, &mut random),
            _ => Self::random(1 + seed % 13, types, &mut random),
        };
        match random.below(4) {
            0 => graph.mark_alone(5, &mut random),
            1 => graph.mark_alone(40, &mut random),
            _ => {}
        }
        graph
    }
}
