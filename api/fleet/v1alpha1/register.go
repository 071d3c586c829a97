package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group, and Version the version in this package.
const (
	Group   = "fleet.swdt.dev"
	Version = "v1alpha1"
)

// GroupVersion returns the group and version of the objects.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// RolloutResource returns the resource of NodeRollouts, StateResource that of NodeStates.
func RolloutResource() schema.GroupVersionResource {
	return GroupVersion().WithResource("noderollouts")
}
func StateResource() schema.GroupVersionResource { return GroupVersion().WithResource("nodestates") }

// AddToScheme makes a scheme know the objects of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &NodeRollout{}, &NodeRolloutList{}, &NodeState{}, &NodeStateList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
