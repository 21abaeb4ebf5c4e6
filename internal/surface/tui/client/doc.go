// Package client is how the terminal UI uses the engine. A [Feed] follows a
// conversation: however fast events come, the program gets at most one batch of
// them for each frame, in order and whole. An [Outbox] holds the ops of the user
// until the conversation has taken them: commands run side by side, but messages
// must not overtake each other. A [Source] opens a conversation: its end first, and
// [Load] the whole of it when the user wants to see what came before.
package client
