package sockdiag

import "golang.org/x/sys/unix"

// Own are the local sockets that a command listens on, by their inodes. A number may be used again
// when its socket is closed, so that this is no proof: that is what the kernel says of a connection.
type Own chan map[uint32]bool // holds one

// maxOwn bounds what is remembered; with more the kernel is not asked any more.
const maxOwn = 4096

// NewOwn returns an empty set.
func NewOwn() Own {
	s := make(Own, 1)
	s <- map[uint32]bool{}
	return s
}

// Add notes that a socket is listened on.
func (s Own) Add(socket int) {
	var st unix.Stat_t
	err := unix.Fstat(socket, &st)
	inodes := <-s
	if err == nil && len(inodes) <= maxOwn {
		inodes[uint32(st.Ino)] = true
	}
	s <- inodes
}

// OthersListen reports whether the kernel knows listeners that match, and none of them is one of ours.
func (s Own) OthersListen(match func(Listener) bool) bool {
	list, err := Listeners()
	inodes := <-s
	defer func() { s <- inodes }()
	if err != nil || len(inodes) > maxOwn {
		return false
	}
	found := false
	for _, l := range list {
		if !match(l) {
			continue
		}
		if inodes[l.Inode] {
			return false
		}
		found = true
	}
	return found
}
