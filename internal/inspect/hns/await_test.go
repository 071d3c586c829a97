package hns_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
)

// lateNetwork is a node on which a network appears at the third look.
type lateNetwork struct {
	agentv1.ComputeClient
	looks int
	never bool
}

func (l *lateNetwork) Objects(_ context.Context, r *agentv1.ComputeRequest,
	_ ...grpc.CallOption) (*agentv1.ComputeReply, error) {
	reply := &agentv1.ComputeReply{}
	if r.GetKind() != agentv1.ComputeKind_COMPUTE_KIND_NETWORKS {
		return reply, nil
	}
	l.looks++
	documents := []string{`{"ID":"A","Name":"nat","Type":"NAT"}`}
	if l.looks >= 3 && !l.never {
		documents = append(documents, `{"ID":"B","Name":"Calico","Type":"Overlay"}`)
	}
	for _, document := range documents {
		reply.Objects = append(reply.Objects, &agentv1.ComputeObject{Document: []byte(document)})
	}
	return reply, nil
}

func TestAwaitNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &lateNetwork{}
		var states []string
		keep := func(state string) { states = append(states, state) }
		found, err := hns.AwaitNetwork(t.Context(), node, "Calico", time.Minute, keep)
		if err != nil || found.Type != "Overlay" || len(states) != 2 || !strings.Contains(states[0], "it has nat") {
			t.Errorf("%+v, %v after %q", found, err, states)
		}
		_, err = hns.AwaitNetwork(t.Context(), &lateNetwork{never: true}, "Calico", time.Minute, func(string) {})
		var missing *hns.NoNetworkError
		if !errors.As(err, &missing) || missing.Name != "Calico" {
			t.Errorf("the error is %v", err)
		}
	})
}
