//! Module texts of products of few rows: one element of each group per thread, or four neighbours.

use super::{BLOCK_HEAD, LoadWidth, PART, Products};
use std::fmt::Write as _;

impl Products {
    pub(super) fn few(&self) -> String {
        let mut text = String::new();
        for (number, sums) in self.each() {
            let groups = sums.len() as u32;
            let _ = writeln!(text, "    let b{number} = r({}u);", 3 + number);
            let _ = write!(
                text,
                "    var starts{number}: array<f32, {groups}>;\n\
                 \x20   for (var g = 0u; g < {groups}u; g++) {{\n\
                 \x20       let c = r(b{number} + {BLOCK_HEAD}u + g) + column;\n\
                 \x20       starts{number}[g] = sum_start(b{number}, lane, row, c);\n\
                 \x20   }}\n",
            );
            for (group, sum) in sums.clone().enumerate() {
                let at = BLOCK_HEAD + group as u32;
                let _ = writeln!(text, "    let c{sum} = r(b{number} + {at}u) + column;");
                let _ = writeln!(text, "    var s{sum} = starts{number}[{group}];");
            }
            text += &part_loop(number, groups);
            for sum in sums.clone() {
                let _ = writeln!(text, "        var w{sum} = r(at + 5u) + c{sum} * r(at + 7u);");
            }
            text.push_str("        var k = 0u;\n");
            if self.load == LoadWidth::Depth {
                text.push_str("        for (; k + 4u <= width; k = k + 4u) {\n");
                for i in 0..4 {
                    let _ = writeln!(text, "            let x{i} = ldf(x_at + k + {i}u);");
                }
                for sum in sums.clone() {
                    let weights = self.weights(&format!("w{sum}"));
                    let _ = writeln!(text, "            let v{sum} = {weights};");
                    for i in 0..4 {
                        let _ = writeln!(text, "            s{sum} = mad(x{i}, v{sum}[{i}], s{sum});");
                    }
                    let _ = writeln!(text, "            w{sum} = w{sum} + 4u;");
                }
                text.push_str("        }\n");
            }
            text.push_str("        for (; k < width; k++) {\n");
            text.push_str("            let x = ldf(x_at + k);\n");
            for sum in sums {
                let weight = self.weight(&format!("w{sum}"));
                let _ = writeln!(text, "            s{sum} = mad(x, {weight}, s{sum});");
                let _ = writeln!(text, "            w{sum} = w{sum} + step;");
            }
            text.push_str("        }\n    }\n");
        }
        let sums: String = (0..self.all()).map(|sum| format!(", s{sum}")).collect();
        let _ = writeln!(text, "    epilogue(lane, element{sums});");
        text
    }

    /// Text for four neighbours per thread. It reads all weights four columns at a time.
    pub(super) fn four(&self) -> String {
        let mut text = String::new();
        for (number, sums) in self.each() {
            let groups = sums.len() as u32;
            let _ = write!(
                text,
                "    let b{number} = r({at}u);\n\
                 \x20   var starts{number}: array<f32, {count}>;\n\
                 \x20   for (var at = 0u; at < {count}u; at++) {{\n\
                 \x20       let c = r(b{number} + {BLOCK_HEAD}u + at / 4u) + column + at % 4u;\n\
                 \x20       starts{number}[at] = sum_start(b{number}, lane, row, c);\n\
                 \x20   }}\n",
                at = 3 + number,
                count = 4 * groups,
            );
            for (group, sum) in sums.clone().enumerate() {
                let at = BLOCK_HEAD + group as u32;
                let _ = writeln!(text, "    let c{sum} = r(b{number} + {at}u) + column;");
                let starts: Vec<String> =
                    (0..4).map(|i| format!("starts{number}[{}]", 4 * group + i)).collect();
                let _ = writeln!(text, "    var s{sum} = vec4<f32>({});", starts.join(", "));
            }
            text += &part_loop(number, groups);
            for sum in sums.clone() {
                let _ = writeln!(text, "        var w{sum} = r(at + 5u) + c{sum};");
            }
            text.push_str("        for (var k = 0u; k < width; k++) {\n            let x = ldf(x_at + k);\n");
            for sum in sums {
                let weights = self.weights(&format!("w{sum}"));
                let _ = writeln!(text, "            let v{sum} = {weights};");
                let chains: Vec<String> =
                    (0..4).map(|i| format!("mad(x, v{sum}[{i}], s{sum}[{i}])")).collect();
                let _ = writeln!(text, "            s{sum} = vec4<f32>({});", chains.join(", "));
                let _ = writeln!(text, "            w{sum} = w{sum} + step;");
            }
            text.push_str("        }\n    }\n");
        }
        let sums: String = (0..self.all()).map(|sum| format!(", s{sum}[i]")).collect();
        let _ = write!(
            text,
            "    for (var i = 0u; i < 4u; i++) {{\n        epilogue(lane, element + i{sums});\n    }}\n"
        );
        text
    }
}

/// Opens the loop over the parts of a product.
fn part_loop(number: u32, groups: u32) -> String {
    let parts = BLOCK_HEAD + groups;
    format!(
        "    for (var part = 0u; part < r(b{number}); part++) {{\n\
         \x20       let at = b{number} + {parts}u + {PART}u * part;\n\
         \x20       let width = r(at + 4u);\n\
         \x20       let x_at = row_of(at, lane) + row * width;\n\
         \x20       let step = r(at + 6u);\n"
    )
}
