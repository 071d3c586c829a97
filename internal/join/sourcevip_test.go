package join_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// flannelNetwork is the HNS network that flanneld makes for the backend vxlan (flannel-io/flannel v0.28.10,
// pkg/backend/vxlan/device_windows.go), with the policies that it reads or adds: ProviderAddress, DrMacAddress and
// HostRoute, and a RemoteSubnetRoute for each other node (vxlan_network_windows.go). The subnet is the node's lease.
func flannelNetwork(subnet string) string {
	gateway := strings.Replace(subnet, ".0/24", ".1", 1)
	return `{"ID":"7C0E2D3F-1A52-4D5B-9C1E-6F0A3B8D2E11","Name":"flannel.4096","Type":"Overlay","Flags":8,
"SchemaVersion":{"Major":2,"Minor":0},
"Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"` + subnet + `","Policies":[{"Type":"VSID","Settings":{"IsolationId":4096}}],
"Routes":[{"NextHop":"` + gateway + `","DestinationPrefix":"0.0.0.0/0"}]}]}],
"Policies":[{"Type":"NetAdapterName","Settings":{"NetworkAdapterName":"Ethernet"}},
{"Type":"ProviderAddress","Settings":{"ProviderAddress":"192.168.122.5"}},
{"Type":"DrMacAddress","Settings":{"Address":"00-15-5D-4C-11-20"}},{"Type":"HostRoute","Settings":{}},
{"Type":"RemoteSubnetRoute","Settings":{"DestinationPrefix":"10.244.0.0/24","IsolationId":4096,"ProviderAddress":"192.168.122.4",
"DistributedRouterMacAddress":"66-3b-e1-0a-77-01"}}]}`
}

