//! Binary files from an enemy: no panic, and memory in proportion to the file.
//!
//! Most mutations get a new checksum, so that they reach the decoder and the verifier. What passes
//! is walked through: nothing that is verified may panic later.
//!
//! `AUTOBATCH_TEST=long` multiplies the number of mutations by ten.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use autobatch_ir::codec::LoadError;
use autobatch_ir::graph::{Applications, OperandKind};
use autobatch_ir::hash::hash_bytes;
use autobatch_ir::types::{INDEX, f32, list};
use autobatch_ir::{Graph, GraphData, Init, ModuleBuilder, ValueId};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that this thread holds and the most it ever held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // A thread that is ending has no counters any more, and needs none.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every request goes to the system allocator unchanged, and its answer is given back
// unchanged. Counting neither allocates (the counters are constant-initialised and have no
// destructor) nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` came from `System` with this layout, for nothing else hands out memory.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result of `f`, and how many bytes more than at the start were held at the worst.
fn measured<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = f();
    (result, (PEAK.get() - before) as usize)
}

const HEADER: usize = 32;

fn bound(bytes: &[u8]) -> usize {
    16 * bytes.len() + (1 << 20)
}

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let mut m = ModuleBuilder::new("hostile");
    let embed = m.table("embed", [10, 4], Init::Uniform(0.1));
    let w = m.param("w", [8, 4], Init::Values(vec![0.5; 32].into()));
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word)]);
    let node = m.cell("node", [f32([4]); 2], |g, [l, r]| [g.affine([l, r], w, None).tanh()]);
    let mix = m.cell("mix", [list(f32([1])), list(f32([4]))], |g, [s, v]| [g.softmax_sum(s, v)]);
    let drop = m.cell("drop", [f32([4])], |_, [x]| [x.dropout(0.5)]);
    let twice = m.cell("twice", [f32([4])], |g, [x]| {
        let [x] = g.call(drop, x);
        g.call(drop, x)
    });
    let module = m.build().unwrap();
    let rich = |instances: u64| {
        let g = Graph::new(&module);
        let common = g.input(&[1.0, 2.0, 3.0, 4.0]).shared();
        for key in 0..instances {
            g.instance(key);
            let [x] = g.call(leaf, 3);
            let [y] = g.call(node, [x, common]);
            let scores = g.list([x.sum_rows().reshape([1]), y.max().reshape([1])]);
            let [z] = g.call(mix, [scores, g.list([x, y])]);
            let [z] = g.call(twice, z);
            let [a, b] = z.mask(&[true, false, true, true]).alone().split();
            g.loss(&format!("loss{key}"), z.cross_entropy(1) + a.dot(b));
            g.output(&format!("z{key}"), z);
        }
        g.finish().unwrap().to_bytes()
    };
    let empty = Graph::new(&ModuleBuilder::new("empty").build().unwrap()).finish().unwrap().to_bytes();
    vec![rich(1), rich(12), empty]
}

fn reseal(bytes: &mut [u8]) {
    if bytes.len() >= HEADER {
        let (length, hash) = ((bytes.len() - HEADER) as u64, hash_bytes(&bytes[HEADER..]));
        bytes[16..24].copy_from_slice(&length.to_le_bytes());
        bytes[24..32].copy_from_slice(&hash.to_le_bytes());
    }
}

