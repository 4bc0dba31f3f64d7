//! Module texts of products of few rows: one element of each group per thread, or four neighbours.

use super::{BLOCK_HEAD, LoadWidth, PART, Products, TOGETHER, Tile};
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
            let (weight, chain) = (self.few_weight(&place), self.link(sum, "x", &value));
            format!("            let {value} = {weight};\n{chain}            {place} = {place} + step;\n")
        });
        let together = self.together(&sums);
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
        let holes = [("sums", starts), ("weights", weights), ("together", together), ("chains", chains)];
        fragment(FEW_PRODUCT, &words, &holes)
    }

    /// The loads of the weights of several `k` of a sum, and the names of their values.
    fn loads(&self, sum: u32) -> (String, Vec<String>) {
        let names = |i: u32| format!("v{sum}_{i}");
        if self.load == LoadWidth::Depth {
            let load = |i: u32| {
                let place = format!("w{sum} + {}u", 4 * i);
                format!("            let {} = {};\n", names(i), self.weights(&place))
            };
            let loads: String = (0..TOGETHER / 4).map(load).collect();
            let names = (0..TOGETHER).map(|k| format!("{}[{}]", names(k / 4), k % 4)).collect();
            return (loads + &format!("            w{sum} = w{sum} + {TOGETHER}u;\n"), names);
        }
        let load = |i: u32| {
            let place = format!("w{sum} + {i}u * step");
            format!("            let {} = {};\n", names(i), self.few_weight(&place))
        };
        let loads: String = (0..TOGETHER).map(load).collect();
        (
            loads + &format!("            w{sum} = w{sum} + {TOGETHER}u * step;\n"),
            (0..TOGETHER).map(names).collect(),
        )
    }

    /// The loop over several `k` at a time. A multiply-add takes a few cycles and a load hundreds, so all loads come before
    /// the chains.
    fn together(&self, sums: &Range<u32>) -> String {
        let xs: String =
            (0..TOGETHER).map(|k| format!("            let x{k} = ldf(x_at + k + {k}u);\n")).collect();
        let (mut loads, mut chains) = (String::new(), String::new());
        for sum in sums.clone() {
            let (text, names) = self.loads(sum);
            loads.push_str(&text);
            chains.extend(names.iter().zip(0..).map(|(value, k)| self.link(sum, &format!("x{k}"), value)));
        }
        format!(
            "        for (; k + {TOGETHER}u <= width; k = k + {TOGETHER}u) {{\n{xs}{loads}{chains}        }}\n"
        )
    }

    /// The weights of one `k` that a thread reads at a place.
    fn few_weight(&self, place: &str) -> String {
        if self.tile == Tile::Four { self.weights(place) } else { self.weight(place) }
    }

    /// The next link of the chains of a sum.
    fn link(&self, sum: u32, x: &str, value: &str) -> String {
        let chain = match self.tile {
            Tile::Four => vector(|i| format!("mad({x}, {value}[{i}], s{sum}[{i}])")),
            _ => format!("mad({x}, {value}, s{sum})"),
        };
        format!("            s{sum} = {chain};\n")
    }
}

/// A vector of four numbers.
fn vector(element: impl Fn(u32) -> String) -> String {
    let elements: Vec<String> = (0..4).map(element).collect();
    format!("vec4<f32>({})", elements.join(", "))
}
