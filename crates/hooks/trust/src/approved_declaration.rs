//! The proof that a hook may run.

use tenterhook_engine::Layer;
use tenterhook_hookfile::HookDeclaration;

/// A declaration that may become a hook.
///
/// Either its layer needs no approval, or it is exactly what the user approved and runs the approved
/// copies of its files. Only this crate creates one. It relies on the caller for the layer, which
/// `tenterhook-discovery` determines from the location of the file.
///
/// ```compile_fail
/// use tenterhook_trust::ApprovedDeclaration;
///
/// fn approve(declaration: tenterhook_hookfile::HookDeclaration) -> ApprovedDeclaration {
///     ApprovedDeclaration::new(declaration, tenterhook_engine::Layer::Project, None)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ApprovedDeclaration {
    declaration: HookDeclaration,
    layer: Layer,
    original_command: Option<String>,
}

impl ApprovedDeclaration {
    pub(crate) fn new(
        declaration: HookDeclaration,
        layer: Layer,
        original_command: Option<String>,
    ) -> Self {
        Self {
            declaration,
            layer,
            original_command,
        }
    }

    /// Returns the declaration. A project's declaration names the approved copies of its files.
    pub const fn declaration(&self) -> &HookDeclaration {
        &self.declaration
    }

    /// Returns the layer that the hook belongs to.
    pub const fn layer(&self) -> Layer {
        self.layer
    }

    /// Returns the command as the project wrote it, if the declaration names copies instead.
    pub fn original_command(&self) -> Option<&str> {
        self.original_command.as_deref()
    }
}
