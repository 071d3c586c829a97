package apiserver

import (
	"errors"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// errModified is the error of an update of an object that has changed (k8s.io/apiserver v0.36.3,
// pkg/registry/generic/registry/store.go, OptimisticLockErrorMsg).
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and " +
	"try again")

// selector returns a function that reports whether an object matches the label and field selectors
// of a request. A field selector can use every field with a single value.
func selector(query url.Values) (func(object) bool, error) {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o object) bool {
		return byLabel.Matches(labels.Set(texts(o, "metadata", "labels"))) && byField.Matches(objectFields(o))
	}, nil
}

// objectFields are an object's fields by path, such as spec.nodeName.
type objectFields object

func (o objectFields) Has(path string) bool {
	return field(object(o), strings.Split(path, ".")...) != nil
}

func (o objectFields) Get(path string) string { return text(object(o), strings.Split(path, ".")...) }

func copyOf(o object) object { return runtime.DeepCopyJSON(o) }
