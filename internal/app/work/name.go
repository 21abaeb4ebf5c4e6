package work

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/app"
	p "github.com/fermata-agent/fermata/protocol"
)

// A Name is what a client calls a submission, so that whoever submits under the same name again, perhaps without knowing what
// became of the first, has submitted one turn.
type Name struct {
	Conversation p.ConversationID `json:"conversation"`
	Op           string           `json:"op"`     // the name of the turn's op
	Digest       string           `json:"digest"` // of what was submitted
	Again        bool             `json:"-"`      // the conversation exists: the turn may have been submitted before
}

// nameAge is how long names are known.
const nameAge = 30 * 24 * time.Hour

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// CheckName says what is wrong with the name of a submission.
func CheckName(s string) error {
	if !namePattern().MatchString(s) {
		return fmt.Errorf("%q is not a name: use up to 64 letters, digits, - and _", s)
	}
	return nil
}

// A NameUsedError says that a name stands for another turn.
type NameUsedError struct {
	Name         string
	Conversation p.ConversationID
}

func (e *NameUsedError) Error() string {
	return fmt.Sprintf("the id %s stands for another turn, with another prompt or place to run it, in conversation %s: use another id", e.Name, e.Conversation)
}

// Reserve returns what a name stands for: what was submitted under it before, or a new conversation. dir and o say
// where the turn is to run.
func Reserve(ctx context.Context, a *app.App, name, dir string, turn p.UserTurn, o Options) (Name, error) {
	shared, ok := a.Store().Shared()
	if !ok {
		return Name{}, errNoFleet
	}
	digest, err := digestOf(dir, turn, o)
	if err != nil {
		return Name{}, err
	}
	names, err := shared.BucketFor(ctx, "submissions", nameAge)
	if err != nil {
		return Name{}, shared.Explain(err)
	}
	n := Name{Conversation: p.NewConversationID(time.Now()), Op: rand.Text(), Digest: digest}
	value, err := json.Marshal(n)
	if err != nil {
		return Name{}, err
	}
	_, err = names.Create(ctx, name, value)
	if errors.Is(err, jetstream.ErrKeyExists) {
		var e jetstream.KeyValueEntry
		if e, err = names.Get(ctx, name); err == nil {
			err = json.Unmarshal(e.Value(), &n)
		}
	}
	if err != nil {
		return Name{}, fmt.Errorf("look for the id %s: %w", name, shared.Explain(err))
	}
	if n.Digest != digest {
		return Name{}, &NameUsedError{name, n.Conversation}
	}
	return n, nil
}

// digestOf identifies what is submitted.
func digestOf(dir string, turn p.UserTurn, o Options) (string, error) {
	if o.Git != nil {
		dir = ""
	}
	data, err := json.Marshal(struct {
		Dir, Label string
		Git, Turn  any
	}{dir, o.Label, o.Git, turn})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// Create creates the conversation of a name, unless it exists.
func (n *Name) Create(ctx context.Context, a *app.App, s p.Settings) error {
	err := a.Engine.Local.CreateAs(ctx, n.Conversation, s)
	if n.Again = errors.Is(err, fs.ErrExist); n.Again {
		return nil
	}
	return err
}
