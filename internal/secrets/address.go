package secrets

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/fermata-agent/fermata/internal/regular"
)

// An Address is where a server listens that commands must not reach.
type Address struct {
	IP   []byte // of 4 or 16 bytes; nil: this machine, under each of its addresses
	Port uint16
}

// Plain returns the 4 bytes of an IPv4 address that is written as an IPv6 address.
func Plain(ip []byte) []byte {
	mapped := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}
	if rest, ok := bytes.CutPrefix(ip, mapped); ok && len(rest) == 4 {
		return rest
	}
	return ip
}

var addresses atomic.Int64 // that this process has registered

// Listen registers an address until forget is called, or this process ends. A server
// calls it before it accepts a connection, a client before it connects.
func (h Home) Listen(a Address) (forget func(), err error) {
	if h == "" {
		return func() {}, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("register port %d: %w", a.Port, err)
		}
	}()
	if err := os.MkdirAll(h.Dir(), 0o700); err != nil {
		return nil, err
	}
	h.Refuses(Address{Port: a.Port}, refusesNone) // removes what was left at this port
	name := fmt.Sprintf("%s%d-%d-%d", addressPrefix, a.Port, os.Getpid(), addresses.Add(1))
	fresh, entry := filepath.Join(h.Dir(), "."+name), filepath.Join(h.Dir(), name)
	// Not an os.File: that is closed when nothing refers to it.
	fd, err := openEntry(fresh, unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return nil, err
	}
	_, err = unix.Write(fd, []byte(hex.EncodeToString(Plain(a.IP))))
	if err == nil {
		err = lock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(fresh, entry) // whoever sees it finds it locked
	}
	if err != nil {
		_ = os.Remove(fresh)
		_ = unix.Close(fd)
		return nil, err
	}
	return sync.OnceFunc(func() {
		_ = os.Remove(entry)
		_ = unix.Close(fd)
	}), nil
}

func refusesNone([]byte) bool { return false }

// Refuses reports whether a command must not connect to an address, whose IP is Plain: a server has registered it. isOwn
// reports whether an IP address is one of this machine.
func (h Home) Refuses(to Address, isOwn func(ip []byte) bool) bool {
	entries, err := regular.ReadDir(h.Dir())
	if h == "" || err != nil {
		return false
	}
	prefix := addressPrefix + strconv.Itoa(int(to.Port)) + "-"
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		text, live := readAddress(filepath.Join(h.Dir(), e.Name()))
		ip, err := hex.DecodeString(text)
		if !live || err != nil {
			continue
		}
		if len(ip) == 0 && isOwn(to.IP) || len(ip) > 0 && (bytes.Equal(ip, to.IP) || isOwn(ip) && isOwn(to.IP)) {
			return true
		}
	}
	return false
}

// Ports lists the ports of all registered addresses.
func (h Home) Ports() []uint16 {
	entries, err := regular.ReadDir(h.Dir())
	if h == "" || err != nil {
		return nil
	}
	var list []uint16
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), addressPrefix)
		number, _, _ := strings.Cut(rest, "-")
		port, err := strconv.ParseUint(number, 10, 16)
		if !ok || err != nil {
			continue
		}
		if _, live := readAddress(filepath.Join(h.Dir(), e.Name())); live {
			list = append(list, uint16(port))
		}
	}
	return list
}

// readAddress reads an entry whose process lives; one of a dead process it removes.
func readAddress(entry string) (text string, live bool) {
	f, err := regular.Open(entry)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if lock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		_ = os.Remove(entry)
		return "", false
	}
	b := make([]byte, 64)
	n, _ := f.Read(b)
	return string(b[:n]), true
}
