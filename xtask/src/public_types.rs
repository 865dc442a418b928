//! Collects the names of public types. Each name must be unique in the workspace, so that a reader always
//! knows which type is meant.

use syn::visit::{self, Visit};
use syn::{Ident, Item, Visibility};

use crate::modules::{attributes, is_test};

/// Returns the names of the public types that a file defines outside of tests.
pub(crate) fn names(file: &syn::File) -> Vec<String> {
    let mut visitor = Visitor::default();
    for item in &file.items {
        visitor.visit_item(item);
    }
    visitor.0
}

#[derive(Default)]
struct Visitor(Vec<String>);

impl Visitor {
    fn add(&mut self, visibility: &Visibility, name: &Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.0.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Enum(item) => self.add(&item.vis, &item.ident),
            Item::Struct(item) => self.add(&item.vis, &item.ident),
            Item::Trait(item) => self.add(&item.vis, &item.ident),
            Item::Type(item) => self.add(&item.vis, &item.ident),
            Item::Union(item) => self.add(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}
