//! How a device computes: fused multiply-adds, errors of division and roots, denormals, NaN, loops, subgroups.

use super::Probe;
use crate::error::GpuError;
use std::fmt::Write as _;

/// Triples of numbers that are computed.
const CASES: usize = 4096;
/// Turns of a loop; Mesa's software drivers leave loops after 65,535.
const TURNS: u32 = 100_000;

/// How a device computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Arithmetics {
    /// Of the cases in which it matters, how many `fma` rounded once.
    pub fused: f64,
    /// Of these cases, in how many `a * b + c` was contracted to a fused multiply-add.
    pub contracted: f64,
    /// The same within a loop, where compilers optimise differently.
    pub contracted_in_loop: f64,
    /// The largest error of a division, in units in the last place.
    pub division_ulp: u32,
    /// The largest error of a square root, in units in the last place.
    pub root_ulp: u32,
    /// True if `(a + b) + c` was not computed as `a + (b + c)` anywhere.
    pub keeps_order: bool,
    /// True if denormal numbers stay.
    pub keeps_denormals: bool,
    /// The results of functions of NaN and infinity.
    pub special: Vec<Special>,
    /// The turns of a loop that ought to take [`TURNS`](Self::TURNS).
    pub turns: u32,
    /// True if the threads of a group have the numbers that their subgroups imply; `None` without subgroups.
    pub numbers_lanes: Option<bool>,
    /// True if subgroup operations see all threads after a loop that they left at different times.
    pub reconverges: Option<bool>,
}

impl Arithmetics {
    /// The turns of the loop of the probe.
    pub const TURNS: u32 = TURNS;
}

/// A function of a special number.
#[derive(Clone, Debug, PartialEq)]
pub struct Special {
    /// The expression.
    pub expression: &'static str,
    /// Its value on the device.
    pub found: f32,
    /// Its value by IEEE 754, where NaN propagates.
    pub expected: f32,
}

impl Special {
    /// True if the device computes the expected value.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.found == self.expected || (self.found.is_nan() && self.expected.is_nan())
    }
}

/// Expressions of NaN (`n`), infinity (`i`) and one (`o`), with their values.
const SPECIAL: [(&str, f32); 10] = [
    ("n + o", f32::NAN),
    ("i - i", f32::NAN),
    ("n * 0.0", f32::NAN),
    ("min(n, o)", f32::NAN),
    ("max(n, o)", f32::NAN),
    ("clamp(n, 0.0, 1.0)", f32::NAN),
    ("o / (i * o)", 0.0),
    ("sqrt(-o)", f32::NAN),
    ("select(0.0, 1.0, n == n)", 0.0),
    ("select(0.0, 1.0, n < o || n >= o)", 0.0),
];

/// Numbers without a pattern in their low bits, positive, of some octaves.
fn numbers() -> Vec<[f32; 3]> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mantissa = (state >> 40) as u32 & 0x007f_ffff;
        let exponent = 125 + (state >> 33) as u32 % 5;
        f32::from_bits(exponent << 23 | mantissa)
    };
    // The third number cancels the product, so that its rounding shows.
    let triple = |_| {
        let (a, b) = (next(), next());
        [a, b, -(a * b)]
    };
    (0..CASES).map(triple).collect()
}

/// The distance of two numbers in units in the last place.
fn ulp(a: f32, b: f32) -> u32 {
    let order = |x: f32| match x.to_bits() {
        bits if bits >> 31 == 0 => i64::from(bits),
        bits => -i64::from(bits & 0x7fff_ffff),
    };
    u32::try_from((order(a) - order(b)).unsigned_abs()).unwrap_or(u32::MAX)
}

impl Probe {
    /// Probes how the device computes.
    ///
    /// # Errors
    /// If the device fails.
    pub fn arithmetic(&self) -> Result<Arithmetics, GpuError> {
        let cases = numbers();
        let found = self.cases(&cases)?;
        let column = |at: usize| found.iter().map(move |row| row[at]);
        let exact = |[a, b, c]: [f32; 3]| a.mul_add(b, c);
        let shows = |case: [f32; 3]| exact(case) != case[0] * case[1] + case[2];
        let share = |at: usize| {
            let cases = cases.iter().zip(column(at)).filter(|(case, _)| shows(**case));
            let (all, fused) = cases.fold((0u32, 0u32), |(all, fused), (case, found)| {
                (all + 1, fused + u32::from(found == exact(*case)))
            });
            f64::from(fused) / f64::from(all.max(1))
        };
        let worst = |at: usize, expected: fn([f32; 3]) -> f32| {
            cases.iter().zip(column(at)).map(|(case, found)| ulp(found, expected(*case))).max().unwrap_or(0)
        };
        let (special, keeps_denormals, turns) = self.special()?;
        let (numbers_lanes, reconverges) = self.subgroups()?;
        Ok(Arithmetics {
            fused: share(0),
            contracted: share(1),
            contracted_in_loop: share(2),
            division_ulp: worst(3, |[a, b, _]| a / b),
            root_ulp: worst(4, |[a, _, _]| a.sqrt()),
            keeps_order: cases.iter().zip(column(5)).all(|([a, b, c], found)| (a + b) + c == found),
            keeps_denormals,
            special,
            turns,
            numbers_lanes,
            reconverges,
        })
    }

