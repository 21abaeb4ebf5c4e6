// Package imports brings conversations of other agents into a store. A session always becomes the conversation with the
// same id, so that importing it again finds that: what has not changed is left alone, what has grown is
// written anew, and a conversation that was continued here is never touched.
//
// Each conversation is one batch of records: a kill leaves it whole, or not begun, and the next import writes it.
package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fermata-agent/fermata/internal/foreign"
	"github.com/fermata-agent/fermata/internal/foreign/convert"
	"github.com/fermata-agent/fermata/internal/journal"
	p "github.com/fermata-agent/fermata/protocol"
)

// An Importer writes to one store.
type Importer struct {
	Store    journal.Store
	Version  string                      // of this program
	Settings func(cwd string) p.Settings // of a new conversation in a directory
}

// A State says what has become of a session, or would.
type State string

// The states.
const (
	New       State = "new"       // it has not been imported
	Same      State = "imported"  // it was imported before, and has not changed
	Grown     State = "changed"   // it was imported before, and has changed since
	Continued State = "continued" // it was imported before, changed, and was continued here, too
)

// A Result is what importing a session did.
type Result struct {
	ID     p.ConversationID
	State  State
	Turns  int
	Losses []string
}

// State returns what is known of a session, and the last record of its import. part is as for [convert.ConversationID].
func (im *Importer) State(ctx context.Context, s foreign.Session, part string) (State, p.Imported, error) {
	var last p.Imported
	v, err := im.Store.View(ctx, string(convert.ConversationID(s, part)))
	if errors.Is(err, journal.ErrNotFound) {
		return New, last, nil
	}
	if err != nil {
		return "", last, err
	}
	defer v.Close()
	rec, ok, err := v.Last(ctx, p.Kind(&last))
	if err != nil {
		return "", last, err
	}
	tail, err := v.Tail(ctx, 1)
	if err != nil {
		return "", last, err
	}
	switch {
	case len(tail) == 0:
		return New, last, nil // an import was killed before it wrote anything
	case !ok:
		return "", last, fmt.Errorf("conversation %s has the id of an imported one, and was not imported", convert.ConversationID(s, part))
	}
	if err := json.Unmarshal(rec.Body, &last); err != nil {
		return "", last, err
	}
	if tail[len(tail)-1].Seq != rec.Seq {
		return Continued, last, nil
	}
	return Same, last, nil
}

// Compare returns what Import would do with a conversation.
func (im *Importer) Compare(ctx context.Context, c foreign.Conversation, part string) (Result, error) {
	r := Result{ID: convert.ConversationID(c.Session, part), Losses: c.Losses}
	state, last, err := im.State(ctx, c.Session, part)
	if err != nil {
		return r, err
	}
	r.State, r.Turns = state, int(last.Turns)
	switch {
	case last.Sum == convert.Sum(c.Steps) && last.Steps == len(c.Steps):
		r.State = Same
	case state == Same:
		r.State = Grown
	case state == Continued:
		// Both have grown since. What is here stays; the other becomes a conversation beside it.
		beside, err := im.Compare(ctx, c, convert.Sum(c.Steps))
		if beside.State == New {
			beside.State = Continued
		}
		return beside, err
	}
	return r, nil
}

// Import writes a conversation, unless it is there already. part names a branch, if it is one. children are
// the conversations that its subagents have become.
func (im *Importer) Import(ctx context.Context, c foreign.Conversation, part string, children map[string]p.ConversationID) (Result, error) {
	r, err := im.Compare(ctx, c, part)
	if err != nil || r.State == Same {
		return r, err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is finished: one conversation takes a moment
	if r.State == Grown {
		if err := im.Store.Delete(ctx, string(r.ID)); err != nil {
			return r, err
		}
	}
	start := p.ConversationStarted{ID: r.ID, Version: im.Version, Settings: im.Settings(c.Cwd)}
	events := convert.Events(c, start, children)
	r.Turns = int(events[len(events)-1].Body.(*p.Imported).Turns)
	return r, im.write(ctx, c.Session, r.ID, events)
}

// write creates the journal of a conversation, with all of its events in one batch.
func (im *Importer) write(ctx context.Context, s foreign.Session, id p.ConversationID, events []p.Event) error {
	entries := make([]journal.Entry, len(events))
	for i, e := range events {
		body, err := json.Marshal(e.Body)
		if err != nil {
			return err
		}
		entries[i] = journal.Entry{Turn: int(e.Turn), Kind: p.Kind(e.Body), Body: body, Time: e.Time}
	}
	j, err := im.Store.Create(ctx, string(id), id.Time())
	if errors.Is(err, os.ErrExist) { // an import was killed before it wrote anything
		j, err = im.Store.Open(ctx, string(id))
	}
	if err != nil {
		return err
	}
	if n := j.Recovery().Last; n > 0 {
		j.Close()
		return fmt.Errorf("conversation %s has %d records already", id, n)
	}
	j.Append(entries...)
	if err := j.Close(); err != nil {
		return err
	}
	if s.Archived {
		if err := im.Store.Archive(ctx, string(id)); err != nil {
			return err
		}
	}
	return im.setTime(ctx, id, s.Modified)
}

// setTime makes the conversation as old as the session, so that lists are in the order in which people worked.
func (im *Importer) setTime(ctx context.Context, id p.ConversationID, at time.Time) error {
	info, err := im.Store.Stat(ctx, string(id))
	if err != nil || info.Path == "" || at.IsZero() {
		return err
	}
	return os.Chtimes(info.Path, at, at)
}
