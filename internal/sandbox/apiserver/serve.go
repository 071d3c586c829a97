package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxBody bounds the body of a request, in bytes (k8s.io/apiserver v0.36.3, pkg/server/config.go, MaxRequestBodyBytes;
// the error is that of pkg/endpoints/handlers/rest.go).
const maxBody = 3 << 20

// ServeHTTP answers one request: it authenticates the sender, parses the request, authorizes it and
// then answers it.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.begin() {
		panic(http.ErrAbortHandler)
	}
	defer c.running.Done()
	w.Header().Set("Date", c.now().UTC().Format(http.TimeFormat))
	who, err := c.authenticate(r)
	if err != nil {
		answerError(w, err)
		return
	}
	request, resource, err := c.parse(r)
	request.User, request.groups = who.name, who.groups
	if c.injectFault(w, r, request) {
		return
	}
	c.options.Log.Debug("request", "verb", request.Verb, "path", request.Path, "user", request.User)
	switch {
	case err != nil:
	case !c.allowed(request):
		err = forbidden(request)
	case request.Resource == "":
		err = c.answerPath(w, r)
	default:
		err = c.answerResource(w, r, request, resource)
	}
	if err != nil {
		answerError(w, err)
	}
}

// injectFault applies the verdict of the hook (see OnRequest) to a request, and reports whether
// the request needs no further answer.
func (c *Cluster) injectFault(w http.ResponseWriter, r *http.Request, request Request) bool {
	verdict := c.verdict(request)
	if verdict.Delay > 0 {
		timer := time.NewTimer(verdict.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return true
		}
	}
	switch {
	case verdict.Drop:
		panic(http.ErrAbortHandler) // makes net/http cut the connection
	case verdict.Status == http.StatusForbidden && verdict.Message == "":
		answerError(w, forbidden(request))
	case verdict.Status != 0:
		group := schema.GroupResource{Group: request.Group, Resource: request.Resource}
		answerError(w, apierrors.NewGenericServerResponse(verdict.Status, request.Verb, group, request.Name,
			verdict.Message, 0, true))
	}
	return verdict.Status != 0
}

// parse returns the meaning of an HTTP request, and the resource that it is for.
func (c *Cluster) parse(r *http.Request) (Request, Resource, error) {
	request := Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var version string
	switch {
	case parts[0] == "api" && len(parts) > 2:
		version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		request.Group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return request, Resource{}, nil
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	request.Resource = parts[0]
	if len(parts) > 1 {
		request.Name = parts[1]
	}
	if len(parts) > 2 {
		request.Subresource = strings.Join(parts[2:], "/")
	}
	request.Verb = verb(r, request.Name)
	resource, ok := c.resource(request.Group, version, request.Resource)
	if !ok {
		return request, resource, noSuchResource(request)
	}
	return request, resource, nil
}

func verb(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch watch := r.URL.Query().Get("watch"); {
		case watch == "true" || watch == "1":
			return "watch"
		case name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(r.Method)
}

func noSuchResource(r Request) error {
	group := schema.GroupResource{Group: r.Group, Resource: r.Resource}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Verb, group, r.Name,
		"the server could not find the requested resource", 0, true)
}

// answerPath answers requests about the server itself.
func (c *Cluster) answerPath(w http.ResponseWriter, r *http.Request) error {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/healthz", "/readyz", "/livez":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok")
		return nil
	case "/version":
		return answer(w, http.StatusOK, c.versionInfo())
	default:
		document, ok := c.discovery(path)
		if !ok {
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "",
				"the server could not find the requested resource", 0, true)
		}
		return answer(w, http.StatusOK, document)
	}
}

// answerResource answers requests about objects.
func (c *Cluster) answerResource(w http.ResponseWriter, r *http.Request, request Request, resource Resource) error {
	if request.Group == "" && request.Resource == "pods" && request.Subresource == "exec" {
		return c.answerExec(w, r, request)
	}
	if request.Verb == "watch" {
		return c.answerWatch(w, r, request, resource)
	}
	if resource.qualified() == "pods" && request.Subresource == "log" && request.Verb == "get" {
		return c.answerLog(w, request, r.URL.Query().Get("container"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	contentType := mediaType(r.Header.Get("Content-Type"))
	if body, err = asJSON(request, resource, contentType, body); err != nil {
		return err
	}
	if err := recordWrite(r, request, body); err != nil {
		return err
	}
	call := call{c: c, Request: request, resource: resource, query: r.URL.Query(), contentType: contentType, body: body}
	status, result, err := call.do()
	if err != nil {
		return err
	}
	if wantsTable(r) {
		result = c.tableOf(resource, result)
	}
	return answer(w, status, result)
}

func mediaType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	return strings.TrimSpace(kind)
}

func answer(w http.ResponseWriter, status int, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client may be gone
	return nil
}

func answerError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if seconds := retryAfter(status); seconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	_ = answer(w, int(status.Code), status)
}

func retryAfter(status metav1.Status) int32 {
	if status.Details == nil {
		return 0
	}
	return status.Details.RetryAfterSeconds
}
