//! Finds which files of a crate use definitions of other files.
//!
//! A use is a name in the code: in a type, a signature, a body, a macro call or, after `$crate`, a macro's rule. `mod` and `pub use` are not
//! uses, because they only give a name another path. Methods are not followed, because a call such as
//! `x.method()` does not reveal the file of the method.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, UseTree, Visibility};

use crate::modules::{FileId, ModuleId, Modules, Target, attributes, is_test};

/// The uses of a crate: for each file, the files whose definitions it uses, with the names.
pub(crate) type References = BTreeMap<FileId, BTreeMap<FileId, BTreeSet<String>>>;

/// Finds the uses of a crate.
pub(crate) fn find(modules: &Modules) -> References {
    let mut found = References::new();
    for (id, file) in modules.files.iter().enumerate() {
        let mut visitor = Visitor {
            modules,
            module: file.module,
            file: id,
            is_rule: false,
            found: &mut found,
        };
        for item in &file.syntax.items {
            visitor.visit_item(item);
        }
    }
    found
}

struct Visitor<'a> {
    modules: &'a Modules,
    module: ModuleId,
    file: FileId,
    /// Whether the code is the rule of a macro, in which only `$crate` paths count.
    is_rule: bool,
    found: &'a mut References,
}

impl Visitor<'_> {
    fn add(&mut self, path: &[String]) {
        if let Some(Target::Item(file)) = self.modules.resolve(self.module, path) {
            self.add_file(file, path.last());
        }
    }

    fn add_file(&mut self, file: FileId, name: Option<&String>) {
        if file != self.file {
            let names = self.found.entry(self.file).or_default();
            names.entry(file).or_default().extend(name.cloned());
        }
    }

    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import(&part.tree, path);
                path.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {}
            UseTree::Name(syn::UseName { ident })
            | UseTree::Rename(syn::UseRename { ident, .. }) => {
                path.push(ident.to_string());
                self.add(path);
                path.pop();
            }
            UseTree::Glob(_) => {}
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path);
                }
            }
        }
    }

    /// Finds paths in the arguments of a macro call, or in the rules of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut is_joined = false;
        let mut after_dot = false;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(name) => {
                    if !is_joined {
                        self.end_path(&mut path, false);
                    }
                    if after_dot {
                        path.clear();
                    } else {
                        path.push(name.to_string());
                    }
                    is_joined = false;
                    after_dot = false;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    let is_second = tokens.peek().is_some_and(
                        |next| matches!(next, TokenTree::Punct(next) if next.as_char() == ':'),
                    );
                    if is_second {
                        tokens.next();
                        is_joined = !path.is_empty();
                    } else {
                        path.clear();
                    }
                }
                TokenTree::Punct(mark) => {
                    self.end_path(&mut path, mark.as_char() == '!');
                    is_joined = false;
                    after_dot = mark.as_char() == '.';
                }
                TokenTree::Group(group) => {
                    self.end_path(&mut path, true);
                    is_joined = false;
                    after_dot = false;
                    self.tokens(group.stream());
                }
                TokenTree::Literal(_) => {
                    self.end_path(&mut path, false);
                    is_joined = false;
                    after_dot = false;
                }
            }
        }
        self.end_path(&mut path, false);
    }

    /// Records a complete path. A single word in lower case is a variable, unless it is called.
    fn end_path(&mut self, path: &mut Vec<String>, is_call: bool) {
        let is_name = match path.as_slice() {
            [] => false,
            [word] => is_call || word.starts_with(char::is_uppercase),
            _ => true,
        };
        let is_resolved_here = !self.is_rule || path.first().is_some_and(|word| word == "crate");
        if is_name && is_resolved_here {
            self.add(path);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Use(import) => {
                if matches!(import.vis, Visibility::Inherited) {
                    self.import(&import.tree, &mut Vec::new());
                }
            }
            Item::Mod(module) => {
                let Some((_, items)) = &module.content else {
                    return;
                };
                let outer = self.module;
                if let Some(inline) = self.modules.inline(outer, &module.ident.to_string()) {
                    self.module = inline;
                    for item in items {
                        self.visit_item(item);
                    }
                    self.module = outer;
                }
            }
            // Paths that begin with `$crate` mean the same file wherever the macro is used. Others are resolved there.
            Item::Macro(rules) if rules.ident.is_some() => {
                self.is_rule = true;
                self.tokens(rules.mac.tokens.clone());
                self.is_rule = false;
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let words: Vec<String> = path
                .segments
                .iter()
                .map(|part| part.ident.to_string())
                .collect();
            self.add(&words);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(name) = call.path.get_ident().map(ToString::to_string)
            && let Some(file) = self.modules.macro_file(&name)
        {
            self.add_file(file, Some(&name));
        }
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    /// Ignores attributes, because they only name macros of other crates.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}
