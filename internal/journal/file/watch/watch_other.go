//go:build !linux

package watch

// A notifier does not exist on this system: all files are polled.
type notifier struct{}

func newNotifier(*Watcher) *notifier { return nil }

func (n *notifier) add(string) bool { return false }

func (n *notifier) remove(string) {}

func (n *notifier) close() {}
