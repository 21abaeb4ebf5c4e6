"""Drives `fermata acp` by the official Python client: prompts, permissions, cancel in each phase, sessions, and a load after kill -9.

It runs in an empty directory; FERMATA_BIN is the program. It prints a line for each thing that it has seen.
"""

import asyncio
import os
import signal

import acp
from acp import schema


class Client:
    def __init__(self):
        self.updates = []
        self.watch = lambda update: None
        self.answer = lambda: "approved"

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))
        self.watch(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        option = self.answer()
        if asyncio.iscoroutine(option):
            option = await option
        if option is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=option))

    def text(self, kind="agent_message_chunk"):
        return "".join(u.content.text for _, u in self.updates if u.session_update == kind)

    def calls(self, session_id):
        """The tool calls as a client shows them in the end."""
        calls = {}
        for of, u in self.updates:
            if of != session_id or not u.session_update.startswith("tool_call"):
                continue
            assert (u.tool_call_id in calls) == (u.session_update == "tool_call_update"), u
            call = calls.setdefault(u.tool_call_id, {})
            call.update({k: v for k, v in u.model_dump().items() if v is not None})
        return list(calls.values())


def start(client):
    return acp.spawn_agent_process(client, os.environ["FERMATA_BIN"], "acp", "--demo", env=dict(os.environ))


async def say(agent, session_id, text):
    answer = await agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
    return answer.stop_reason


def until(client, condition):
    """A future that is done when an update fits."""
    seen = asyncio.get_running_loop().create_future()
    client.watch = lambda u: None if seen.done() or not condition(u) else seen.set_result(u)
    return seen


def prints(update, text):
    return update.session_update == "tool_call_update" and text in str(update.content)


async def main():
    cwd = os.getcwd()
    client = Client()
    async with start(client) as (agent, process):
        assert (await agent.initialize(protocol_version=1)).protocol_version == 1
        session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
        assert await say(agent, session, "talk 5") == "end_turn"
        assert "word1 word2 word3 word4 word5" in client.text()
        print("prompt and stream")

        await agent.set_session_mode(session_id=session, mode_id="ask")
        assert await say(agent, session, "run: touch made") == "end_turn"
        assert os.path.exists("made")
        client.answer = lambda: "denied"
        assert await say(agent, session, "run: touch not-made") == "end_turn"
        assert not os.path.exists("not-made")
        assert [c["status"] for c in client.calls(session)] == ["completed", "failed"]
        print("permission")

        async def cancelled(prompt, when):
            seen = until(client, when) if when else None
            answer = asyncio.create_task(say(agent, session, prompt))
            if seen:
                await seen
            else:
                await asyncio.sleep(0)  # the prompt goes out
            await agent.cancel(session_id=session)
            await agent.cancel(session_id=session)
            assert await answer == "cancelled"
            await agent.cancel(session_id=session)
            assert all(c["status"] in ("completed", "failed") for c in client.calls(session))

        await cancelled("wait 600", None)
        await cancelled("talk 100000", lambda u: u.session_update == "agent_message_chunk")

        async def cancel():
            await agent.cancel(session_id=session)

        client.answer = cancel
        assert await say(agent, session, "run: touch not-made") == "cancelled"
        await agent.set_session_mode(session_id=session, mode_id="auto")
        await cancelled("run: echo begun; sleep 600", lambda u: prints(u, "begun"))
        print("cancel in each phase")

        other = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
        assert await asyncio.gather(say(agent, session, "talk 3"), say(agent, other, "talk 4")) == ["end_turn", "end_turn"]
        listed = await agent.list_sessions(cwd=cwd)
        assert {s.session_id for s in listed.sessions} == {session, other}
        print("two sessions and list")

        seen = until(client, lambda u: prints(u, "begun\\n"))
        asyncio.create_task(say(agent, session, "run: echo begun; sleep 600")).add_done_callback(lambda t: t.exception())
        await seen
        process.send_signal(signal.SIGKILL)
        await process.wait()

    client = Client()
    async with start(client) as (agent, process):
        await agent.initialize(protocol_version=1)
        await agent.load_session(session_id=session, cwd=cwd, mcp_servers=[])
        last = client.calls(session)[-1]
        assert last["status"] == "failed" and "begun" in str(last["content"]), last
        assert "talk 5" in client.text("user_message_chunk")
        assert await say(agent, session, "what happened?") == "end_turn"
        print("load after kill -9")


asyncio.run(main())
