package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"
)

// call is one request for objects. Watches are handled elsewhere: see watcher.
type call struct {
	Request
	c           *Cluster
	resource    Resource
	query       url.Values
	contentType string
	body        []byte
}

// do carries out the request and returns an HTTP status and a document.
func (c *call) do() (status int, result any, err error) {
	status = http.StatusOK
	switch c.Verb {
	case "get":
		if c.resource.qualified() == "nodes" && c.Subresource == summaryPath {
			result, err = c.c.summary(c.Name)
			break
		}
		if c.resource.qualified() == "nodes" && c.Subresource == healthPath {
			result, err = c.c.kubeletHealth(c.Name)
			break
		}
		if c.resource.qualified() == "nodes" && c.Subresource == configzPath {
			result, err = c.c.configz(c.Name)
			break
		}
		result, err = c.get()
	case "list":
		result, err = c.list()
	case "create":
		status = http.StatusCreated
		result, err = c.create()
	case "update":
		result, err = c.update()
	case "patch":
		result, err = c.patch()
	case "delete":
		result, err = c.delete(c.key())
	case "deletecollection":
		result, err = c.deleteCollection()
	default:
		err = apierrors.NewMethodNotSupported(groupResource(c.resource), c.Verb)
	}
	return status, result, err
}

func (c *call) key() key { return key{c.resource.qualified(), c.Namespace, c.Name} }

// checkSubresource returns an error for a subresource that does not exist.
func (c *call) checkSubresource() error {
	if c.Subresource == "" || c.Subresource == "status" && c.resource.Status {
		return nil
	}
	return noSuchResource(c.Request)
}

func (c *call) get() (object, error) {
	if err := c.checkSubresource(); err != nil {
		return nil, err
	}
	o, ok := c.c.store.get(c.key())
	if !ok {
		return nil, apierrors.NewNotFound(groupResource(c.resource), c.Name)
	}
	return o, nil
}

func (c *call) list() (object, error) {
	matches, err := selector(c.query)
	if err != nil {
		return nil, err
	}
	all, version := c.c.store.list(c.resource.qualified(), c.Namespace)
	items := []any{}
	for _, o := range all {
		if matches(o) {
			items = append(items, o)
		}
	}
	return object{
		"apiVersion": c.resource.apiVersion(), "kind": c.resource.Kind + "List",
		"metadata": object{"resourceVersion": strconv.FormatInt(version, 10)}, "items": items,
	}, nil
}

func (c *call) create() (any, error) {
	o, err := c.decodeBody()
	if err != nil {
		return nil, err
	}
	switch {
	case c.resource.Virtual:
		return c.c.review(c.Request, c.resource, o), nil
	case c.resource.qualified() == "pods" && c.Subresource == "eviction":
		return c.c.evict(c.key(), o)
	case c.Subresource != "" || c.Name != "":
		return nil, noSuchResource(c.Request)
	}
	name := text(o, "metadata", "name")
	if prefix := text(o, "metadata", "generateName"); name == "" && prefix != "" {
		name = prefix + rand.String(5)
	}
	if name == "" {
		return nil, apierrors.NewBadRequest("name or generateName is required")
	}
	c.Name = name
	if c.resource.Namespaced {
		if _, ok := c.c.store.get(key{"namespaces", "", c.Namespace}); !ok {
			return nil, apierrors.NewNotFound(groupResource(Resource{Name: "namespaces"}), c.Namespace)
		}
	}
	if err := c.c.admit(c.Request, nil, o); err != nil {
		return nil, err
	}
	return c.store(o)
}

// dryRun reports whether the request is only checked and its result is not stored.
func (c *call) dryRun() bool { return slices.Contains(c.query["dryRun"], metav1.DryRunAll) }

// store stores a new object, unless this is a dry run.
func (c *call) store(o object) (object, error) {
	if _, exists := c.c.store.get(c.key()); c.dryRun() && !exists {
		return o, nil
	}
	return c.c.store.create(c.resource, c.key(), o)
}

func (c *call) update() (object, error) {
	if err := c.checkSubresource(); err != nil {
		return nil, err
	}
	o, err := c.decodeBody()
	if err != nil {
		return nil, err
	}
	return c.change(func(object) (object, error) { return o, nil })
}

