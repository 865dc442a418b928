//! Reads the modules of a crate: the file of each, and the meaning of its names.
//!
//! Tests and definitions of other crates are left out.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use syn::{Attribute, Item, UseTree};

/// An index into [`Modules::all`].
pub(crate) type ModuleId = usize;

/// An index into [`Modules::files`].
pub(crate) type FileId = usize;

/// How many imports a lookup follows before it gives up.
const MAX_LINKS: u32 = 32;

/// The meaning of a name in a module.
#[derive(Debug, Clone)]
enum Name {
    /// A module below this one.
    Module(ModuleId),
    /// An item that the module's file defines.
    Item,
    /// An import: another path, as seen from this module.
    Link(Vec<String>),
}

#[derive(Debug)]
pub(crate) struct Module {
    parent: Option<ModuleId>,
    file: FileId,
    names: HashMap<String, Name>,
    /// The paths of glob imports.
    globs: Vec<Vec<String>>,
}

/// A file with its module.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// The number of lines of the file, without tests.
    pub(crate) lines: usize,
    pub(crate) module: ModuleId,
    pub(crate) syntax: syn::File,
}

/// The modules of a crate.
#[derive(Default)]
pub(crate) struct Modules {
    all: Vec<Module>,
    pub(crate) files: Vec<File>,
    /// The files that define each `macro_rules!` macro, by name. Such macros can be used without a path.
    macros: HashMap<String, FileId>,
    /// The inline modules, by parent module and name.
    inline: HashMap<(ModuleId, String), ModuleId>,
}

/// The target of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Module(ModuleId),
    /// An item that this file defines.
    Item(FileId),
}

