// Package engine runs conversations with a model: durable, interruptible at any
// instant, and always to be resumed.
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
// When ctx ends, RunTurn interrupts the turn and returns when that has ended.
// Whatever ended it, also the end of the process, the next RunTurn with the same id continues: the model is
// informed of what was interrupted. A [Model] and a [Tool] are one method and two.
//
// # Ops and events
//
// RunTurn is made of the two things that a conversation offers: Submit an op
// (package protocol lists them: messages, interrupts, approvals, settings and more), and
// Subscribe to its events. An op is accepted and recorded, or refused, never half. A turn
// that was started ends with exactly one [protocol.TurnEnded], every call has one output,
// and after the end nothing more is heard of the turn.
//
// Events are numbered without gaps, and the number of the last one seen is a
// cursor: any number of clients can follow a conversation, leave, and come back without
// missing or repeating one. An event is given when it is durable. Deltas are the text
// of items that are not finished; they have no number, and add up to the finished item.
//
// # Messages while a turn runs
//
// A [protocol.UserTurn] says what becomes of it when a turn runs: it steers (joins
// that turn with its next model request), is queued, or replaces the turn. An accepted message is
// delivered, or returned by name. RunTurn follows it wherever it goes.
//
// # Who has a conversation open
//
// A conversation is open in one process at a time; others get a [LockedError], and
// can read it. (The programs of this module join that process.) The engine opens a conversation when an op needs it and closes it again when nothing goes on in it,
// which clients do not notice: subscriptions continue, and show what other
// processes do with the conversation meanwhile. A turn that waits for an approval is closed too, and waits.
//
// # Surfaces
//
// The command line, the terminal UI and the servers of fermata are clients of
// [Engine] and of nothing below it.
package engine
