
export default function (pi) {
  let startContext = [];
  let promptContext = [];
  let isContinued = false;
  // Follow-ups of hooks, which pi announces as inputs. Hooks need not judge them.
  const followUps = new Set();

  async function ask(event, ctx, fields) {
    const answer = await callHooks(event.type, {
      session_id: ctx.sessionManager.getSessionId(),
      cwd: ctx.cwd,
      has_ui: ctx.hasUI === true,
      ...fields,
    });
    for (const text of answer.notices ?? []) ctx.ui.notify(text, "warning");
    return answer;
  }

  /** Announces an event that hooks cannot stop. A failure changes nothing. */
  async function announce(event, ctx, fields) {
    try {
      return await ask(event, ctx, fields);
    } catch {
      return {};
    }
  }

  /** Tells the person why nothing happens, also where there is no screen. */
  function explain(reason, ctx) {
    if (ctx.hasUI) ctx.ui.notify(reason, "error");
    else console.error(reason);
  }

  pi.on("session_start", async (event, ctx) => {
    const answer = await announce(event, ctx, { source: event.reason });
    startContext = answer.context ?? [];
  });

  pi.on("session_shutdown", async (event, ctx) => {
    await announce(event, ctx, { reason: event.reason });
  });

  pi.on("input", async (event, ctx) => {
    if (event.source === "extension" && followUps.delete(event.text)) return;
    isContinued = false;
    try {
      const answer = await ask(event, ctx, { prompt: event.text });
      if (answer.deny !== undefined) throw new Error(answer.deny);
      promptContext = answer.context ?? [];
      if (answer.prompt !== undefined) {
        return { action: "transform", text: answer.prompt, images: event.images };
      }
    } catch (error) {
      explain(error.message, ctx);
      return { action: "handled" };
    }
  });

  pi.on("before_agent_start", async () => {
    const texts = [...startContext, ...promptContext];
    startContext = [];
    promptContext = [];
    if (texts.length === 0) return;
    return { message: { customType: "tenterhook", content: texts.join("\n\n"), display: false } };
  });

  pi.on("tool_call", async (event, ctx) => {
    try {
      const answer = await ask(event, ctx, {
        tool_name: event.toolName,
        tool_use_id: event.toolCallId,
        tool_input: event.input,
      });
      if (answer.deny !== undefined) return { block: true, reason: answer.deny };
      if (answer.ask !== undefined) {
        const input = JSON.stringify(answer.input ?? event.input);
        const question = `${answer.ask}\n\n${event.toolName} ${input}`;
        if (!(await ctx.ui.confirm("Allow this tool call?", question))) {
          return { block: true, reason: `the user did not allow it: ${answer.ask}` };
        }
      }
      if (answer.input !== undefined) replaceKeys(event.input, answer.input);
    } catch (error) {
      return { block: true, reason: error.message };
    }
  });

  pi.on("tool_result", async (event, ctx) => {
    const answer = await announce(event, ctx, {
      tool_name: event.toolName,
      tool_use_id: event.toolCallId,
      tool_input: event.input,
      content: event.content,
      details: event.details,
      is_error: event.isError,
    });
    const added = (answer.context ?? []).map((text) => ({ type: "text", text }));
    if (answer.result === undefined && added.length === 0) return;
    const { content = event.content, details, is_error = event.isError } = answer.result ?? event;
    return { content: [...content, ...added], details, isError: is_error };
  });

  pi.on("agent_end", async (event, ctx) => {
    const replies = event.messages.filter((message) => message.role === "assistant");
    const blocks = replies.at(-1)?.content ?? [];
    const texts = blocks.filter((block) => block.type === "text").map((block) => block.text);
    const answer = await announce(event, ctx, {
      last_assistant_message: texts.join("\n"),
      stop_hook_active: isContinued,
    });
    if (answer.follow_up === undefined) return;
    const text = answer.follow_up.join("\n\n");
    isContinued = true;
    followUps.add(text);
    pi.sendUserMessage(text, { deliverAs: "followUp" });
    // The message is queued in the background. pi ends the run if this handler returns before that.
    for (let i = 0; i < 100 && !ctx.hasPendingMessages(); i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    followUps.delete(text);
  });
}
