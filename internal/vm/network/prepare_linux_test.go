package network

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/testing/dockertest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// swdt makes no network but that of kind, and removes none but one of its own without containers.
func TestNetworksOfOthersStay(t *testing.T) {
	engine := dockertest.Start(t,
		dockertest.Network{Name: "theirs", Subnet: "172.30.0.0/16"},
		dockertest.Network{Name: "ours", Subnet: "172.31.0.0/16", Labels: map[string]string{madeLabel: "true"},
			Containers: map[string]string{"kind-worker": "172.31.0.3", "kind-control-plane": "172.31.0.2"}},
	)
	d := DockerAt(engine.Host())
	if change, err := (&makeNetwork{docker: d, name: "company"}).Plan(t.Context()); !errors.Is(err, ErrNoDockerNetwork) {
		t.Errorf("a network that is not kind's: %+v, %v", change, err)
	}
	for name, want := range map[string]string{
		"theirs": "theirs stays: swdt has not made it",
		"ours":   "ours stays: containers are on it: kind-control-plane, kind-worker",
		"gone":   "there is no Docker network gone",
	} {
		change, err := (&removeNetwork{docker: d, wanted: Wanted{Bridge: name}}).Plan(t.Context())
		must(t, err)
		if diff := cmp.Diff(plan.Change{Summary: want}, change); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A subnet that another network or an interface of your machine has is not taken.
func TestTheNetworkOfKindAvoidsOthers(t *testing.T) {
	engine := dockertest.Start(t, dockertest.Network{Name: "a", Subnet: "172.18.0.0/16"},
		dockertest.Network{Name: "b", Subnet: "172.19.128.0/20"}, dockertest.Network{Name: "c", Driver: "overlay"})
	step := &makeNetwork{docker: DockerAt(engine.Host()), name: "kind"}
	change, err := step.Plan(t.Context())
	must(t, err)
	_, err = step.Apply(t.Context(), ui.Discard{})
	must(t, err)
	made := engine.Networks()["kind"]
	for _, other := range append(ownSubnets(), prefix("172.18.0.0/16"), prefix("172.19.128.0/20")) {
		if prefix(made.Subnet).Overlaps(other) {
			t.Errorf("%s overlaps %s (%s)", made.Subnet, other, change.Summary)
		}
	}
	t.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", "mine")
	if change, err := (&makeNetwork{docker: step.docker, name: "mine"}).Plan(t.Context()); err != nil || !change.Needed {
		t.Errorf("kind's network of another name: %+v, %v", change, err)
	}
}
