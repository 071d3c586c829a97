package criserver

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerd reports a third condition from 1.7.14 on (pkg/cri/server/status.go; not in the tags v1.7.13 and v1.6.40).
func TestTheConditionsOfEachVersion(t *testing.T) {
	for version, want := range map[string]int{"v1.6.27": 2, "v1.7.12": 2, "v1.7.14": 3, "v2.0.0": 3, "2.4.2": 3} {
		reply, err := (&runtimeService{Options: Options{Version: version}}).Status(t.Context(), &runtimev1.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		conditions := reply.GetStatus().GetConditions()
		third := slices.ContainsFunc(conditions, func(c *runtimev1.RuntimeCondition) bool {
			return c.GetType() == "ContainerdHasNoDeprecationWarnings" && c.GetStatus()
		})
		if len(conditions) != want || third != (want == 3) {
			t.Errorf("%s: %v", version, conditions)
		}
	}
}

// The errors for what does not exist are those of containerd v2.4.2, internal/cri/server (sandbox_status.go,
// container_status.go, container_execsync.go).
func TestWhatDoesNotExist(t *testing.T) {
	s := &runtimeService{Options: Options{Version: "v2.4.2", Workload: Example(time.Time{}, 1), Removed: &Removed{}}}
	_, sandbox := s.PodSandboxStatus(t.Context(), &runtimev1.PodSandboxStatusRequest{PodSandboxId: "x"})
	_, container := s.ContainerStatus(t.Context(), &runtimev1.ContainerStatusRequest{ContainerId: "x"})
	_, exec := s.ExecSync(t.Context(), &runtimev1.ExecSyncRequest{ContainerId: "x", Cmd: []string{"hostname"}})
	for want, err := range map[string]error{
		"an error occurred when try to find sandbox: not found":                         sandbox,
		`an error occurred when try to find container "x": not found`:                   container,
		`failed to exec in container: failed to find container "x" in store: not found`: exec,
	} {
		if status.Code(err) != codes.NotFound || status.Convert(err).Message() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
