#!/usr/bin/env node
// Starts the program of this machine's package and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const path = require("node:path");

const name = `@fermata-agent/fermata-${process.platform}-${process.arch}`;

function find() {
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "fermata");
  } catch {
    console.error(`fermata: the package ${name} is not installed.`);
    console.error("hint: npm leaves it out with --omit=optional, and there is none for some systems");
    process.exit(1);
  }
}

// Listened for before there is a child: a signal must never end the launcher alone.
let child;
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"];
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}

// The fourth stream is a pipe that ends when this process does, however it ends: fermata
// reads it and stops, so that kill -9 of the launcher leaves nothing behind.
child = spawn(find(), process.argv.slice(2), {
  stdio: ["inherit", "inherit", "inherit", "pipe"],
  env: { ...process.env, FERMATA_LAUNCHER_FD: "3" },
});

child.on("error", (error) => {
  console.error(`fermata: ${error.message}`);
  process.exit(1);
});

child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  for (const s of signals) {
    process.removeAllListeners(s);
  }
  process.kill(process.pid, signal);
});
