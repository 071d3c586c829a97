package apiserver

import (
	"encoding/json"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// patched returns the object with the patch applied; kind is the patch's content type. A
// server-side apply is a merge patch here: the server does not track which manager owns a field.
func patched(r Resource, o object, kind string, patch []byte) (object, error) {
	original, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var result []byte
	switch types.PatchType(kind) {
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			result, err = operations.Apply(original)
		}
	case types.MergePatchType:
		result, err = jsonpatch.MergePatch(original, patch)
	case types.StrategicMergePatchType:
		result, err = strategic(r, original, patch)
	case types.ApplyYAMLPatchType:
		if patch, err = yaml.YAMLToJSON(patch); err == nil {
			result, err = jsonpatch.MergePatch(original, patch)
		}
	default:
		return nil, apierrors.NewGenericServerResponse(415, "patch", groupResource(r), "",
			"the media type of the patch is not supported: "+kind, 0, true)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return decode(result)
}

// strategic applies a strategic merge patch. It needs Kubernetes' own type of the object.
// Custom resources have no such type, and so they do not support these patches.
func strategic(r Resource, original, patch []byte) ([]byte, error) {
	typed, err := scheme.Scheme.New(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(original, patch, typed)
}

// decode reads an object, with whole numbers as int64.
func decode(data []byte) (object, error) {
	var o object
	if err := utiljson.Unmarshal(data, &o); err != nil {
		return nil, apierrors.NewBadRequest("the object is not JSON: " + err.Error())
	}
	if o == nil {
		return nil, apierrors.NewBadRequest("the object is empty")
	}
	return o, nil
}

func equalJSON(a, b any) bool { return reflect.DeepEqual(a, b) }
