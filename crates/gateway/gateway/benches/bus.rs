//! A gateway in memory, as others have it: two unbounded queues, a bus for hooks, and a task for each message. It keeps
//! nothing, and its agent does nothing.

use std::process::Command;

const BUS: &str = r#"
import asyncio, sys, time
from dataclasses import dataclass, field

@dataclass
class Incoming:
    channel: str
    chat: str
    user: str
    message: str
    parts: list
    metadata: dict = field(default_factory=dict)

@dataclass
class Outgoing:
    channel: str
    chat: str
    phase: str
    text: str = ""
    reply_to: str | None = None
    metadata: dict = field(default_factory=dict)

class Hooks:
    def __init__(self):
        self.handlers, self.subscribers = {}, []

    async def emit(self, event, payload):
        results = []
        for handler in list(self.handlers.get(event, [])):
            results.append(await handler(payload))
        for subscriber in list(self.subscribers):
            await subscriber(payload)
        return results

class Channel:
    def __init__(self, count):
        self.left, self.done = count, asyncio.Event()

    async def send(self, frame):
        if frame.phase == "done":
            self.left -= 1
            if self.left == 0:
                self.done.set()

class Gateway:
    def __init__(self, channel):
        self.incoming, self.outgoing = asyncio.Queue(), asyncio.Queue()
        self.hooks, self.channels = Hooks(), {"memory": channel}
        self.sessions, self.tasks = {}, set()

    async def publish(self, message, phase, text=""):
        frame = Outgoing(message.channel, message.chat, phase, text, message.message)
        await self.outgoing.put(frame)

    async def turn(self, message, text, lock):
        async with lock:
            await self.publish(message, "start")
            await self.publish(message, "end", "")
            await self.hooks.emit("message:send", {"chat": message.chat, "text": ""})
            await self.publish(message, "done")

    async def receive(self, message):
        text = "\n".join(part["text"] for part in message.parts if part["type"] == "text")
        results = await self.hooks.emit("message:receive", {"chat": message.chat, "text": text})
        for result in results:
            if result and result.get("action") == "reject":
                return
        key = f"{message.channel}:{message.chat}"
        lock = self.sessions.setdefault(key, asyncio.Lock())
        await self.turn(message, text, lock)

    async def handle(self):
        while True:
            message = await self.incoming.get()
            task = asyncio.create_task(self.receive(message))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def deliver(self):
        while True:
            frame = await self.outgoing.get()
            await self.channels[frame.channel].send(frame)

async def main(count, chats):
    channel = Channel(count)
    gateway = Gateway(channel)
    workers = [asyncio.create_task(gateway.handle()), asyncio.create_task(gateway.deliver())]
    began = time.perf_counter()
    for number in range(count):
        chat = f"chat-{number % chats}"
        parts = [{"type": "text", "text": "hi"}]
        await gateway.incoming.put(Incoming("memory", chat, "local", str(number), parts))
    await channel.done.wait()
    print(count / (time.perf_counter() - began))
    for worker in workers:
        worker.cancel()

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"#;

/// Returns the messages per second. `None` without Python.
pub(crate) fn rate(messages: usize, chats: usize) -> Option<f64> {
    let mut command = Command::new("python3");
    let (messages, chats) = (messages.to_string(), chats.to_string());
    let output = command.args(["-c", BUS, &messages, &chats]).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.trim().parse().ok()
}
