//! Compiles and runs the Rust listings of the guide, as doctests: `cargo test -p autobatch-guide`.

/// Attaches the text of each page to a module, so that its listings become tests.
macro_rules! pages {
    ($($page:ident $path:literal)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            mod $page {}
        )*

        #[test]
        fn every_page_with_a_listing_is_compiled() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
            for entry in std::fs::read_dir(folder).expect("the guide has pages") {
                let path = entry.expect("entries of a folder are readable").path();
                if path.extension().is_none_or(|extension| extension != "md") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("pages are UTF-8");
                let listed = [$($path),*].iter().any(|page| path.ends_with(page));
                assert_eq!(listed, text.contains("```rust"), "{}", path.display());
            }
        }
    };
}

pages! {
    debug "src/debug.md"
    distributed "src/distributed.md"
    extend "src/extend.md"
    first_model "src/first-model.md"
    from_dynet "src/from-dynet.md"
    from_mxnet "src/from-mxnet.md"
    from_pytorch "src/from-pytorch.md"
    from_torchfold "src/from-torchfold.md"
    growing "src/growing.md"
    ship "src/ship.md"
    tasks "src/tasks.md"
    training "src/training.md"
}