const (
	flannelFile = simulated.HNSFolder + `\networks\7C0E2D3F-1A52-4D5B-9C1E-6F0A3B8D2E11.json`
	reserved    = `C:\var\lib\cni\networks\flannel.4096\`
)

// flannelLab is a machine whose pods have flannel's overlay.
type flannelLab struct{ *proxyLab }

func newFlannelLab(t *testing.T) *flannelLab {
	t.Helper()
	l := &flannelLab{newProxyLab(t)}
	l.network, l.hnsNetwork = "flannel", "flannel.4096"
	l.choose(cluster.KubeProxyService)
	return l
}

// makeNetwork makes what flannel makes after a join: its CNI plug-ins, then the network.
func (l *flannelLab) makeNetwork(subnet string) {
	l.put(`C:\opt\cni\bin\host-local.exe`, string(simulated.Binary(simulated.BinarySpec{Name: "host-local", Version: "v1.9.1"})))
	l.put(flannelFile, flannelNetwork(subnet))
}

func (l *flannelLab) run(change func(*join.Options)) (plan.Result, error) {
	return l.proxyLab.run(func(o *join.Options) {
		o.FindPodNetwork = l.find
		if change != nil {
			change(o)
		}
	})
}

// find reads the network from the simulated HNS, as the command does.
func (l *flannelLab) find(ctx context.Context, n *node.Node, name string) (join.PodNetwork, bool, error) {
	reply, err := n.Compute.Objects(ctx, &agentv1.ComputeRequest{Kind: agentv1.ComputeKind_COMPUTE_KIND_NETWORKS})
	if err != nil {
		return join.PodNetwork{}, false, err
	}
	for _, o := range reply.GetObjects() {
		var network struct {
			Name, Type string
			Ipams      []struct {
				Subnets []struct{ IpAddressPrefix string }
			}
		}
		if err := json.Unmarshal(o.GetDocument(), &network); err != nil {
			return join.PodNetwork{}, false, err
		}
		if network.Name == name {
			return join.PodNetwork{Type: network.Type, Subnet: network.Ipams[0].Subnets[0].IpAddressPrefix}, true, nil
		}
	}
	return join.PodNetwork{}, false, nil
}

func (l *flannelLab) mustRun() []plan.StepResult {
	l.t.Helper()
	result, err := l.run(nil)
	if err != nil {
		l.t.Fatalf("%v\n%s\n%s", err, table(result.Steps), l.story)
	}
	return result.Steps
}

// On flannel's overlay, the join reserves an address of the node's range that no pod has, keeps it in further runs, and
// gives it back.
func TestKubeProxyServiceOnFlannelsOverlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFlannelLab(t)
		// A pod has the first address; it is of an earlier time, so the plug-in knows it.
		l.put(reserved+"10.244.1.2", "0f3a\r\neth0")
		go func() {
			time.Sleep(time.Minute)
			l.makeNetwork("10.244.1.0/24")
		}()
		l.mustRun()
		if got := l.commandLine(); !strings.HasSuffix(got, "--network-name=flannel.4096 --enable-dsr=true --source-vip=10.244.1.3") {
			t.Errorf("it runs %s", got)
		}
		if l.pid("kube-proxy") == 0 {
			t.Error("kube-proxy does not run")
		}
		if got := l.get(reserved + "10.244.1.3"); got != "swdt-kube-proxy\r\nsource-vip" {
			t.Errorf("the reservation is %q", got)
		}
		again, err := l.run(nil)
		nothing(t, again.Steps, err)

		// flanneld got another lease.
		l.put(flannelFile, flannelNetwork("10.244.7.0/24"))
		planned, err := l.run(func(o *join.Options) { o.DryRun = true })
		if err != nil || !strings.Contains(table(planned.Steps), "reserve a source address in 10.244.7.0/24") {
			t.Errorf("%v\n%s", err, table(planned.Steps))
		}
		if steps := changed(l.mustRun()); strings.Join(steps, " ") != "kube-proxy" {
			t.Errorf("another subnet changed %q", steps)
		}
		if got := l.commandLine(); !strings.HasSuffix(got, "--source-vip=10.244.7.2") || l.get(reserved+"10.244.1.3") != "" {
			t.Errorf("it runs %s, the old reservation is %q", got, l.get(reserved+"10.244.1.3"))
		}

		result, err := join.RunReset(t.Context(), l.Node.Node, l.doc, join.ResetOptions{Cluster: l.cluster}, l.story)
		if err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		if l.get(reserved+"10.244.7.2") != "" || l.get(reserved+"10.244.1.2") == "" {
			t.Error("the reset keeps the reservation, or has removed that of a pod")
		}
	})
}

// A join that was interrupted between the reservation and its record reserves again: the plug-in refuses a second
// address for one container.
func TestAReservationThatWasNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFlannelLab(t)
		l.makeNetwork("10.244.1.0/24")
		l.put(reserved+"10.244.1.2", "swdt-kube-proxy\r\nsource-vip")
		const recordFile = `C:\ProgramData\swdt\join.json`
		_, err := l.run(nil)
		if err == nil || !strings.Contains(err.Error(), "duplicate allocation is not allowed") {
			t.Fatalf("%v: the stand-in accepts a second reservation", err)
		}
		if !strings.Contains(l.get(recordFile), `"sourceVIP"`) {
			t.Fatalf("the attempt is not recorded: %s", l.get(recordFile))
		}
		l.mustRun()
		if got := l.commandLine(); !strings.HasSuffix(got, "--source-vip=10.244.1.2") {
			t.Errorf("it runs %s", got)
		}
	})
}

// Without the plug-in, the join waits for it and names it.
func TestNoHostLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFlannelLab(t)
		l.put(flannelFile, flannelNetwork("10.244.1.0/24"))
		_, err := l.run(nil)
		if err == nil || !strings.Contains(err.Error(), `host-local.exe`) || !strings.Contains(err.Error(), `C:\opt\cni\bin`) {
			t.Errorf("%v", err)
		}
	})
}

// A join that ends between the reservation and the files of the service gives the address back too.
func TestAReservationWithoutAServiceIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFlannelLab(t)
		l.makeNetwork("10.244.1.0/24")
		l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
			if op.Phase == simulated.Before && strings.Contains(op.Target, `C:\var\log\kube-proxy`) {
				return simulated.Fail(fault.ErrPermission)
			}
			return simulated.Continue()
		})
		if _, err := l.run(nil); err == nil || l.get(reserved+"10.244.1.2") == "" {
			t.Fatalf("%v, the reservation is %q", err, l.get(reserved+"10.244.1.2"))
		}
		result, err := join.RunReset(t.Context(), l.Node.Node, l.doc, join.ResetOptions{Cluster: l.cluster}, l.story)
		if err != nil || l.get(reserved+"10.244.1.2") != "" {
			t.Errorf("%v, the reservation is %q\n%s", err, l.get(reserved+"10.244.1.2"), table(result.Steps))
		}
	})
}

// A plug-in that fails does not keep a reset from its end: the address is kept, and the warning names its file.
func TestAResetWhoseHostLocalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFlannelLab(t)
		l.makeNetwork("10.244.1.0/24")
		l.mustRun()
		l.put(`C:\opt\cni\bin\host-local.exe`, "damaged")
		result, err := join.RunReset(t.Context(), l.Node.Node, l.doc, join.ResetOptions{Cluster: l.cluster}, l.story)
		if err != nil {
			t.Fatalf("%v\n%s", err, table(result.Steps))
		}
		expectIn(t, l.story.String(), "warn: give kube-proxy's source address in 10.244.1.0/24 back: host-local.exe DEL: ",
			`the address stays reserved: remove `+reserved+"10.244.1.2")
		if l.label() != "" || l.get(`C:\ProgramData\swdt\join.json`) != "" {
			t.Errorf("the reset did not end: the label is %q", l.label())
		}
	})
}
