//! The policy that decides which hooks of the project layer run, and the proof that one may.

use std::sync::Arc;

use tenterhook_engine::Layer;
use tenterhook_hookfile::HookDeclaration;

use crate::store::Approvals;

/// Decides which hooks of the project layer run.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// The caller decides by naming the file. All of its hooks run. Do not use it with files that a
    /// search finds: they would run without approval, even in a repository that your user has just
    /// cloned.
    #[default]
    Caller,
    /// The user decides by approving hooks.
    Approved(Arc<Approvals>),
    /// The user reviews hooks in order to approve them. The same hooks run, and hooks without an approval are
    /// read too.
    Review(Arc<Approvals>),
}

impl Trust {
    /// Trusts nothing: no hook of the project layer runs.
    pub fn none() -> Self {
        Self::Approved(Arc::default())
    }

    /// Returns the approvals if they decide.
    pub fn approvals(&self) -> Option<&Approvals> {
        self.shared_approvals().map(Arc::as_ref)
    }

    /// Returns the approvals if they decide, to share them.
    pub fn shared_approvals(&self) -> Option<&Arc<Approvals>> {
        match self {
            Self::Caller => None,
            Self::Approved(approvals) | Self::Review(approvals) => Some(approvals),
        }
    }

    /// Returns whether hooks are read that have no approval. Before an approval, an agent could have written
    /// anything into them, so a start does not spend time on them.
    pub const fn reads_unapproved(&self) -> bool {
        matches!(self, Self::Caller | Self::Review(_))
    }

    /// Accepts a declaration of a layer that needs no approval.
    ///
    /// # Errors
    /// Returns the declaration if it is of the project layer and approvals decide. Then
    /// [`judge`](crate::judge()) compares it with its approval.
    pub fn admit(
        &self,
        declaration: HookDeclaration,
        layer: Layer,
    ) -> Result<ApprovedDeclaration, Box<HookDeclaration>> {
        match (layer, self) {
            (Layer::Project, Self::Approved(_) | Self::Review(_)) => Err(Box::new(declaration)),
            (Layer::System | Layer::User | Layer::Project | Layer::Explicit | Layer::Code, _) => {
                Ok(ApprovedDeclaration::new(declaration, layer, None))
            }
        }
    }
}

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
