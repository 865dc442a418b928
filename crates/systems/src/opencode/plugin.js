
// Sessions whose start was announced, with the answers. The oldest are forgotten first.
const MAX_SESSIONS = 1000;

export const Tenterhook = async ({ client, directory }) => {
  const starts = new Map();
  const subagents = new Set();

  /** Shows texts to the person, where there is a screen. */
  async function notify(texts) {
    for (const message of texts ?? []) {
      try {
        await client.tui.showToast({ body: { title: "Tenterhook", message, variant: "warning" } });
      } catch {
        // Without a screen there is no one to tell. The journal has the text.
      }
    }
  }

  async function ask(event, sessionID, fields) {
    const subagent = subagents.has(sessionID) ? { agent_id: sessionID } : {};
    const answer = await callHooks(event, { session_id: sessionID, cwd: directory, ...subagent, ...fields });
    notify(answer.notices);
    return answer;
  }

  /** Announces an event that hooks cannot stop. A failure changes nothing. */
  async function announce(event, sessionID, fields) {
    try {
      return await ask(event, sessionID, fields);
    } catch {
      return {};
    }
  }

  function startSession(sessionID, source) {
    if (!starts.has(sessionID)) {
      if (starts.size >= MAX_SESSIONS) starts.delete(starts.keys().next().value);
      starts.set(sessionID, announce("session.created", sessionID, { source }));
    }
    return starts.get(sessionID);
  }

  return {
    event: async ({ event }) => {
      const { sessionID, info } = event.properties ?? {};
      if (event.type === "session.created") {
        if (info?.parentID) subagents.add(info.id);
        else await startSession(info?.id ?? sessionID, "startup");
      } else if (event.type === "session.idle") {
        if (!subagents.delete(sessionID)) await announce("session.idle", sessionID, {});
      } else if (event.type === "session.deleted") {
        starts.delete(info?.id ?? sessionID);
      }
    },

    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const start = await starts.get(sessionID);
      output.system.push(...(start?.context ?? []));
    },

    "chat.message": async ({ sessionID }, output) => {
      if (subagents.has(sessionID)) return;
      await startSession(sessionID, "resume");
      const parts = output.parts.filter((part) => part.type === "text" && !part.synthetic);
      const prompt = parts.map((part) => part.text).join("\n\n");
      const answer = await ask("chat.message", sessionID, { prompt });
      if (answer.deny !== undefined) throw new Error(answer.deny);
      const added = answer.context ?? [];
      if (answer.prompt === undefined && added.length === 0) return;
      if (parts.length === 0) throw new Error("Tenterhook cannot change a message without text");
      if (answer.prompt !== undefined) {
        parts.forEach((part, index) => (part.text = index === 0 ? answer.prompt : ""));
      }
      const last = parts[answer.prompt === undefined ? parts.length - 1 : 0];
      last.text = [last.text, ...added].join("\n\n");
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      const call = { tool_name: tool, tool_use_id: callID, tool_input: output.args };
      const answer = await ask("tool.execute.before", sessionID, call);
      if (answer.deny !== undefined) throw new Error(answer.deny);
      if (answer.input !== undefined) replaceKeys(output.args, answer.input);
    },

    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      // A tool of an MCP server returns blocks, and all others a text.
      const isText = typeof output.output === "string";
      const call = { tool_name: tool, tool_use_id: callID, tool_input: args };
      const answer = await announce("tool.execute.after", sessionID, {
        ...call,
        tool_response: isText ? output.output : (output.content ?? ""),
        metadata: output.metadata,
      });
      if (answer.result !== undefined) {
        if (isText) output.output = answer.result.text;
        else output.content = [{ type: "text", text: answer.result.text }];
        // The screen shows this copy of a command's output.
        if (typeof output.metadata?.output === "string") output.metadata.output = answer.result.text;
      }
      for (const text of answer.context ?? []) {
        if (isText) output.output += `\n\n${text}`;
        else output.content = [...(output.content ?? []), { type: "text", text }];
      }
    },
  };
};
