package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/remedy"
)

func credentialRules() []Rule {
	reached := []string{"apiServerAddresses"}
	seen := func(f *Facts) preflight.Seen { return preflight.Seen{Reached: *f.Reached.Value} }
	return []Rule{
		{
			ID: "joined", Title: "the machine was joined to a cluster", Severity: Error, Needs: []string{"services", "kubeconfig"}, Link: docsJoin,
			Means:  "kubelet has no credentials with which it could register its node.",
			Remedy: "`swdt join --kubeconfig FILE`", look: lookAtJoined,
		},
		{
			ID: "kubelet-certificate", Title: "kubelet's certificates are valid", Severity: Error, Needs: []string{"certificates"}, Link: docsCerts,
			Means:  "With an expired client certificate the API server does not know kubelet any more: the node turns NotReady and stays so.",
			Remedy: "`swdt reset` and `swdt join` give it a new one; one that was not renewed in time has its reason in `swdt logs kubelet --grep certificate`", look: lookAtCertificates,
		},
		{
			ID: "cluster-ca", Title: "the cluster's CA is valid", Severity: Error, Needs: []string{"certificates"},
			Means:  "Every certificate of the cluster that it signed is worth nothing from then on.",
			Remedy: "give the cluster a new CA: it takes all nodes, and time",
			Link:   "https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/", look: lookAtCA,
		},
		{
			ID: "kubelet-identity", Title: "kubelet's certificate is of its Node", Severity: Error, Needs: []string{"certificates", "nodeObject"}, Link: docsJoin,
			Means:  "The API server lets a kubelet change its own Node alone: one of another name, after the computer or the flag was renamed, cannot report.",
			Remedy: "`swdt reset`, then `swdt join` with the new name", look: lookAtIdentity,
		},
		{
			ID: "other-cluster", Title: "kubelet serves the cluster that the kubeconfig names", Severity: Error, Needs: []string{"kubeconfig", "apiServer"}, Link: docsJoin,
			Means:  "The machine was joined twice, or to a cluster that was made anew at the same address: it is in another one than you look at.",
			Remedy: "if it is to be in this one: `swdt reset --no-drain`, then `swdt join`", look: lookAtOtherCluster,
		},
		{
			ID: "joined-twice", Title: "one machine is one Node", Severity: Warning, Needs: []string{"machine", "nodeObject", "otherNodes"}, Link: docsJoin,
			Means:  "The cluster has several Nodes for one machine: after it was joined under another name, or was cloned. Pods are given to the one that nobody serves.",
			Remedy: "kubectl delete node of the one that is not this machine's name; for clones, give each machine its own identity (sysprep /generalize)", look: lookAtTwins,
		},
		asBeforeJoin(Rule{
			ID: "control-plane-name", Title: "the node knows the API server's name", Severity: Error, Needs: reached, Link: docsDebug,
			Means:  "kubelet finds the API server by this name: it cannot report, and the node turns NotReady.",
			Remedy: "repair the node's DNS, or put the name into its hosts file: spec.setup.hosts, then `swdt setup`",
		}, seen),
		asBeforeJoin(Rule{
			ID: "control-plane-reachable", Title: "the node reaches the API server", Severity: Error, Needs: reached, Link: docsDebug,
			Means:  "kubelet cannot report: the node turns NotReady, its pods are moved away, and what is changed does not come to it.",
			Remedy: "see whether the API server runs, and what is between: `swdt exec -- tracert -d HOST`",
		}, seen),
	}
}

func lookAtJoined(f *Facts) []Finding {
	if f.service("kubelet").Name == "" {
		return nil // of which another rule tells
	}
	switch k := f.Kubeconfig.Value; {
	case k.Problem != "":
		return one(found(k.Problem, "kubelet's kubeconfig is damaged").remedied("`swdt reset --no-drain`, then `swdt join`"))
	case k.Exists:
		return nil
	case k.Bootstrap:
		return one(found(bootstrapConf+" is there, "+kubeletConf+" is not", "the machine has begun to join a cluster, and has not been given its certificate").
			remedied("kubectl get csr shows whether one waits; `swdt join` goes on, and `swdt logs kubelet` says what is in the way"))
	}
	return one(found("there is no "+kubeletConf, "kubelet was never joined to a cluster").as(Info))
}

