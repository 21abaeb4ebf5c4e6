package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrStdoutClosed is why a context of WhileRead has ended.
var ErrStdoutClosed = errors.New("stdout was closed")

// WhileRead ends the context when the reader of a pipe has left. A write would
// tell, but the next one may be far away.
func WhileRead(ctx context.Context, out io.Writer) context.Context {
	f, ok := out.(*os.File)
	if !ok {
		return ctx
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // for as long as the program runs
		fds := []unix.PollFd{{Fd: int32(f.Fd())}} // no events: only what cannot be asked for
		for {
			switch n, err := unix.Poll(fds, -1); {
			case errors.Is(err, unix.EINTR):
			case err != nil:
				return
			case n > 0:
				cancel(ErrStdoutClosed)
				return
			}
		}
	}()
	return ctx
}
