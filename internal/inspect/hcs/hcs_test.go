package hcs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
)

// services has the agent's answers.
type services struct {
	agentv1.ComputeClient
	systems    []*agentv1.ComputeObject
	terminated string
	looks      int
	goesAfter  int // the number of List calls after which a terminated system is gone; 0: never
	failure    error
}

func (s *services) Objects(context.Context, *agentv1.ComputeRequest, ...grpc.CallOption) (*agentv1.ComputeReply,
	error) {
	if s.terminated != "" {
		if s.looks++; s.looks == s.goesAfter {
			s.systems = nil
		}
	}
	return &agentv1.ComputeReply{Objects: s.systems}, s.failure
}

func (s *services) Terminate(_ context.Context, r *agentv1.ComputeRequest,
	_ ...grpc.CallOption) (*agentv1.ComputeReply, error) {
	s.terminated = r.GetId()
	return &agentv1.ComputeReply{}, nil
}

func system(id, summary, properties, failure string) *agentv1.ComputeObject {
	return &agentv1.ComputeObject{Id: id, Document: []byte(summary), Properties: []byte(properties), Failure: failure}
}

func TestList(t *testing.T) {
	got, err := hcs.List(t.Context(), &services{systems: []*agentv1.ComputeObject{
		system("b@vm", `{"Id":"b@vm","SystemType":"VirtualMachine","Owner":"shim","State":"Running"}`, ``, "not now"),
		system("a", `{"Id":"a","SystemType":"Container","Owner":"shim","State":"Running","RuntimeId":"r"}`,
			`{"Id":"a","SystemType":"Container","RuntimeOsType":"Windows","State":"Running",
			  "Statistics":{"Uptime100ns":50,"Memory":{
			    "MemoryUsageCommitBytes":3,"MemoryUsageCommitPeakBytes":4,"MemoryUsagePrivateWorkingSetBytes":2},
			  "Processor":{"TotalRuntime100ns":20,"RuntimeKernel100ns":5}},
			  "ProcessList":[{"ProcessId":7,"ImageName":"web.exe","KernelTime100ns":1,"UserTime100ns":2,
			    "MemoryCommitBytes":8,"MemoryWorkingSetPrivateBytes":9,
			  "CreateTimestamp":"2026-11-20T14:00:00Z"}]}`, ""),
		system("c", `{"Id":"c","SystemType":"Container","HostingSystemId":"b@vm"}`, ``, ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if !json.Valid(got[i].Raw) {
			t.Errorf("%s: raw is %s", got[i].ID, got[i].Raw)
		}
		got[i].Raw = nil
	}
	want := []hcs.System{
		{
			ID: "a", Type: "Container", Owner: "shim", State: "Running", Isolation: hcs.Process, RuntimeID: "r",
			OS:     "Windows",
			Memory: &hcs.Memory{Commit: 3, CommitPeak: 4, PrivateWorkingSet: 2},
			CPU:    &hcs.CPU{Total: 2 * time.Microsecond, Kernel: 500, Uptime: 5 * time.Microsecond},
			Processes: []hcs.ProcessInfo{{
				PID: 7, Image: "web.exe", CPU: 300, Commit: 8, PrivateWorkingSet: 9,
				Started: time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC),
			}},
		},
		{ID: "b@vm", Type: "VirtualMachine", Owner: "shim", State: "Running", Isolation: hcs.HyperV,
			Failure: "not now"},
		{ID: "c", Type: "Container", Isolation: hcs.HyperV, Hosting: "b@vm"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if _, err := hcs.List(t.Context(),
		&services{systems: []*agentv1.ComputeObject{system("a", `<html>`, "", "")}}); err == nil {
		t.Error("what is no JSON passes")
	}
}

func TestFind(t *testing.T) {
	owners := []hcs.Owner{
		{ID: "5b3e71a06c1d4f", Pod: "default/web", Running: true},
		{ID: "5b3e99", Pod: "default/web", Container: "web", Running: true},
		{ID: "77aa00", Pod: "default/web", Container: "web"}, // the container before the restart
		{ID: "88bb00", Pod: "default/two", Container: "one", Running: true},
		{ID: "99cc00", Pod: "default/two", Container: "two", Running: true},
	}
	for name, want := range map[string]string{
		"default/web": "5b3e99", "default/web/web": "5b3e99", "77aa": "77aa00", "5B3E": "5b3e99",
		"default/two/two": "99cc00",
		"default/two":     "several", "5b3e71a": "none", "default/three": "none", "": "none",
	} {
		got, err := hcs.FindOwner(owners, name, true)
		if outcome(got.ID, err) != want {
			t.Errorf("container %s: %q, %v, want %s", name, got.ID, err, want)
		}
	}
	for name, want := range map[string]string{"default/web": "5b3e71a06c1d4f", "5b3e7": "5b3e71a06c1d4f",
		"5b3e": "several"} {
		got, err := hcs.FindOwner(owners, name, false)
		if outcome(got.ID, err) != want {
			t.Errorf("%s: %q, %v, want %s", name, got.ID, err, want)
		}
	}
	systems := []hcs.System{{ID: "ab"}, {ID: "abc"}, {ID: "de"}, {ID: "de@vm"}, {ID: "fgh@vm"}}
	for name, want := range map[string]string{
		"ab": "ab", "abc": "abc", "a": "several", "x": "none", "d": "de", "de@vm": "de@vm", "fg": "fgh@vm",
	} {
		got, err := hcs.FindSystem(systems, name)
		if outcome(got.ID, err) != want {
			t.Errorf("system %s: %q, %v, want %s", name, got.ID, err, want)
		}
	}
}

func outcome(id string, err error) string {
	var none *hcs.NotFoundError
	var several *hcs.AmbiguousError
	switch {
	case errors.As(err, &none):
		return "none"
	case errors.As(err, &several):
		return "several"
	case err != nil:
		return fmt.Sprint(err)
	}
	return id
}

func TestOwnerOfAUtilityVM(t *testing.T) {
	owners := []hcs.Owner{{ID: "abc", Pod: "default/web"}}
	if o, ok := hcs.OwnerOf(owners, hcs.System{ID: "ABC@vm"}); !ok || o.Pod != "default/web" {
		t.Errorf("got %+v, %v", o, ok)
	}
	if o, ok := hcs.OwnerOf(owners, hcs.System{ID: "abcd"}); ok {
		t.Errorf("got %+v", o)
	}
}

func TestKillWaitsUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &services{systems: []*agentv1.ComputeObject{system("a", `{"State":"Running"}`, "", "")}, goesAfter: 3}
		switch err := hcs.Kill(t.Context(), s, "a"); {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case s.terminated != "a":
			t.Errorf("s.terminated = %q, want %q", s.terminated, "a")
		case s.looks != 3:
			t.Errorf("s.looks = %v, want 3; %v; %d looks at %s", s.looks, err, s.looks, s.terminated)
		}
	})
}

func TestKillReportsASystemThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &services{systems: []*agentv1.ComputeObject{system("a", `{"State":"Running"}`, "", "")}}
		var still *hcs.StillThereError
		if err := hcs.Kill(t.Context(), s, "a"); !errors.As(err, &still) || still.State != "Running" {
			t.Errorf("got %v", err)
		}
		s.systems[0].Document = []byte(`{"State":"Stopped"}`)
		if err := hcs.Kill(t.Context(), s, "a"); err != nil {
			t.Errorf("a stopped system: %v", err)
		}
		s.failure = errors.New("the connection is lost")
		if err := hcs.Kill(t.Context(), s, "a"); !errors.Is(err, s.failure) {
			t.Errorf("without the service: %v", err)
		}
		s.failure = nil
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.systems[0].Document = []byte(`{"State":"Running"}`)
		if err := hcs.Kill(ctx, s, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("when cancelled: %v", err)
		}
	})
}
