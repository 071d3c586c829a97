package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func credentialRules() []Rule {
	reached := []string{"apiServerAddresses"}
	seen := func(f *Facts) preflight.Gathered { return preflight.Gathered{Reached: *f.Reached.Value} }
	return []Rule{
		{
			ID: "joined", Title: "the machine was joined to a cluster", Severity: finding.Error,
			Needs: []string{"services", "kubeconfig"}, Link: docsJoin,
			Means:  "kubelet has no credentials to register its node with.",
			Remedy: "`swdt join --kubeconfig FILE`", look: lookAtJoined,
		},
		{
			ID: "kubelet-certificate", Title: "kubelet's certificates are valid", Severity: finding.Error,
			Needs: []string{"certificates"}, Link: docsCerts,
			Means: "The API server rejects a kubelet with an expired client certificate: the node becomes NotReady " +
				"and stays so.",
			Remedy: "`swdt reset` and `swdt join` get a new certificate; `swdt logs kubelet --grep certificate` " +
				"prints why it was not renewed in time", look: lookAtCertificates,
		},
		{
			ID: "cluster-ca", Title: "the cluster's CA is valid", Severity: finding.Error,
			Needs:  []string{"certificates"},
			Means:  "When the CA expires, all certificates that it signed become invalid.",
			Remedy: "give the cluster a new CA: this affects all nodes, and takes time",
			Link:   "https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/", look: lookAtCA,
		},
		{
			ID: "kubelet-identity", Title: "kubelet's certificate names its Node", Severity: finding.Error,
			Needs: []string{"certificates", "nodeObject"}, Link: docsJoin,
			Means: "The API server lets a kubelet change only the Node that its certificate names: if the " +
				"computer was renamed, or --hostname-override was changed, kubelet cannot report.",
			Remedy: "`swdt reset`, then `swdt join` with the new name", look: lookAtIdentity,
		},
		{
			ID: "other-cluster", Title: "kubelet belongs to the cluster of the kubeconfig", Severity: finding.Error,
			Needs: []string{"kubeconfig", "apiServer"}, Link: docsJoin,
			Means: "The machine was joined twice, or its cluster was created again at the same address: the node " +
				"belongs to another cluster than the kubeconfig.",
			Remedy: "to move it to this cluster: `swdt reset --no-drain`, then `swdt join`", look: lookAtOtherCluster,
		},
		{
			ID: "joined-twice", Title: "the machine has only one Node", Severity: finding.Warning,
			Needs: []string{"machine", "nodeObject", "otherNodes"}, Link: docsJoin,
			Means: "The cluster has several Nodes for one machine, since the machine was joined under another name " +
				"or was cloned. Pods may be scheduled on a Node that no kubelet serves.",
			Remedy: "delete the Node that does not have this machine's name with `kubectl delete node`; for clones, " +
				"give each machine its own identity (sysprep /generalize)", look: lookAtTwins,
		},
		fromPreflight(Rule{
			ID: "control-plane-name", Title: "the node resolves the API server's name", Severity: finding.Error,
			Needs: reached, Link: docsDebug,
			Means: "kubelet finds the API server by this name: without it kubelet cannot report, and the node " +
				"becomes NotReady.",
			Remedy: "repair the node's DNS, or put the name into the node's hosts file: set spec.setup.hosts and run `swdt setup`",
		}, seen),
		fromPreflight(Rule{
			ID: "control-plane-reachable", Title: "the node reaches the API server", Severity: finding.Error,
			Needs: reached, Link: docsDebug,
			Means: "kubelet cannot report: the node becomes NotReady, its pods are moved away, and it receives no " +
				"changes.",
			Remedy: "check that the API server runs, and the route to it: `swdt exec -- tracert -d HOST`",
		}, seen),
	}
}

func lookAtJoined(f *Facts) []finding.Finding {
	if f.service("kubelet").Name == "" {
		return nil // another rule reports a missing service kubelet
	}
	switch k := f.Kubeconfig.Value; {
	case k.Problem != "":
		return one(finding.New(k.Problem,
			"kubelet's kubeconfig is damaged").Remedied("`swdt reset --no-drain`, then `swdt join`"))
	case k.Exists:
		return nil
	case k.Bootstrap:
		return one(finding.New(bootstrapConf+" exists, "+kubeletConf+" does not",
			"the machine has begun to join a cluster, and has not received its certificate").
			Remedied("`kubectl get csr` shows whether a request waits for approval; `swdt join` continues the join, " +
				"and `swdt logs kubelet` prints what prevents it"))
	}
	return one(finding.New("there is no "+kubeletConf, "kubelet was never joined to a cluster").As(finding.Info))
}

