package sandbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// program386 writes a program that makes a datagram socket by the calls of the
// 32-bit interface, and ends with 0 if it got one.
func program386(tb testing.TB, w *world) string {
	tb.Helper()
	code := []byte{
		0xb8, 0x67, 0x01, 0, 0, // mov eax, 359: socket
		0xbb, 2, 0, 0, 0, // mov ebx, AF_INET
		0xb9, 2, 0, 0, 0, // mov ecx, SOCK_DGRAM
		0x31, 0xd2, // xor edx, edx
		0xcd, 0x80, // int 0x80
		0xc1, 0xe8, 31, // shr eax, 31: 1 if negative
		0x89, 0xc3, // mov ebx, eax
		0xb8, 1, 0, 0, 0, // mov eax, 1: exit
		0xcd, 0x80, // int 0x80
	}
	const base, head = 0x08048000, 52 + 32
	size := uint32(head + len(code))
	file := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	half := func(v uint16) { file = binary.LittleEndian.AppendUint16(file, v) }
	word := func(v uint32) { file = binary.LittleEndian.AppendUint32(file, v) }
	half(2) // executable
	half(3) // i386
	for _, v := range []uint32{1, base + head, 52, 0, 0} {
		word(v)
	}
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		half(v)
	}
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} {
		word(v)
	}
	name := filepath.Join(w.base, "program386")
	must(tb, os.WriteFile(name, append(file, code...), 0o755))
	return name
}
