package file_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-agent/fermata/internal/journal/file"
)

// Whoever ends a context says why, and gets that back.
func TestEndedContextsSayWhy(t *testing.T) {
	s := file.New(t.TempDir(), file.Options{})
	reason := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	j, err := s.Create(t.Context(), sampleID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for name, err := range map[string]error{
		"Create": second(s.Create(ctx, sampleID, time.Now())),
		"Open":   second(s.Open(ctx, sampleID)),
		"List":   second(s.List(ctx)),
		"View":   second(s.View(ctx, sampleID)),
	} {
		if !errors.Is(err, reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
