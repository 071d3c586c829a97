package apiserver

import (
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *Cluster) versionInfo() version.Info {
	c.mu.Lock()
	v := c.version
	c.mu.Unlock()
	info := version.Info{GitVersion: v, GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: "linux/amd64", GitTreeState: "clean"}
	if parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3); len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

// discovery answers /openapi/v3, /api, /apis and the paths below them down to the versions. It uses
// the form of discovery from before aggregated discovery, which every client understands.
func (c *Cluster) discovery(path string) (any, bool) {
	switch parts := strings.Split(strings.TrimPrefix(path, "/"), "/"); {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case path == "/apis":
		return c.groups(), true
	case strings.HasPrefix(path, "/openapi/v3"):
		return c.openAPI(path)
	case parts[0] == "api" && len(parts) == 2:
		return c.resourceList("", parts[1])
	case parts[0] == "apis" && len(parts) == 2:
		groups := c.groups().Groups
		i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == parts[1] })
		if i < 0 {
			return nil, false
		}
		group := groups[i]
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return group, true
	case parts[0] == "apis" && len(parts) == 3:
		return c.resourceList(parts[1], parts[2])
	}
	return nil, false
}

func (c *Cluster) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups: []metav1.APIGroup{}}
	for _, r := range c.table() {
		if r.Group == "" {
			continue
		}
		i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == r.Group })
		entry := metav1.GroupVersionForDiscovery{GroupVersion: r.apiVersion(), Version: r.Version}
		switch {
		case i < 0:
			list.Groups = append(list.Groups, metav1.APIGroup{Name: r.Group,
				Versions: []metav1.GroupVersionForDiscovery{entry}, PreferredVersion: entry})
		case !slices.Contains(list.Groups[i].Versions, entry):
			list.Groups[i].Versions = append(list.Groups[i].Versions, entry)
		}
	}
	return list
}

func (c *Cluster) resourceList(group, version string) (any, bool) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, r := range c.table() {
		if r.Group != group || r.Version != version {
			continue
		}
		list.GroupVersion = r.apiVersion()
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: strings.ToLower(r.Kind), Kind: r.Kind, Namespaced: r.Namespaced,
			ShortNames: r.Short, Verbs: r.verbs(),
		})
		if r.Status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Name + "/status", Kind: r.Kind, Namespaced: r.Namespaced,
				Verbs: []string{"get", "patch", "update"},
			})
		}
		if r.Name == "pods" && r.Group == "" {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: "pods/eviction", Group: "policy", Version: "v1", Kind: "Eviction", Namespaced: true,
				Verbs: []string{"create"},
			})
		}
	}
	return list, list.GroupVersion != ""
}
