//! The version of an extension that is in force.

use parking_lot::Mutex;

use super::extension::Extension;

/// An extension whose version can be replaced. Tools and commands refer to it, so that they run the version in force.
#[derive(Debug)]
pub struct ExtensionInForce {
    extension: Mutex<Extension>,
}

impl ExtensionInForce {
    /// Puts a version of an extension in force.
    pub fn new(extension: Extension) -> Self {
        Self {
            extension: Mutex::new(extension),
        }
    }

    /// Replaces the version. Calls in progress finish with the version that they started with.
    pub fn replace_with(&self, other: &Self) {
        let extension = other.get();
        *self.extension.lock() = extension;
    }

    /// Returns the version in force.
    pub fn get(&self) -> Extension {
        self.extension.lock().clone()
    }
}