// soon is when a certificate should have been renewed: kubelet does with a tenth
// of its time or more to go.
const soon = 7 * 24 * time.Hour

func lookAtCertificates(f *Facts) (all []Finding) {
	for _, c := range *f.Certificates.Value {
		left := c.NotAfter.Sub(f.Taken)
		if c.Use == "authority" || left > soon {
			continue
		}
		seen := fmt.Sprintf("%s, %s, valid until %s", c.Path, c.Subject, c.NotAfter.UTC().Format(time.RFC3339))
		switch {
		case left <= 0 && c.Use == "client":
			all = append(all, found(seen, "kubelet's client certificate has expired"))
		case left <= 0:
			all = append(all, found(seen, "kubelet's serving certificate has expired: kubectl logs and exec fail").as(Warning).
				remedied("delete it and its key, and restart kubelet, which makes others: %s", remedy.Command("exec", "--", "cmd", "/c", "del", c.Path, strings.TrimSuffix(c.Path, ".crt")+".key")))
		default:
			all = append(all, found(seen, "kubelet's %s certificate expires in %s", c.Use, days(left)).as(Warning))
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

func lookAtCA(f *Facts) []Finding {
	const early = 30 * 24 * time.Hour
	for _, c := range *f.Certificates.Value {
		left := c.NotAfter.Sub(f.Taken)
		if c.Use != "authority" || left > early {
			continue
		}
		seen := fmt.Sprintf("%s, valid until %s", c.Path, c.NotAfter.UTC().Format(time.RFC3339))
		if left <= 0 {
			return one(found(seen, "the cluster's CA has expired"))
		}
		return one(found(seen, "the cluster's CA expires in %s", days(left)).as(Warning))
	}
	return nil
}

func lookAtIdentity(f *Facts) []Finding {
	const prefix = "system:node:"
	for _, c := range *f.Certificates.Value {
		_, name, ok := strings.Cut(c.Subject, "CN="+prefix)
		name, _, _ = strings.Cut(name, ",")
		if ok && c.Use == "client" && name != f.Object.Value.Name {
			return one(found(c.Subject, "kubelet's certificate is of node %s, and kubelet reports as %s", name, f.Object.Value.Name))
		}
	}
	return nil
}

// lookAtOtherCluster compares the authorities; addresses differ for good reasons.
func lookAtOtherCluster(f *Facts) []Finding {
	k, s := f.Kubeconfig.Value, f.Server.Value
	if k.Exists && k.Bootstrap && k.BootstrapServer != "" && hostPort(k.BootstrapServer) != hostPort(k.Server) {
		return one(found("kubelet.conf: "+k.Server+", bootstrap-kubelet.conf: "+k.BootstrapServer, "kubelet has credentials of one cluster, and was told to join another"))
	}
	if len(k.CAHashes) == 0 || len(s.CAHashes) == 0 || slices.ContainsFunc(k.CAHashes, func(h string) bool { return slices.Contains(s.CAHashes, h) }) {
		return nil
	}
	return one(found("kubelet: "+k.Server+" with the CA "+short(k.CAHashes[0])+"; kubeconfig: "+s.URL+" with "+short(s.CAHashes[0]), "kubelet trusts another cluster's CA than the kubeconfig's cluster has"))
}

func short(hash string) string { return hash[:min(len(hash), len("sha256:")+12)] + "…" }

func lookAtTwins(f *Facts) (all []Finding) {
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
		switch shared := common(own, other.Addresses); {
		case uuid != "" && strings.EqualFold(uuid, other.SystemUUID):
			all = append(all, found(fmt.Sprintf("both have the system UUID %s; %s is %s", uuid, other.Name, state), "Node %s is this machine too", other.Name))
		case shared != "":
			all = append(all, found(fmt.Sprintf("both have the address %s; %s is %s", shared, other.Name, state), "Node %s has this machine's address", other.Name))
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
