// Package journaltest holds what tests need to know about journals: the suite
// that every version of [journal.Store] has to pass ([Run]), and a disk that is
// slow, fails, or loses power on demand ([Disk], [FileStore]).
package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-agent/fermata/internal/journal"
	"github.com/fermata-agent/fermata/protocol"
)

// Options is what a store under test has to be able to do. It is the same for
// all versions.
type Options = journal.MemoryOptions

// A Harness is a store under test.
type Harness struct {
	Store journal.Store
	// Other is the same store seen from elsewhere, such as another process.
	Other journal.Store
	Crash func(id string, mode journal.CrashMode, r *rand.Rand)
	// HoldsText says that the store shows the text of open items only when it is
	// stored, which takes a moment.
	HoldsText bool
}

// Run tests a version. It calls open for each test, within a synctest bubble.
func Run(t *testing.T, open func(t *testing.T, o Options) Harness) {
	for _, test := range []struct {
		name string
		f    func(*env)
	}{
		{"AppendNumbersWithoutGaps", appendNumbersWithoutGaps},
		{"RecordsReadBackAsGiven", recordsReadBackAsGiven},
		{"BodiesBecomeOneLine", bodiesBecomeOneLine},
		{"VisibleOnlyWhenDurable", visibleOnlyWhenDurable},
		{"SlowSyncBlocksNothing", slowSyncBlocksNothing},
		{"BatchIsVisibleAsOne", batchIsVisibleAsOne},
		{"NextEndsWithContext", nextEndsWithContext},
		{"ReaderBeyondTheEndWaits", readerBeyondTheEndWaits},
		{"FollowSeesEverythingOnce", followSeesEverythingOnce},
		{"ItemsAreVisibleAtOnce", itemsAreVisibleAtOnce},
		{"LateReaderGetsOneChunk", lateReaderGetsOneChunk},
		{"ItemsOfAScopeFollowEachOther", itemsOfAScopeFollowEachOther},
		{"BytesGoWhenTheRecordComes", bytesGoWhenTheRecordComes},
		{"PrefixClosesAll", prefixClosesAll},
		{"LateWritesAreRefused", lateWritesAreRefused},
		{"SealedScopeKeepsWhatItHas", sealedScopeKeepsWhatItHas},
		{"BytesAreKept", bytesAreKept},
		{"LargeItemLosesItsMiddle", largeItemLosesItsMiddle},
		{"FailedSyncShowsUnsaved", failedSyncShowsUnsaved},
		{"FailedJournalKeepsWhatWasSaved", failedJournalKeepsWhatWasSaved},
		{"CloseMakesDurable", closeMakesDurable},
		{"ReadersFinishAfterClose", readersFinishAfterClose},
		{"ClosedTakesNothing", closedTakesNothing},
		{"ReopenContinues", reopenContinues},
		{"OpenItemsSurviveReopen", openItemsSurviveReopen},
		{"CrashKeepsWhatWasSeen", crashKeepsWhatWasSeen},
		{"CrashLeavesNoPartOfABatch", crashLeavesNoPartOfABatch},
		{"KillKeepsProgress", killKeepsProgress},
		{"PowerCutKeepsWhatIsASecondOld", powerCutKeepsWhatIsASecondOld},
		{"DeadJournalIsDead", deadJournalIsDead},
		{"SecondWriterWaits", secondWriterWaits},
		{"SecondWriterIsRefused", secondWriterIsRefused},
		{"SecondWriterGivesUp", secondWriterGivesUp},
		{"CheckpointComesBack", checkpointComesBack},
		{"CheckpointNeedsVisibleRecord", checkpointNeedsVisibleRecord},
		{"CreateTwice", createTwice},
		{"CreateRefusesBadIDs", createRefusesBadIDs},
		{"NotFound", notFound},
		{"ListKnowsAll", listKnowsAll},
		{"ArchivePutsAside", archivePutsAside},
		{"DeleteRemoves", deleteRemoves},
		{"ArchiveAndDeleteRefuseOpen", archiveAndDeleteRefuseOpen},
		{"ViewReadsBesideTheWriter", viewReadsBesideTheWriter},
		{"ViewTail", viewTail},
		{"ViewFollows", viewFollows},
		{"ViewFollowsReopened", viewFollowsReopened},
		{"ViewLast", viewLast},
		{"RepairOfTheUndamaged", repairOfTheUndamaged},
		{"OwnerIsKnown", ownerIsKnown},
		{"SetAsideRemovesRecords", setAsideRemovesRecords},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &env{T: t, id: newID()}
				e.Harness = open(t, Options{SyncDelay: e.delay, SyncError: e.fault})
				test.f(e)
			})
		})
	}
}