impl Modules {
    /// Reads a crate from one of its root files.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut modules = Self::default();
        let dir = root.parent().context("a root file has no folder")?;
        modules.add_file(root.to_owned(), dir, None)?;
        Ok(modules)
    }

    fn add_file(
        &mut self,
        path: PathBuf,
        children: &Path,
        parent: Option<ModuleId>,
    ) -> anyhow::Result<ModuleId> {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let syntax =
            syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        let lines = text.lines().count() - test_lines(&syntax.items);
        let module = self.all.len();
        self.all.push(Module {
            parent,
            file: self.files.len(),
            names: HashMap::new(),
            globs: Vec::new(),
        });
        let items = syntax.items.clone();
        self.files.push(File {
            path,
            lines,
            module,
            syntax,
        });
        self.add_items(module, &items, children)?;
        Ok(module)
    }

    fn add_items(&mut self, id: ModuleId, items: &[Item], dir: &Path) -> anyhow::Result<()> {
        for item in items {
            if is_test(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(module) => self.add_module(id, module, dir)?,
                Item::Use(import) => self.add_use(id, &import.tree, &mut Vec::new()),
                Item::Macro(rules) => {
                    if let Some(name) = &rules.ident {
                        let file = self.file_of(id);
                        self.macros.insert(name.to_string(), file);
                        self.define(id, name);
                    }
                }
                Item::Const(item) => self.define(id, &item.ident),
                Item::Enum(item) => self.define(id, &item.ident),
                Item::Fn(item) => self.define(id, &item.sig.ident),
                Item::Static(item) => self.define(id, &item.ident),
                Item::Struct(item) => self.define(id, &item.ident),
                Item::Trait(item) => self.define(id, &item.ident),
                Item::Type(item) => self.define(id, &item.ident),
                Item::Union(item) => self.define(id, &item.ident),
                _ => {}
            }
        }
        Ok(())
    }

    fn add_module(
        &mut self,
        parent: ModuleId,
        item: &syn::ItemMod,
        dir: &Path,
    ) -> anyhow::Result<()> {
        let name = item.ident.to_string();
        let children = dir.join(&name);
        let module = if let Some((_, items)) = &item.content {
            let module = self.all.len();
            self.all.push(Module {
                parent: Some(parent),
                file: self.file_of(parent),
                names: HashMap::new(),
                globs: Vec::new(),
            });
            self.inline.insert((parent, name.clone()), module);
            self.add_items(module, items, &children)?;
            module
        } else {
            let file = match path_attribute(&item.attrs) {
                Some(path) => dir.join(path),
                None => dir.join(format!("{name}.rs")),
            };
            self.add_file(file, &children, Some(parent))?
        };
        self.name(parent, name, Name::Module(module));
        Ok(())
    }

    fn add_use(&mut self, id: ModuleId, tree: &UseTree, path: &mut Vec<String>) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.add_use(id, &part.tree, path);
                path.pop();
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.link(id, name.clone(), path, name);
            }
            UseTree::Rename(rename) => {
                self.link(
                    id,
                    rename.rename.to_string(),
                    path,
                    rename.ident.to_string(),
                );
            }
            UseTree::Glob(_) => {
                if let Some(module) = self.all.get_mut(id) {
                    module.globs.push(path.clone());
                }
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(id, tree, path);
                }
            }
        }
    }

    fn link(&mut self, id: ModuleId, name: String, path: &[String], last: String) {
        let mut path = path.to_vec();
        let (name, path) = if last == "self" {
            (path.last().cloned().unwrap_or(name), path)
        } else {
            path.push(last);
            (name, path)
        };
        self.name(id, name, Name::Link(path));
    }

    fn define(&mut self, id: ModuleId, name: &syn::Ident) {
        self.name(id, name.to_string(), Name::Item);
    }

    fn name(&mut self, id: ModuleId, name: String, meaning: Name) {
        if let Some(module) = self.all.get_mut(id) {
            // A function and a module may have the same name. The first one is good enough here.
            module.names.entry(name).or_insert(meaning);
        }
    }

    fn file_of(&self, id: ModuleId) -> FileId {
        self.all.get(id).map_or(0, |module| module.file)
    }

    /// Returns the inline module with a name.
    pub(crate) fn inline(&self, parent: ModuleId, name: &str) -> Option<ModuleId> {
        self.inline.get(&(parent, name.to_owned())).copied()
    }

    /// Returns the file that defines a macro, for macros that are used without a path.
    pub(crate) fn macro_file(&self, name: &str) -> Option<FileId> {
        self.macros.get(name).copied()
    }

    /// Follows a path from a module, through imports and re-exports. Returns `None` if it leads out of the
    /// crate.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> Option<Target> {
        self.follow(from, path, MAX_LINKS)
    }

    fn follow(&self, from: ModuleId, path: &[String], links: u32) -> Option<Target> {
        let links = links.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.all.get(from)?.parent?),
            name => self.find(from, name, links)?,
        };
        for name in rest {
            let Target::Module(module) = target else {
                // The rest of the path is a variant or an associated item.
                return Some(target);
            };
            target = if name == "super" {
                Target::Module(self.all.get(module)?.parent?)
            } else {
                self.find(module, name, links)?
            };
        }
        Some(target)
    }

    fn find(&self, id: ModuleId, name: &str, links: u32) -> Option<Target> {
        let module = self.all.get(id)?;
        match module.names.get(name) {
            Some(Name::Module(module)) => Some(Target::Module(*module)),
            Some(Name::Item) => Some(Target::Item(module.file)),
            // An import whose path begins with the imported name itself comes from another crate.
            Some(Name::Link(path)) if path.first().is_some_and(|first| first == name) => None,
            Some(Name::Link(path)) => self.follow(id, path, links),
            None => {
                let mut globs = module.globs.iter();
                globs.find_map(|path| match self.follow(id, path, links)? {
                    Target::Module(module) if module != id => {
                        self.find(module, name, links.checked_sub(1)?)
                    }
                    _ => None,
                })
            }
        }
    }
}

/// Returns whether an item is compiled for tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<proc_macro2::TokenStream>()
                .is_ok_and(|condition| names_test(&condition.to_string()))
    })
}

fn names_test(condition: &str) -> bool {
    condition == "test" || condition.starts_with("all (test")
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|it| it.path().is_ident("path"))?;
    let syn::Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(path),
            ..
        }) => Some(path.value()),
        _ => None,
    }
}

/// Returns the attributes of an item of a module.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn test_lines(items: &[Item]) -> usize {
    use syn::spanned::Spanned as _;
    let tests = items.iter().filter(|item| is_test(attributes(item)));
    tests
        .map(|item| {
            let span = item.span();
            span.end().line + 1 - span.start().line
        })
        .sum()
}
