"""Measures agents that speak the Agent Client Protocol side by side: from the start to initialized, and a turn of 20,000 deltas.

    python3 measure.py --rounds 3 --fermata ../../fermata --opencode /path/to/opencode

The model is a server in this script. Each round starts every agent once; the smallest of each number is printed, and the ratio to the first agent.
CPU and memory are those of the whole process tree.
"""

import argparse
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time

DELTAS = 20_000


class Model(http.server.BaseHTTPRequestHandler):
    """Answers every request for a completion: with many pieces if the message asks for them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        text = json.dumps(json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("messages"))
        pieces = DELTAS if "DELTAS" in text and "title" not in text[:400].lower() else 3
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.piece({"role": "assistant", "content": ""})
        for i in range(pieces):
            self.piece({"content": f"word{i} "})
        self.piece({}, "stop", {"prompt_tokens": 10, "completion_tokens": pieces, "total_tokens": pieces + 10})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def piece(self, delta, finish=None, usage=None):
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        if usage:
            chunk["usage"] = usage
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def tree(pid):
    """The process and all below it."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            children.setdefault(int(stat(name)[1]), []).append(int(name))
        except OSError:
            pass
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def stat(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def cpu_ms(pid):
    return sum(sum(int(t) for t in stat(p)[11:15]) for p in tree(pid)) * 1000 / os.sysconf("SC_CLK_TCK")


def peak_mb(pid):
    total = 0
    for p in tree(pid):
        with open(f"/proc/{p}/status") as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    return total / 1024


def configure_fermata(home, url):
    os.makedirs(home + "/.fermata", exist_ok=True)
    with open(home + "/.fermata/config.toml", "w") as f:
        f.write(f'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\nbase_url = "{url}"\nwire_api = "chat"\n')


def configure_opencode(home, url):
    os.makedirs(home + "/.config/opencode", exist_ok=True)
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": url, "apiKey": "x"}, "models": {"mock": {"name": "mock"}}}
    with open(home + "/.config/opencode/opencode.json", "w") as f:
        json.dump({"model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled", "provider": {"mock": provider}}, f)


def measure(program, home, work):
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}
    began = time.monotonic()
    agent = subprocess.Popen([program, "acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work, env={"PATH": os.environ["PATH"], "HOME": home, **quiet})
    count = 0

    def ask(method, **params):
        nonlocal count
        count += 1
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": count, "method": method, "params": params}).encode() + b"\n")
        agent.stdin.flush()
        for line in agent.stdout:
            if b"agent_message_chunk" in line:
                continue
            message = json.loads(line)
            if message.get("id") == count and "method" not in message:
                return message["result"]
        raise SystemExit(f"{program} has ended")

    def prompt(text):
        ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    seen = {}
    ask("initialize", protocolVersion=1, clientCapabilities={})
    seen["start to initialized, ms"] = (time.monotonic() - began) * 1000
    seen["start to initialized, CPU ms"] = cpu_ms(agent.pid)
    session = ask("session/new", cwd=work, mcpServers=[])["sessionId"]
    prompt("hello")
    seen["after a short turn, peak MB"] = peak_mb(agent.pid)
    cpu, began = cpu_ms(agent.pid), time.monotonic()
    prompt("DELTAS")
    seen[f"{DELTAS} deltas, ms"] = (time.monotonic() - began) * 1000
    seen[f"{DELTAS} deltas, CPU ms"] = cpu_ms(agent.pid) - cpu
    seen[f"{DELTAS} deltas, peak MB"] = peak_mb(agent.pid)
    agent.stdin.close()
    try:
        agent.wait(5)
    except subprocess.TimeoutExpired:
        agent.kill()
    return seen


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--rounds", type=int, default=3)
    flags.add_argument("--fermata", required=True)
    flags.add_argument("--opencode")
    o = flags.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agents = {"fermata": (o.fermata, configure_fermata)}
    if o.opencode:
        agents["opencode"] = (o.opencode, configure_opencode)
    best = {}
    with tempfile.TemporaryDirectory() as directory:
        work = directory + "/work"
        os.mkdir(work)
        for _ in range(o.rounds):
            for name, (program, configure) in agents.items():
                home = f"{directory}/{name}"
                os.makedirs(home, exist_ok=True)
                configure(home, f"http://127.0.0.1:{server.server_port}/v1")
                for what, value in measure(os.path.abspath(program), home, work).items():
                    best.setdefault(what, {}).setdefault(name, []).append(value)
    for what, by_name in best.items():
        values = {name: min(list_) for name, list_ in by_name.items()}
        first = max(values["fermata"], 10 if "CPU" in what else 0.1)  # CPU is counted in steps of 10 ms
        print(f"{what}: " + ", ".join(f"{name} {v:.0f} ({v / first:.1f} times)" if name != "fermata" else f"{name} {v:.0f}" for name, v in values.items()))


main()