func newID() string { return string(protocol.NewConversationID(time.Now())) }

// env is what one test works with.
type env struct {
	*testing.T
	Harness
	id       string
	syncTime time.Duration // of each sync; change it only while nothing syncs
	syncErr  error         // the same
}

func (e *env) delay() time.Duration { return e.syncTime }
func (e *env) fault() error         { return e.syncErr }

func (e *env) create() journal.Journal {
	e.Helper()
	j, err := e.Store.Create(e.Context(), e.id, time.Now())
	e.must(err)
	return j
}

func (e *env) open() journal.Journal {
	e.Helper()
	j, err := e.Other.Open(e.Context(), e.id)
	e.must(err)
	return j
}

func (e *env) openItems(r journal.Reader) []journal.Chunk {
	e.Helper()
	chunks, err := r.OpenItems(e.Context())
	e.must(err)
	return chunks
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// settle waits until every sync is over.
func (e *env) settle() {
	if e.syncTime > 0 {
		time.Sleep(2 * e.syncTime)
	}
	synctest.Wait()
}

// settleText waits until text that was written may be seen.
func (e *env) settleText() {
	if e.HoldsText {
		e.sleep(time.Second)
	}
}

func (e *env) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (e *env) durable(j journal.Journal, want uint64) {
	e.Helper()
	if got, err := j.Durable(); got != want || err != nil {
		e.Fatalf("Durable = %d, %v, want %d", got, err, want)
	}
}

func (e *env) read(j interface {
	Read(context.Context, uint64, int) ([]journal.Record, error)
}, after uint64, limit int,
) []journal.Record {
	e.Helper()
	recs, err := j.Read(e.Context(), after, limit)
	e.must(err)
	return recs
}

// next returns what a reader has now; it fails the test if there is nothing.
func (e *env) next(r journal.Follower) ([]journal.Record, []journal.Chunk) {
	e.Helper()
	recs, chunks, err := tryNext(e.Context(), r)
	e.must(err)
	return recs, chunks
}

// nothing checks that a reader has nothing new.
func (e *env) nothing(r journal.Follower) {
	e.Helper()
	recs, chunks, err := tryNext(e.Context(), r)
	if !errors.Is(err, context.DeadlineExceeded) {
		e.Fatalf("Next = %v, %v, %v, want nothing", kinds(recs), chunks, err)
	}
}

// tryNext waits for no longer than a moment of the bubble's time.
func tryNext(ctx context.Context, r journal.Follower) ([]journal.Record, []journal.Chunk, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Microsecond)
	defer cancel()
	return r.Next(ctx)
}

func entry(kind string, n int) journal.Entry {
	return journal.Entry{Turn: n, Kind: kind, Body: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
}

func closing(kind, item string) journal.Entry {
	return journal.Entry{Turn: 1, Kind: kind, Body: json.RawMessage(`{}`), Closes: item}
}

func chunk(item, tag string, offset int64, text string) journal.Chunk {
	return journal.Chunk{Item: item, Tag: tag, Offset: offset, Text: text}
}

func kinds(recs []journal.Record) []string {
	var all []string
	for _, r := range recs {
		all = append(all, fmt.Sprintf("%d:%s", r.Seq, r.Kind))
	}
	return all
}

func (e *env) equal(what string, got, want any) {
	e.Helper()
	g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want)
	if g != w {
		e.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}