func (c *call) patch() (object, error) {
	if err := c.checkSubresource(); err != nil {
		return nil, err
	}
	if _, exists := c.c.store.get(c.key()); !exists && c.contentType == string(types.ApplyYAMLPatchType) {
		data, err := yaml.YAMLToJSON(c.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		o, err := decode(data)
		if err != nil {
			return nil, err
		}
		if err := c.c.admit(c.Request, nil, o); err != nil {
			return nil, err
		}
		return c.store(o)
	}
	return c.change(func(before object) (object, error) {
		return patched(c.resource, before, c.contentType, c.body)
	})
}

// change replaces an object. A request for the subresource "status" replaces only the status. For
// any other request, the present status stays if the resource has that subresource; if not, the
// whole object is replaced.
func (c *call) change(f func(object) (object, error)) (object, error) {
	var dry object
	result, err := c.c.store.update(c.resource, c.key(), func(before object) (object, error) {
		o, err := c.changed(before, f)
		if err == nil && c.dryRun() {
			dry, err = o, errDryRun
		}
		return o, err
	})
	if dry != nil {
		return dry, nil
	}
	return result, err
}

// errDryRun keeps the store from replacing an object.
var errDryRun = errors.New("a dry run changes nothing")

// changed returns the object that replaces before.
func (c *call) changed(before object, f func(object) (object, error)) (object, error) {
	version := text(before, "metadata", "resourceVersion")
	o, err := f(before)
	if err != nil {
		return nil, err
	}
	if wanted := text(o, "metadata", "resourceVersion"); wanted != "" && wanted != version {
		return nil, apierrors.NewConflict(groupResource(c.resource), c.Name, errModified)
	}
	unchanged, _ := c.c.store.objects[c.key()]
	if err := c.c.admit(c.Request, unchanged, o); err != nil {
		return nil, err
	}
	if !c.resource.Status {
		return o, nil
	}
	if c.Subresource != "status" {
		return withStatus(o, unchanged), nil
	}
	return withStatus(copyOf(unchanged), o), nil
}

func withStatus(o, of object) object {
	delete(o, "status")
	if status, ok := of["status"]; ok {
		o["status"] = status
	}
	return o
}

func (c *call) delete(k key) (any, error) {
	var options metav1.DeleteOptions
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &options); err != nil {
			return nil, apierrors.NewBadRequest("read the options of the delete: " + err.Error())
		}
	}
	if grace := c.query.Get("gracePeriodSeconds"); grace != "" {
		if seconds, err := strconv.ParseInt(grace, 10, 64); err == nil {
			options.GracePeriodSeconds = &seconds
		}
	}
	if err := c.c.remove(c.resource, k, options); err != nil {
		return nil, err
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Group: c.resource.Group, Kind: c.resource.Name, Name: k.name},
	}, nil
}

func (c *call) deleteCollection() (any, error) {
	list, err := c.list()
	if err != nil {
		return nil, err
	}
	for _, item := range list["items"].([]any) {
		o := item.(object)
		k := key{c.resource.qualified(), text(o, "metadata", "namespace"), text(o, "metadata", "name")}
		if _, err := c.delete(k); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return list, nil
}

// remove deletes an object if the preconditions hold.
func (c *Cluster) remove(r Resource, k key, options metav1.DeleteOptions) error {
	if r.qualified() == "pods" && c.lingers(k, options) {
		return c.terminate(r, k, options)
	}
	_, err := c.store.update(r, k, func(o object) (object, error) {
		if err := checkPreconditions(options.Preconditions, o); err != nil {
			return nil, apierrors.NewConflict(groupResource(r), k.name, err)
		}
		return nil, nil
	})
	return err
}

// checkPreconditions returns an error if a delete is for another object, or another version of it (k8s.io/apiserver
// v0.36.3, pkg/registry/rest/delete.go).
func checkPreconditions(p *metav1.Preconditions, o object) error {
	if p == nil {
		return nil
	}
	if uid := text(o, "metadata", "uid"); p.UID != nil && string(*p.UID) != uid {
		return fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might "+
			"have been deleted and then recreated", *p.UID, uid)
	}
	if version := text(o, "metadata", "resourceVersion"); p.ResourceVersion != nil && *p.ResourceVersion != version {
		return fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record "+
			"(%s). The object might have been modified", *p.ResourceVersion, version)
	}
	return nil
}

func (c *call) decodeBody() (object, error) { return decode(c.body) }
