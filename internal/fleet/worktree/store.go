package worktree

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-agent/fermata/internal/journal/nats"
)

// requestTime is how long one request may take.
const requestTime = 5 * time.Second

var errNoAnswer = errors.New("the NATS servers do not answer")

// Trees keep what the work trees of conversations hold, for the next machine: a record of the caller's in a key-value
// bucket, and a bundle of bytes in an object store that it names. A record is replaced by who knows its
// revision, so that a machine which has lost its conversation cannot replace what the next one has kept.
type Trees struct{ Store *nats.Store }

// A Tree is what is kept of the work tree of a conversation.
type Tree struct {
	Record   json.RawMessage `json:"record"`           // the caller's
	Bundle   string          `json:"bundle,omitempty"` // the name of the object; empty if there is none
	Revision uint64          `json:"-"`                // 0 if it is not kept yet
}

// Errors of work trees.
var (
	ErrNoTree      = errors.New("no work tree is kept of this conversation")
	ErrTreeChanged = errors.New("another machine has kept the work tree of this conversation since")
)

// Load returns what is kept of a conversation, or ErrNoTree.
func (t Trees) Load(ctx context.Context, id string) (Tree, error) {
	tree, err := t.load(ctx, id)
	if err != nil && !errors.Is(err, ErrNoTree) {
		err = fmt.Errorf("look for the work tree of conversation %s: %w", id, t.Store.Explain(err))
	}
	return tree, err
}

func (t Trees) load(ctx context.Context, id string) (Tree, error) {
	l, err := t.Store.Link(ctx)
	if err != nil {
		return Tree{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, requestTime, errNoAnswer)
	defer cancel()
	kv, err := l.JetStream.KeyValue(ctx, l.Name+"-"+nats.Trees)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return Tree{}, ErrNoTree
	}
	if err != nil {
		return Tree{}, err
	}
	e, err := kv.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Tree{}, ErrNoTree
	}
	if err != nil {
		return Tree{}, err
	}
	tree := Tree{Revision: e.Revision()}
	return tree, json.Unmarshal(e.Value(), &tree)
}

// Save replaces what is kept of a conversation: before is what Load or Save has returned, the zero value if nothing
// is kept. Without a bundle that of before stays. It fails with ErrTreeChanged if there is something else by now.
func (t Trees) Save(ctx context.Context, id string, before Tree, record json.RawMessage, bundle []byte) (Tree, error) {
	tree, err := t.save(ctx, id, before, record, bundle)
	if err != nil && !errors.Is(err, ErrTreeChanged) {
		err = fmt.Errorf("keep the work tree of conversation %s: %w", id, t.Store.Explain(err))
	}
	return tree, err
}

func (t Trees) save(ctx context.Context, id string, before Tree, record json.RawMessage, bundle []byte) (Tree, error) {
	l, err := t.Store.Link(ctx)
	if err != nil {
		return Tree{}, err
	}
	next := Tree{Record: record, Bundle: before.Bundle}
	kv, err := t.Store.Bucket(ctx, nats.Trees)
	if err != nil {
		return Tree{}, err
	}
	var objects jetstream.ObjectStore
	if bundle != nil {
		if objects, err = bundles(ctx, l); err != nil {
			return Tree{}, err
		}
		next.Bundle = id + "." + rand.Text()
		if _, err := objects.PutBytes(ctx, next.Bundle, bundle); err != nil {
			return Tree{}, err
		}
	}
	value, err := json.Marshal(next)
	if err != nil {
		return Tree{}, err
	}
	next.Revision, err = replace(ctx, kv, id, value, before.Revision)
	if objects == nil {
		return next, err
	}
	if err != nil {
		if now, lookErr := t.load(ctx, id); lookErr == nil && now.Bundle == next.Bundle { // only the answer was lost
			next.Revision, err = now.Revision, nil
		}
	}
	switch {
	case err == nil && before.Bundle != "":
		_ = objects.Delete(ctx, before.Bundle) // else it only takes room
	case errors.Is(err, ErrTreeChanged):
		_ = objects.Delete(ctx, next.Bundle)
	}
	return next, err
}

// replace writes a value if the one before has a revision, 0 if there is none.
func replace(ctx context.Context, kv jetstream.KeyValue, key string, value []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTime, errNoAnswer)
	defer cancel()
	var err error
	if revision == 0 {
		revision, err = kv.Create(ctx, key, value)
	} else {
		revision, err = kv.Update(ctx, key, value, revision)
	}
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, ErrTreeChanged
	}
	return revision, err
}

// bundles returns the object store, and makes it if it is missing.
func bundles(ctx context.Context, l nats.Link) (jetstream.ObjectStore, error) {
	name := l.Name + "-" + nats.Bundles
	o, err := l.JetStream.ObjectStore(ctx, name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return o, err
	}
	o, err = l.JetStream.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: name, Description: "what work trees of fermata hold", Storage: l.Storage, Replicas: l.Replicas,
	})
	if errors.Is(err, jetstream.ErrBucketExists) { // another machine was faster
		return l.JetStream.ObjectStore(ctx, name)
	}
	return o, err
}

// Bundle returns the bundle of a tree.
func (t Trees) Bundle(ctx context.Context, tree Tree) ([]byte, error) {
	l, err := t.Store.Link(ctx)
	if err != nil {
		return nil, err
	}
	o, err := l.JetStream.ObjectStore(ctx, l.Name+"-"+nats.Bundles)
	if err != nil {
		return nil, fmt.Errorf("read the bundle %s: %w", tree.Bundle, t.Store.Explain(err))
	}
	data, err := o.GetBytes(ctx, tree.Bundle)
	if err != nil {
		return nil, fmt.Errorf("read the bundle %s: %w", tree.Bundle, t.Store.Explain(err))
	}
	return data, nil
}
