//! The rule about ids: a parameter that names an item of a list has the id's type.

use super::{Source, complain};

/// The folders whose lists have typed ids.
const TYPED: [&str; 2] = ["planner/src/", "ir/src/plan/verify/"];

/// Names that parameters with ids have.
const ITEMS: [&str; 26] = [
    "batch", "block", "cell", "class", "field", "job", "kernel", "kind", "lane", "list", "member", "node",
    "owner", "pair", "param", "part", "port", "reg", "row", "sig", "slab", "slot", "step", "store", "ty",
    "value",
];

/// Returns a complaint for each parameter of a function that has the name of an item and the type of a plain number.
#[must_use]
pub fn bare_ids(sources: &[Source]) -> Vec<String> {
    let is_typed = |source: &&Source| {
        source.is_rust()
            && TYPED.iter().any(|folder| source.path.starts_with(folder))
            && !source.path.contains("/tests")
    };
    let mut found = Vec::new();
    for source in sources.iter().filter(is_typed) {
        for (start, _) in source.text.match_indices(" fn ").chain(source.text.match_indices("\nfn ")) {
            let Some(parameters) = parameters(&source.text[start..]) else { continue };
            let bare = parameters.split(',').filter_map(|own| own.split_once(": ")).find(|(name, ty)| {
                ITEMS.contains(&name.trim().trim_start_matches("mut "))
                    && ["u32", "usize", "Option<u32>", "Option<usize>"].contains(&ty.trim())
            });
            if let Some((name, _)) = bare {
                let line = source.text[..=start].matches('\n').count() + 1;
                let problem = format!("give `{}` the type of its id, or the name of a quantity", name.trim());
                found.push(complain(source, line, &problem));
            }
        }
    }
    found
}

/// The parameters of the function whose text begins with `fn `.
fn parameters(text: &str) -> Option<&str> {
    let (mut generics, mut open, mut start) = (0, 0, None);
    for (at, sign) in text.char_indices() {
        match sign {
            '<' if start.is_none() => generics += 1,
            '>' if start.is_none() && !text[..at].ends_with('-') => generics -= 1,
            '(' if generics == 0 => {
                start.get_or_insert(at + 1);
                open += 1;
            }
            ')' if generics == 0 => {
                open -= 1;
                if open == 0 {
                    return text.get(start?..at);
                }
            }
            '{' | ';' if open == 0 => return None,
            _ => {}
        }
    }
    None
}
