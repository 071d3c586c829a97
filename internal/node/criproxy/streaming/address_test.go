package streaming

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestURLsThatARuntimeNames(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:49152/exec/T0ken_-x":    "127.0.0.1:49152 /exec/T0ken_-x",
		"http://[::1]:10010/attach/abc":           "[::1]:10010 /attach/abc",
		"http://10.1.2.3:10010/portforward/a?b=c": "10.1.2.3:10010 /portforward/a?b=c",
		"http://[2001:db8::5]:1/exec/a%2Fb":       "[2001:db8::5]:1 /exec/a%2Fb",
	} {
		got, err := parse(text)
		if err != nil || got.address.String()+" "+got.path != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}

// hostile are URLs that a runtime must not make anyone connect to.
var hostile = []string{
	"", "/exec/token", "exec/token", "http:///exec/token", "127.0.0.1:80/exec/token",
	"https://127.0.0.1:1/exec/token", "ftp://127.0.0.1:1/x", "file:///etc/passwd", "HTTP:opaque",
	"unix:///run/containerd.sock", "http://user@127.0.0.1:1/x", "http://user:secret@127.0.0.1:1/x",
	"http://169.254.169.254:80/latest/meta-data", "http://[fe80::1]:80/x", "http://[fe80::1%25eth0]:80/x",
	"http://[::ffff:169.254.169.254]:80/x", "http://0.0.0.0:80/x", "http://[::]:80/x", "http://224.0.0.1:80/x",
	"http://localhost:80/x", "http://metadata.google.internal:80/x", "http://127.0.0.1/x", "http://127.0.0.1:0/x",
	"http://127.0.0.1:65536/x", "http://127.0.0.1:-1/x", "http://127.1:80/x", "http://2130706433:80/x",
	"http://0x7f.0.0.1:80/x", "http://127.0.0.1:80", "http://127.0.0.1:80?x", "http://127.0.0.1:80/x#y",
	"http://127.0.0.1:80/x y", "http://127.0.0.1:80/x\r\nHost: other", "http://127.0.0.1:80/\x1b[2J",
	"http://127.0.0.1:80/\x00", "http://127.0.0.1:80/\u202e", "http://127.0.0.1:80/%zz",
	"http://127.0.0.1:80/" + strings.Repeat("x", longestURL),
}

func TestHostileURLsAreRefused(t *testing.T) {
	for _, text := range hostile {
		got, err := parse(text)
		var refused *AddressError
		if !errors.As(err, &refused) {
			t.Errorf("%q: %v, %v", text, got, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\x1b\r\n\x00\u202e") || len(err.Error()) > 2000 {
			t.Errorf("%q: the error's text is %q", text, err)
		}
	}
}

// A client that parses the new URL requests the path that take expects, and the request reaches the
// place that the runtime named.
func FuzzURL(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Add("http://127.0.0.1:49152/exec/T0ken_-x?a=%20&b")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse(text)
		if err != nil {
			return
		}
		if !got.address.IsValid() || got.address.Addr().IsLinkLocalUnicast() {
			t.Fatalf("%q: address %v", text, got.address)
		}
		if !strings.HasPrefix(got.path, "/") || strings.ContainsFunc(got.path, func(r rune) bool {
			return r <= ' ' || r >= 0x7f
		}) {
			t.Fatalf("%q: path %q", text, got.path)
		}
		u, err := url.Parse("http://127.0.0.1:1/SECRET" + got.path)
		if err != nil {
			t.Fatal(err)
		}
		request, err := readRequest(strings.NewReader("GET " + u.RequestURI() + " HTTP/1.1\r\n\r\n"))
		if err != nil || request.secret != "SECRET" || request.path != got.path {
			t.Fatalf("%q: a client requests %q of %q: %v", text, request.path, got.path, err)
		}
	})
}