// minValidity is the remaining time below which a certificate is reported. kubelet renews a
// certificate when at least a tenth of its validity still remains.
const minValidity = 7 * 24 * time.Hour

func lookAtCertificates(f *Facts) (all []finding.Finding) {
	for _, c := range *f.Certificates.Value {
		left := c.NotAfter.Sub(f.Taken)
		if c.Use == "authority" || left > minValidity {
			continue
		}
		seen := fmt.Sprintf("%s, %s, valid until %s", c.Path, c.Subject, c.NotAfter.UTC().Format(time.RFC3339))
		switch {
		case left <= 0 && c.Use == "client":
			all = append(all, finding.New(seen, "kubelet's client certificate has expired"))
		case left <= 0:
			all = append(all,
				finding.New(seen,
					"kubelet's serving certificate has expired: kubectl logs and exec fail").As(finding.Warning).
					Remedied("delete it and its key, and restart kubelet, which creates new ones: %s",
						remedy.Command("exec", "--", "cmd", "/c", "del",
							c.Path, strings.TrimSuffix(c.Path, ".crt")+".key")))
		default:
			all = append(all, finding.New(seen, "kubelet's %s certificate expires in %s", c.Use,
				days(left)).As(finding.Warning))
		}
	}
	return all
}

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func lookAtCA(f *Facts) []finding.Finding {
	const early = 30 * 24 * time.Hour
	for _, c := range *f.Certificates.Value {
		left := c.NotAfter.Sub(f.Taken)
		if c.Use != "authority" || left > early {
			continue
		}
		seen := fmt.Sprintf("%s, valid until %s", c.Path, c.NotAfter.UTC().Format(time.RFC3339))
		if left <= 0 {
			return one(finding.New(seen, "the cluster's CA has expired"))
		}
		return one(finding.New(seen, "the cluster's CA expires in %s", days(left)).As(finding.Warning))
	}
	return nil
}

func lookAtIdentity(f *Facts) []finding.Finding {
	const prefix = "system:node:"
	for _, c := range *f.Certificates.Value {
		_, name, ok := strings.Cut(c.Subject, "CN="+prefix)
		name, _, _ = strings.Cut(name, ",")
		if ok && c.Use == "client" && name != f.Object.Value.Name {
			return one(finding.New(c.Subject, "kubelet's certificate names node %s, and kubelet reports as %s",
				name, f.Object.Value.Name))
		}
	}
	return nil
}

// lookAtOtherCluster finds a bootstrap file that has another server than kubelet.conf. It
// also finds a kubelet whose cluster is not the cluster of the user's kubeconfig. It
// compares the two clusters by their CAs, since one cluster may have several addresses.
func lookAtOtherCluster(f *Facts) []finding.Finding {
	k, s := f.Kubeconfig.Value, f.Server.Value
	if k.Exists && k.Bootstrap && k.BootstrapServer != "" && hostPort(k.BootstrapServer) != hostPort(k.Server) {
		return one(finding.New("kubelet.conf: "+k.Server+", bootstrap-kubelet.conf: "+k.BootstrapServer,
			"kubelet has credentials of one cluster and a bootstrap file of another"))
	}
	if len(k.CAHashes) == 0 || len(s.CAHashes) == 0 ||
		slices.ContainsFunc(k.CAHashes, func(h string) bool { return slices.Contains(s.CAHashes, h) }) {
		return nil
	}
	return one(finding.New("kubelet: "+k.Server+" with the CA "+short(k.CAHashes[0])+"; kubeconfig: "+s.URL+
		" with "+short(s.CAHashes[0]), "kubelet does not trust the CA of the kubeconfig's cluster"))
}

func short(hash string) string { return hash[:min(len(hash), len("sha256:")+12)] + "…" }

func lookAtTwins(f *Facts) (all []finding.Finding) {
	uuid := f.Machine.Value.SystemUUID
	var own []string
	for _, a := range f.Object.Value.Addresses {
		if a.Type == "InternalIP" {
			own = append(own, a.Address)
		}
	}
	for _, other := range *f.Others.Value {
		state := "not Ready"
		if other.Ready {
			state = "Ready"
		}
		same, _ := cluster.SameMachine(uuid, other.SystemUUID)
		switch shared := common(own, other.Addresses); {
		case same:
			all = append(all, finding.New(fmt.Sprintf("both have the system UUID %s; %s is %s", uuid, other.Name,
				state), "Node %s is this machine too", other.Name))
		case shared != "":
			all = append(all, finding.New(fmt.Sprintf("both have the address %s; %s is %s", shared, other.Name, state),
				"Node %s has this machine's address", other.Name))
		}
	}
	return all
}

func common(a, b []string) string {
	for _, one := range a {
		if slices.Contains(b, one) {
			return one
		}
	}
	return ""
}
