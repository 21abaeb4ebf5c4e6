// Package engine runs conversations with a model: durable, interruptible at any
// instant, and resumable.
//
// # A first turn
//
// A program brings a model, tools and a store, creates a conversation and runs
// turns in it:
//
//	e, err := engine.Open(ctx, engine.Config{
//		Store: file.New(dir),
//		Model: demo.New(),
//	})
//	if err != nil {
//		return err
//	}
//	defer e.Shutdown(ctx)
//	id, err := e.Create(ctx, protocol.Settings{})
//	if err != nil {
//		return err
//	}
//	end, err := engine.RunTurn(ctx, e, id, protocol.UserTurn{Content: protocol.Text("talk 20")}, nil)
//
// When ctx ends, RunTurn interrupts the turn and returns when the turn has ended.
// Whatever ended it, even a crash of the process, the next RunTurn with the same id
// continues: the model is informed of what was interrupted.
//
// A [Model] is one method and a [Tool] two; [ToolFor] makes a tool of a function. The
// packages below provider, tool and store are those that fermata itself uses, and
// package enginetest checks a program's own.
//
// # Ops and events
//
// RunTurn uses the two things that a conversation offers: Submit an op (package
// protocol lists them: messages, interrupts, approvals, settings and more), and follow
// its events. An op is recorded as a whole, or refused. A turn that was started ends
// with exactly one [protocol.TurnEnded], every call has one output, and no event of the
// turn follows its end.
//
// Events are numbered without gaps, and the number of the last one seen is a
// cursor: any number of clients can follow a conversation, leave, and come back without
// missing or repeating one. An event is delivered when it is durable. Deltas are the text
// of items that are not finished; they have no number, and add up to the finished item.
//
// # Which way to read
//
//   - Subscribe follows a conversation from a cursor: it opens the conversation if no
//     process has it open, which cleans up after a crash.
//   - Attach is Subscribe for clients that draw the past at once: it reports where the
//     past ends and live events begin.
//   - Read returns what is recorded now and ends. It opens nothing and changes nothing, so
//     that it works while another process has the conversation open.
//   - Tail is Read that goes on, for programs that only watch.
//
// # Messages while a turn runs
//
// A [protocol.UserTurn] says what becomes of it when a turn runs: it steers (joins
// that turn with its next model request), is queued, or replaces the turn. An accepted
// message is delivered, or returned by name. RunTurn follows it wherever it goes.
//
// # One process has a conversation open
//
// A conversation is open in one process at a time; others get a [LockedError], and can
// read it. (The programs of this module join that process.) The engine opens a
// conversation when an op needs it and closes it again when it is idle, which clients do
// not notice: subscriptions continue, and show what other processes do with the
// conversation meanwhile. A conversation whose turn waits for an approval is closed, too;
// the turn continues when the approval is answered.
package engine
