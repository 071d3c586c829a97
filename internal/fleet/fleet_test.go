package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
)

func nodes(count int) []config.Document {
	docs := make([]config.Document, count)
	for i := range docs {
		docs[i].Node = v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: fmt.Sprintf("w%02d", i)}}
	}
	return docs
}

func TestThreeOfTwentyFailInTheirOwnWay(t *testing.T) {
	refused := errors.New("connection refused")
	results := fleet.Run(t.Context(), nodes(20), 4, func(_ context.Context, doc config.Document) (string, error) {
		switch doc.Node.Metadata.Name {
		case "w03":
			return "", refused
		case "w07":
			panic("index out of range")
		case "w19":
			return "half", errors.New("rolled back\nlast log line")
		}
		return "done " + doc.Node.Metadata.Name, nil
	})
	for i, r := range results {
		if want := fmt.Sprintf("w%02d", i); r.Name() != want {
			t.Fatalf("result %d is of %s", i, r.Name())
		}
		if r.Err == nil && r.Value != "done "+r.Name() {
			t.Errorf("%s: value %q", r.Name(), r.Value)
		}
	}
	if results[19].Value != "half" {
		t.Error("what is known of a failed node was dropped")
	}
	err := fleet.Failures(results)
	var failed *fleet.Error
	var panicked *fleet.PanicError
	switch {
	case !errors.As(err, &failed):
		t.Fatalf("error = %v (%T), want a %T", err, err, failed)
	case len(failed.Failed) != 3:
		t.Fatalf("len(failed.Failed) = %v, want 3: %+v", len(failed.Failed), failed.Failed)
	case !errors.Is(err, refused):
		t.Fatalf("error = %v, want %v", err, refused)
	case !errors.As(err, &panicked):
		t.Fatalf("error = %v (%T), want a %T; got %v", err, err, panicked, err)
	}
	text := err.Error()
	if !strings.HasPrefix(text,
		"3 of 20 nodes failed:\n  w03: connection refused\n  w07: swdt has a bug (index out of range)") ||
		!strings.Contains(text, "\n  w19: rolled back\n    last log line") {
		t.Fatalf("got %s", text)
	}
}

func TestNoFailureIsNoError(t *testing.T) {
	results := fleet.Run(t.Context(), nodes(3), 0, func(context.Context, config.Document) (int,
		error) {
		return 1, nil
	})
	if err := fleet.Failures(results); err != nil {
		t.Fatal(err)
	}
}

func TestASingleNodesErrorIsNotWrappedInASummary(t *testing.T) {
	results := fleet.Run(t.Context(), nodes(1), 0, func(context.Context, config.Document) (int,
		error) {
		return 0, errors.New("why")
	})
	if got := fleet.Failures(results).Error(); got != "w00: why" {
		t.Fatalf("got %q", got)
	}
}

func TestAtMostSoManyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		begun := time.Now()
		fleet.Run(t.Context(), nodes(20), 5, func(context.Context, config.Document) (int, error) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			return 0, nil
		})
		if most.Load() != 5 || time.Since(begun) != 4*time.Second {
			t.Fatalf("%d at a time, %v", most.Load(), time.Since(begun))
		}
	})
}

func TestCancelledFleetDoesNotBegin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	results := fleet.Run(ctx, nodes(5), 1, func(ctx context.Context, _ config.Document) (int, error) {
		cancel()
		return 1, nil
	})
	if results[0].Err != nil {
		t.Fatal(results[0].Err)
	}
	for _, r := range results[1:] {
		if !errors.Is(r.Err, context.Canceled) {
			t.Errorf("%s: %v", r.Name(), r.Err)
		}
	}
}
