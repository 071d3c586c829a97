package readiness

// The categories of cases, in the order of the list.
const (
	Network     = "network"
	Policy      = "policy"
	Storage     = "storage"
	Scheduling  = "scheduling"
	Identity    = "identity"
	HostProcess = "host-process"
	Security    = "security"
	NodeItself  = "node"
	Isolation   = "isolation"
	Devices     = "devices"
)

// Categories returns all categories, in the order of the list.
func Categories() []string {
	return []string{Network, Policy, Storage, Scheduling, Identity, HostProcess, Security, NodeItself, Isolation, Devices}
}

// The needs of cases. The facts of a cluster show whether it has most of these needs. Only the case
// itself shows whether pods reach the internet, and whether the pod network enforces policies.
const (
	LinuxNode     = "linux-node"     // a Ready Linux node for pods
	Placement     = "placement"      // pods without a node selector start on Windows nodes only
	StorageClass  = "storage-class"  // a default StorageClass
	Domain        = "domain"         // a node that is in an Active Directory domain, labelled for the specs
	Internet      = "internet"       // pods and e2e.test reach the internet
	NetworkPolicy = "network-policy" // a pod network that enforces NetworkPolicies
	HyperV        = "hyper-v"        // the RuntimeClass runhcs-wcow-hypervisor
	GPU           = "gpu"            // a node with a GPU for DirectX
	Containerd16  = "containerd-1.6" // containerd older than 1.7
	Containerd17  = "containerd-1.7" // containerd 1.7 or newer
)

// Needs returns everything that a case can need.
func Needs() []string {
	return []string{LinuxNode, Placement, StorageClass, Domain, Internet, NetworkPolicy, HyperV, GPU, Containerd16,
		Containerd17}
}

// Case is one thing that a cluster with Windows nodes must be able to do.
type Case struct {
	// ID names the case, such as host-process-runs.
	ID       string `json:"id"`
	Category string `json:"category"`
	// Proves states, in a sentence, the ability of the cluster that the case proves.
	Proves string `json:"proves"`
	// Specs select specs of e2e.test, which must all pass. Empty if the case has a probe.
	Specs []Selection `json:"specs"`
	// Probe is the name of swdt's own test; "" if the case has specs.
	Probe string `json:"probe"`
	// Why is the reason why the case is proved in this way; "" if the specs need no reason.
	Why string `json:"why"`
	// Needs lists what the cluster must have, such as linux-node or domain.
	Needs []string `json:"needs"`
	// Impossible is the reason why no cluster can prove the case at present; "" if clusters can.
	Impossible string `json:"impossible"`
	// Classic is the test case of the operational-readiness specification that this case stands for.
	Classic Classic `json:"classic"`
}

// Classic is a test case of the operational-readiness specification as of February 2024.
type Classic struct {
	// ID is the category with the number of the test case, such as Core.Network#1; "" if the
	// specification has no such test case. The other fields are then empty too.
	ID string `json:"id"`
	// Focus are the regular expressions by which the specification selects specs.
	Focus []string `json:"focus"`
	// Selects is the number of specs that Focus selects.
	Selects int `json:"selects"`
	// Fault explains why the test case proves less than its description states; "" if it does not.
	Fault string `json:"fault"`
}
