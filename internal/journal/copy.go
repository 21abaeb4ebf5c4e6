package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
)

// copyBatch is how many records are read at once.
const copyBatch = 256

// Copy copies a conversation from one store to another, and compares the two afterwards.
// What an earlier Copy left unfinished is completed. It returns how many records there are. A
// conversation that is open for writing is refused with a *LockedError.
func Copy(ctx context.Context, from, to Store, in Info) (int, error) {
	if owner, owned, err := from.Owner(ctx, in.ID); err != nil {
		return 0, err
	} else if owned {
		return 0, &LockedError{Owner: owner}
	}
	src, err := from.View(ctx, in.ID)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	dst, err := to.Create(ctx, in.ID, in.Modified)
	if errors.Is(err, os.ErrExist) {
		dst, err = to.Open(ctx, in.ID)
	}
	if err != nil {
		return 0, err
	}
	err = copyRecords(ctx, src, dst)
	if err := errors.Join(err, dst.Close()); err != nil {
		return 0, err
	}
	if in.Archived {
		if err := to.Archive(ctx, in.ID); err != nil {
			return 0, err
		}
	}
	return compare(ctx, src, to, in.ID)
}

func copyRecords(ctx context.Context, src View, dst Journal) error {
	have := dst.Recovery().Last
	for after := have; ; {
		recs, err := src.Read(ctx, after, copyBatch)
		if err != nil {
			return err
		}
		if len(recs) == 0 {
			break
		}
		for _, r := range recs {
			if r.Seq != after+1 {
				return fmt.Errorf("record %d is missing: fermata fsck --repair says more", after+1)
			}
			after = r.Seq
			dst.Append(Entry{Turn: r.Turn, Kind: r.Kind, Body: r.Body, Time: r.Time}) // one by one: together they are no batch
		}
	}
	if open, err := dst.OpenItems(ctx); err != nil || len(open) > 0 {
		return err // they were copied before
	}
	open, err := src.OpenItems(ctx)
	if err != nil {
		return err
	}
	scope := dst.Open("copy")
	defer scope.Seal()
	for _, c := range open {
		scope.Write(c.Item, c.Tag, c.Text)
	}
	return nil
}

var errDiffers = errors.New("the copy differs")

// compare reads both conversations.
func compare(ctx context.Context, src View, to Store, id string) (int, error) {
	dst, err := to.View(ctx, id)
	if err != nil {
		return 0, err
	}
	defer dst.Close()
	n := uint64(0)
	for {
		want, err := src.Read(ctx, n, copyBatch)
		if err != nil {
			return 0, err
		}
		got, err := dst.Read(ctx, n, copyBatch)
		if err != nil {
			return 0, err
		}
		if len(got) != len(want) {
			return 0, fmt.Errorf("%w: %d records after number %d, want %d", errDiffers, len(got), n, len(want))
		}
		for i := range want {
			if !sameRecord(got[i], want[i]) {
				return 0, fmt.Errorf("%w at record %d", errDiffers, want[i].Seq)
			}
		}
		if len(want) == 0 {
			break
		}
		n = want[len(want)-1].Seq
	}
	want, err := src.OpenItems(ctx)
	if err != nil {
		return 0, err
	}
	got, err := dst.OpenItems(ctx)
	if err != nil {
		return 0, err
	}
	if text(got) != text(want) {
		return 0, fmt.Errorf("%w in what was being written at the end", errDiffers)
	}
	return int(n), nil
}

func sameRecord(a, b Record) bool {
	return a.Seq == b.Seq && a.Turn == b.Turn && a.Kind == b.Kind && a.Time.Equal(b.Time) && bytes.Equal(a.Body, b.Body)
}

// text is all text of open items; where one is so large that its middle was left out,
// the copy has what is left.
func text(chunks []Chunk) string {
	var b bytes.Buffer
	for _, c := range chunks {
		fmt.Fprintf(&b, "%s %s %s\n", c.Item, c.Tag, c.Text)
	}
	return b.String()
}
