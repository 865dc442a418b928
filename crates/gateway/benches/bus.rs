//! A bus as other gateways have it: two unbounded queues in memory and a task for each message. It keeps nothing.

use std::process::Command;

const BUS: &str = r#"
import asyncio, sys, time

async def main(count):
    incoming, outgoing = asyncio.Queue(), asyncio.Queue()
    done, seen = asyncio.Event(), 0
    tasks = set()

    async def answer(message):
        await outgoing.put({"chat": message["chat"], "text": "hello"})

    async def handle():
        while True:
            message = await incoming.get()
            task = asyncio.create_task(answer(message))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def send():
        nonlocal seen
        while True:
            await outgoing.get()
            seen += 1
            if seen == count:
                done.set()

    workers = [asyncio.create_task(handle()), asyncio.create_task(send())]
    began = time.perf_counter()
    for number in range(count):
        await incoming.put({"chat": f"chat-{number % 100}", "id": number, "text": "hi"})
    await done.wait()
    print(count / (time.perf_counter() - began))
    for worker in workers:
        worker.cancel()

asyncio.run(main(int(sys.argv[1])))
"#;

/// Returns the messages per second. `None` without Python.
pub(crate) fn rate(messages: usize) -> Option<f64> {
    let mut command = Command::new("python3");
    let output = command.args(["-c", BUS, &messages.to_string()]).output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.trim().parse().ok()
}
