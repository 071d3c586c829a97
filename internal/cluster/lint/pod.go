package lint

import (
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pods are the pods that an object makes.
type pods struct {
	object *object
	path   path // of the PodSpec
	meta   metav1.ObjectMeta
	spec   corev1.PodSpec
	ports  map[string]int32 // by name; made when it is first needed
	system system
}

// at returns the path of a field of the PodSpec.
func (p *pods) at(keys ...string) path { return p.path.child(keys...) }

// has returns the value at keys of the PodSpec; nil if it is not set.
func (p *pods) has(keys ...string) *yaml.Node { return p.object.at(p.at(keys...)) }

// container is a container of any list.
type container struct {
	*corev1.Container
	path path
}

// containers returns all containers, in the order in which the API server looks at them.
func (p *pods) containers() (all []container) {
	for i := range p.spec.InitContainers {
		all = append(all, container{Container: &p.spec.InitContainers[i], path: p.at("initContainers").index(i)})
	}
	for i := range p.spec.Containers {
		all = append(all, container{Container: &p.spec.Containers[i], path: p.at("containers").index(i)})
	}
	for i := range p.spec.EphemeralContainers {
		all = append(all, container{Container: (*corev1.Container)(&p.spec.EphemeralContainers[i].EphemeralContainerCommon),
			path: p.at("ephemeralContainers").index(i)})
	}
	return all
}

// isPatch reports whether the object is a patch of kustomize, which has a part of the pods: containers have no images.
func (p *pods) isPatch() bool {
	for i := range p.spec.Containers {
		if p.spec.Containers[i].Image == "" {
			return true
		}
	}
	return len(p.spec.Containers) == 0
}

// options returns the Windows options of the pods; never nil.
func (p *pods) options() *corev1.WindowsSecurityContextOptions {
	if sc := p.spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		return sc.WindowsOptions
	}
	return &corev1.WindowsSecurityContextOptions{}
}

// options returns the Windows options of a container; never nil.
func (c container) options() *corev1.WindowsSecurityContextOptions {
	if sc := c.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		return sc.WindowsOptions
	}
	return &corev1.WindowsSecurityContextOptions{}
}

// hostProcess reports whether a container is a HostProcess container: its own value counts, else that of the pods.
func (p *pods) hostProcess(c container) bool {
	value := p.options().HostProcess
	if own := c.options().HostProcess; own != nil {
		value = own
	}
	return value != nil && *value
}

// isHostProcess reports whether any container is a HostProcess container.
func (p *pods) isHostProcess() bool {
	for _, c := range p.containers() {
		if p.hostProcess(c) {
			return true
		}
	}
	return false
}

// user returns the user of a container, with the path that names it; nil: the image's.
func (p *pods) user(c container) (name *string, at path) {
	if own := c.options().RunAsUserName; own != nil {
		return own, c.path.child("securityContext", "windowsOptions", "runAsUserName")
	}
	return p.options().RunAsUserName, p.at("securityContext", "windowsOptions", "runAsUserName")
}
