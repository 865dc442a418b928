//! The source code of the runtimes that hooks in Python and JavaScript import.
//!
//! Tenterhook includes these sources in its binary, so that a hook only needs an interpreter. They
//! are a separate crate because the folders next to this one are also published as packages, which
//! authors of hooks install for their editor and their tests. A published crate can only include
//! files of its own folder.

#![no_std]
#![forbid(unsafe_code)]

/// The package `tenterhook` for Python 3.9 or newer.
pub mod python {
    /// The module `tenterhook`, which hooks import.
    pub const INIT: &str = include_str!("../python/tenterhook/__init__.py");
    /// The module that makes the modules of other hook systems importable.
    pub const STAND_INS: &str = include_str!("../python/tenterhook/_standins.py");
    /// The module that replaces the modules that Operator's hooks import.
    pub const OPERATOR: &str = include_str!("../python/tenterhook/_operator.py");
    /// The module that replaces the modules that morphix's hooks import.
    pub const MORPHIX: &str = include_str!("../python/tenterhook/_morphix.py");
    /// The program that loads scripts and runs their hooks. It expects `API`,
    /// `STAND_INS` and `APIS` to be defined before it.
    pub const WORKER: &str = include_str!("../python/tenterhook/_worker.py");
}

/// The package `tenterhook` for Node.js 20.6 or newer.
pub mod javascript {
    /// The module `tenterhook`, which hooks import.
    pub const INDEX: &str = include_str!("../javascript/tenterhook/index.mjs");
    /// Checks what handlers return.
    pub const ANSWER: &str = include_str!("../javascript/tenterhook/answer.mjs");
    /// The user interface that pi's extensions use.
    pub const UI: &str = include_str!("../javascript/tenterhook/ui.mjs");
    /// Lines that extensions render.
    pub const RENDER: &str = include_str!("../javascript/tenterhook/render.mjs");
    /// The models that pi's extensions call and provide.
    pub const MODELS: &str = include_str!("../javascript/tenterhook/models.mjs");
    /// Runs pi's extensions.
    pub const EXTENSION: &str = include_str!("../javascript/tenterhook/extension.mjs");
    /// Resolves the imports of scripts.
    pub const LOADER: &str = include_str!("../javascript/tenterhook/loader.mjs");
    /// The program that loads scripts and runs their hooks. It expects `SOURCES` to be defined
    /// before it.
    pub const WORKER: &str = include_str!("../javascript/tenterhook/worker.mjs");

    /// The modules that replace the packages of pi, by the name that scripts' loader asks for. They
    /// are sent only to workers that need them.
    pub const MODULES: &[(&str, &str)] = &[
        (
            "pi/agent-core.mjs",
            include_str!("../javascript/tenterhook/pi/agent-core.mjs"),
        ),
        (
            "pi/ai.mjs",
            include_str!("../javascript/tenterhook/pi/ai.mjs"),
        ),
        (
            "pi/coding-agent.mjs",
            include_str!("../javascript/tenterhook/pi/coding-agent.mjs"),
        ),
        (
            "pi/components.mjs",
            include_str!("../javascript/tenterhook/pi/components.mjs"),
        ),
        (
            "pi/drawing.mjs",
            include_str!("../javascript/tenterhook/pi/drawing.mjs"),
        ),
        (
            "pi/edit.mjs",
            include_str!("../javascript/tenterhook/pi/edit.mjs"),
        ),
        (
            "pi/events.mjs",
            include_str!("../javascript/tenterhook/pi/events.mjs"),
        ),
        (
            "pi/frontmatter.mjs",
            include_str!("../javascript/tenterhook/pi/frontmatter.mjs"),
        ),
        (
            "pi/fuzzy.mjs",
            include_str!("../javascript/tenterhook/pi/fuzzy.mjs"),
        ),
        (
            "pi/keys.mjs",
            include_str!("../javascript/tenterhook/pi/keys.mjs"),
        ),
        (
            "pi/messages.mjs",
            include_str!("../javascript/tenterhook/pi/messages.mjs"),
        ),
        (
            "pi/missing.mjs",
            include_str!("../javascript/tenterhook/pi/missing.mjs"),
        ),
        (
            "pi/names.json",
            include_str!("../javascript/tenterhook/pi/names.json"),
        ),
        (
            "stand-in.mjs",
            include_str!("../javascript/tenterhook/pi/stand-in.mjs"),
        ),
        (
            "pi/overlay.mjs",
            include_str!("../javascript/tenterhook/pi/overlay.mjs"),
        ),
        (
            "pi/released.mjs",
            include_str!("../javascript/tenterhook/pi/released.mjs"),
        ),
        (
            "pi/text-buffer.mjs",
            include_str!("../javascript/tenterhook/pi/text-buffer.mjs"),
        ),
        (
            "pi/theme.mjs",
            include_str!("../javascript/tenterhook/pi/theme.mjs"),
        ),
        (
            "pi/tools.mjs",
            include_str!("../javascript/tenterhook/pi/tools.mjs"),
        ),
        (
            "pi/truncate.mjs",
            include_str!("../javascript/tenterhook/pi/truncate.mjs"),
        ),
        (
            "pi/tui.mjs",
            include_str!("../javascript/tenterhook/pi/tui.mjs"),
        ),
        (
            "pi/type-names.mjs",
            include_str!("../javascript/tenterhook/pi/type-names.mjs"),
        ),
        (
            "pi/typebox.mjs",
            include_str!("../javascript/tenterhook/pi/typebox.mjs"),
        ),
        (
            "pi/width.mjs",
            include_str!("../javascript/tenterhook/pi/width.mjs"),
        ),
    ];
}
