//! Finds import cycles: groups of files that use one another.

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::modules::FileId;
use crate::references::References;

/// Returns the groups of two or more files in which every file reaches every other one.
pub(crate) fn find(references: &References) -> Vec<Vec<FileId>> {
    let mut graph = DiGraphMap::<FileId, ()>::new();
    for (from, targets) in references {
        for to in targets.keys() {
            graph.add_edge(*from, *to, ());
        }
    }
    let mut cycles: Vec<Vec<FileId>> = tarjan_scc(&graph)
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|mut group| {
            group.sort_unstable();
            group
        })
        .collect();
    cycles.sort();
    cycles
}
