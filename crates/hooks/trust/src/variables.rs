//! What the variables of a hook make programs load.

/// Variables that make programs load or run something, or say where they search for it. A name that ends in
/// `*` stands for every name with that beginning.
const LOADS: &str = "BASH_* BUNDLE* BUN_* CARGO* CDPATH CLASSPATH CURL_HOME DENO_* DYLD_* EDITOR ENV FPATH GCONV_PATH \
    GEM_* GIT_* GLIBC_TUNABLES HOME IFS JAVA* JDK_* LD_* LESS* LOCPATH LUA* MAKE* NODE_* NPM_* OPENSSL_* PAGER PERL* \
    PHP* PROMPT_COMMAND PS4 PYTHON* RUBY* RUST* SHELL SHELLOPTS SSH_* TERMINFO* VIRTUAL_ENV VISUAL WGETRC XDG_* \
    ZDOTDIR _JAVA* npm_*";

/// Variables with such a beginning that load nothing.
const HARMLESS: &str = "GIT_AUTHOR_* GIT_COMMITTER_* GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT NODE_ENV NODE_NO_WARNINGS \
    PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED PYTHONUTF8";

/// Returns whether a variable makes programs load or run something that is not a list of folders.
pub(crate) fn makes_load(name: &str) -> bool {
    let is_among = |names: &str| {
        names
            .split_whitespace()
            .any(|known| match known.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == known,
            })
    };
    is_among(LOADS) && !is_among(HARMLESS) && !is_search_path(name)
}

/// Returns whether a variable has folders in which programs search, such as `PYTHONPATH`.
pub(crate) fn is_search_path(name: &str) -> bool {
    name.ends_with("PATH") || name.ends_with("LIB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_make_programs_load_something_are_known() {
        for (name, loads) in [
            ("NODE_OPTIONS", true),
            ("PERL5OPT", true),
            ("LD_PRELOAD", true),
            ("HOME", true),
            ("GIT_SSH_COMMAND", true),
            ("BASH_ENV", true),
            ("PYTHONPATH", false),
            ("GIT_AUTHOR_NAME", false),
            ("PYTHONUNBUFFERED", false),
            ("LEVEL", false),
        ] {
            assert_eq!(makes_load(name), loads, "{name}");
        }
    }
}
