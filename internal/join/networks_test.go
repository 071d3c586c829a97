package join_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/node/hnsnetwork"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// plantNetwork puts a network with an endpoint and a load balancer on the machine.
func (l *lab) plantNetwork(name, kind, id string) {
	put := func(folder, id, document string) { l.put(simulated.HNSFolder+`\`+folder+`\`+id+".json", document) }
	endpoint, balancer := "E"+id[1:], "B"+id[1:]
	put("networks", id, fmt.Sprintf(`{"ID":%q,"Name":%q,"Type":%q}`, id, name, kind))
	put("endpoints", endpoint, fmt.Sprintf(`{"ID":%q,"HostComputeNetwork":%q}`, endpoint, id))
	put("loadbalancers", balancer, fmt.Sprintf(`{"ID":%q,"HostComputeEndpoints":[%q]}`, balancer, endpoint))
}

// A reset removes the networks of pods that were made since the join, and no other.
func TestResetRemovesThePodNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.plantNetwork("mine", "Transparent", "A0000000-0000-0000-0000-000000000001")
		l.mustJoin()
		l.plantNetwork("Calico", "L2Bridge", "A0000000-0000-0000-0000-000000000002")
		l.plantNetwork("External", "Overlay", "A0000000-0000-0000-0000-000000000003")
		l.plantNetwork("nat", "NAT", "A0000000-0000-0000-0000-000000000004")
		results, err := l.resetWith(resetAll(l))
		if err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		left, err := hnsnetwork.List(t.Context(), l.Node.Node)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, network := range left {
			names = append(names, network.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff([]string{"mine", "nat"}, names); diff != "" {
			t.Errorf("%s\n%s", diff, table(results))
		}
		for _, folder := range []string{"endpoints", "loadbalancers"} {
			if files := l.Machine.Snapshot(simulated.HNSFolder + `\` + folder); len(files) != 2 {
				t.Errorf("%s: %v", folder, files)
			}
		}
		again, err := l.resetWith(resetAll(l))
		nothing(t, again, err)
	})
}
