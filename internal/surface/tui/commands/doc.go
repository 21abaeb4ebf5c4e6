// Package commands is what the commands after a slash do: /model and /effort,
// /approvals and /permissions, /rewind and /undo-turn, /diff, /status, /help, /ps and
// /copy. It also attaches images of the clipboard and runs the user's editor. A
// [Host] is what they use of the program.
package commands
