//! The page as one file.

use serde_json::json;

/// The built planner of the page; `inspector/build.sh` makes it.
static WASM: &[u8] = include_bytes!("../../page/inspector.wasm");
const TEMPLATE: &str = include_str!("../../page/page.html");
const STYLE: &str = include_str!("../../page/page.css");
const SCRIPT: &str = include_str!("../../page/page.js");

/// The files that a page opens at its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files<'a> {
    /// The title of the page.
    pub title: &'a str,
    /// A graph: its name and its bytes. Without one the page waits for files.
    pub graph: Option<(&'a str, &'a [u8])>,
    /// A plan of the graph.
    pub plan: Option<(&'a str, &'a [u8])>,
}

/// The page as HTML. It needs no other file and no network, and its policy forbids both.
#[must_use]
pub fn document(files: Files<'_>) -> String {
    let file = |file: Option<(&str, &[u8])>| {
        file.map(|(name, bytes)| json!({"name": name, "base64": base64(bytes)}))
    };
    let data = json!({
        "title": files.title, "graph": file(files.graph), "plan": file(files.plan), "wasm": base64(WASM),
    });
    // In a script element only `</script` and `<!--` matter; an escaped `<` means the same in JSON.
    let data = data.to_string().replace('<', "\\u003c");
    let mut page = String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + data.len());
    let parts = [("/*style*/", STYLE), ("/*data*/", &data), ("/*script*/", SCRIPT)];
    let mut rest = TEMPLATE;
    for (hole, part) in parts {
        let (before, after) = rest.split_once(hole).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }

    #[test]
    fn names_of_a_file_are_no_markup_of_the_page() {
        let page = document(Files {
            title: "</script><i>",
            graph: Some(("a</script>", b"autobatch graph 2")),
            plan: None,
        });
        assert_eq!(page.matches("</script>").count(), 2, "the page's own two scripts end");
        assert!(!page.contains("<i>"));
        assert!(page.len() < 3 << 20, "{} bytes", page.len());
    }
}
