package readiness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	windows = "windows"
	linux   = "linux"
	// hyperVClass is the RuntimeClass that the specs for Hyper-V use.
	hyperVClass = "runhcs-wcow-hypervisor"
	// domainLabel and domainPool mark the node that the specs for a domain use.
	domainLabel, domainPool = "agentpool", "windowsgmsa"
	// defaultClass is the annotation of the default StorageClass.
	defaultClass = "storageclass.kubernetes.io/is-default-class"
)

// Facts describe a cluster before its cases run.
type Facts struct {
	Server     string // the API server's URL
	Kubernetes string // the version of Kubernetes, such as v1.36.3
	Windows    []cluster.Node
	Linux      []cluster.Node
	// Classes are the names of the RuntimeClasses.
	Classes []string
	// DefaultStorage reports whether there is a default StorageClass.
	DefaultStorage bool
	// Unknown has the needs, such as hyper-v, about which the API server did not answer, with the
	// reasons.
	Unknown map[string]error
}

// NoNodeError reports that the cluster has no Windows node that is Ready.
type NoNodeError struct{ Why string }

func (e *NoNodeError) Error() string {
	return e.Why + "; `swdt join` adds a node, `swdt doctor` shows what is wrong on one"
}

// Gather asks the API server for the facts. The error is a *NoNodeError if no Windows node is Ready.
func Gather(ctx context.Context, c *cluster.Cluster) (f Facts, err error) {
	f.Server = c.Server()
	if f.Kubernetes, err = c.Version(ctx); err != nil {
		return f, err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return f, err
	}
	ready := false
	for _, n := range nodes {
		switch n.Labels[corev1.LabelOSStable] {
		case windows:
			f.Windows = append(f.Windows, n)
			ready = ready || n.Ready
		case linux:
			f.Linux = append(f.Linux, n)
		}
	}
	switch {
	case len(f.Windows) == 0:
		return f, &NoNodeError{Why: "the cluster has no Windows node"}
	case !ready:
		return f, &NoNodeError{Why: "no Windows node is Ready"}
	}
	f.gatherClasses(ctx, c)
	return f, context.Cause(ctx)
}

// gatherClasses gathers the facts that may stay unknown, since the user may not be allowed to list
// their objects.
func (f *Facts) gatherClasses(ctx context.Context, c *cluster.Cluster) {
	f.Unknown = map[string]error{}
	classes, err := c.RuntimeClasses(ctx)
	if err != nil {
		f.Unknown[HyperV] = err
	}
	for _, class := range classes {
		f.Classes = append(f.Classes, class.Name)
	}
	storage, err := c.Clientset().StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		f.Unknown[StorageClass] = c.Failure("list the StorageClasses",
			cluster.Permission{Verb: "list", Group: "storage.k8s.io", Resource: "storageclasses"}, err)
		return
	}
	for _, class := range storage.Items {
		f.DefaultStorage = f.DefaultStorage || class.Annotations[defaultClass] == "true"
	}
}

// lacks returns the reason why the cluster cannot prove a case with this need; "" if it can, or if no
// fact shows it.
func (f Facts) lacks(need string) string {
	if f.Unknown[need] != nil {
		return ""
	}
	switch need {
	case LinuxNode:
		if !slices.ContainsFunc(f.Linux, takesPods) {
			return "the cluster has no Linux node that is Ready and not cordoned"
		}
	case Placement:
		return f.misplaces()
	case StorageClass:
		if !f.DefaultStorage {
			return "the cluster has no default StorageClass"
		}
	case Domain:
		return f.lacksDomain()
	case HyperV:
		if !slices.Contains(f.Classes, hyperVClass) {
			return "the cluster has no RuntimeClass " + hyperVClass
		}
	case GPU:
		return "swdt cannot see whether a node has a GPU; `swdt readiness run --assume gpu` runs the case"
	case Containerd16, Containerd17:
		return f.lacksContainerd(need == Containerd17)
	}
	return ""
}

// takesPods reports whether the scheduler may give pods to the node.
func takesPods(n cluster.Node) bool { return n.Ready && !n.Cordoned }

// misplaces returns the reason why pods without a node selector may start on Linux nodes.
func (f Facts) misplaces() string {
	for _, n := range f.Linux {
		kept := slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule
		})
		if takesPods(n) && !kept {
			return fmt.Sprintf("its pods could start on the Linux node %s, which would prove nothing: %s keeps them off", n.Name,
				remedy.KubectlCommand("taint", "node", n.Name, "swdt.dev/readiness=:NoSchedule"))
		}
	}
	return ""
}

func (f Facts) lacksDomain() string {
	labelled := 0
	for _, n := range f.Windows {
		labelled += count(n.Labels[domainLabel] == domainPool)
	}
	if labelled == 1 {
		return ""
	}
	return fmt.Sprintf("the specs need exactly one node with the label %s=%s, which is in a domain; there are %d",
		domainLabel, domainPool, labelled)
}

// lacksContainerd returns the reason why a Windows node has the wrong containerd: older than 1.7 if
// newer is true, otherwise 1.7 or newer. An unknown version is no reason.
func (f Facts) lacksContainerd(newer bool) string {
	for _, n := range f.Windows {
		version, ok := strings.CutPrefix(n.Runtime, "containerd://")
		parts := strings.SplitN(version, ".", 3)
		if !ok || len(parts) < 2 {
			continue
		}
		major, err := strconv.Atoi(parts[0])
		minor, err2 := strconv.Atoi(parts[1])
		if err != nil || err2 != nil {
			continue
		}
		if has := major > 1 || minor >= 7; has != newer {
			wanted := "older than 1.7"
			if newer {
				wanted = "of 1.7 or newer"
			}
			return fmt.Sprintf("the case needs a containerd %s, and node %s has %s", wanted, n.Name, version)
		}
	}
	return ""
}
