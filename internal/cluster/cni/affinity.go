package cni

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Calico's API has the setting strictAffinity, which Windows requires: without it, Calico assigns
// addresses of one node's block to pods of another node. When Calico assigns the first address,
// it creates the object with this setting off. So the value off is not a user's choice, and swdt
// replaces it.

// CalicoAPI is the condition that Calico's API is served.
func (s *Server) CalicoAPI() Condition {
	return Condition{Name: "Calico's API server", Look: func(ctx context.Context) error {
		_, known, err := s.resource(ctx, ipamObject())
		if err == nil && !known {
			err = s.TigeraStatus("apiserver").Look(ctx)
			if err == nil {
				err = &NotReadyError{What: "the API server has no kind IPAMConfiguration of projectcalico.org/v3 yet"}
			}
		}
		return err
	}}
}

// Affinity is the state of strictAffinity.
type Affinity struct {
	Known  bool // Calico's API is served
	Exists bool // the object exists
	Strict bool
}

// Affinity reads the state of strictAffinity.
func (s *Server) Affinity(ctx context.Context) (Affinity, error) {
	_, known, err := s.resource(ctx, ipamObject())
	if err != nil || !known {
		return Affinity{}, err
	}
	live, err := s.Get(ctx, ipamObject())
	if err != nil || live == nil {
		return Affinity{Known: true}, err
	}
	strict, _, _ := unstructured.NestedBool(live.Object, "spec", "strictAffinity")
	return Affinity{Known: true, Exists: true, Strict: strict}, nil
}

// SetStrictAffinity turns strictAffinity on. It creates or patches the object instead of applying it,
// since Calico's own API server does not support server-side apply in all versions.
func (s *Server) SetStrictAffinity(ctx context.Context) error {
	o := ipamObject()
	client, known, err := s.resource(ctx, o)
	if err != nil {
		return err
	}
	if !known {
		return &UnknownKindError{o.GroupVersionKind()}
	}
	const doing = "turn on strictAffinity"
	o.Object["spec"] = map[string]any{"strictAffinity": true, "autoAllocateBlocks": true, "maxBlocksPerHost": int64(0)}
	_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: Manager})
	if !apierrors.IsAlreadyExists(err) {
		return s.cluster.Failure(doing, permission("create", o, "ipamconfigurations"), err)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"strictAffinity": true}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	return s.cluster.Failure(doing, permission("patch", o, "ipamconfigurations"), err)
}
