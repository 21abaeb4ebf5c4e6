package conversation

import (
	"github.com/fermata-agent/fermata/internal/fold"
	p "github.com/fermata-agent/fermata/protocol"
)

// checkpointEvery is how many bytes are recorded between two checkpoints, at
// least: as many as can be read back without anybody noticing. A long history is
// saved less often, so that saving costs the same for each byte recorded.
const checkpointEvery = 128 << 10

// checkpointDue reports whether a checkpoint is worth writing.
func (o *owner) checkpointDue() bool {
	return o.unsavedBytes >= max(checkpointEvery, o.checkpointBytes/2)
}

// checkpoint saves the state, if that is due and all of it is durable, so that
// opening need not read everything. It can be rebuilt: failing to write one does
// no harm.
func (o *owner) checkpoint() {
	if !o.checkpointDue() {
		return
	}
	seq := o.state.Seq
	if n, err := o.journal.Durable(); err != nil || p.Seq(n) < seq {
		return
	}
	data, err := o.state.Save()
	if err != nil {
		return
	}
	o.unsavedBytes, o.checkpointBytes = 0, int64(len(data))
	base, j, before, written := o.base, o.journal, o.checkpointWritten, make(chan struct{})
	o.checkpointWritten = written
	go func() { // one short write; the owner does not wait for the disk, but for this at its end
		defer close(written)
		if before != nil {
			<-before
		}
		_ = j.Checkpoint(base, uint64(seq), data)
	}()
}

// restore begins at the checkpoint, if there is one of this version's form, and
// returns its number.
func (o *owner) restore() uint64 {
	found := o.journal.Recovery()
	if found.Checkpoint == nil {
		return 0
	}
	state, err := fold.Restore(found.Checkpoint)
	if err != nil || state.Seq != p.Seq(found.CheckpointSeq) {
		return 0
	}
	o.state, o.checkpointBytes = state, int64(len(found.Checkpoint))
	return found.CheckpointSeq
}
