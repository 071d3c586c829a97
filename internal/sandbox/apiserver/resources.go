package apiserver

import "slices"

// Resource is a kind of object that the API server keeps.
type Resource struct {
	Group      string // empty: core
	Version    string
	Name       string // plural: nodes
	Kind       string
	Short      []string
	Namespaced bool
	// Status declares that the status is a subresource: updates of the object do
	// not change it.
	Status bool
	// Virtual means that the server answers requests for the resource and stores no objects.
	Virtual bool
}

func (r Resource) apiVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// qualified returns the name of a resource with its group, which is unique among all groups.
func (r Resource) qualified() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

func builtinResources() []Resource {
	return []Resource{
		{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Short: []string{"cm"}, Namespaced: true},
		{Version: "v1", Name: "events", Kind: "Event", Short: []string{"ev"}, Namespaced: true},
		{Version: "v1", Name: "namespaces", Kind: "Namespace", Short: []string{"ns"}, Status: true},
		{Version: "v1", Name: "nodes", Kind: "Node", Short: []string{"no"}, Status: true},
		{Version: "v1", Name: "podtemplates", Kind: "PodTemplate", Namespaced: true},
		{Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", Short: []string{"rc"},
			Namespaced: true, Status: true},
		{Version: "v1", Name: "pods", Kind: "Pod", Short: []string{"po"}, Namespaced: true, Status: true},
		{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true},
		{Version: "v1", Name: "serviceaccounts", Kind: "ServiceAccount", Short: []string{"sa"}, Namespaced: true},
		{Version: "v1", Name: "services", Kind: "Service", Short: []string{"svc"}, Namespaced: true, Status: true},
		{Group: "apps", Version: "v1", Name: "daemonsets", Kind: "DaemonSet", Short: []string{"ds"},
			Namespaced: true, Status: true},
		{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Short: []string{"deploy"},
			Namespaced: true, Status: true},
		{Group: "apps", Version: "v1", Name: "replicasets", Kind: "ReplicaSet", Short: []string{"rs"},
			Namespaced: true, Status: true},
		{Group: "apps", Version: "v1", Name: "statefulsets", Kind: "StatefulSet", Short: []string{"sts"},
			Namespaced: true, Status: true},
		{Group: "authorization.k8s.io", Version: "v1", Name: "selfsubjectaccessreviews",
			Kind: "SelfSubjectAccessReview", Virtual: true},
		{Group: "authorization.k8s.io", Version: "v1", Name: "subjectaccessreviews",
			Kind: "SubjectAccessReview", Virtual: true},
		{Group: "authentication.k8s.io", Version: "v1", Name: "selfsubjectreviews",
			Kind: "SelfSubjectReview", Virtual: true},
		{Group: "batch", Version: "v1", Name: "jobs", Kind: "Job", Namespaced: true, Status: true},
		{Group: "batch", Version: "v1", Name: "cronjobs", Kind: "CronJob", Short: []string{"cj"},
			Namespaced: true, Status: true},
		{Group: "networking.k8s.io", Version: "v1", Name: "networkpolicies", Kind: "NetworkPolicy",
			Short: []string{"netpol"}, Namespaced: true},
		{Group: "certificates.k8s.io", Version: "v1", Name: "certificatesigningrequests",
			Kind: "CertificateSigningRequest", Short: []string{"csr"}, Status: true},
		{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease", Namespaced: true},
		{Group: "discovery.k8s.io", Version: "v1", Name: "endpointslices", Kind: "EndpointSlice", Namespaced: true},
		{Group: "events.k8s.io", Version: "v1", Name: "events", Kind: "Event", Short: []string{"ev"}, Namespaced: true},
		{Group: "node.k8s.io", Version: "v1", Name: "runtimeclasses", Kind: "RuntimeClass"},
		{Group: "policy", Version: "v1", Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget",
			Short: []string{"pdb"}, Namespaced: true, Status: true},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterroles", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterrolebindings", Kind: "ClusterRoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "roles", Kind: "Role", Namespaced: true},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "rolebindings", Kind: "RoleBinding", Namespaced: true},
		{Group: "storage.k8s.io", Version: "v1", Name: "csinodes", Kind: "CSINode"},
	}
}

// AddResource adds a resource, as a CustomResourceDefinition does.
func (c *Cluster) AddResource(r Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources = append(c.resources, r)
}

// Calico returns the resources of Calico and its operator that describe the configuration of its
// pod network.
func Calico() []Resource {
	return []Resource{
		{Group: "operator.tigera.io", Version: "v1", Name: "installations", Kind: "Installation", Status: true},
		{Group: "crd.projectcalico.org", Version: "v1", Name: "ipamconfigs", Kind: "IPAMConfig"},
		{Group: "crd.projectcalico.org", Version: "v1", Name: "ippools", Kind: "IPPool"},
		{Group: "projectcalico.org", Version: "v3", Name: "ipamconfigurations", Kind: "IPAMConfiguration"},
		{Group: "projectcalico.org", Version: "v3", Name: "ippools", Kind: "IPPool"},
	}
}

// table returns the current resources.
func (c *Cluster) table() []Resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.resources)
}

func (c *Cluster) resource(group, version, name string) (Resource, bool) {
	all := c.table()
	i := slices.IndexFunc(all, func(r Resource) bool {
		return r.Group == group && r.Version == version && r.Name == name
	})
	if i < 0 {
		return Resource{}, false
	}
	return all[i], true
}

// kind finds the resource of a manifest.
func (c *Cluster) kind(apiVersion, kind string) (Resource, bool) {
	all := c.table()
	i := slices.IndexFunc(all, func(r Resource) bool { return r.apiVersion() == apiVersion && r.Kind == kind })
	if i < 0 {
		return Resource{}, false
	}
	return all[i], true
}

// verbs returns the verbs that discovery lists for a resource.
func (r Resource) verbs() []string {
	if r.Virtual {
		return []string{"create"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}
