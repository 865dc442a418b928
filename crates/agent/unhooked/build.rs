//! Compiles the dispatch out of the agent's sources.

fn main() {
    println!("cargo::rustc-cfg=unhooked");
}
