package capture_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/platform/imitation/pktmonexe"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

func TestACaptureThatIsFetchedWhileItGoesOn(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	stop := make(chan struct{})
	rounds, packets := 0, 0
	result, err := capture.Run(t.Context(), n.Node, capture.Options{
		Round: 100 * time.Millisecond, MaxSize: 1 << 20, Holder: "tester", Stop: stop, Folder: t.TempDir(),
		Fetched: func(r capture.Round) error {
			part := capture.Part{Names: capture.Names{Node: "win-1"}, Export: r.Export}
			count, err := capture.Merge(io.Discard, part)
			if count.Packets != pktmonexe.Packets || count.Drops != 2 {
				t.Errorf("round %d: %+v, %v", rounds, count, err)
			}
			packets += count.Packets
			if rounds++; rounds == 3 {
				close(stop)
			}
			return err
		},
	})
	switch {
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case result.Reason != "it was released":
		t.Fatalf("result.Reason = %q, want %q", result.Reason, "it was released")
	case rounds < 3:
		t.Fatalf("rounds = %v, want at least 3", rounds)
	case result.Rounds.Closed < rounds-2:
		t.Fatalf("result.Rounds.Closed = %v, want at least %v", result.Rounds.Closed, rounds-2)
	case packets != rounds*pktmonexe.Packets:
		t.Fatalf("packets = %v, want %v; %d rounds: %+v, %v", packets, rounds*pktmonexe.Packets, rounds, result, err)
	}
	awaitClean(t, n)
	list, err := n.Files.List(layout.Captures)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 { // the session's hold on the packets ends with the session
		t.Errorf("beside lock, journal and hold there are on the node %v", list)
	}
}

func TestCaptureEndsIfRoundsCannotBeWritten(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	gone := errors.New("stdout is gone")
	_, err := capture.Run(t.Context(), n.Node, capture.Options{
		Round: 100 * time.Millisecond, Holder: "tester", Folder: t.TempDir(),
		Fetched: func(capture.Round) error { return gone },
	})
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	awaitClean(t, n)
}

func TestRoundsOfNothing(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{})
	rounds := 0
	_, err := capture.Run(t.Context(), n.Node, capture.Options{
		Addresses: addresses("203.0.113.1/32"), Round: 100 * time.Millisecond, For: time.Second, Holder: "tester",
		Folder: t.TempDir(),
		Fetched: func(r capture.Round) error {
			if rounds++; r.Export.Packets != "" || r.Export.Drops != "" {
				t.Errorf("%+v", r)
			}
			return nil
		},
	})
	if err != nil || rounds < 2 {
		t.Fatalf("%d rounds, %v", rounds, err)
	}
	awaitClean(t, n)
}
