package netprobe_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swdt-dev/swdt/internal/proof/netprobe"
)

// pod is a probe that runs in this process.
type pod struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T) *pod {
	t.Helper()
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := netprobe.Run(context.Background(), in, out)
		out.Close()
		done <- err
	}()
	t.Cleanup(func() {
		requests.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &pod{in: requests, out: bufio.NewReader(answers)}
}

func (p *pod) ask(t *testing.T, request string) netprobe.Reply {
	t.Helper()
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		t.Fatal(err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var reply netprobe.Reply
	if err := json.Unmarshal(line, &reply); err != nil {
		t.Fatal(err)
	}
	return reply
}

func (p *pod) obey(t *testing.T, r netprobe.Request) netprobe.Reply {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return p.ask(t, string(text))
}

const port = 23081

func ports() []netprobe.Port {
	return []netprobe.Port{{Number: port, Protocol: "TCP"}, {Number: port, Protocol: "UDP"}}
}

func TestPodsReachEachOther(t *testing.T) {
	a, b := start(t), start(t)
	for i, p := range []*pod{a, b} {
		reply := p.obey(t, netprobe.Request{Serve: &netprobe.Serve{Name: string("ab"[i]),
			Address: "127.77.0." + string("12"[i]), Ports: ports()}})
		if diff := cmp.Diff(netprobe.Reply{Version: 1, Served: make([]netprobe.Served, 2)}, reply); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	silent, err := net.ListenPacket("udp", "127.77.0.3:23081")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	tcp, udp := ports()[0], ports()[1]
	icmp := netprobe.Port{Number: port, Protocol: "ICMP"}
	reply := a.obey(t, netprobe.Request{Round: &netprobe.Round{TimeoutMS: 3000, Targets: []netprobe.Target{
		{Port: tcp, Name: "b", Address: "127.77.0.2"}, {Port: udp, Name: "b", Address: "127.77.0.2"},
		{Port: tcp, Name: "c", Address: "127.77.0.2"}, {Port: tcp, Name: "c", Address: "127.77.0.4"},
		{Port: udp, Name: "c", Address: "127.77.0.3"}, {Port: udp, Name: "c", Address: "127.77.0.4"},
		{Port: icmp, Name: "c", Address: "127.77.0.4"}, {Port: tcp, Name: "c", Address: "nowhere"},
	}}})
	want := []netprobe.Result{
		{Outcome: netprobe.Connected, Seen: "127.77.0.1"}, {Outcome: netprobe.Connected, Seen: "127.77.0.1"},
		{Outcome: netprobe.Wrong}, {Outcome: netprobe.Refused},
		{Outcome: netprobe.Timeout}, {Outcome: netprobe.Refused},
		{Outcome: netprobe.Failed}, {Outcome: netprobe.Failed},
	}
	if diff := cmp.Diff(want, reply.Results, cmpopts.IgnoreFields(netprobe.Result{}, "MS", "Text")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A policy may name a port of SCTP, which Windows and the probe do not have: the probe serves its other ports.
func TestSCTPIsReportedAsUnsupported(t *testing.T) {
	reply := start(t).obey(t, netprobe.Request{Serve: &netprobe.Serve{Name: "a", Address: "127.77.1.1",
		Ports: []netprobe.Port{{Number: port, Protocol: "SCTP"}, {Number: port, Protocol: "TCP"}}}})
	want := []netprobe.Served{{Error: "the probe has no SCTP: unsupported operation", Unsupported: true}, {}}
	if diff := cmp.Diff(want, reply.Served); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A request that cannot be obeyed gets an error, and the next one is obeyed.
func TestWrongRequests(t *testing.T) {
	p := start(t)
	for request, want := range map[string]string{
		"hello":                             "read the request: ",
		"{}":                                "the request is empty",
		`{"round":{}}`:                      "the pod is not served yet",
		`{"serve":{"address":"x"}}`:         "the pod's address: ",
		`{"serve":{"address":"127.0.0.1"}}`: "the pod's name has 0 bytes",
	} {
		if reply := p.ask(t, request); !strings.HasPrefix(reply.Error, want) || reply.Version != 1 {
			t.Errorf("%s: %+v", request, reply)
		}
	}
	served := p.ask(t, `{"serve":{"address":"127.77.2.1","name":"a","ports":[{"port":0,"protocol":"TCP"}]}}`)
	if len(served.Served) != 1 || served.Served[0].Error != "0 is no port" {
		t.Errorf("%+v", served)
	}
	if reply := p.ask(t, `{"round":{"timeoutMs":999999}}`); !strings.HasPrefix(reply.Error, "the timeout is ") {
		t.Errorf("%+v", reply)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add(`{"serve":{"address":"127.77.3.1","name":"a","ports":[{"port":0,"protocol":"TCP"}]}}` + "\n" + `{"round":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "targets") || strings.Contains(text, "port") { // no traffic
			return
		}
		_ = netprobe.Run(t.Context(), strings.NewReader(text), io.Discard)
	})
}

// A load uses the CPU time that it reports, and bounds what it accepts.
func TestLoad(t *testing.T) {
	p := start(t)
	reply := p.obey(t, netprobe.Request{Load: &netprobe.Load{Threads: 1, MS: 200, Bytes: 20 << 20}})
	if reply.Error != "" || reply.Loaded == nil {
		t.Fatalf("%+v", reply)
	}
	if l := *reply.Loaded; l.CPUMS == 0 || l.WallMS < 200 || l.Bytes != 20<<20 {
		t.Errorf("%+v", l)
	}
	for _, wrong := range []netprobe.Load{{Threads: -1}, {Threads: 17}, {MS: -1}, {MS: 1 << 40}, {Bytes: -1}, {Bytes: 1 << 40}} {
		if reply := p.obey(t, netprobe.Request{Load: &wrong}); reply.Error == "" {
			t.Errorf("%+v is accepted: %+v", wrong, reply)
		}
	}
}