    /// For each case: `fma`, `a * b + c`, the same in a loop, the quotient, the root, and a sum of three.
    fn cases(&self, cases: &[[f32; 3]]) -> Result<Vec<[f32; 6]>, GpuError> {
        let text = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;\n\
            @compute @workgroup_size(64)\n\
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n\
            \x20   let at = 6u * id.x;\n\
            \x20   let a = data[at];\n\
            \x20   let b = data[at + 1u];\n\
            \x20   let c = data[at + 2u];\n\
            \x20   // The turns are unknown to compilers: one.\n\
            \x20   let turns = u32(data[at + 3u]);\n\
            \x20   var sum = c;\n\
            \x20   for (var turn = 0u; turn < turns; turn++) {\n\
            \x20       sum = a * b + sum;\n\
            \x20   }\n\
            \x20   data[at] = fma(a, b, c);\n\
            \x20   data[at + 1u] = a * b + c;\n\
            \x20   data[at + 2u] = sum;\n\
            \x20   data[at + 3u] = a / b;\n\
            \x20   data[at + 4u] = sqrt(a);\n\
            \x20   data[at + 5u] = (a + b) + c;\n\
            }\n";
        let words = 6 * cases.len() as u64;
        let kernel = self.kernel("arithmetic", text.to_owned(), &[words])?;
        let rows = cases.iter().flat_map(|[a, b, c]| [*a, *b, *c, 1.0, 0.0, 0.0]);
        self.write(&kernel, &rows.map(f32::to_bits).collect::<Vec<_>>());
        self.run(&kernel, cases.len() as u32 / 64, 1)?;
        let read = self.read(&kernel, words)?;
        Ok(read.chunks_exact(6).map(|row| std::array::from_fn(|at| f32::from_bits(row[at]))).collect())
    }

    /// Functions of special numbers, whether denormals stay, and the turns of a long loop.
    fn special(&self) -> Result<(Vec<Special>, bool, u32), GpuError> {
        let mut text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n\
            @compute @workgroup_size(1)\n\
            fn main() {\n\
            \x20   let n = bitcast<f32>(data[0]);\n    let i = bitcast<f32>(data[1]);\n    let o = bitcast<f32>(data[2]);\n\
            \x20   let tiny = bitcast<f32>(data[3]);\n    let end = data[4];\n\
            \x20   var turns = 0u;\n\
            \x20   for (var turn = 0u; turn < end; turn++) {\n\
            \x20       turns = turns + (data[5] ^ 1u);\n\
            \x20   }\n"
            .to_owned();
        for (at, (expression, _)) in (8..).zip(SPECIAL) {
            let _ = writeln!(text, "    data[{at}] = bitcast<u32>({expression});");
        }
        text.push_str("    data[6] = bitcast<u32>(tiny + tiny * o);\n    data[7] = turns;\n}\n");
        let words = 8 + SPECIAL.len() as u64;
        let kernel = self.kernel("special", text, &[words])?;
        let tiny = f32::from_bits(0x0000_4000);
        let given = [f32::NAN.to_bits(), f32::INFINITY.to_bits(), 1f32.to_bits(), tiny.to_bits(), TURNS, 0];
        self.write(&kernel, &given);
        self.run(&kernel, 1, 1)?;
        let read = self.read(&kernel, words)?;
        let special = SPECIAL.into_iter().zip(&read[8..]).map(|((expression, expected), &word)| Special {
            expression,
            found: f32::from_bits(word),
            expected,
        });
        Ok((special.collect(), f32::from_bits(read[6]) == tiny + tiny, read[7]))
    }

    /// Whether threads have the numbers that the runtime gives them, and meet again after a loop.
    fn subgroups(&self) -> Result<(Option<bool>, Option<bool>), GpuError> {
        if self.gpu.facts().subgroups.is_none() {
            return Ok((None, None));
        }
        let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n\
            @compute @workgroup_size(64)\n\
            fn main(\n\
            \x20   @builtin(local_invocation_index) local: u32,\n    @builtin(subgroup_id) subgroup: u32,\n\
            \x20   @builtin(subgroup_size) size: u32,\n    @builtin(subgroup_invocation_id) member: u32,\n\
            ) {\n\
            \x20   let number = subgroup * size + member;\n\
            \x20   data[number] = local;\n\
            \x20   var mine = 0u;\n\
            \x20   for (var turn = 0u; turn < number % 7u; turn++) {\n\
            \x20       mine = mine + 1u;\n\
            \x20   }\n\
            \x20   data[64u + number] = subgroupShuffleXor(mine, 1u);\n\
            }\n";
        let kernel = self.kernel("subgroups", text.to_owned(), &[128])?;
        self.run(&kernel, 1, 1)?;
        let read = self.read(&kernel, 128)?;
        let all = |holds: fn(u32, &[u32]) -> bool| (0..64).all(|number| holds(number, &read));
        // The runtime needs every number once: which thread has it does not matter.
        let mut threads = read[..64].to_vec();
        threads.sort_unstable();
        let numbers = threads.into_iter().eq(0..64);
        Ok((Some(numbers), Some(all(|number, read| read[64 + number as usize] == (number ^ 1) % 7))))
    }
}
