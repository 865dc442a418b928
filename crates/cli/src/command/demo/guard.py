# A hook of `tenterhook demo --scripts`, served by a worker that is started once.
from tenterhook import deny, on


@on("pre_tool_use", matcher="shell")
def guard(event):
    cmd = event.tool_input.get("cmd", "")
    if cmd.startswith("rm -rf"):
        return deny("`rm -rf` is not allowed here")
    if cmd.startswith("sudo "):
        return deny("root is not allowed in this session")