fn mutate(random: &mut SplitMix64, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    // Half of the files are changed gently, in single bytes: those reach the verifier most often.
    let gentle = random.below(2) == 0;
    for _ in 0..=random.below(if gentle { 2 } else { 3 }) {
        if bytes.len() <= HEADER {
            break;
        }
        // Mostly behind the header: that is guarded by few bytes.
        let at = if random.below(20) == 0 { 0 } else { HEADER };
        let at = at + random.below(bytes.len() - at);
        match if gentle { 8 } else { random.below(9) } {
            8 => bytes[at] = bytes[at].wrapping_add([1, 255, 2, 128][random.below(4)]),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let len = random.below(64).min(other.len() - from).min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&other[from..from + len]);
            }
            4 => {
                let len = random.below(64).min(bytes.len() - at);
                bytes.drain(at..at + len);
            }
            5 => {
                let aligned = at & !3;
                let word = [0, 1, 2, 3, 4, 1 << 16, 1 << 30, u32::MAX, random.next() as u32][random.below(9)];
                if let Some(place) = bytes.get_mut(aligned..aligned + 4) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            6 => {
                let count = [1 << 20, 1 << 33, 1 << 40, u64::MAX, random.next()][random.below(5)];
                if let Some(place) = bytes.get_mut(at..at + 8) {
                    place.copy_from_slice(&count.to_le_bytes());
                }
            }
            _ => {
                let aligned = at & !3;
                if let Some(place) = bytes.get_mut(aligned..aligned + 4) {
                    let word = u32::from_le_bytes(place.try_into().unwrap());
                    let word = if random.below(2) == 0 { word.wrapping_add(1) } else { word.wrapping_sub(1) };
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
    if random.below(8) > 0 {
        reseal(&mut bytes);
    }
    bytes
}

/// Touches everything that a verified graph lets one touch.
fn walk(data: &GraphData) -> usize {
    let mut seen = data.to_string().len() + data.depths().len() + data.stretches().count();
    for id in data.arena.ids() {
        seen += data.site(data.arena.app(id).site).line as usize;
        seen += data.module.callee_name(data.signature(id).callee).len();
        seen += data.module.noise_ports(data.signature(id));
        for &arg in &data.signature(id).params {
            seen += data.module.param_name(arg).len();
        }
        for operand in data.arena.operands(id) {
            seen += match operand.kind().expect("a verified operand is one") {
                OperandKind::Value(value) => data.type_of(value).bytes() + data.arena.producer(value).index(),
                OperandKind::Index(slot) => data.bindings.words[slot as usize] as usize & 1,
                OperandKind::Data(slot) => data.bindings.floats[slot as usize].to_bits() as usize & 1,
            };
        }
        for value in data.arena.results(id) {
            seen += data.type_of(ValueId::new(value)).shape.elements();
        }
    }
    for decl in &data.module.cells {
        for id in decl.body.arena.ids() {
            let signature = data.sigs.get(decl.body.arena.app(id).sig);
            seen += data.module.callee_name(signature.callee).len() + decl.body.arena.operands(id).len();
        }
        seen += decl.body.port_types().map(|ty| data.ty(ty).bytes()).sum::<usize>();
    }
    for export in &data.module.exports {
        seen += data.module.sigs.get(export.sig).operands.len();
    }
    let json = data.to_json(false).expect("a verified operand is one");
    let order = petgraph::algo::toposort(&Applications::from(data), None).expect("arenas have no cycles");
    seen + data.to_dot().len() + json.len() + order.len()
}

#[test]
fn mutated_files_are_refused_or_sound() {
    let long = std::env::var("AUTOBATCH_TEST").is_ok_and(|tier| tier == "long");
    let (rounds, seed) = (if long { 200_000 } else { 20_000 }, 20_260_101);
    println!("seed {seed}, {rounds} mutations");
    let (mut random, corpus) = (SplitMix64(seed), corpus());
    let mut outcomes = [0usize; 8];
    for round in 0..rounds {
        let bytes = mutate(&mut random, &corpus);
        let (result, peak) = measured(|| GraphData::from_bytes(&bytes));
        assert!(peak <= bound(&bytes), "round {round}: {peak} bytes held for a file of {}", bytes.len());
        outcomes[match &result {
            Ok(data) => {
                assert!(walk(data) < usize::MAX);
                let again = GraphData::from_bytes(&data.to_bytes()).expect("what was read can be written");
                assert_eq!(again.structure(), data.structure(), "round {round}");
                0
            }
            Err(error) => {
                assert!(error.to_string().len() < 100_000, "round {round}");
                match error {
                    LoadError::Foreign => 1,
                    LoadError::Kind { .. } => 2,
                    LoadError::Version { .. } => 3,
                    LoadError::Length { .. } => 4,
                    LoadError::Checksum => 5,
                    LoadError::Malformed(_) => 6,
                    LoadError::Verify(_) => 7,
                    other => panic!("round {round}: {other}"),
                }
            }
        }] += 1;
    }
    println!("passed, foreign, kind, version, length, checksum, malformed, verify: {outcomes:?}");
    assert!(outcomes.iter().all(|&count| count > 0), "every outcome is met: {outcomes:?}");
}

#[test]
fn every_forged_length_costs_little() {
    let bytes = corpus().swap_remove(0);
    for at in (HEADER..bytes.len() - 8).step_by(2) {
        for count in [1u64 << 16, 1 << 32, 1 << 46, u64::MAX] {
            let mut forged = bytes.clone();
            forged[at..at + 8].copy_from_slice(&count.to_le_bytes());
            reseal(&mut forged);
            let (_, peak) = measured(|| GraphData::from_bytes(&forged).is_ok());
            assert!(peak <= bound(&forged), "count {count} at {at}: {peak} bytes held");
        }
    }
}

#[test]
fn dense_tables_cost_little() {
    let module = ModuleBuilder::new("dense").build().unwrap();
    let g = Graph::new(&module);
    for width in 1..30_000 {
        let _ = g.zeros([width]);
    }
    let bytes = g.finish().unwrap().to_bytes();
    let (data, peak) = measured(|| GraphData::from_bytes(&bytes));
    assert_eq!(data.unwrap().sigs.items().len(), 29_999);
    assert!(peak <= bound(&bytes), "{peak} bytes held for a file of {}", bytes.len());
    assert!(peak > bytes.len(), "the counter counts");

    let mut m = ModuleBuilder::new("dense");
    for number in 0..3000 {
        m.param(&format!("p{number}"), [number + 1], Init::ZEROS);
        m.cell(&format!("c{number}"), [f32([number + 1])], |_, [x]| [x.tanh()]);
    }
    let bytes = Graph::new(&m.build().unwrap()).finish().unwrap().to_bytes();
    let (data, peak) = measured(|| GraphData::from_bytes(&bytes));
    assert_eq!(data.unwrap().module.cells.len(), 3000);
    assert!(peak <= bound(&bytes), "{peak} bytes held for a file of {}", bytes.len());
}
