//! Measures the lengths of functions: the lines from `fn` to the closing brace.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, ItemFn, TraitItemFn};

use crate::modules::{attributes, is_test};

/// The length of a function in lines, its name, and the line at which it begins.
pub(crate) type FunctionLength = (usize, String, usize);

/// Returns the lengths of all functions of a file, except in tests.
pub(crate) fn lengths(file: &syn::File) -> Vec<FunctionLength> {
    let mut visitor = Visitor::default();
    for item in &file.items {
        visitor.visit_item(item);
    }
    visitor.0
}

#[derive(Default)]
struct Visitor(Vec<FunctionLength>);

impl Visitor {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line + 1 - first;
        self.0.push((lines, signature.ident.to_string(), first));
    }
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test(&function.attrs) {
            self.add(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
