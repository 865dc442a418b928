import { isMainThread } from "node:worker_threads";

// Sessions whose start was announced, with the answers. The oldest are forgotten first.
const MAX_SESSIONS = 1000;

export const Tenterhook = async ({ client, directory }) => {
  const starts = new Map();
  // The names of the agents of known sessions. The main agent has none.
  const agents = new Map();

  function remember({ id, parentID, agent }) {
    if (agents.size >= MAX_SESSIONS) agents.delete(agents.keys().next().value);
    agents.set(id, parentID ? agent || "subagent" : undefined);
  }

  /** Returns the name of the subagent that has a session, also of a session that began before this program. */
  async function subagentOf(sessionID) {
    if (!agents.has(sessionID)) {
      try {
        const { data } = await client.session.get({ path: { id: sessionID } });
        if (data?.id === sessionID) remember(data);
      } catch {
        // Hooks see the session as one of the main agent.
      }
    }
    return agents.get(sessionID);
  }

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
    const agent = await subagentOf(sessionID);
    const subagent = agent === undefined ? {} : { agent_id: sessionID, agent_type: agent };
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

  /** Stops a prompt. opencode hides the text of the error, so the person gets it in another way. */
  async function refuse(reason) {
    await notify([reason]);
    // With a screen, this is not the main thread, and the text would damage what the screen shows.
    if (isMainThread) console.error(reason);
    throw new Error(reason);
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
        if (info) remember(info);
        if (!info?.parentID) await startSession(info?.id ?? sessionID, "startup");
      } else if (event.type === "session.idle") {
        if ((await subagentOf(sessionID)) === undefined) await announce("session.idle", sessionID, {});
      } else if (event.type === "session.deleted") {
        starts.delete(info?.id ?? sessionID);
        agents.delete(info?.id ?? sessionID);
      }
    },

    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const start = await starts.get(sessionID);
      output.system.push(...(start?.context ?? []));
    },

    "chat.message": async ({ sessionID }, output) => {
      if ((await subagentOf(sessionID)) !== undefined) return;
      await startSession(sessionID, "resume");
      const parts = output.parts.filter((part) => part.type === "text" && !part.synthetic);
      const prompt = parts.map((part) => part.text).join("\n\n");
      const answer = await ask("chat.message", sessionID, { prompt }).catch((error) => refuse(error.message));
      if (answer.deny !== undefined) await refuse(answer.deny);
      const added = answer.context ?? [];
      if (answer.prompt === undefined && added.length === 0) return;
      if (parts.length === 0) await refuse("Tenterhook cannot change a message without text");
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
