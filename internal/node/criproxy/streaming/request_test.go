package streaming

import (
	"io"
	"net/netip"
	"strings"
	"testing"
)

func TestARequestIsPassedOnForTheNode(t *testing.T) {
	r, err := readRequest(strings.NewReader("POST /S/exec/token HTTP/1.1\r\nhost: 127.0.0.1:40000\r\n" +
		"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Host: kept\r\nOrigin: http://127.0.0.1:40000\r\n\r\n\x80\x03bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if r.secret != "S" {
		t.Errorf("secret %q", r.secret)
	}
	got, err := io.ReadAll(r.bytesTo(target{netip.MustParseAddrPort("127.0.0.1:49152"), "/exec/token"}))
	want := "POST /exec/token HTTP/1.1\r\nHost: 127.0.0.1:49152\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" +
		"X-Host: kept\r\nOrigin: http://127.0.0.1:40000\r\n\r\n\x80\x03bytes"
	if err != nil || string(got) != want {
		t.Errorf("passed on %q, %v\nwant %q", got, err, want)
	}
}

func TestOtherRequestsAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "GET", "GET /\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET /secret HTTP/1.1\r\n\r\n", "GET x/y HTTP/1.1\r\n\r\n",
		"GET http://127.0.0.1/s/exec/t HTTP/1.1\r\n\r\n", "GET /s/x HTTP/2.0\r\n\r\n", "GET  /s/x HTTP/1.1\r\n\r\n",
		"GET /s/x HTTP/1.1\r\nHost: x\r\n", "GET /s/x HTTP/1.1\r\nA: b\rC: d\r\n\r\n", "\x16\x03\x01\x02\x00",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /s/x HTTP/1.1\r\nA: " + strings.Repeat("x", longestHead) + "\r\n\r\n",
	} {
		if r, err := readRequest(strings.NewReader(text)); err == nil {
			t.Errorf("%.80q: %+v", text, r)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("GET /s/exec/t HTTP/1.1\r\nHost: x\r\n\r\nrest")
	f.Add("GET /s/exec/t HTTP/1.1\nHost : x\n\n")
	t := target{netip.MustParseAddrPort("127.0.0.1:1"), "/exec/t"}
	f.Fuzz(func(test *testing.T, text string) {
		r, err := readRequest(strings.NewReader(text))
		if err != nil {
			return
		}
		passed, err := io.ReadAll(r.bytesTo(t))
		if err != nil {
			test.Fatal(err)
		}
		head, _, _ := strings.Cut(string(passed), "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		if !strings.HasSuffix(lines[0], " /exec/t "+r.version) || lines[1] != "Host: 127.0.0.1:1" {
			test.Fatalf("%q: passed on %q", text, head)
		}
		for _, one := range lines[2:] {
			if name, _, _ := strings.Cut(one, ":"); strings.EqualFold(strings.TrimSpace(name), "host") {
				test.Fatalf("%q: a second Host in %q", text, head)
			}
		}
	})
}
