package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

// attempt is a request that a program on a node might try.
type attempt struct {
	verb, resource string // such as create and pods/eviction
	group, name    string
	method, path   string
	body           string
}

func (a attempt) String() string { return fmt.Sprintf("%s %s %s", a.verb, a.method, a.path) }

// attempts returns a request for each verb of each resource and subresource that the API server has, for the
// objects with the names of two nodes, in each namespace that matters.
func (l *lab) attempts(t *testing.T) (all []attempt) {
	t.Helper()
	_, lists, err := l.client().Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		for _, kind := range list.APIResources {
			all = append(all, attemptsOf(list.GroupVersion, kind)...)
		}
	}
	return all
}

func attemptsOf(version string, kind metav1.APIResource) (all []attempt) {
	base := "/apis/" + version
	group, _, named := strings.Cut(version, "/")
	if !named {
		base, group = "/api/"+version, ""
	}
	resource, sub, _ := strings.Cut(kind.Name, "/")
	folders := []string{base + "/" + resource}
	if kind.Namespaced {
		folders = nil
		for _, namespace := range []string{"default", "kube-system", "kube-node-lease", manifests.Namespace} {
			folders = append(folders, base+"/namespaces/"+namespace+"/"+resource)
		}
	}
	for _, folder := range folders {
		for _, verb := range kind.Verbs {
			for _, name := range []string{"w0", "w1"} {
				a := attempt{verb: verb, resource: kind.Name, group: group, name: name, path: folder + "/" + name}
				if sub != "" {
					a.path += "/" + sub
				}
				a.method, a.path, a.body = a.request(folder, sub)
				all = append(all, a)
			}
		}
	}
	return all
}

// request returns the HTTP request of a verb. It stores nothing if it is allowed.
func (a attempt) request(folder, sub string) (method, path, body string) {
	const dry = "?dryRun=All"
	switch a.verb {
	case "get":
		return http.MethodGet, a.path, ""
	case "list":
		return http.MethodGet, folder, ""
	case "watch":
		return http.MethodGet, folder + "?watch=1&timeoutSeconds=1", ""
	case "create":
		if sub == "" {
			return http.MethodPost, folder + dry, "{}"
		}
		return http.MethodPost, a.path + dry, "{}"
	case "update":
		return http.MethodPut, a.path + dry, "{}"
	case "patch":
		return http.MethodPatch, a.path + dry, `{"status":{"message":"tried"}}`
	case "delete":
		return http.MethodDelete, a.path + dry, ""
	case "deletecollection":
		return http.MethodDelete, folder + dry, ""
	}
	return http.MethodPost, a.path, "" // a verb that this test does not know fails it, unless it is refused
}

// outcome is the API server's answer to an attempt.
type outcome int

const (
	refused  outcome = iota // by the rules
	declined                // by the admission policy
	allowed
)

// wanted returns the outcome for the program on the node own; "": for its account without a pod.
func (a attempt) wanted(own string) outcome {
	switch {
	case a.group == fleetv1.Group && a.resource == "nodestates" && slices.Contains([]string{"get", "list", "watch"}, a.verb):
		return allowed
	case a.group == fleetv1.Group && a.resource == "nodestates/status" && a.verb == "patch" && a.name == own:
		return allowed
	case a.group == fleetv1.Group && a.resource == "nodestates/status" && a.verb == "patch":
		return declined
	case a.verb == "create" && strings.HasPrefix(a.resource, "selfsubject"): // each account may ask about itself
		return allowed
	}
	return refused
}

// try makes the request, and returns its outcome.
func (a attempt) try(ctx context.Context, client *http.Client, server string) (outcome, int, error) {
	request, err := http.NewRequestWithContext(ctx, a.method, server+a.path, bytes.NewReader([]byte(a.body)))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	if a.method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, 0, err
	}
	switch {
	case response.StatusCode == http.StatusForbidden:
		return refused, response.StatusCode, nil
	case response.StatusCode == http.StatusUnauthorized:
		return 0, response.StatusCode, errors.New("the token is not accepted")
	case response.StatusCode == http.StatusUnprocessableEntity && a.group == fleetv1.Group:
		return declined, response.StatusCode, nil
	}
	return allowed, response.StatusCode, nil
}

// testRights tries the token of the program on a node against every verb of every resource and subresource.
// It gets what the guide says, and is refused everything else.
func (l *lab) testRights(t *testing.T, access *rest.Config, own string) {
	t.Helper()
	client, err := rest.HTTPClientFor(access)
	if err != nil {
		t.Fatal(err)
	}
	all := l.attempts(t)
	var counts [allowed + 1]atomic.Int32
	err = forEach(t.Context(), all, func(ctx context.Context, a attempt) error {
		got, status, err := a.try(ctx, client, access.Host)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		counts[got].Add(1)
		if want := a.wanted(own); got != want {
			t.Errorf("%s: the status is %d, outcome %d; want %d", a, status, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests: %d refused by the rules, %d by the policy, %d allowed", len(all), counts[refused].Load(),
		counts[declined].Load(), counts[allowed].Load())
	if len(all) < 1000 || counts[declined].Load() == 0 {
		t.Errorf("only %d requests were tried", len(all))
	}
	l.otherPaths(t, client, access.Host)
}

// otherPaths tries what discovery does not list: paths without resources, and another user's name.
func (l *lab) otherPaths(t *testing.T, client *http.Client, server string) {
	t.Helper()
	for _, path := range []string{"/metrics", "/logs", "/configz", "/debug/pprof/", "/debug/flags/v", "/flagz", "/statusz"} {
		a := attempt{method: http.MethodGet, path: path}
		if got, status, err := a.try(t.Context(), client, server); err != nil || got != refused {
			t.Errorf("%s: the status is %d, %v", path, status, err)
		}
	}
	for _, header := range []string{"Impersonate-User", "Impersonate-Group", "Impersonate-Uid"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/api/v1/nodes", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Impersonate-User", programUser)
		request.Header.Set(header, "system:masters")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: the status is %d", header, response.StatusCode)
		}
	}
}
