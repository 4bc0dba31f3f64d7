//! Module texts of products of few rows: one element of each group per thread, or four neighbours.

use super::{BLOCK_HEAD, LoadWidth, PART, Products, Tile};
use autobatch_shaders::{FEW_PRODUCT, fragment};
use std::ops::Range;

impl Products {
    /// The hole `body` of few rows: the sums of all products.
    pub(super) fn few(&self) -> String {
        self.each().map(|(number, sums)| self.few_product(number, sums)).collect()
    }

    /// The hole `call` of few rows.
    pub(super) fn few_call(&self) -> String {
        let (indent, element, of) = if self.tile == Tile::Four {
            ("        ", "element + i", "[i]")
        } else {
            ("    ", "element", "")
        };
        let sums: String = (0..self.all()).map(|sum| format!(", s{sum}{of}")).collect();
        format!("{indent}epilogue(lane, {element}{sums});\n")
    }

    fn few_product(&self, number: u32, sums: Range<u32>) -> String {
        let four = self.tile == Tile::Four;
        let each = if four { 4 } else { 1 };
        let groups = sums.len() as u32;
        let lines = |line: &dyn Fn(u32) -> String| -> String { sums.clone().map(line).collect() };
        let first = |sum: u32| each * (sum - sums.start);
        let starts = lines(&|sum| {
            let start = |i| format!("starts{number}[{}]", first(sum) + i);
            let start = if four { vector(start) } else { start(0) };
            let at = BLOCK_HEAD + sum - sums.start;
            format!(
                "    let c{sum} = r(b{number} + {at}u) + column;\n\
                 \x20   var s{sum} = {start};\n"
            )
        });
        // Threads with four neighbours read all weights four columns at a time.
        let next = if four { "" } else { " * r(at + 7u)" };
        let weights = lines(&|sum| format!("        var w{sum} = r(at + 5u) + c{sum}{next};\n"));
        let chains = lines(&|sum| {
            let (place, value) = (format!("w{sum}"), format!("v{sum}"));
            let (weight, chain) = match four {
                true => (self.weights(&place), vector(|i| format!("mad(x, {value}[{i}], s{sum}[{i}])"))),
                false => (self.weight(&place), format!("mad(x, {value}, s{sum})")),
            };
            format!(
                "            let {value} = {weight};\n\
                 \x20           s{sum} = {chain};\n\
                 \x20           {place} = {place} + step;\n"
            )
        });
        let fours = if self.load == LoadWidth::Depth { self.four_steps(&sums) } else { String::new() };
        let words = [
            ("product", number),
            ("at", 3 + number),
            ("count", each * groups),
            ("each", each),
            ("head", BLOCK_HEAD),
            ("parts", BLOCK_HEAD + groups),
            ("part", PART),
        ];
        let words = words.map(|(name, word)| (name, word.to_string()));
        let holes = [("sums", starts), ("weights", weights), ("fours", fours), ("chains", chains)];
        fragment(FEW_PRODUCT, &words, &holes)
    }

    /// The loop over four `k` at a time, whose weights one load reads.
    fn four_steps(&self, sums: &Range<u32>) -> String {
        let x: String = (0..4).map(|i| format!("            let x{i} = ldf(x_at + k + {i}u);\n")).collect();
        let sum = |sum: u32| {
            let chains = (0..4).map(|i| format!("            s{sum} = mad(x{i}, v{sum}[{i}], s{sum});\n"));
            let (weights, chains) = (self.weights(&format!("w{sum}")), chains.collect::<String>());
            format!("            let v{sum} = {weights};\n{chains}            w{sum} = w{sum} + 4u;\n")
        };
        let sums: String = sums.clone().map(sum).collect();
        format!("        for (; k + 4u <= width; k = k + 4u) {{\n{x}{sums}        }}\n")
    }
}

/// A vector of four numbers.
fn vector(element: impl Fn(u32) -> String) -> String {
    let elements: Vec<String> = (0..4).map(element).collect();
    format!("vec4<f32>({})", elements.join(", "))
}
