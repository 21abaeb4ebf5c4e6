package worktree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fermata-agent/fermata/internal/regular"
)

// An Archive holds what is kept of work trees: Trees on NATS, Files in a directory.
type Archive interface {
	// Get returns what is kept of a conversation, without a bundle if there is none, or ErrNoTree.
	Get(ctx context.Context, id string) (record json.RawMessage, bundle []byte, err error)
	// Put replaces it.
	Put(ctx context.Context, id string, record json.RawMessage, bundle []byte) error
}

// Copy copies what is kept of the work tree of a conversation, and compares it afterwards. It reports whether there is something.
func Copy(ctx context.Context, from, to Archive, id string) (bool, error) {
	record, bundle, err := from.Get(ctx, id)
	if errors.Is(err, ErrNoTree) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if has, data, err := to.Get(ctx, id); err == nil && sameJSON(has, record) && bytes.Equal(data, bundle) {
		return true, nil
	}
	if err := to.Put(ctx, id, record, bundle); err != nil {
		return false, err
	}
	has, data, err := to.Get(ctx, id)
	if err != nil {
		return false, err
	}
	if !sameJSON(has, record) || !bytes.Equal(data, bundle) {
		return false, fmt.Errorf("the work tree of conversation %s is not the same after it was copied", id)
	}
	return true, nil
}

// sameJSON compares two values, whatever their spaces.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// Get implements Archive.
func (t Trees) Get(ctx context.Context, id string) (json.RawMessage, []byte, error) {
	tree, err := t.Load(ctx, id)
	if err != nil || tree.Bundle == "" {
		return tree.Record, nil, err
	}
	bundle, err := t.Bundle(ctx, tree)
	return tree.Record, bundle, err
}

// Put implements Archive.
func (t Trees) Put(ctx context.Context, id string, record json.RawMessage, bundle []byte) error {
	before, err := t.Load(ctx, id)
	if err != nil && !errors.Is(err, ErrNoTree) {
		return err
	}
	_, err = t.Save(ctx, id, before, record, bundle)
	return err
}

// Files hold what is kept of work trees in the directory of a home: a record and a bundle of git for each conversation.
type Files struct{ Home string }

func (f Files) name(id, end string) string { return filepath.Join(f.Home, "trees", id+end) }

const (
	recordEnd = ".json"
	bundleEnd = ".bundle"
)

// Get implements Archive.
func (f Files) Get(_ context.Context, id string) (json.RawMessage, []byte, error) {
	record, err := regular.ReadFile(f.name(id, recordEnd))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNoTree
	}
	if err != nil {
		return nil, nil, err
	}
	bundle, err := regular.ReadFile(f.name(id, bundleEnd))
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil, nil
	}
	return record, bundle, err
}

// Put implements Archive. The record is written last: without it there is nothing.
func (f Files) Put(_ context.Context, id string, record json.RawMessage, bundle []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.name(id, "")), 0o700); err != nil {
		return err
	}
	if err := os.Remove(f.name(id, recordEnd)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bundle == nil {
		if err := os.Remove(f.name(id, bundleEnd)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else if err := writeSynced(f.name(id, bundleEnd), bundle); err != nil {
		return err
	}
	return writeSynced(f.name(id, recordEnd), record)
}

// writeSynced writes a file that is there whole after a power cut, or not at all.
func writeSynced(name string, data []byte) error {
	file, err := regular.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
