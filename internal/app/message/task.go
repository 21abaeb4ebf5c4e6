package message

// InitTask asks for a guide for coding agents: what /init stands for on every surface.
const InitTask = `Write a file AGENTS.md in the root of this repository: a short guide for coding agents that work here.
Look at the repository first. Say how to build, test and lint it (exact commands), how it is laid out, which conventions the code follows, and what to be careful about.
Keep it below 60 lines, and only write what you have seen. If there is an AGENTS.md already, improve it.`
