package capture_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/imitation/pktmonexe"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// ended runs a capture that stops as soon as the node captures, and returns its result.
func ended(t *testing.T, n *nodetest.Node, o capture.Options) (capture.Result, error) {
	t.Helper()
	stop := make(chan struct{})
	o.Stop, o.Begun = stop, func() { close(stop) }
	if o.Holder == "" {
		o.Holder = "tester"
	}
	return capture.Run(t.Context(), n.Node, o)
}

func fetched(t *testing.T, n *nodetest.Node, result capture.Result) capture.Export {
	t.Helper()
	e, err := capture.Fetch(t.Context(), n.Node, result, t.TempDir(), ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if err := capture.Forget(t.Context(), n.Node, result.ID); err != nil {
		t.Fatal(err)
	}
	return e
}

func addresses(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// A capture on two nodes is merged into one file: its interfaces, counts, order and the
// reasons of drops.
func TestTwoNodesAsOne(t *testing.T) {
	var parts []capture.Part
	for _, name := range []string{"win-1", "win-2"} {
		n := nodetest.Start(t, name, simulated.Options{})
		result, err := ended(t, n, capture.Options{Addresses: addresses("192.168.15.167/32"), MaxSize: 1 << 20})
		switch {
		case err != nil:
			t.Fatalf("unexpected error: %v", err)
		case result.Reason != "it was released":
			t.Fatalf("result.Reason = %q, want %q", result.Reason, "it was released")
		case !result.Exportable:
			t.Fatalf("result.Exportable = false, want true; %+v, %v", result, err)
		}
		parts = append(parts, capture.Part{Export: fetched(t, n, result), Names: capture.Names{Node: name,
			Pods: capture.ByAddress([]hns.Pod{{Namespace: "default", Name: "burner",
				IPs: []string{"192.168.15.167"}}})}})
		list, err := n.Files.List(layout.Captures)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range list {
			if name := filepath.Base(strings.ReplaceAll(file.Path, `\`, "/")); name != "lock" &&
				name != "journal.json" && !strings.HasSuffix(name, ".keep") {
				t.Errorf("left on the node: %s", file.Path)
			}
		}
	}
	parts[1].Pods = nil
	var out bytes.Buffer
	count, err := capture.Merge(&out, parts...)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case count.Packets != 12:
		t.Errorf("count.Packets = %v, want 12", count.Packets)
	case count.Drops != 2:
		t.Errorf("count.Drops = %v, want 2", count.Drops)
	case count.Interfaces["win-1/default/burner"] != 6:
		t.Errorf("count.Interfaces[\"win-1/default/burner\"] = %v, want 6", count.Interfaces["win-1/default/burner"])
	case count.Interfaces["win-2"] != 6:
		t.Errorf("count.Interfaces[\"win-2\"] = %v, want 6", count.Interfaces["win-2"])
	case len(count.Interfaces) != 2:
		t.Errorf("len(count.Interfaces) = %v, want 2; %+v", len(count.Interfaces), count)
	}
	r := pcapng.NewReader(&out)
	var comments []string
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Comment != "" {
			comments = append(comments, p.Comment)
		}
	}
	const reason = "dropped: INET: transport endpoint was not found (component 12, at 0xE000460A)"
	if !slices.Equal(comments, []string{reason, reason}) {
		t.Errorf("comments %q", comments)
	}
}

// The packets are fetched round by round while the node captures, and none stay on the node.
// A capture may end before the caller has seen that it began. Its packets are fetched
// nevertheless.
func TestCaptureThatEndsAtOnce(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	for range 5 {
		packets := 0
		_, err := capture.Run(t.Context(), n.Node, capture.Options{
			Round: time.Minute, For: time.Nanosecond, Holder: "tester", Folder: t.TempDir(),
			Fetched: func(r capture.Round) error {
				count, err := capture.Merge(io.Discard, capture.Part{Export: r.Export})
				packets += count.Packets
				return err
			},
		})
		if err != nil || packets != pktmonexe.Packets {
			t.Fatalf("in rounds: %d packets, %v", packets, err)
		}
		_, err = capture.Run(t.Context(), n.Node, capture.Options{
			Live: true, For: time.Nanosecond, Holder: "tester", Packet: func(capture.Packet) error { return nil },
		})
		if err != nil {
			t.Fatalf("live: %v", err)
		}
	}
	awaitClean(t, n)
}

// A capture that is stopped before the node has begun it has no packets, and the error
// reports that.
func TestCaptureReleasedBeforeItBegan(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	letGo := make(chan struct{})
	var once sync.Once
	n.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		guardians := op.Service == layout.CaptureService
		switch {
		case op.Kind == simulated.OpUnlock && op.Phase == simulated.After &&
			strings.EqualFold(op.Target, layout.CaptureLock):
			once.Do(func() { close(letGo) })
		case op.Kind == simulated.OpProcessRun && op.Phase == simulated.Before && guardians:
			<-letGo
		}
		return simulated.Continue()
	})
	stop := make(chan struct{})
	close(stop)
	result, err := capture.Run(t.Context(), n.Node, capture.Options{Stop: stop, Holder: "tester", MaxSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var none *capture.FailedError
	if _, err := capture.Fetch(t.Context(), n.Node, result, t.TempDir(), ui.Discard{}); !errors.As(err, &none) ||
		!strings.Contains(err.Error(), "it was released before it began") {
		t.Errorf("%v", err)
	}
	awaitClean(t, n)
}

// If fetched packets cannot be written, the capture ends with that error.
// From a log without packets, pktmon may make an empty file or none.
func TestLiveCapture(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	stop := make(chan struct{})
	var packets []capture.Packet
	result, err := capture.Run(t.Context(), n.Node, capture.Options{
		Live: true, Drops: true, Holder: "tester", Stop: stop,
		Packet: func(p capture.Packet) error {
			if packets = append(packets, p); len(packets) == 3 {
				close(stop)
			}
			return nil
		},
	})
	switch {
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case len(packets) < 3:
		t.Fatalf("len(packets) = %v, want at least 3: %+v", len(packets), packets)
	case packets[0].DropReason != "INET: transport endpoint was not found":
		t.Fatalf("packets[0].DropReason = %q, want %q", packets[0].DropReason, "INET: transport endpoint was not found")
	case packets[1].DropReason != "Filtered VLAN":
		t.Fatalf("packets[1].DropReason = %q, want %q; %+v, %v: %+v", packets[1].DropReason, "Filtered VLAN",
			result, err, packets)
	}
}

// If the packets of a live capture cannot be printed, the capture ends with that error.
func TestLiveCaptureEndsIfPacketsCannotBePrinted(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	gone := errors.New("stdout is gone")
	_, err := capture.Run(t.Context(), n.Node, capture.Options{
		Live: true, Holder: "tester", Packet: func(capture.Packet) error { return gone },
	})
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	awaitClean(t, n)
}

func TestForeignCaptureIsRefusedOrEnded(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	run(t, n, "start", "--capture", "--file-name", `C:\theirs.etl`)
	_, err := ended(t, n, capture.Options{})
	var busy *capture.BusyError
	switch {
	case !errors.As(err, &busy):
		t.Fatalf("error = %v (%T), want a %T", err, err, busy)
	case !strings.Contains(err.Error(), "theirs.etl"):
		t.Fatalf("err.Error() lacks %q:\n%s", "theirs.etl", err.Error())
	case !strings.HasSuffix(err.Error(), "--force ends its capture and removes its filters"):
		t.Fatalf("err.Error() = %q, want the suffix %q; %v", err.Error(),
			"--force ends its capture and removes its filters", err)
	}
	if _, err := ended(t, n, capture.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
	awaitClean(t, n)
}

func TestAnotherSwdtCaptures(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	begun, first := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := capture.Run(ctx, n.Node, capture.Options{Holder: "swdt on a desk", Begun: func() { close(begun) }})
		first <- err
	}()
	<-begun
	if _, err := ended(t, n, capture.Options{}); !errors.Is(err, fault.ErrInUse) ||
		!strings.Contains(err.Error(), "swdt on a desk") {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	awaitClean(t, n)
}

// A connection that is cut, or an agent that is killed, ends the capture.
func TestTheConnectionIsCut(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	_, err := capture.Run(t.Context(), n.Node, capture.Options{Holder: "tester", Begun: n.Cut})
	if err == nil {
		t.Fatal("the capture is said to have gone well")
	}
	awaitClean(t, n)
}

func TestOlderWindowsReturnsItsLog(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	n.Machine.WriteFile(`C:\Windows\Temp\pktmon-build.txt`, []byte("17763"))
	result, err := ended(t, n, capture.Options{MaxSize: 1 << 20})
	if err != nil || result.Exportable {
		t.Fatalf("%+v, %v", result, err)
	}
	e := fetched(t, n, result)
	switch info, err := os.Stat(e.Log); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case info.Size() == 0:
		t.Errorf("info.Size() is wrong; %+v, %v", e, err)
	case e.Packets != "":
		t.Errorf("e.Packets = %q, want %q; %+v, %v", e.Packets, "", e, err)
	}
	if _, err := ended(t, n, capture.Options{Round: time.Second}); !errors.Is(err, fault.ErrNotSupported) ||
		!strings.Contains(err.Error(), "20348") {
		t.Errorf("in rounds: %v", err)
	}
	if _, err := ended(t, n, capture.Options{Live: true}); !errors.Is(err, fault.ErrNotSupported) {
		t.Errorf("live: %v", err)
	}
	if text, err := capture.Counters(t.Context(), n.Processes, false); err != nil || text == "" {
		t.Errorf("counters: %q, %v", text, err)
	}
	if _, err := capture.Counters(t.Context(), n.Processes, true); !errors.Is(err, fault.ErrNotSupported) {
		t.Errorf("counters as JSON: %v", err)
	}
}

func TestNoPktmon(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	if err := n.Files.Remove(`C:\Windows\System32\pktmon.exe`); err != nil {
		t.Fatal(err)
	}
	var none *capture.NoPktmonError
	if _, err := ended(t, n, capture.Options{}); !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
}

func TestAddressesHaveTheirOwners(t *testing.T) {
	known := hns.Known{
		Here: []hns.Pod{{Namespace: "a", Name: "x", IPs: []string{"10.0.0.1", "fd00::1"}},
			{Namespace: "a", Name: "host"}},
		Services: []hns.Service{{Namespace: "a", Name: "s", IPs: []string{"10.96.0.1"}}}, Cluster: true,
	}
	state := hns.State{
		LoadBalancers: []hns.LoadBalancer{{VIPs: []string{"10.96.0.1"}, Endpoints: []string{"e"}},
			{VIPs: []string{"10.96.0.2"}, Endpoints: []string{"f"}}},
		Endpoints: []hns.Endpoint{{ID: "e", Addresses: []hns.Address{{IP: "10.0.0.1"}}},
			{ID: "f", Addresses: []hns.Address{{IP: "10.0.0.2"}}}},
	}
	pods, err := capture.PodAddresses(known, []string{"a/x"})
	if err != nil || !slices.Equal(pods, addresses("10.0.0.1/32", "fd00::1/128")) {
		t.Errorf("%v, %v", pods, err)
	}
	services, err := capture.ServiceAddresses(known, []hns.State{state}, []string{"a/s"})
	if err != nil || !slices.Equal(services, addresses("10.96.0.1/32", "10.0.0.1/32")) {
		t.Errorf("%v, %v", services, err)
	}
	var unknown *capture.UnknownError
	if _, err := capture.PodAddresses(known, []string{"a/x", "a/host", "b/x"}); !errors.As(err, &unknown) ||
		!slices.Equal(unknown.Names, []string{"a/host", "b/x"}) {
		t.Errorf("%v", err)
	}
}

// run runs the node's pktmon.
func run(t *testing.T, n *nodetest.Node, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := n.Machine.Process("somebody").Processes.Run(t.Context(),
		platform.Command{Path: "pktmon.exe", Args: args, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// awaitClean waits until no capture runs on the node and no filter is left.
func awaitClean(t *testing.T, n *nodetest.Node) {
	t.Helper()
	for {
		state := run(t, n, "status") + run(t, n, "filter", "list")
		if strings.Contains(state, "is not running") && strings.Contains(state, "None") {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("the node captures: %s", state)
		}
	}
}

// Packets that one session captured and did not fetch can be fetched by the next one.
func TestACaptureThatIsFetchedLater(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	var nothing *capture.NothingLeftError
	if _, err := capture.FindUnfetched(t.Context(), n.Node, ""); !errors.As(err, &nothing) {
		t.Fatalf("on a node that never captured: %v", err)
	}
	result, err := ended(t, n, capture.Options{Addresses: addresses("192.168.15.167/32"), MaxSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", result.ID} {
		switch left, err := capture.FindUnfetched(t.Context(), n.Node, id); {
		case err != nil:
			t.Fatalf("unexpected error: %v", err)
		case left.ID != result.ID:
			t.Fatalf("left.ID = %v, want %v", left.ID, result.ID)
		case left.Bytes == 0:
			t.Fatalf("left.Bytes = 0; %q: %+v, %v", id, left, err)
		}
	}
	left, err := capture.FindUnfetched(t.Context(), n.Node, result.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := left.Reserve(t.Context(), n.Node); !errors.Is(err, fault.ErrInUse) {
		t.Fatalf("held by the session that captured: %v", err)
	}
	n.Cut()
	if err := n.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Settle() // the session that was cut holds the capture until the agent has left it
	found, release, err := left.Reserve(t.Context(), n.Node)
	if err != nil {
		t.Fatal(err)
	}
	if e := fetched(t, n, found); e.Packets == "" || e.Drops == "" {
		t.Errorf("%+v", e)
	}
	release()
	if _, err := capture.FindUnfetched(t.Context(), n.Node, ""); !errors.As(err, &nothing) {
		t.Errorf("after it was fetched: %v", err)
	}
}
