//! Tests of errors of modules.

use super::*;
use crate::options::Options;

#[test]
fn a_rejected_module_is_named_and_the_next_one_builds() {
    let Some(gpu) = Gpu::of_tests(Options::default()) else { return };
    let build = |body: &str| {
        let text = format!("@compute @workgroup_size(1)\nfn main() {{\n{body}}}\n");
        Build { gpu: &gpu, name: "map", text, cache: None }.with_entries(&[]).map(|_| ())
    };
    for wrong in ["    let t0 = nowhere;\n", "    let t0: u32 = 1.5;\n", "    loop {"] {
        let error = build(wrong).expect_err("it is no module");
        assert!(matches!(&error, GpuError::Shader { template, .. } if template == "map"), "{error:?}");
        let message = error.to_string();
        assert!(
            message.contains("the module of map was rejected") && message.contains("execute on the cpu"),
            "{message}"
        );
    }
    build("").expect("an empty module is one");
}
