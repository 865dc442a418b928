"""This guard denies shell commands that are hard to undo.

Try it:     tenterhook test
Use it:     tenterhook trust

It reads the command line and does not run it, so it cannot see what a script, an alias, a variable
or another language does: `./cleanup.sh`, `$CMD`, `python3 -c '...'`.
"""

import os
import re
import shlex

from tenterhook import deny, on

# Programs that run a word as a command line. `-c` is for all the others, such as `su -c '...'`.
SHELLS = {"sh", "bash", "dash", "zsh", "eval", "trap", "env", "ssh", "watch", "-c"}


# `tool_guard` sees each tool call as it would run, after all changes by other hooks.
@on("tool_guard", matcher="shell")
def guard(event):
    try:
        for words in commands(event.tool_input["cmd"]):
            reason = objection(words)
            if reason:
                return deny(reason)
    except ValueError as error:
        return deny(f"the command cannot be read: {error}")


def objection(words):
    """Returns why a command is not allowed, or None."""
    for at, word in enumerate(words):
        # `sudo rm`, `/bin/rm` and `xargs rm` are found as well.
        program, rest = os.path.basename(word), words[at + 1 :]
        if program == "rm" and has(rest, "rR", "--recursive") and has(rest, "f", "--force"):
            return "`rm -rf` is not allowed here"
        if program == "git" and "push" in rest:
            if has(rest, "f", "--force") or any(word.startswith("+") for word in rest):
                return "a forced push is not allowed here"
    return None


def has(words, letters, name):
    """Says whether words have an option: one of its letters, alone or as in `-rf`, or its name."""
    for word in words:
        if word.startswith("--"):
            # `rm` and `git` also take the beginning of a name: `--recurs`.
            if len(word) > 2 and name.startswith(word):
                return True
        elif word.startswith("-") and any(letter in word for letter in letters):
            return True
    return False


def commands(line):
    """Returns the commands of a line, each as a list of words."""
    # The shell reads `$'rm'` like `'rm'`.
    line = re.sub(r"\$(?=['\"])", "", line.replace("\\\n", ""))
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()`<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found = [[]]
    for word in lexer:
        if word and all(character in ";&|()`\n" for character in word):
            found.append([])
        else:
            # The shell makes several words of `{rm,-rf}` and `-{r,f}`.
            found[-1] += [word, *re.split("[{},]", word)] if "{" in word else [word]
    for words in list(found):
        has_shell = any(os.path.basename(word) in SHELLS for word in words)
        for word in words:
            # In `sh -c '...'` and `"$(...)"`, one word holds a command line.
            if "$(" in word or "`" in word or (has_shell and " " in word):
                found.extend(commands(word))
    return found
