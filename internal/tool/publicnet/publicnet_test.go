package publicnet

import (
	"net/netip"
	"strings"
	"testing"
)

// What is not on the public internet is not reached, in whatever form it is written.
func TestPublicAddresses(t *testing.T) {
	for _, s := range strings.Fields(`
		0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.8.9.10 169.254.169.254 172.16.0.1 172.31.255.255
		192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
		:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:100.64.0.1 ::ffff:0:10.0.0.1
		64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b::100.64.1.1 64:ff9b:1::1.1.1.1 64:ff9b::1:1.1.1.1
		100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2002:101:101::1 3fff::1
		4000::1 5f00::1 fc00::1 fd12::1 fe80::1 fe80::1%eth0 2606:4700::1%eth0 fec0::1 ff02::1`) {
		if IsPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s counts as public", s)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("no address counts as public")
	}
	for _, s := range strings.Fields(`1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.32.0.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255
		::ffff:1.1.1.1 64:ff9b::1.1.1.1 2606:4700::1111 2001:200::1 2a00:1450::1 3ffe::1`) {
		if !IsPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s does not count as public", s)
		}
	}
}
